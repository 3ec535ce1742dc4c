"""A write task's memory follows its bounds, not its input. Measured in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MEGABYTE = 1 << 20
RUN_BYTES = 8 * MEGABYTE

SCRIPT = """
import json, resource, sys
from pathlib import Path
import numpy as np
import pyarrow as pa
from ingestd.ingest.key_changes.completion import complete_rows
from ingestd.ingest.rows.blobs import HASH, KIND, OFFSET, POSITION, BlobOrigin, UnsentRows
from ingestd.ingest.settings.context import BatchContext, RoutingConfig, TableContext
from ingestd.paimon.table.buckets.hash_index import key_hashes
from ingestd.ingest.stages.write_stage import write_slot
from tests.support.native_tables import native_table

folder, blobs, rows, width, run_bytes = sys.argv[1], *map(int, sys.argv[2:])
table = native_table(folder, [("k", "BIGINT"), ("v", "BYTES")], keys=["k"])
random = np.random.default_rng(1)

def blob(number):
    keys = np.arange(number * rows, (number + 1) * rows)
    values = [random.bytes(width) for _ in range(rows)]
    columns = {"k": pa.array(keys), "v": pa.array(values, pa.binary()),
               KIND: pa.array(np.zeros(rows, np.int8)), OFFSET: pa.array(keys),
               POSITION: pa.array(keys)}
    part = pa.table(columns)
    part = part.append_column(HASH, pa.array(key_hashes(table, part)))
    return UnsentRows(BlobOrigin("db.t", "s", "topic", 0, int(keys[0])), part).encoded()

path, places = Path(folder, "blobs"), []
with path.open("wb") as file:
    for number in range(blobs):
        data = blob(number)
        places.append((file.tell(), len(data)))
        file.write(data)
        del data
context = BatchContext(
    pipeline="p", database="db", tables={"db.t": TableContext("db.t", table)},
    routing=RoutingConfig(), sources={}, dead_letters="db.dead", write_buffer_size=run_bytes,
)
mapped = pa.memory_map(str(path)).read_buffer()
pool = pa.default_memory_pool()
before = pool.bytes_allocated()
limited = pa.proxy_memory_pool(pool)
pa.set_memory_pool(limited)
blobs = (mapped.slice(start, size) for start, size in places)
outcome = write_slot(context, blobs, complete_rows)
print(json.dumps({"peak": limited.max_memory(), "rows": sum(
    file.row_count for m in outcome.messages["db.t"] for file in m.new_files)}))
"""


def measured(folder: Path, *, blobs: int, rows: int, width: int) -> dict[str, Any]:
    folder.mkdir()
    numbers = map(str, (blobs, rows, width, RUN_BYTES))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), *numbers],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["rows"] == blobs * rows
    return found


@pytest.mark.parametrize(
    ("rows", "width"), [(10_000, 100), (1, MEGABYTE)], ids=["narrow", "records of a megabyte"]
)
def test_a_task_takes_a_few_times_its_bound_however_much_it_gets(
    rows: int, width: int, tmp_path: Path
) -> None:
    tenfold = 10 * RUN_BYTES // (rows * width)
    peak = measured(tmp_path / "t", blobs=tenfold, rows=rows, width=width)["peak"]
    assert RUN_BYTES / 2 < peak < 4 * RUN_BYTES + rows * width


def test_one_record_of_ten_megabytes_takes_a_few_times_its_size(tmp_path: Path) -> None:
    peak = measured(tmp_path / "t", blobs=6, rows=1, width=10 * MEGABYTE)["peak"]
    assert peak < 5 * 10 * MEGABYTE
