"""Schedule compaction and expiry in separate processes while ingest continues.

Each maintenance process has a thread in the daemon that sends it one job at a time; a process that
dies is started again with a growing delay. While ingest lags, only pressing compactions run, except
in mode `inline`, in which ingest waits for them.

Ingest waits only between batches: in mode `inline` for the compactions that its commits triggered,
up to a budget, and in every mode, for a bounded time, while a bucket has more sorted runs than the
stop trigger of its table.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ingestd import metrics
from ingestd.daemon.maintenance_process import MaintenanceClient, Opening
from ingestd.errors import RetryableError
from ingestd.ingest.batch_events import TableCommit
from ingestd.ingest.maintenance.backlog import Backlog
from ingestd.ingest.maintenance.jobs import CompactionDone, Done, Expired, NotDone
from ingestd.ingest.maintenance.scheduler import (
    Due,
    Job,
    MaintenancePace,
    MaintenanceScheduler,
    RunCounts,
)
from ingestd.ingest.maintenance.table_maintenance import CompactionOutcome
from ingestd.log import redact
from ingestd.paimon.catalog.base import TableNotFoundError
from ingestd.paimon.spec.table_schema import TableSchema

_LOG = logging.getLogger(__name__)
_HISTORY = 30
_TICK_SECONDS = 0.5
_GRACE_SECONDS = 5.0
_MOST_WAIT_SECONDS = 60.0
_TO_THE_END = 1e9

CompactionMode = Literal["background", "inline", "off"]
Cause = Literal["inline", "sorted-runs"]


@dataclass(frozen=True, slots=True)
class MaintenanceSettings:
    """Settings of maintenance: its mode, and the number of its processes; times are in seconds.

    `inline_budget` is the longest wait for compactions after a batch in mode `inline`,
    `max_throttle` the longest wait for a bucket above the stop trigger. If `expires`, tables with
    new commits are expired every `expiry_interval`.
    """

    mode: CompactionMode = "background"
    processes: int = 1
    inline_budget: float = 10.0
    max_throttle: float = 30.0
    expires: bool = True
    expiry_interval: float = 60.0

    @property
    def pace(self) -> MaintenancePace:
        """The settings of the maintenance scheduler."""
        return MaintenancePace(self.mode != "off", self.expires, self.expiry_interval)


class MaintenanceChild(Protocol):
    """A runner of maintenance jobs; `MaintenanceClient` runs them in a separate process."""

    def do(self, job: Job, stopping: threading.Event, grace: float) -> Done | None:
        """Run a job and return its result, or None if the job was abandoned.

        A job is abandoned `grace` seconds after `stopping` was set. Raises RetryableError if the
        process died.
        """

    def close(self) -> None:
        """Stop the process that runs the jobs."""


class Maintenance:
    """Maintenance of the tables of one pipeline, from `start` to `stop`; thread-safe.

    `opening` is the first message to each process, and `make_child` returns a client of a process,
    for each thread. `ticks` returns the seconds of a monotonic clock.
    """

    def __init__(
        self,
        settings: MaintenanceSettings,
        opening: Opening,
        make_child: Callable[[Opening], MaintenanceChild] = MaintenanceClient,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._ticks = ticks
        self._scheduler = MaintenanceScheduler(settings.pace)
        self._backlog = Backlog()
        self._finishing = False
        self._record = MaintenanceRecord(settings.mode)
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        count = settings.processes if settings.mode != "off" or settings.expires else 0
        self._threads = [
            threading.Thread(
                target=self._work, args=(make_child(opening),), name=f"maintenance-{n}", daemon=True
            )
            for n in range(count)
        ]

    def start(self) -> None:
        """Start the threads; each starts its process with the first job."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Start no more jobs, and let ingest continue if it waits for maintenance."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Call `end`, and wait for the threads; running jobs are abandoned after a few seconds."""
        self.end()
        for thread in self._threads:
            thread.join()

    def opened(self, tables: Mapping[str, TableSchema]) -> None:
        """Add the tables of a new run, by name, to the schedule; known tables keep their state."""
        with self._changed:
            now = self._ticks()
            self._backlog.opened(now)
            for name, schema in tables.items():
                self._scheduler.opened(name, schema, now)
            self._changed.notify_all()

    def batch_started(self) -> None:
        """Record the start of a batch.

        If the batch before it reached its limits, or it is the first since the tables were opened,
        ingest has a backlog until the batch ends. Only pressing compactions start meanwhile, except
        in mode `inline`.
        """
        with self._changed:
            self._backlog.began()

    def run_died(self) -> None:
        """Record that the query failed, so that ingest has no backlog.

        Compactions that are not pressing may then start.
        """
        with self._changed:
            self._backlog.died()
            self._changed.notify_all()

    def committed(self, commits: Iterable[TableCommit], *, cut: bool = False) -> None:
        """Record the commits of a batch, which may trigger compactions.

        `cut` is whether the batch reached its limits; ingest has a backlog exactly if it did.
        """
        with self._changed:
            self._backlog.ended(cut, self._ticks())
            for commit in commits:
                if commit.growth is not None:
                    self._scheduler.committed(commit.table, commit.growth, self._ticks())
                    self._record.sorted_runs(
                        commit.table, self._scheduler.sorted_runs(commit.table)
                    )
            self._changed.notify_all()

    def between_batches(self, stopping: threading.Event) -> None:
        """Wait while ingest must wait for compactions, but only until `stopping` is set.

        In mode `inline`, waits for all triggered compactions, at most `inline_budget` seconds;
        then, in every mode, while a bucket is above the stop trigger, at most `max_throttle`
        seconds.
        """
        settings = self._settings
        if settings.mode == "inline":
            self._hold(self._is_triggered, settings.inline_budget, "inline", stopping)
        self._hold(self._is_over_stop, settings.max_throttle, "sorted-runs", stopping)

    def finish(self, stopping: threading.Event) -> None:
        """Wait until no compaction is triggered and no job runs, or until `stopping` is set.

        Compactions then start although ingest lags. Failed compactions are not waited for. Returns
        at once if the mode is `off`.
        """
        with self._changed:
            self._finishing = True
            self._changed.notify_all()
            self._wait_while(self._is_triggered, self._ticks() + _TO_THE_END, stopping)

    def document(self) -> dict[str, Any]:
        """Return the section `maintenance` of /status."""
        with self._changed:
            counts = self._scheduler.sorted_run_counts()
            over = sorted(self._scheduler.over_stop())
        return self._record.document(counts, over)

    def _is_triggered(self) -> bool:
        return bool(self._scheduler.triggered(self._ticks()))

    def _is_over_stop(self) -> bool:
        return bool(self._scheduler.over_stop())

    def _hold(
        self, reason: Callable[[], bool], most: float, cause: Cause, stopping: threading.Event
    ) -> None:
        begin = self._ticks()
        with self._changed:
            if not reason():
                return
            self._record.throttled(cause, sorted(self._scheduler.over_stop()))
            self._wait_while(reason, begin + most, stopping)
        self._record.released(cause, self._ticks() - begin)

    def _wait_while(
        self, reason: Callable[[], bool], end: float, stopping: threading.Event
    ) -> None:
        while reason() and not stopping.is_set() and not self._stopping.is_set():
            left = end - self._ticks()
            if left <= 0:
                return
            self._changed.wait(min(left, _TICK_SECONDS))

    def _work(self, child: MaintenanceChild) -> None:
        """Run jobs in one process until maintenance ends."""
        deaths = 0
        try:
            while (job := self._next()) is not None:
                try:
                    done = child.do(job, self._stopping, _GRACE_SECONDS)
                except RetryableError as error:
                    self._settle(NotDone(job, type(error).__name__, error.message))
                    self._stopping.wait(min(2.0**deaths, _MOST_WAIT_SECONDS))
                    deaths += 1
                    continue
                if done is None:
                    _LOG.info("maintenance_abandoned", extra={"ctx": {"table": job.table}})
                    return
                deaths = 0
                self._settle(done)
        finally:
            child.close()

    def _next(self) -> Job | None:
        with self._changed:
            while not self._stopping.is_set():
                now = self._ticks()
                job = self._scheduler.take(now, self._due(now))
                if job is not None:
                    return job
                self._changed.wait(_TICK_SECONDS)
        return None

    def _due(self, now: float) -> Due:
        """Return which compactions may start.

        All may start if ingest or `finish` waits for compactions. Otherwise, while ingest lags,
        only pressing ones may start; else also those of tables that were not just compacted.
        """
        if self._finishing or self._settings.mode == "inline":
            return "all"
        return "pressing" if self._backlog.is_lagging(now) else "rested"

    def _settle(self, done: Done) -> None:
        """Record the result of a job, and wake the threads that wait for it."""
        job, now = done.job, self._ticks()
        with self._changed:
            if isinstance(done, CompactionDone):
                how = CompactionOutcome(done.status != "nothing", done.left > 0, job.kind == "full")
                self._scheduler.compacted(job.table, done.sorted_runs, how, now)
            elif isinstance(done, NotDone) and done.error == TableNotFoundError.__name__:
                self._scheduler.forget(job.table)
            elif isinstance(done, NotDone) and job.kind != "expire":
                self._scheduler.failed(job.table, now)
            else:
                self._scheduler.expired(job.table, now)
            self._record.sorted_runs(job.table, self._scheduler.sorted_runs(job.table))
            self._changed.notify_all()
        self._record.done(done)


class MaintenanceRecord:
    """Reports the results of maintenance, and waits of ingest for it, in metrics, log and status.

    Thread-safe. `mode` is the compaction mode that /status shows. `clock` returns seconds since
    1970.
    """

    def __init__(self, mode: str, clock: Callable[[], float] = time.time) -> None:
        self._mode = mode
        self._clock = clock
        self._lock = threading.Lock()
        self._compactions: deque[dict[str, Any]] = deque(maxlen=_HISTORY)
        self._expiries: deque[dict[str, Any]] = deque(maxlen=_HISTORY)
        self._waiting: str | None = None
        self._waited = 0.0

    def sorted_runs(self, table: str, counts: RunCounts) -> None:
        """Set the gauges of the level-0 files and the sorted runs of a table.

        Does nothing if one of the two counts is unknown (None).
        """
        if counts.level_0 is not None and counts.sorted_runs is not None:
            metrics.record_sorted_runs(table, counts.level_0, counts.sorted_runs)

    def throttled(self, cause: str, tables: Sequence[str]) -> None:
        """Record that ingest begins to wait; `tables` are the tables above their stop trigger.

        `cause` is "inline", for compactions that commits triggered, or "sorted-runs", for tables
        above their stop trigger.
        """
        with self._lock:
            self._waiting = cause
        level = logging.WARNING if cause == "sorted-runs" else logging.DEBUG
        _LOG.log(level, "ingest_throttled", extra={"ctx": {"cause": cause, "tables": tables}})

    def released(self, cause: str, seconds: float) -> None:
        """Record that ingest continues after a wait of `seconds`.

        `cause` is "inline" or "sorted-runs": what ingest has waited for.
        """
        with self._lock:
            self._waiting = None
            self._waited += seconds
        metrics.record_throttled(cause, seconds)

    def done(self, done: Done) -> None:
        """Record the result of a maintenance job in metrics, log and status."""
        if not isinstance(done, NotDone) and done.iceberg_failed:
            metrics.record_iceberg_failure(done.job.table)
        if isinstance(done, CompactionDone):
            self._compacted(done)
        elif isinstance(done, Expired):
            self._expired(done)
        else:
            self._not_done(done)

    def document(self, counts: Mapping[str, RunCounts], over: Sequence[str]) -> dict[str, Any]:
        """Return the section for /status: jobs are newest first, times in seconds since 1970.

        `counts` maps tables to their sorted runs, `over` are the tables above their stop trigger.
        """
        with self._lock:
            return {
                "mode": self._mode,
                "throttled_by": self._waiting,
                "throttled_seconds": round(self._waited, 3),
                "over_stop_trigger": list(over),
                "tables": {name: counts[name]._asdict() for name in sorted(counts)},
                "compactions": list(reversed(self._compactions)),
                "expiries": list(reversed(self._expiries)),
            }

    def _compacted(self, done: CompactionDone) -> None:
        table, seconds = done.job.table, done.seconds
        metrics.record_compaction(table, done.status, seconds)
        metrics.record_compacted_bytes(table, done.bytes_read, done.bytes_written)
        if done.status == "nothing":
            return
        line = {
            "table": table,
            "result": done.status,
            "kind": done.job.kind,
            "snapshot_id": done.snapshot_id,
            "seconds": round(seconds, 3),
            "buckets": done.buckets,
            "lost_buckets": done.lost,
            "files_before": done.files_before,
            "files_after": done.files_after,
            "bytes_read": done.bytes_read,
            "bytes_written": done.bytes_written,
            "changelog_rows": done.changelog_rows,
            "message": "",
        }
        self._keep(self._compactions, line)
        _LOG.info("table_compacted", extra={"ctx": _without(line, "message")})

    def _expired(self, done: Expired) -> None:
        table = done.job.table
        metrics.record_expiry(table, done.snapshots, done.files)
        line = {
            "table": table,
            "seconds": round(done.seconds, 3),
            "snapshots": done.snapshots,
            "changelogs": done.changelogs,
            "partitions": done.partitions,
            "tags": done.tags,
            "tags_created": done.tags_created,
            "files": done.files,
            "message": "",
        }
        if any(line[name] for name in ("snapshots", "changelogs", "partitions", "tags")):
            self._keep(self._expiries, line)
            _LOG.info("table_expired", extra={"ctx": _without(line, "message")})
        elif done.tags_created:
            _LOG.info("tags_created", extra={"ctx": _without(line, "message")})
        if done.partitions_done:
            context = {"table": table, "partitions": done.partitions_done}
            _LOG.info("partitions_done", extra={"ctx": context})

    def _not_done(self, done: NotDone) -> None:
        table = done.job.table
        line = {"table": table, "kind": done.job.kind, "error_type": done.error}
        _LOG.warning("maintenance_failed", extra={"ctx": {**line, "message": done.message}})
        if done.job.kind == "expire":
            metrics.record_expiry_failure(table)
            self._keep(self._expiries, {"table": table, "message": redact(done.message)})
            return
        metrics.record_compaction(table, "failed", None)
        failed = {"table": table, "result": "failed", "kind": done.job.kind}
        self._keep(self._compactions, {**failed, "message": redact(done.message)})

    def _keep(self, lines: deque[dict[str, Any]], line: Mapping[str, Any]) -> None:
        with self._lock:
            lines.append({"at": self._clock(), **line})


def _without(line: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key != name}
