"""The library surface hands rows to the real pandas and Polars, and takes theirs.

Both are in the environment of pypaimon, whose folder is put behind our own.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ingestd.paimon as paimon
from tests.support.oracle import Oracle
from tests.support.pypaimon import environment

pytestmark = pytest.mark.compat

SCRIPT = """
import json, sys
sys.path.append(sys.argv[1])
import pandas, polars
import ingestd.paimon as paimon

table = paimon.open(sys.argv[2])
table.write(pandas.DataFrame({"id": [2, 3], "v": ["pandas", None]}))
table.write(polars.DataFrame({"id": [3, 4], "v": ["polars", "p"]}))
frame, other = table.to_pandas(where="id > 2"), table.to_polars(columns=["v"])
print(json.dumps([sorted(frame["v"]), sorted(other["v"].to_list())]))
"""


def test_data_frames_come_and_go(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
    warehouse = paimon.open_warehouse(str(tmp_path))
    warehouse.create("db.t", schema, primary_keys=["id"]).write([{"id": 1, "v": "arrow"}])
    (packages,) = environment("pypaimon").parent.parent.glob("lib/python*/site-packages")
    place = f"{tmp_path}/db.t"
    command = [sys.executable, "-c", SCRIPT, str(packages), place]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [["p", "polars"], ["arrow", "p", "pandas", "polars"]]


@pytest.mark.parametrize(
    "how",
    [
        {"primary_keys": ["id", "dt"], "partition_keys": ["dt"]},
        {"primary_keys": ["id", "dt"], "partition_keys": ["dt"], "options": {"bucket": "2"}},
        {"primary_keys": ["id"], "partition_keys": ["dt"]},
        {"partition_keys": ["dt"]},
    ],
    ids=["dynamic", "fixed", "across partitions", "append"],
)
def test_java_reads_what_programs_write_and_finds_nothing_wrong(
    how: dict[str, Any], tmp_path: Path, oracle: Oracle
) -> None:
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("dt", pa.string())])
    table = paimon.open_warehouse(str(tmp_path)).create("db.t", schema, **how)
    with table.writer() as writer:
        writer.write([{"id": n, "dt": "ab"[n % 2]} for n in range(8)])
    if table.primary_keys:
        with table.writer() as writer:
            writer.delete([{"id": 3, "dt": "b"}])
            writer.write([{"id": 9, "dt": "a"}])
    wanted = table.to_arrow().sort_by("id").to_pylist()
    read = sorted(oracle.read(tmp_path, "db", "t"), key=lambda row: row["id"])
    assert [{name: row[name] for name in ("id", "dt")} for row in read] == wanted
    assert len(wanted) == 8
    assert oracle.fsck(tmp_path, "db", "t", "--all") == []
