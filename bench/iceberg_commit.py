"""What Iceberg metadata adds to a commit of a table of 1,000 files.

    python -m bench.iceberg_commit
    python -m bench.iceberg_commit --files 10000 --pairs 15 --folder /mnt/disk

A commit writes 1,000 rows to an append table: one data file, one snapshot. `without`: a table that
does not have the option. `threads`: the metadata is written by threads, as the pipeline and the
library do, for which a commit does not wait; CPU includes these threads. `waiting`: after each
commit, the metadata is waited for. The three are measured by turns, a pair is a block of commits of
each, one right after the other. Wall time is the median of a block's commits, CPU is that of the
whole block, until the last metadata is written. A block of 50 commits includes a merge of
manifests, which is due at every 49th commit. The ratios are medians and quartiles of the pairs. The
last line is JSON.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median, quantiles

import pyarrow as pa

import ingestd.paimon as paimon
from ingestd.paimon import Table
from ingestd.paimon.io.file_io import LocalFileIO

ROWS = 1_000
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("amount", pa.float64())])
_MILLIS = 1000


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of a commit: until it returned, and its share of the CPU of all threads."""

    wall_ms: float
    cpu_ms: float


def rows(number: int) -> pa.Table:
    """Rows of one commit."""
    ids = range(number * ROWS, (number + 1) * ROWS)
    return pa.table(
        {"id": list(ids), "name": [f"name {i}" for i in ids], "amount": [float(i) for i in ids]},
        schema=SCHEMA,
    )


def with_option(table: Table) -> Table:
    """Return the table as one with Iceberg metadata."""
    schema = table.files.schema
    options = {**schema.options, "metadata.iceberg.storage": "table-location"}
    return Table(table.files.with_schema(replace(schema, options=options)))


def new_tables(folder: Path, files: int) -> dict[str, Table]:
    """Create a table of a number of files, by as many commits without fsync, and copy it."""
    warehouse = paimon.open_warehouse(str(folder))
    first = warehouse.create("bench.without", SCHEMA)
    quick = Table(replace(first.files, io=LocalFileIO(sync=False)))
    for number in range(files):
        quick.write(rows(number).slice(0, 10))
    for name in ("threads", "waiting"):
        shutil.copytree(first.files.path, folder / "bench.db" / name)
    return {name: warehouse.table(f"bench.{name}") for name in ("without", "threads", "waiting")}


class _Commits:
    """Commits to a table, after each of which the metadata is waited for if `waits`."""

    def __init__(self, table: Table, *, waits: bool = False) -> None:
        self._table = table
        self._waits = waits
        self._rows = rows(0)

    def commit(self) -> None:
        """Write the rows."""
        self._table.write(self._rows)
        if self._waits:
            self.settle()

    def settle(self) -> None:
        """Wait until the metadata is written."""
        self._table.wait_for_iceberg()


def block(way: _Commits, commits: int) -> Cost:
    """Return the median time of a number of commits, and the mean of their CPU."""
    wall, used = [], time.process_time()
    for _ in range(commits):
        begin = time.perf_counter()
        way.commit()
        wall.append((time.perf_counter() - begin) * _MILLIS)
    way.settle()
    return Cost(median(wall), (time.process_time() - used) * _MILLIS / commits)


def measure(folder: Path, files: int, pairs: int, commits: int) -> dict[str, list[Cost]]:
    """Return the costs of each pair, by the way in which the metadata is written."""
    tables = new_tables(folder, files)
    ways = {
        "without": _Commits(tables["without"]),
        "threads": _Commits(with_option(tables["threads"])),
        "waiting": _Commits(with_option(tables["waiting"]), waits=True),
    }
    for way in ways.values():
        block(way, 1)
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    for number in range(pairs):
        for name in sorted(ways, reverse=bool(number % 2)):
            costs[name].append(block(ways[name], commits))
    return costs


def ratios(costs: dict[str, list[Cost]]) -> dict[str, dict[str, list[float]]]:
    """Return the quartiles of the pairs in relation to `without`, of wall time and CPU."""
    base = costs["without"]
    return {
        name: {
            "wall": _quartiles(a.wall_ms / b.wall_ms for a, b in zip(own, base, strict=True)),
            "cpu": _quartiles(a.cpu_ms / b.cpu_ms for a, b in zip(own, base, strict=True)),
        }
        for name, own in costs.items()
        if name != "without"
    }


def _quartiles(values: Iterable[float]) -> list[float]:
    return [round(value, 3) for value in quantiles(values, n=4, method="inclusive")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--commits", type=int, default=50, help="of each block")
    parser.add_argument("--folder", type=Path, help="where tables are made and deleted again")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ingestd-iceberg-", dir=given.folder))
    try:
        costs = measure(folder, given.files, given.pairs, given.commits)
    finally:
        shutil.rmtree(folder)
    for name, own in costs.items():
        wall, cpu = median(c.wall_ms for c in own), median(c.cpu_ms for c in own)
        print(f"{name:8} {wall:8.1f} ms until the commit returns, {cpu:8.1f} ms of CPU")
    found = ratios(costs)
    for name, by in found.items():
        (low, wall, high), (least, cpu, most) = by["wall"], by["cpu"]
        print(f"{name:8} {wall:.3f} ({low} to {high}) of the time of `without`")
        print(f"{name:8} {cpu:.3f} ({least} to {most}) of the CPU of `without`")
    print(json.dumps({"iceberg_commit": {"pairs": given.pairs, "files": given.files, **found}}))


if __name__ == "__main__":
    main()
