"""A table's whole life in small batches: does anything grow that should not?

    python -m bench.soak                     # about a minute and a half
    python -m bench.soak --batches 3600      # an hour of batches, one a second

Each batch updates keys of a fixed set, through everything that a daemon does but Spark and the
broker. After each the table is compacted as its triggers ask for, and kept up every few. Read time,
files, bytes of manifests and batch latency are reported for each tenth of the run; what the last
tenth has over the second one must stay below a limit. Old snapshots that are retained are read all
the while, and the table is checked after each tenth. The last line is JSON.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import TypeVar

from bench.one_process import DATABASE, OneProcess
from bench.process import end_all_on_signals
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_scan import live_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot_id, snapshot_ids
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.retention.maintenance import run_maintenance
from ingestd.paimon.table.verify.table_verify import verify

TENTHS = 10
LIMIT = 1.3
RETAINED = 20
LEAST_BATCHES = 10 * RETAINED
"""The first tenth then holds as many snapshots as are retained."""
MAINTENANCE_EVERY = 5
LOOK_EVERY = 7
"""No multiple of the runs that trigger a compaction, so that all its phases are seen."""
OPTIONS = {
    "bucket": "2", "snapshot.num-retained.min": str(RETAINED),
    "snapshot.num-retained.max": str(RETAINED + 10),
}  # fmt: skip
_Found = TypeVar("_Found")
NAME = Identifier(DATABASE, "t")


@dataclass(slots=True)
class Tenth:
    """Samples of one tenth: milliseconds, numbers, bytes."""

    batch_ms: list[float] = field(default_factory=list)
    batch_cpu_ms: list[float] = field(default_factory=list)
    compact_cpu_ms: list[float] = field(default_factory=list)
    maintenance_cpu_ms: list[float] = field(default_factory=list)
    read_ms: list[float] = field(default_factory=list)
    read_cpu_ms: list[float] = field(default_factory=list)
    live_files: list[float] = field(default_factory=list)
    manifest_bytes: list[float] = field(default_factory=list)
    disk_files: list[float] = field(default_factory=list)
    disk_bytes: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        """Times as medians, what is counted as means."""
        found = {}
        for name, samples in asdict(self).items():
            middle = statistics.median if name.endswith("_ms") else statistics.fmean
            found[name] = round(middle(samples), 2) if samples else 0.0
        return found


JUDGED = ("batch_cpu_ms", "read_cpu_ms", "live_files", "manifest_bytes", "disk_bytes")
"""What must not grow; of times those of the CPU, because a machine has other things to do."""


class Soak:
    """A pipeline with one table, and what its batches have cost so far."""

    def __init__(self, folder: Path, events: int, keys: int, options: Mapping[str, str]) -> None:
        self._folder = folder
        self._events, self._keys = events, keys
        self._random = Random(1)
        self._bench = OneProcess(folder, {**OPTIONS, **options}, ())
        self._bench.catalog.create_database(DATABASE)
        self._bench.open()
        self._written: dict[int, int] = {}
        self._version = 0

    def run(self, batches: int) -> list[Tenth]:
        """All batches; what each tenth has cost."""
        tenths = []
        for number in range(TENTHS):
            tenth = Tenth()
            for batch in range(batches * number // TENTHS, batches * (number + 1) // TENTHS):
                self._step(batch, tenth)
            self._check()
            tenths.append(tenth)
            print(f"tenth {number + 1:2}", json.dumps(tenth.figures()), flush=True)
        return tenths

    @property
    def table(self) -> FileStoreTable:
        """The table as it is now."""
        return self._bench.catalog.get_table(NAME)

    def _step(self, batch: int, tenth: Tenth) -> None:
        self._produce(all_keys=batch == 0)
        _timed(self._bench.run, tenth.batch_cpu_ms, tenth.batch_ms)
        table, now = self.table, int(time.time() * 1000)
        _timed(lambda: compact_table(table, now_ms=now), tenth.compact_cpu_ms)
        if batch % MAINTENANCE_EVERY == 0:
            _timed(lambda: run_maintenance(table, now), tenth.maintenance_cpu_ms)
        manifests = load_state(table).manifests
        tenth.live_files.append(len(list(live_entries(table, manifests))))
        tenth.manifest_bytes.append(sum(meta.file_size for meta in manifests))
        if batch % LOOK_EVERY == 0:
            self._look(table, tenth)

    def _produce(self, *, all_keys: bool) -> None:
        keys = range(self._keys)
        chosen = list(keys) if all_keys else self._random.sample(keys, self._events)
        self._version += 1
        self._written |= dict.fromkeys(chosen, self._version)
        rows = [{"k": key, "v": f"value {key}", "n": self._version} for key in chosen]
        self._bench.produce("t", rows, ["k"])

    def _look(self, table: FileStoreTable, tenth: Tenth) -> None:
        rows = _timed(lambda: read_table(table), tenth.read_cpu_ms, tenth.read_ms)
        found = dict(zip(rows["k"].to_pylist(), rows["n"].to_pylist(), strict=True))
        if found != self._written:
            raise SystemExit("the table does not hold what was written")
        self._read_old(table)
        files = (file for file in Path(table.path).rglob("*") if file.is_file())
        sizes = [file.stat().st_size for file in files]
        tenth.disk_files.append(len(sizes))
        tenth.disk_bytes.append(sum(sizes))

    def _read_old(self, table: FileStoreTable) -> None:
        """The oldest snapshot that is sure to be retained must be readable."""
        newest = latest_snapshot_id(table.io, table.paths) or 0
        oldest = max(newest - RETAINED + 1, snapshot_ids(table.io, table.paths)[0])
        if read_table(table, snapshot_id=oldest).num_rows != self._keys:
            raise SystemExit(f"snapshot {oldest} has lost rows")

    def _check(self) -> None:
        problems = verify(self.table)
        if problems:
            raise SystemExit(f"the table is damaged: {problems}")


def _timed(work: Callable[[], _Found], cpu: list[float], wall: list[float] | None = None) -> _Found:
    begun, used = time.perf_counter(), time.process_time()
    found = work()
    cpu.append((time.process_time() - used) * 1e3)
    if wall is not None:
        wall.append((time.perf_counter() - begun) * 1e3)
    return found


def ratios(tenths: list[Tenth]) -> dict[str, float]:
    """What the last tenth has of everything, by what the second one had."""
    early, late = tenths[1].figures(), tenths[-1].figures()
    return {name: round(late[name] / early[name], 2) if early[name] else 1.0 for name in early}


def grown(found: Mapping[str, float], limit: float) -> dict[str, float]:
    """What is judged and exceeds the limit."""
    return {name: found[name] for name in JUDGED if found[name] > limit}


def main() -> None:
    end_all_on_signals()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--batches", type=int, default=1_000)
    parser.add_argument("--events", type=int, default=100, help="updates of a batch")
    parser.add_argument("--keys", type=int, default=2_000)
    parser.add_argument("--option", action="append", default=[], help="name=value, of the table")
    parser.add_argument("--limit", type=float, default=LIMIT)
    given = parser.parse_args()
    if given.batches < LEAST_BATCHES:
        parser.error(f"--batches must be at least {LEAST_BATCHES}, or retention is not reached")
    options = dict(one.split("=", 1) for one in given.option)
    with tempfile.TemporaryDirectory(prefix="ingestd-soak-") as folder:
        tenths = Soak(Path(folder), given.events, given.keys, options).run(given.batches)
    found = ratios(tenths)
    print(json.dumps({"batches": given.batches, "ratios": found}))
    if over := grown(found, given.limit):
        raise SystemExit(f"grown by more than {given.limit}: {over}")


if __name__ == "__main__":
    main()
