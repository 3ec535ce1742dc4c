"""What does not grow with the records: the start, the fixed cost of a batch, doing nothing.

    python -m bench.start [--runs N] [--batches N] [--idle SECONDS] [--config KEY=VALUE ...]

A real broker, and `ingestd run` as a process of its own, with fresh folders for every start. CPU is
that of the daemon, its JVM and all their workers together, read from the kernel's accounts.
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Producer

from bench.ingestd_run import COMMAND, byte_compile
from bench.load import Load, events
from bench.process import end_all_on_signals
from ingestd.dev.broker import DevBroker

LOAD = Load(events=1_000, keys=400)
TOPIC = "bench.shop.orders"
DATABASE = "bench"
POLL_SECONDS = 0.002
PATIENCE_SECONDS = 120.0
TICKS = os.sysconf("SC_CLK_TCK")
MARKS = ("daemon_started", "start_positions", "query_running", "batch_finished")


@dataclass(frozen=True, slots=True)
class Start:
    """One cold start; seconds since the process began, CPU seconds up to the first snapshot."""

    snapshot: float
    cpu: float
    first_batch: float
    marks: dict[str, float]


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch: seconds that it took by its log, and from produce to snapshot."""

    seconds: float
    fresh: float


@dataclass(frozen=True, slots=True)
class Fixed:
    """Small batches in a warm daemon; `cpu` is per batch, with all that goes on meanwhile."""

    records: int
    cpu: float
    batches: tuple[Batch, ...]

    @property
    def latencies(self) -> tuple[float, float]:
        """The median and the 99th percentile of a batch."""
        return _median_and_p99([batch.seconds for batch in self.batches])

    @property
    def freshness(self) -> tuple[float, float]:
        """The median and the 99th percentile from produce to readable snapshot."""
        return _median_and_p99([batch.fresh for batch in self.batches])


