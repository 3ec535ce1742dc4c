"""Reading a primary-key table of five overlapping runs: ingestd, pypaimon and Java in one go.

    python -m bench.read --rows 5000000

The table has as many keys as rows are asked for. The first run holds them all; each of the other
four holds a fifth of them again. Every reader merges all rows and looks at every column of them.
Readers take turns after some warm-up rounds, so that other load on the machine affects all of them;
best time and median count. pypaimon needs many times the memory and the time: beyond
`--pypaimon-rows` it reads a table of this many keys, ingestd beside it. The last line is JSON.
"""

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.process import end_all_on_signals
from bench.table_readers import PROGRAMS, Figures, in_turns
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND, parse_type
from ingestd.paimon.spec.paths import TablePaths
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.buckets.bucket_assigner import assign_fixed
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import publish_schema
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket

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


def make_table(
    warehouse: Path, keys: int, buckets: int, sizes: Sequence[int] = ()
) -> FileStoreTable:
    """Write the runs, one snapshot each, with `sizes` rows of keys that are chosen again.

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
            write_bucket(table, EMPTY_ROW, b, part.filter(pa.array(owners == b)), new_name=new_name)
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


def measured(keys: int, buckets: int, readers: Sequence[str], rounds: int) -> dict[str, Figures]:
    """What some readers need for a new table; SystemExit if they disagree on its rows."""
    with tempfile.TemporaryDirectory(prefix="ingestd-read-") as folder:
        make_table(Path(folder), keys, buckets)
        found = in_turns(readers, Path(folder), rounds)
    for name, one in found.items():
        print(f"{name:9} {keys:9,} keys  {one.line(keys)}", flush=True)
    if len({(value.rows, value.sum) for value in found.values()}) > 1:
        raise SystemExit(f"the readers disagree: {found}")
    return found


def ratios(found: Mapping[str, Figures]) -> Mapping[str, Any]:
    """How many times faster ingestd is than each of the others, by wall and by CPU time."""
    ours = found["ingestd"]
    return {
        name: {
            "wall": round(one.best_wall / ours.best_wall, 2),
            "median": round(one.median_wall / ours.median_wall, 2),
            "cpu": round(one.best_cpu / ours.best_cpu, 2),
        }
        for name, one in found.items()
        if name != "ingestd"
    }


def main() -> None:
    end_all_on_signals()
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--rows", type=int, default=5_000_000)
    arguments.add_argument("--buckets", type=int, default=4)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--pypaimon-rows", type=int, default=1_000_000)
    arguments.add_argument("--only", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    given = arguments.parse_args()
    sizes: dict[int, list[str]] = {}
    for name in dict.fromkeys(["ingestd", *given.only]):
        keys = min(given.rows, given.pypaimon_rows) if name == "pypaimon" else given.rows
        sizes.setdefault(keys, ["ingestd"]).append(name)
    report = []
    for keys, readers in sizes.items():
        rounds = min(given.rounds, 2) if "pypaimon" in readers else given.rounds
        found = measured(keys, given.buckets, list(dict.fromkeys(readers)), rounds)
        times = ratios(found)
        print(f"ingestd is faster at {keys:,} keys, times: {times}")
        figures = {name: one.as_json() for name, one in found.items()}
        report.append({"rows": keys, "readers": figures, "ratios": times})
    print(json.dumps({"tables": report}))


if __name__ == "__main__":
    main()
