"""Steady load: how soon records can be read while they come at a constant rate.

Batches that were prepared before are sent in a cycle (`bench.replay`), so each cycle writes every
key once. No commit holds a key twice, and the rows that commits add are the records they hold. A
record counts from the moment at which the rate wants it sent, so a slow broker is not hidden.
"""

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.figures import snapshot
from bench.ingestd_run import DATABASE, TABLE, configuration, start
from bench.java import command
from bench.journal import Record
from bench.load import Load
from bench.peer_runs import Task
from bench.process import BenchError, MeteredProcess
from bench.replay import RawClient, RecordBatch
from bench.usage import TICKS, descendants, process_stat

CYCLE = Load(events=1_000_000, keys=1_000_000, inserts=1.0, updates=0.0)
RATES = tuple(round(20_000 * 1.25**step, -3) for step in range(16))
"""The rates that are tried, records/s."""
LIMIT_SECONDS = 2.0
"""What the 99th percentile must stay below."""
WARM_SECONDS = 15.0
PATIENCE_SECONDS = 20.0
FIRST_SECONDS = 120.0
POLL_SECONDS = 0.002
TRIGGER = "1s"
EXPIRING = {"snapshot.num-retained.min": "10", "snapshot.time-retained": "10 s"}
Times = npt.NDArray[np.float64]


@dataclass(slots=True)
class Totals:
    """Moments, seconds since 1970, with the records sent or readable up to then."""

    at: list[float] = field(default_factory=list)
    records: list[int] = field(default_factory=list)

    def add(self, moment: float, records: int) -> None:
        """Note that there are `records` more records from now on."""
        self.at.append(moment)
        self.records.append(self.total + records)

    @property
    def total(self) -> int:
        """All records so far."""
        return self.records[-1] if self.records else 0


class Commits:
    """The records that can be read, noted as snapshots appear, by a thread of its own."""

    def __init__(self, warehouse: Path) -> None:
        self.readable = Totals()
        self._folder = warehouse / f"{DATABASE}.db" / TABLE / "snapshot"
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Commits":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def wait_for(self, records: int, process: MeteredProcess, patience: float) -> None:
        """Return when `records` records can be read, or after `patience` seconds."""
        deadline = time.monotonic() + patience
        while self.readable.total < records and time.monotonic() < deadline:
            process.require_alive()
            time.sleep(POLL_SECONDS)

    def _watch(self) -> None:
        number = 1
        while not self._end.is_set():
            path = self._folder / f"snapshot-{number}"
            if not path.exists():
                self._end.wait(POLL_SECONDS)
                continue
            seen, document = time.time(), snapshot(path)
            if document["commitKind"] == "APPEND":
                self.readable.add(seen, int(document["deltaRecordCount"]))
            number += 1


def cycle(bootstrap: str, topic: str) -> list[RecordBatch]:
    """The batches of a topic that holds `CYCLE`, its partitions in turn."""
    with closing(RawClient(bootstrap)) as client:
        of_partition = [list(client.batches(topic, one)) for one in range(CYCLE.partitions)]
    turns = itertools.zip_longest(*of_partition)
    return [batch for turn in turns for batch in turn if batch is not None]


def highest_rate(hold: Callable[[float], Record]) -> Record:
    """The highest of `RATES` at which the limit holds, by bisection, with every rate tried."""
    points: list[Record] = []
    held, missed = -1, len(RATES)
    while missed - held > 1:
        middle = (held + missed) // 2
        points.append(hold(RATES[middle]))
        fine = points[-1]["correct"] and points[-1]["p99_s"] <= LIMIT_SECONDS
        held, missed = (middle, missed) if fine else (held, middle)
    if held < 0:
        return {"rate": 0.0, "points": points}
    at_highest = next(point for point in points if point["rate"] == RATES[held])
    return {**at_highest, "half": hold(RATES[held] / 2), "points": points}