class Daemon:
    """One `ingestd run` in a session of its own."""

    def __init__(self, bootstrap: str, topic: str, folder: Path, spark: dict[str, str]) -> None:
        self.folder = folder
        self.snapshots = folder / "warehouse" / f"{DATABASE}.db" / "orders" / "snapshot"
        self._log = folder / "daemon.log"
        document = {
            "pipeline": {"name": "bench"},
            "warehouse": {"path": str(folder / "warehouse"), "database": DATABASE},
            "sources": {
                "bench": {
                    "kafka": {"bootstrap.servers": bootstrap},
                    "topics": [topic],
                    "format": "debezium-json",
                }
            },
            "http": {"listen": "127.0.0.1:0"},
            "logging": {"format": "json"},
            "spark": spark,
        }
        byte_compile()
        file = folder / "bench.yaml"
        file.write_text(yaml.safe_dump(document), encoding="utf-8")
        with self._log.open("wb") as log:
            self.begun = time.time()
            self.process = subprocess.Popen(
                [*COMMAND, "run", "-c", str(file)],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def stop(self) -> None:
        """End it; it may be waiting for its brokers, so not for ever."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def cpu_seconds(self) -> float:
        """CPU so far of all processes of the session, and of those that they waited for."""
        ticks = 0
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.process.pid:
                    ticks += sum(map(int, fields[11:15]))
        return ticks / TICKS

    def wait_for_snapshot(self, number: int) -> float:
        """The time at which a snapshot could be read."""
        file = self.snapshots / f"snapshot-{number}"
        end = time.monotonic() + PATIENCE_SECONDS
        while not file.exists():
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"no {file}:\n{self._log.read_text(errors='replace')[-4000:]}")
            time.sleep(POLL_SECONDS)
        return time.time()

    def newest(self) -> int:
        """The number of the newest snapshot."""
        names = [path.name for path in self.snapshots.glob("snapshot-*")]
        return max(int(name.removeprefix("snapshot-")) for name in names)

    def lines(self, event: str) -> list[dict[str, Any]]:
        """What was logged of one event."""
        found = []
        for text in self._log.read_text(errors="replace").splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                line = json.loads(text)
                if line.get("event") == event:
                    found.append(line)
        return found


def measure_start(runs: int, spark: dict[str, str] | None = None) -> list[Start]:
    """Start `runs` times on new folders and a topic with a thousand records in it."""
    with DevBroker() as broker:
        broker.create_topic(TOPIC, LOAD.partitions)
        _fill(broker.bootstrap, TOPIC, LOAD.events)
        return [_one_start(broker.bootstrap, spark or {}) for _ in range(runs)]


def measure_fixed(
    sizes: Sequence[int], batches: int, idle_seconds: float, spark: dict[str, str] | None = None
) -> tuple[list[Fixed], float]:
    """Small batches of each size, in one warm daemon; and CPU seconds a second with none at all."""
    with DevBroker() as broker, tempfile.TemporaryDirectory() as scratch:
        broker.create_topic(TOPIC, LOAD.partitions)
        _fill(broker.bootstrap, TOPIC, LOAD.events)
        daemon = Daemon(broker.bootstrap, TOPIC, Path(scratch), spark or {})
        try:
            daemon.wait_for_snapshot(1)
            for _ in range(15):  # until compilers and caches have seen it all
                _one_batch(daemon, broker.bootstrap, 100)
            found = [_many(daemon, broker.bootstrap, size, batches) for size in sizes]
            before = daemon.cpu_seconds()
            time.sleep(idle_seconds)
            return found, (daemon.cpu_seconds() - before) / idle_seconds
        finally:
            daemon.stop()


def _one_start(bootstrap: str, spark: dict[str, str]) -> Start:
    with tempfile.TemporaryDirectory() as scratch:
        daemon = Daemon(bootstrap, TOPIC, Path(scratch), spark)
        try:
            seen = daemon.wait_for_snapshot(1)
            cpu = daemon.cpu_seconds()
            while not daemon.lines("batch_finished"):
                time.sleep(POLL_SECONDS)
            found = {event: daemon.lines(event) for event in MARKS}
            marks = {
                event: _moment(lines[0]) - daemon.begun for event, lines in found.items() if lines
            }
            first = float(found["batch_finished"][0]["seconds"])
        finally:
            daemon.stop()
    return Start(seen - daemon.begun, cpu, first, marks)


def _many(daemon: Daemon, bootstrap: str, records: int, batches: int) -> Fixed:
    before, known = daemon.cpu_seconds(), len(daemon.lines("batch_finished"))
    fresh = [_one_batch(daemon, bootstrap, records) for _ in range(batches)]
    time.sleep(1.0)  # what follows on the last commit belongs to it
    cpu = (daemon.cpu_seconds() - before) / batches
    batch_seconds = [float(line["seconds"]) for line in daemon.lines("batch_finished")[known:]]
    pairs = zip(batch_seconds, fresh, strict=False)
    return Fixed(records, cpu, tuple(Batch(seconds, one) for seconds, one in pairs))


def _one_batch(daemon: Daemon, bootstrap: str, records: int) -> float:
    """Seconds from the first record of a small batch to its snapshot."""
    number = daemon.newest() + 1
    begun = time.time()
    _fill(bootstrap, TOPIC, records)
    return daemon.wait_for_snapshot(number) - begun


def _fill(bootstrap: str, topic: str, records: int) -> None:
    producer = _producer(bootstrap)
    for event in _EVENTS[:records]:
        producer.produce(
            topic, event.value, event.key, event.partition, timestamp=event.timestamp_ms
        )
    if producer.flush(30):
        raise AssertionError("the broker did not take the records")


def _producer(bootstrap: str) -> Producer:
    if bootstrap not in _PRODUCERS:
        _PRODUCERS[bootstrap] = Producer(
            {"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 0}
        )
    return _PRODUCERS[bootstrap]


_EVENTS = tuple(events(LOAD))
_PRODUCERS: dict[str, Producer] = {}


def _moment(line: dict[str, Any]) -> float:
    return datetime.fromisoformat(line["ts"].replace("Z", "+00:00")).timestamp()


def _median_and_p99(values: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(values)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


def report(starts: Sequence[Start], fixed: Sequence[Fixed], idle: float | None) -> Iterator[str]:
    """The figures as lines for people."""
    if starts:
        snapshot = [start.snapshot for start in starts]
        cpu = [start.cpu for start in starts]
        yield f"cold start to first snapshot  {statistics.median(snapshot):8.2f} s  " + spread(
            snapshot
        )
        yield f"  CPU until then              {statistics.median(cpu):8.2f} s"
        for mark in MARKS:
            at = [start.marks[mark] for start in starts if mark in start.marks]
            yield f"  {mark:<26}  {statistics.median(at):8.2f} s"
        first = statistics.median(start.first_batch for start in starts)
        yield f"  first batch took          {first:10.2f} s"
    for one in fixed:
        (p50, p99), (fresh50, fresh99) = one.latencies, one.freshness
        yield (
            f"{one.records:>6} records: CPU {one.cpu * 1e3:5.0f} ms a batch; batch p50 "
            f"{p50 * 1e3:.0f} ms, p99 {p99 * 1e3:.0f} ms; produce to snapshot p50 "
            f"{fresh50 * 1e3:.0f} ms, p99 {fresh99 * 1e3:.0f} ms"
        )
    if idle is not None:
        yield f"idle: {idle * 1e3:.1f} ms CPU a second"


def spread(values: Sequence[float]) -> str:
    """The least and the largest value."""
    return f"({min(values):.2f} - {max(values):.2f})"


def main() -> None:
    """Measure and print; the last line is JSON."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--batches", type=int, default=50)
    arguments.add_argument("--idle", type=float, default=20.0)
    arguments.add_argument("--spark", action="append", default=[], metavar="KEY=VALUE")
    chosen = arguments.parse_args()
    end_all_on_signals()
    spark = dict(one.split("=", 1) for one in chosen.spark)
    starts = measure_start(chosen.runs, spark) if chosen.runs else []
    fixed, idle = list[Fixed](), None
    if chosen.batches:
        fixed, idle = measure_fixed((1, 1_000), chosen.batches, chosen.idle, spark)
    print("\n".join(report(starts, fixed, idle)))
    figures = {
        "starts": [asdict(start) for start in starts],
        "fixed": [asdict(one) for one in fixed],
    }
    print(json.dumps({"cores": len(os.sched_getaffinity(0)), **figures, "idle": idle}))


if __name__ == "__main__":
    main()
