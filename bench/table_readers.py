"""Programs that read a whole table on request, and the cost of each read.

    python -m bench.table_readers WAREHOUSE

reads with ingestd. A program gets a line for each round and answers with one of JSON.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from bench import java
from bench.peer_runs import pypaimon_python
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec.paths import TablePaths
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import latest_schema
from ingestd.paimon.table.read.table_read import iter_buckets

WARM_UP: Mapping[str, int] = {"ingestd": 1, "java": 3, "pypaimon": 0}
"""Rounds that do not count: until its code is compiled Java is slower."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds of each round of a reader, its peak of memory in MiB, and what it has found."""

    rows: int
    sum: int
    walls: tuple[float, ...]
    cpus: tuple[float, ...]
    peak_mib: int

    @property
    def best_wall(self) -> float:
        """The shortest round."""
        return min(self.walls)

    @property
    def median_wall(self) -> float:
        """A round like most."""
        return statistics.median(self.walls)

    @property
    def best_cpu(self) -> float:
        """The least CPU time of a round."""
        return min(self.cpus)

    def line(self, keys: int) -> str:
        """For people."""
        cores = statistics.median(c / w for c, w in zip(self.cpus, self.walls, strict=True))
        return (
            f"{keys / self.best_wall:12,.0f} rows/s  best {self.best_wall:6.2f} s  median "
            f"{self.median_wall:6.2f} s  cpu {self.best_cpu:6.2f} s  cores {cores:4.2f}  "
            f"peak {self.peak_mib:6,} MiB"
        )

    def as_json(self) -> Mapping[str, Any]:
        """For programs."""
        return asdict(self)


def read_here(warehouse: str) -> None:
    """Read with ingestd for each line of the input and print a line of JSON."""
    path, io = f"{warehouse}/db.db/t", LocalFileIO()
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        schema = latest_schema(io, TablePaths(path))
        assert schema is not None
        table = FileStoreTable(path, schema, io, "db.t")
        rows = total = 0
        for bucket in iter_buckets(table):
            rows += bucket.num_rows
            total += pc.sum(bucket.column("n")).as_py()
        times = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        print(json.dumps({"rows": rows, "sum": total, **times}), flush=True)


def _ingestd(warehouse: Path) -> Sequence[str]:
    return [sys.executable, "-m", "bench.table_readers", str(warehouse)]


def _java(warehouse: Path) -> Sequence[str]:
    threads = len(os.sched_getaffinity(0))
    utc = ("-Duser.timezone=UTC",)
    return java.command("java", "ReadTable", [warehouse, threads], more_flags=utc)


def _pypaimon(warehouse: Path) -> Sequence[str]:
    return [str(pypaimon_python()), "-P", str(java.PEERS / "pypaimon_reader.py"), str(warehouse)]


PROGRAMS: Mapping[str, Callable[[Path], Sequence[str]]] = {
    "ingestd": _ingestd,
    "java": _java,
    "pypaimon": _pypaimon,
}
"""Reader -> its command line for a warehouse."""


class _Reader:
    """A reader under way."""

    def __init__(self, name: str, warehouse: Path) -> None:
        self._name = name
        self._log = warehouse / f"{name}.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                PROGRAMS[name](warehouse),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def round(self) -> Mapping[str, Any]:
        """Return the answer to a line; raise SystemExit without an answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("read\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):
                found: Mapping[str, Any] = json.loads(line)
                return found
        raise SystemExit(f"{self._name} has ended:\n{self._log.read_text()[-3000:]}")

    def peak_mib(self) -> int:
        """The most memory that it has had."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        (peak,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) // 1024

    def stop(self) -> None:
        """End it; its output is closed."""
        self._process.kill()
        self._process.communicate()


def in_turns(names: Sequence[str], warehouse: Path, rounds: int) -> dict[str, Figures]:
    """Rounds of several readers of one table, one round of each after the other."""
    readers = {name: _Reader(name, warehouse) for name in names}
    answers: dict[str, list[Mapping[str, Any]]] = {name: [] for name in names}
    try:
        for name, reader in readers.items():
            for _ in range(WARM_UP[name]):
                reader.round()
        for _ in range(rounds):
            for name, reader in readers.items():
                answers[name].append(reader.round())
        return {
            name: Figures(
                rows=found[0]["rows"],
                sum=found[0]["sum"],
                walls=tuple(one["wall"] for one in found),
                cpus=tuple(one["cpu"] for one in found),
                peak_mib=readers[name].peak_mib(),
            )
            for name, found in answers.items()
        }
    finally:
        for reader in readers.values():
            reader.stop()


if __name__ == "__main__":
    read_here(sys.argv[1])
