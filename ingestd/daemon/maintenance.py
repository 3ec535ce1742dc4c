"""Compaction and expiry beside the stream: what is due goes to niced processes, ingest goes on.

Each process has a thread here that asks it, one job at a time; one that dies is started again,
later each time. While the stream is behind, compactions wait, but for those that are pressing; in
the mode `inline` none does, since ingest waits for them. Ingest waits between batches only: with
the mode `inline` for the compactions that its commits have triggered, up to a budget, and in any
mode, for a bounded time, while a bucket has more sorted runs than the stop trigger of its table.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ingestd.daemon.maintenance_client import MaintenanceClient
from ingestd.daemon.maintenance_process import Opening
from ingestd.daemon.maintenance_record import MaintenanceRecord
from ingestd.errors import RetryableError
from ingestd.ingest.maintenance.backlog import Backlog
from ingestd.ingest.maintenance.batch_summary import TableCommit
from ingestd.ingest.maintenance.jobs import Compacted, Done, NotDone
from ingestd.ingest.maintenance.scheduler import Due, Job, MaintenancePace, MaintenanceScheduler
from ingestd.ingest.maintenance.table_maintenance import Ended
from ingestd.paimon.catalog.base import TableNotFoundError
from ingestd.paimon.spec.schema import TableSchema

_LOG = logging.getLogger(__name__)
_TICK_SECONDS = 0.5
_GRACE_SECONDS = 5.0
_MOST_WAIT_SECONDS = 60.0
_TO_THE_END = 1e9

CompactionMode = Literal["background", "inline", "off"]
Cause = Literal["inline", "sorted-runs"]


@dataclass(frozen=True, slots=True)
class MaintenanceSettings:
    """What is done beside the stream, by how many processes; seconds.

    `inline_budget` is the longest that a batch waits for compactions in the mode `inline`,
    `max_throttle` the longest that it waits for a bucket above the stop trigger.
    """

    mode: CompactionMode = "background"
    processes: int = 1
    inline_budget: float = 10.0
    max_throttle: float = 30.0
    expires: bool = True
    expiry_interval: float = 60.0

    @property
    def pace(self) -> MaintenancePace:
        """What the choice of jobs is told."""
        return MaintenancePace(self.mode != "off", self.expires, self.expiry_interval)


class Child(Protocol):
    """Does jobs, as `MaintenanceClient` does in a process of its own."""

    def do(self, job: Job, stopping: threading.Event, grace: float) -> Done | None:
        """Do a job; None if it was given up. RetryableError if the process has died."""

    def close(self) -> None:
        """End it."""


class Maintenance:
    """Maintenance of the tables of one pipeline from `start` to `stop`; any thread may call it."""

    def __init__(
        self,
        settings: MaintenanceSettings,
        opening: Opening,
        make_child: Callable[[Opening], Child] = MaintenanceClient,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._ticks = ticks
        self._choice = MaintenanceScheduler(settings.pace)
        self._backlog = Backlog()
        self._finishing = False
        self._record = MaintenanceRecord(settings.mode)
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        wanted = settings.processes if settings.mode != "off" or settings.expires else 0
        self._threads = [
            threading.Thread(
                target=self._work, args=(make_child(opening),), name=f"maintenance-{n}", daemon=True
            )
            for n in range(wanted)
        ]

    def start(self) -> None:
        """Begin; a process is started when there is something to do."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Begin no other job; ingest waits for nothing any longer."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Return when all has ended; a job that takes more than a few seconds is given up."""
        self.end()
        for thread in self._threads:
            thread.join()

    def opened(self, tables: Mapping[str, TableSchema]) -> None:
        """These tables are there; those that are known already go on as they are."""
        with self._changed:
            now = self._ticks()
            self._backlog.opened(now)
            for name, schema in tables.items():
                self._choice.opened(name, schema, now)
            self._changed.notify_all()

    def batch_started(self) -> None:
        """A batch has begun."""
        with self._changed:
            self._backlog.began()

    def run_died(self) -> None:
        """The stream has ended with an error; another run opens the tables again."""
        with self._changed:
            self._backlog.died()
            self._changed.notify_all()

    def committed(self, commits: Iterable[TableCommit], *, cut: bool = False) -> None:
        """A batch has committed; `cut` if more may be waiting."""
        with self._changed:
            self._backlog.ended(cut, self._ticks())
            for one in commits:
                if one.growth is not None:
                    self._choice.committed(one.table, one.growth, self._ticks())
                    self._record.sorted_runs(one.table, self._choice.sorted_runs(one.table))
            self._changed.notify_all()

    def between_batches(self, stopping: threading.Event) -> None:
        """Wait as long as ingest should, on its thread."""
        settings = self._settings
        if settings.mode == "inline":
            self._hold(self._is_triggered, settings.inline_budget, "inline", stopping)
        self._hold(self._is_over_stop, settings.max_throttle, "sorted-runs", stopping)

    def finish(self, stopping: threading.Event) -> None:
        """Return when nothing is left to do that a trigger has asked for, or on `stopping`."""
        with self._changed:
            self._finishing = True
            self._changed.notify_all()
            self._wait_while(self._is_triggered, self._ticks() + _TO_THE_END, stopping)

    def document(self) -> dict[str, Any]:
        """What there is to say, for /status."""
        with self._changed:
            standings, over = self._choice.standings(), sorted(self._choice.over_stop())
        return self._record.document(standings, over)

    def _is_triggered(self) -> bool:
        return bool(self._choice.triggered(self._ticks()))

    def _is_over_stop(self) -> bool:
        return bool(self._choice.over_stop())

    def _hold(
        self, reason: Callable[[], bool], most: float, cause: Cause, stopping: threading.Event
    ) -> None:
        begin = self._ticks()
        with self._changed:
            if not reason():
                return
            self._record.throttled(cause, sorted(self._choice.over_stop()))
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

    def _work(self, child: Child) -> None:
        """One process: jobs until the end."""
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
                job = self._choice.take(now, self._due(now))
                if job is not None:
                    return job
                self._changed.wait(_TICK_SECONDS)
        return None

    def _due(self, now: float) -> Due:
        """Which compactions are begun: all that ingest, or the end, waits for."""
        if self._finishing or self._settings.mode == "inline":
            return "all"
        return "pressing" if self._backlog.is_behind(now) else "rested"

    def _settle(self, done: Done) -> None:
        """Note what came of a job, and let those who wait for it know."""
        job, now = done.job, self._ticks()
        with self._changed:
            if isinstance(done, Compacted):
                how = Ended(done.status != "nothing", done.left > 0, job.kind == "full")
                self._choice.compacted(job.table, done.sorted_runs, how, now)
            elif isinstance(done, NotDone) and done.error == TableNotFoundError.__name__:
                self._choice.forget(job.table)
            elif isinstance(done, NotDone) and job.kind != "expire":
                self._choice.failed(job.table, now)
            else:
                self._choice.expired(job.table, now)
            self._record.sorted_runs(job.table, self._choice.sorted_runs(job.table))
            self._changed.notify_all()
        self._record.done(done)