def hold(
    task: Task, subject: str, batches: Sequence[RecordBatch], rate: float, seconds: float
) -> Record:
    """Send at a rate for `WARM_SECONDS` and then `seconds`; latencies and CPU of the latter."""
    sent, client = Totals(), RawClient(task.bootstrap)
    turn = itertools.cycle(batches)
    with closing(client), _program(task, subject) as process, Commits(task.warehouse) as commits:
        _send(client, task.topic, turn, sent, rate, 1.0)
        commits.wait_for(sent.total, process, FIRST_SECONDS)
        _send(client, task.topic, turn, sent, rate, WARM_SECONDS)
        begun, known, others = process.meter.sample(), sent.total, _cpu_of_others(process)
        own = time.process_time()
        _send(client, task.topic, turn, sent, rate, seconds)
        used = process.meter.sample().cpu_seconds - begun.cpu_seconds
        others, own = _cpu_of_others(process) - others, time.process_time() - own
        commits.wait_for(sent.total, process, PATIENCE_SECONDS)
        readable, now = commits.readable, time.time()
        memory = process.meter.peak_pss_bytes
    records = sent.total - known
    return {
        "rate": rate,
        "seconds": seconds,
        "events": records,
        **_spread(latencies(sent, readable, begun.at, now), sent, begun.at),
        "longest_pause_s": round(_longest_pause(readable, begun.at), 3),
        "us_cpu_running": round(used / records * 1e6, 3),
        "us_cpu_broker": round(others / records * 1e6, 3),
        "us_cpu_producer": round(own / records * 1e6, 3),
        "pss_mb": round(memory / 1e6, 1),
        "commits": sum(moment >= begun.at for moment in readable.at),
    }


def latencies(sent: Totals, readable: Totals, begun: float, now: float) -> Times:
    """Seconds from sent to readable of each batch since `begun`; `now` for what is not readable."""
    at, upto = np.array(sent.at), np.array(sent.records)
    seen = np.append(np.array(readable.at), now)
    found: Times = seen[np.searchsorted(np.array(readable.records), upto)] - at
    return found[at >= begun]


def _spread(waits: Times, sent: Totals, begun: float) -> Record:
    """Percentiles of the records, whose batches may differ in size."""
    counts = np.diff(np.array(sent.records), prepend=0)[np.array(sent.at) >= begun]
    shares = {"p50_s": 0.5, "p99_s": 0.99, "p999_s": 0.999, "max_s": 1.0}
    found = np.quantile(waits, list(shares.values()), method="inverted_cdf", weights=counts)
    return {name: round(float(value), 3) for name, value in zip(shares, found, strict=True)}


def _longest_pause(readable: Totals, begun: float) -> float:
    """The longest time without a commit of rows."""
    moments = [moment for moment in readable.at if moment >= begun]
    return max(
        (after - before for before, after in itertools.pairwise([begun, *moments])), default=0
    )


def _send(
    client: RawClient,
    topic: str,
    turn: Iterator[RecordBatch],
    sent: Totals,
    rate: float,
    seconds: float,
) -> None:
    begun, before = time.time(), sent.total
    while (due := begun + (sent.total - before) / rate) < begun + seconds:
        time.sleep(max(0.0, due - time.time()))
        batch = next(turn)
        client.send(topic, batch)
        sent.add(due, batch.records)


@contextmanager
def _program(task: Task, subject: str) -> Iterator[MeteredProcess]:
    if subject == "ingestd":
        document: dict[str, Any] = configuration(task)
        document["pipeline"]["trigger"] = TRIGGER
        with start(task, document) as process:
            yield process
        return
    if subject != "flink":
        raise BenchError(f"steady load is not measured for {subject}")
    endless = command(
        "flink", "FlinkWriter", task.arguments(1), more_flags=["-Dbench.endless=true"]
    )
    temporary = {"JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={task.scratch}"}
    with MeteredProcess(endless, task.scratch / "peer.log", environment=temporary) as process:
        yield process


def _cpu_of_others(process: MeteredProcess) -> float:
    """CPU seconds of all programs of this benchmark that are not measured: the broker."""
    measured = {process.pid, *descendants(process.pid)}
    others = [process_stat(pid) for pid in descendants(os.getpid()) if pid not in measured]
    return sum((int(one[11]) + int(one[12])) / TICKS for one in others if one)
