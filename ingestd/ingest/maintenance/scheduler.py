"""Schedule compactions and expiries of tables, without I/O; the caller must hold a lock.

Tables that exceed their stop trigger come first, then the tables that have waited longest. If no
other compaction is due, tables that have not been examined since the start are compacted, to do
work that an earlier run has left. Expiry waits for compactions, but no longer than its interval.
Compactions wait while the stream has a backlog, unless they are urgent.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ingestd.errors import IngestdError
from ingestd.ingest.maintenance.table_maintenance import (
    CompactionOutcome,
    TableGrowth,
    TableWork,
    rules_of,
)
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.compact.sorted_runs import SortedRuns

_LOG = logging.getLogger(__name__)

Kind = Literal["compact", "full", "expire"]
Due = Literal["all", "rested", "pressing"]


@dataclass(frozen=True, slots=True)
class Job:
    """A job for a table, "database.table": "compact", "full" (a full compaction) or "expire".

    If `urgent`, ingestion waits for the job or will soon have to.
    """

    kind: Kind
    table: str
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class MaintenancePace:
    """Which kinds of maintenance run, and how often.

    `expiry_interval` is the number of seconds between expiries of a table.
    """

    compacts: bool = True
    expires: bool = True
    expiry_interval: float = 60.0


class RunCounts(NamedTuple):
    """The number of level-0 files of a table, and the most sorted runs of any bucket.

    Both are None if unknown.
    """

    level_0: int | None = None
    sorted_runs: int | None = None


class MaintenanceScheduler:
    """The tables of a pipeline and their due jobs; times are seconds of a monotonic clock.

    Methods that record a result do nothing for a table that was not added or has been removed.
    """

    def __init__(self, pace: MaintenancePace) -> None:
        self._pace = pace
        self._work: dict[str, TableWork] = {}
        self._over: set[str] = set()

    def opened(self, name: str, schema: TableSchema, now: float) -> None:
        """Add an existing table, for which an earlier run may have left work.

        A table that was added before is not changed. A table with invalid options is left out, and
        a warning is logged.
        """
        try:
            rules = rules_of(schema)
        except IngestdError as error:
            self._refuse(name, error)
            return
        pace = self._pace
        work = TableWork(rules, schema, now, now + pace.expiry_interval)
        self._work.setdefault(name, work)

    def committed(self, name: str, growth: TableGrowth, now: float) -> None:
        """Record that the driver has committed to a table, and add the table if it is new.

        If the schema in `growth` has invalid options, the table is removed, and a warning is
        logged.
        """
        if name not in self._work:
            self.opened(name, growth.schema, now)
        work = self._work.get(name)
        if work is not None:
            work.touched()
            if self._pace.compacts:
                try:
                    work.committed(growth, now)
                except IngestdError as error:
                    self._refuse(name, error)
        self._note(name)

    def take(self, now: float, choice: Due = "rested") -> Job | None:
        """Return the next job and mark it as running, or return None if no job can run now.

        Compactions precede expiries, except an expiry that has been due for a whole interval.
        `choice` limits the due compactions: "pressing" selects those that should not wait for the
        end of a backlog, "rested" in addition those of tables not compacted in the last two
        seconds, and "all" every due compaction.
        """
        job = self._next_expiry(now - self._pace.expiry_interval)
        job = job or self._next_compaction(now, choice) or self._next_expiry(now)
        if job is not None:
            self._work[job.table].running = True
        return job

    def compacted(
        self, table: str, sorted_runs: SortedRuns, outcome: CompactionOutcome, now: float
    ) -> None:
        """Record the outcome of a compaction of a table, and the sorted runs that it reported."""
        if table in self._work:
            self._work[table].compacted(sorted_runs, outcome, now)
            self._note(table)

    def expired(self, table: str, now: float) -> None:
        """Record that an expiry has ended, successfully or not."""
        if table in self._work:
            self._work[table].expired(now, self._pace.expiry_interval)

    def failed(self, table: str, now: float) -> None:
        """Record a failed compaction, which delays the next one.

        The delay doubles with each failure, from one second to five minutes.
        """
        if table in self._work:
            self._work[table].failed(now)

    def forget(self, table: str) -> None:
        """Remove a dropped table. A later commit to it adds it again as a new table."""
        self._work.pop(table, None)
        self._over.discard(table)

    def sorted_runs(self, name: str) -> RunCounts:
        """Return the number of a table's level-0 files, and the highest number of runs in a bucket.

        Both are None if no compaction has examined the table yet, or if the table is not known.
        """
        work = self._work.get(name)
        return RunCounts() if work is None else RunCounts(work.level_0, work.runs)

    def over_stop(self) -> Collection[str]:
        """Return the tables for which ingestion must wait.

        They have a bucket with more sorted runs than the stop trigger. Returns no tables if this
        process runs no compactions.
        """
        return self._over if self._pace.compacts else ()

    def triggered(self, now: float) -> list[str]:
        """Return the tables with a running job, or a triggered compaction that may start now.

        Returns no tables if this process runs no compactions.
        """
        if not self._pace.compacts:
            return []
        return [
            name
            for name, work in self._work.items()
            if work.running or (work.due_since is not None and work.is_due(now) and _may_run(work))
        ]

    def sorted_run_counts(self) -> Mapping[str, RunCounts]:
        """Return the result of `sorted_runs` for every table, by name."""
        return {name: self.sorted_runs(name) for name in self._work}

    def _refuse(self, name: str, error: IngestdError) -> None:
        """Remove a table with invalid options from maintenance, and log a warning."""
        context = {"table": name, "message": error.message}
        _LOG.warning("maintenance_refused", extra={"ctx": context})
        self._work.pop(name, None)

    def _note(self, name: str) -> None:
        work = self._work.get(name)
        if work is not None and work.is_over_stop and not work.rules.write_only:
            self._over.add(name)
        else:
            self._over.discard(name)

    def _next_compaction(self, now: float, choice: Due) -> Job | None:
        if not self._pace.compacts:
            return None
        ready = [
            (not work.is_over_stop, work.due_since is None, work.due_since or 0.0, name)
            for name, work in self._work.items()
            if _may_run(work) and work.is_due(now) and _is_chosen(work, now, choice)
        ]
        if not ready:
            return None
        name = min(ready)[-1]
        work = self._work[name]
        urgent = work.is_over_stop or (choice == "pressing" and work.is_near_stop)
        return Job("full" if work.is_full_due else "compact", name, urgent)

    def _next_expiry(self, now: float) -> Job | None:
        """Return a job for the table whose expiry has been due longest, or None."""
        if not self._pace.expires:
            return None
        ready = [
            (work.expires_at, name)
            for name, work in self._work.items()
            if _may_run(work) and work.expires_at <= now
        ]
        return Job("expire", min(ready)[-1]) if ready else None


def _is_chosen(work: TableWork, now: float, choice: Due) -> bool:
    if choice == "all" or work.is_pressing(now):
        return True
    return choice == "rested" and not work.is_pausing(now)


def _may_run(work: TableWork) -> bool:
    return not work.running and not work.rules.write_only
