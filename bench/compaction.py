"""Full compaction of a bucket of five overlapping runs: ingestd and Java in one go.

    python -m bench.compaction                    # runs of 200,000 rows
    python -m bench.compaction --rows 1000000
    python -m bench.compaction --rows 100 --row-bytes 1000000 --format orc

Every run holds half of all keys. Each side compacts a few copies of the table, one after the other
in one process; the best time counts. Memory is the most that the process has held, of which a JVM
takes what it is given; rows of `--row-bytes` show whether it is bounded for wide rows, too. Write
amplification is bytes written by bytes read. Both must have left the same rows in the table. The
last line is JSON.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from bench import java
from bench.process import end_all_on_signals
from bench.read import RUNS, make_table
from bench.wide_table import make_wide_table
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec.paths import TablePaths
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_scan import live_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import latest_schema
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.table_read import iter_buckets


def compact_here(warehouses: Sequence[str]) -> None:
    """Compact with ingestd and print one line of JSON for each table."""
    for warehouse in warehouses:
        wall, cpu = time.perf_counter(), time.process_time()
        result = compact_table(_open(warehouse), now_ms=int(time.time() * 1000), full=True)
        if result.status != "compacted":
            raise SystemExit(f"nothing was compacted: {result.status}")
        times = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
        print(json.dumps({**times, "peak_kb": int(peak[1]) if peak else 0}), flush=True)


def programs(heap: str) -> Mapping[str, Sequence[str]]:
    """The command line of each side, to which warehouses are added."""
    return {
        "ingestd": [sys.executable, "-m", "bench.compaction", "--here"],
        "java": java.command("java", "CompactTable", [], heap),
    }


def measure(program: Sequence[str], warehouses: Sequence[Path], rows: int) -> dict[str, Any]:
    """The best of the compactions of copies of one table, and what they have left."""
    before = _bytes(_open(str(warehouses[0])))
    done = subprocess.run(
        [*program, *map(str, warehouses)], capture_output=True, text=True, check=False
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or len(lines) != len(warehouses):
        raise SystemExit(f"{program[0]} failed:\n{done.stderr[-3000:]}")
    table = _open(str(warehouses[0]))
    wall, cpu = (min(line[what] for line in lines) for what in ("wall", "cpu"))
    parts = [
        (bucket.num_rows, pc.sum(bucket.column("n")).as_py()) for bucket in iter_buckets(table)
    ]
    return {
        "rows_per_second": rows / wall,
        "rows_per_cpu_second": rows / cpu,
        "cpu_seconds": cpu,
        "peak_mb": max(line["peak_kb"] for line in lines) / 1024,
        "write_amplification": _bytes(table) / before,
        "rows": sum(count for count, _ in parts),
        "sum": sum(total for _, total in parts),
    }


def _open(warehouse: str) -> FileStoreTable:
    path, io = f"{warehouse}/db.db/t", LocalFileIO()
    schema = latest_schema(io, TablePaths(path))
    assert schema is not None
    return FileStoreTable(path, schema, io, "db.t")


def _bytes(table: FileStoreTable) -> int:
    entries = live_entries(table, load_state(table).manifests)
    return sum(entry.file.file_size for entry in entries)


def main() -> None:
    end_all_on_signals()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=200_000, help="of each of the five runs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--row-bytes", type=int, help="so wide rows instead of those of bench.read")
    parser.add_argument("--format", default="parquet", help="of files of wide rows")
    parser.add_argument("--heap", default="2g", help="of the JVM")
    parser.add_argument("--here", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        compact_here(given.here)
        return
    found = {}
    with tempfile.TemporaryDirectory(prefix="ingestd-compaction-") as folder:
        original = Path(folder) / "original"
        if given.row_bytes:
            make_wide_table(original, RUNS, given.rows, given.row_bytes, given.format)
        else:
            make_table(original, 2 * given.rows, 1, [given.rows] * RUNS)
        for name, program in programs(given.heap).items():
            copies = [Path(folder) / f"{name}-{number}" for number in range(given.rounds)]
            for copy in copies:
                shutil.copytree(original, copy)
            found[name] = measure(program, copies, RUNS * given.rows)
            for copy in copies:
                shutil.rmtree(copy)
            one = found[name]
            print(
                f"{name:8} {one['rows_per_second']:12,.0f} rows/s "
                f"{one['rows_per_cpu_second']:12,.0f} rows/s of CPU  peak {one['peak_mb']:6,.0f} MB"
                f"  write amplification {one['write_amplification']:.2f}"
            )
    if len({(value["rows"], value["sum"]) for value in found.values()}) > 1:
        raise SystemExit(f"the two have left other rows: {found}")
    print(json.dumps({"rows_of_a_run": given.rows, "compactors": found}))


if __name__ == "__main__":
    main()
