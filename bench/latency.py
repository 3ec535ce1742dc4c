"""Small batches in a warm daemon: how soon records can be read, and what a batch costs at least.

The daemon runs as for throughput. A batch of records is produced, the snapshots are watched until
they hold all of it, and only then comes the next one. Every record is a new key, so the rows that
a snapshot adds are the records it holds.
"""

import math
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import snapshot, snapshot_files
from bench.ingestd_run import DATABASE, TABLE, begin, configuration, finished_batches, start
from bench.load import Event, Load, events
from bench.peer_runs import Task
from bench.process import BenchError, MeteredProcess
from bench.topics import producer, send

POLL_SECONDS = 0.002
FIRST_SECONDS = 120.0
PATIENCE_SECONDS = 60.0
WARM_UP = 15
IDLE_SECONDS = 10.0
PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Rhythm:
    """This many batches of this many records, after the warm-up."""

    records: int
    batches: int

    @property
    def load(self) -> Load:
        """New keys only."""
        events = self.records * (self.batches + WARM_UP)
        return Load(events=events, keys=events, inserts=1.0, updates=0.0, partitions=PARTITIONS)


class Snapshots:
    """The snapshots of the table as they appear."""

    def __init__(self, warehouse: Path) -> None:
        self._folder = warehouse / f"{DATABASE}.db" / TABLE / "snapshot"
        self._seen = 0

    def wait_for(self, rows: int, process: MeteredProcess, patience: float) -> None:
        """Return when new snapshots have added `rows` rows."""
        deadline = time.monotonic() + patience
        while rows > 0:
            path = self._folder / f"snapshot-{self._seen + 1}"
            if path.exists():
                self._seen += 1
                rows -= int(snapshot(path)["deltaRecordCount"])
                continue
            if time.monotonic() > deadline:
                raise BenchError(f"{rows} records are in no snapshot after {patience:.0f} s")
            process.require_alive()
            time.sleep(POLL_SECONDS)


def measure(task: Task, rhythm: Rhythm) -> dict[str, Any]:
    """Latencies in milliseconds, CPU of a batch and of an idle second, of the whole tree."""
    client = producer(task.bootstrap, linger_ms=0)
    stream = _slices(events(rhythm.load), rhythm.records)
    snapshots, waits = Snapshots(task.warehouse), []
    with start(task, configuration(task)) as process:
        for number, batch in enumerate(stream):
            if number == WARM_UP:
                begun, used = time.time(), process.meter.sample().cpu_seconds
            before = time.perf_counter()
            for event in batch:
                send(client, task.topic, event)
            client.flush()
            patience = PATIENCE_SECONDS if number else FIRST_SECONDS
            snapshots.wait_for(len(batch), process, patience)
            if number >= WARM_UP:
                waits.append((time.perf_counter() - before) * 1000)
        wall, cpu = time.time() - begun, process.meter.sample().cpu_seconds - used
        idle = _idle_share(process)
        process.terminate()
    whole = [
        float(finished_batch["seconds"]) * 1000
        for finished_batch in finished_batches(process)
        if finished_batch["records"] == rhythm.records and begin(finished_batch) >= begun
    ]
    return {
        "records": rhythm.records,
        "batches": len(waits),
        "snapshots": len(snapshot_files(task.warehouse)),
        "batch_ms": _spread(whole),
        "produce_to_readable_ms": _spread(waits),
        "cpu_ms_per_batch": round(cpu / len(waits) * 1000, 2),
        "idle_cpu_ms_per_s": round(idle * 1000, 2),
        "batches_per_s": round(len(waits) / wall, 2),
        "pss_mb": round(process.meter.peak_pss_bytes / 1e6, 1),
    }


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        raise BenchError("no batch had all of its records: produce and plan ran across each other")
    return {
        "n": len(values),
        "p50": round(statistics.median(values), 1),
        "p99": round(percentile(values, 0.99), 1),
        "max": round(max(values), 1),
    }


def _idle_share(process: MeteredProcess) -> float:
    """CPU seconds that the tree uses in a second without records."""
    before = process.meter.sample()
    time.sleep(IDLE_SECONDS)
    after = process.meter.sample()
    return (after.cpu_seconds - before.cpu_seconds) / (after.at - before.at)


def _slices(stream: Iterator[Event], size: int) -> Iterator[list[Event]]:
    batch: list[Event] = []
    for event in stream:
        batch.append(event)
        if len(batch) == size:
            yield batch
            batch = []
