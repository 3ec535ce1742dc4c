"""Reading a primary-key table of five overlapping runs: ingestd, pypaimon and Java in one go.

    python -m bench.read --rows 5000000

The table has as many keys as rows are asked for. The first run holds them all; each of the other
four holds a fifth of them again. Every reader merges all rows and looks at every column of them,
a few times in one process, and its best time counts. The last line is JSON.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bench.java import PEERS, pins_of
from bench.peer_runs import pypaimon_python
from ingestd.dev.jars import cache_folder, fetch, java_command
from ingestd.dev.java_classes import compiled
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND, parse_type
from ingestd.paimon.spec.paths import TablePaths
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.bucket_assigner import assign_fixed
from ingestd.paimon.table.commit import commit
from ingestd.paimon.table.commit_message import ManifestCommittable
from ingestd.paimon.table.file_store_table import FileStoreTable
from ingestd.paimon.table.read import iter_buckets
from ingestd.paimon.table.schema_manager import latest_schema, publish_schema
from ingestd.paimon.table.table_state import load_state
from ingestd.paimon.table.write import data_file_names, write_bucket

COLUMNS = {
    "id": "BIGINT",
    "n": "BIGINT",
    "note": "STRING",
    "price": "DOUBLE",
    "amount": "DECIMAL(12, 2)",
    "at": "TIMESTAMP(3)",
}
AMOUNT = pa.decimal128(12, 2)
RUNS = 5
OPENED = ("java.lang", "java.util", "java.nio", "sun.nio.ch")


def make_table(
    warehouse: Path, keys: int, buckets: int, sizes: Sequence[int] = ()
) -> FileStoreTable:
    """Write the runs, one snapshot each: so many rows as `sizes` say, of keys chosen anew.

    Without sizes there are the five that readers are measured with.
    """
    sizes = sizes or [keys, *[keys // 5] * (RUNS - 1)]
    typed = [(name, parse_type(text)) for name, text in COLUMNS.items()]
    schema = new_schema(typed, ["id"], [], {"bucket": str(buckets), "write-only": "true"}, 0)
    path, io = str(warehouse / "db.db" / "t"), LocalFileIO(sync=False)
    publish_schema(io, TablePaths(path), schema)
    table = FileStoreTable(path, schema, io, "db.t")
    random = np.random.default_rng(1)
    state, sequence = load_state(table), 0
    for run, size in enumerate(sizes):
        ids = random.permutation(keys)[:size]
        part = _rows(ids, random, sequence)
        sequence += len(ids)
        owners, new_name = assign_fixed(table, part), data_file_names(table)
        messages = tuple(
            write_bucket(
                table, EMPTY_ROW, (), b, part.filter(pa.array(owners == b)), new_name=new_name
            )
            for b in range(buckets)
        )
        commit(table, "bench", ManifestCommittable(run + 1, messages), state=state, now_ms=1)
        state = load_state(table)
    return table


def _rows(ids: npt.NDArray[np.int64], random: np.random.Generator, sequence: int) -> pa.Table:
    count = len(ids)
    cents = pa.array(random.integers(0, 10**9, count))
    notes = np.char.add("note of the order number ", random.integers(0, 10**6, count).astype(str))
    at = pa.array(1_700_000_000_000 + random.integers(0, 10**10, count))
    columns: dict[str, Any] = {
        "id": pa.array(ids.astype(np.int64)),
        "n": pa.array(random.integers(0, 10**6, count)),
        "note": pa.array(notes.tolist(), pa.string()),
        "price": pa.array(random.random(count) * 1000),
        "amount": cents.cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)).cast(AMOUNT),
        "at": at.cast(pa.timestamp("ms")),
        SEQUENCE_NUMBER: pa.array(np.arange(sequence, sequence + count)),
        VALUE_KIND: pa.array(np.zeros(count, np.int8)),
    }
    return pa.table(columns)


def read_here(warehouse: str, rounds: int) -> None:
    """Read with ingestd and print one line of JSON for each time."""
    path, io = f"{warehouse}/db.db/t", LocalFileIO()
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        schema = latest_schema(io, TablePaths(path))
        assert schema is not None
        table = FileStoreTable(path, schema, io, "db.t")
        rows = total = 0
        for part in iter_buckets(table):
            rows += part.num_rows
            total += pc.sum(part.column("n")).as_py()
        times = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        print(json.dumps({"rows": rows, "sum": total, **times}), flush=True)


def programs(warehouse: Path, rounds: int, threads: int) -> Mapping[str, Sequence[str]]:
    """The command line of each reader."""
    pins = pins_of("java")
    jars = fetch(list(pins), cache_folder() / "peers" / "java", pins=pins)
    classes = compiled(
        [PEERS / "java" / "ReadTable.java"], jars, cache_folder() / "peers" / "classes"
    )
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    java = [java_command(), "-Xmx4g", *opened, "-Duser.timezone=UTC"]
    java += ["-cp", ":".join(map(str, [classes, *jars])), "ReadTable"]
    here = [sys.executable, "-m", "bench.read", "--here", str(warehouse)]
    return {
        "ingestd": [*here, "--rounds", str(rounds)],
        "java": [*java, str(warehouse), str(rounds + 2), str(threads)],
        "pypaimon": [
            str(pypaimon_python()), "-P", str(PEERS / "pypaimon_reader.py"), str(warehouse),
            str(max(1, rounds - 1)),
        ],
    }  # fmt: skip


def measure(program: Sequence[str]) -> Mapping[str, Any]:
    """The best round of a reader."""
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise SystemExit(f"{program[0]} failed:\n{done.stderr[-3000:]}")
    return {**lines[0], "wall": min(o["wall"] for o in lines), "cpu": min(o["cpu"] for o in lines)}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--rows", type=int, default=5_000_000)
    arguments.add_argument("--buckets", type=int, default=4)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--threads", type=int, default=2, help="threads of the Java reader")
    arguments.add_argument("--only", nargs="+", default=[], help="readers; all without it")
    arguments.add_argument("--here", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.here:
        read_here(given.here, given.rounds)
        return
    with tempfile.TemporaryDirectory(prefix="ingestd-read-") as folder:
        warehouse = Path(folder)
        make_table(warehouse, given.rows, given.buckets)
        found = {}
        for name, program in programs(warehouse, given.rounds, given.threads).items():
            if not given.only or name in given.only:
                found[name] = measure(program)
                wall, cpu = found[name]["wall"], found[name]["cpu"]
                print(
                    f"{name:10} {given.rows / wall:12,.0f} rows/s  {wall:7.2f} s  cpu {cpu:7.2f} s"
                )
    if len({(one["rows"], one["sum"]) for one in found.values()}) > 1:
        raise SystemExit(f"the readers disagree: {found}")
    print(json.dumps({"rows": given.rows, "readers": found}))


if __name__ == "__main__":
    main()
