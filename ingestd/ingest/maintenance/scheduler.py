"""Which table is compacted or expired next; pure bookkeeping, for whoever locks it.

What is over the stop trigger comes first, then what has waited longest. A table that no compaction
has looked at since the start gets a look when nothing else is due: what earlier runs have left is
found so. Expiry waits for compactions, but not for longer than its interval; compactions wait while
the stream is behind, but for those that are pressing.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from ingestd.errors import IngestdError
from ingestd.ingest.maintenance.table_maintenance import Ended, TableGrowth, TableWork, rules_of
from ingestd.paimon.spec.schema import TableSchema
from ingestd.paimon.table.compact.sorted_runs import SortedRuns

_LOG = logging.getLogger(__name__)

Kind = Literal["compact", "full", "expire"]
Due = Literal["all", "rested", "pressing"]


@dataclass(frozen=True, slots=True)
class Job:
    """Something to do for a table, "database.table"; ingest waits, or is about to, if `urgent`."""

    kind: Kind
    table: str
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class MaintenancePace:
    """What is done at all, and how often; seconds."""

    compacts: bool = True
    expires: bool = True
    expiry_interval: float = 60.0


class MaintenanceScheduler:
    """The tables of a pipeline and what they need; times are seconds of a steady clock."""

    def __init__(self, pace: MaintenancePace) -> None:
        self._pace = pace
        self._work: dict[str, TableWork] = {}
        self._over: set[str] = set()

    def opened(self, name: str, schema: TableSchema, now: float) -> None:
        """A table is there, perhaps with work that an earlier run has left."""
        try:
            rules = rules_of(schema)
        except IngestdError as error:
            self._refuse(name, error)
            return
        pace = self._pace
        work = TableWork(rules, schema, now, now + pace.expiry_interval)
        self._work.setdefault(name, work)

    def committed(self, name: str, growth: TableGrowth, now: float) -> None:
        """The driver has committed to a table."""
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
        """The next job, which is then under way; None: nothing can be done now.

        Of the compactions that are due `all` of them, those of tables that have `rested` since the
        last one, or only those that are `pressing`, which are among the others.
        """
        job = self._next_expiry(now - self._pace.expiry_interval)
        job = job or self._next_compaction(now, choice) or self._next_expiry(now)
        if job is not None:
            self._work[job.table].running = True
        return job

    def compacted(self, table: str, sorted_runs: SortedRuns, how: Ended, now: float) -> None:
        """A compaction has ended."""
        if table in self._work:
            self._work[table].compacted(sorted_runs, how, now)
            self._note(table)

    def expired(self, table: str, now: float) -> None:
        """Expiry has ended, one way or another."""
        if table in self._work:
            self._work[table].expired(now, self._pace.expiry_interval)

    def failed(self, table: str, now: float) -> None:
        """A compaction did not end well."""
        if table in self._work:
            self._work[table].failed(now)

    def forget(self, table: str) -> None:
        """The table is no more; if it is committed to after all, it is one that is new."""
        self._work.pop(table, None)
        self._over.discard(table)

    def sorted_runs(self, name: str) -> tuple[int | None, int | None]:
        """Files of level 0 and the most sorted runs of a bucket, as far as they are known."""
        work = self._work.get(name)
        return (None, None) if work is None else (work.level_0, work.runs)

    def over_stop(self) -> Collection[str]:
        """Tables that ingest should wait for."""
        return self._over if self._pace.compacts else ()

    def triggered(self, now: float) -> list[str]:
        """Tables for which a trigger has asked, or which are worked on, but for failing ones."""
        if not self._pace.compacts:
            return []
        return [
            name
            for name, work in self._work.items()
            if work.running or (work.due_since is not None and work.is_due(now) and _may_run(work))
        ]

    def standings(self) -> Mapping[str, tuple[int | None, int | None]]:
        """`standing` of every table."""
        return {name: (work.level_0, work.runs) for name, work in self._work.items()}

    def _refuse(self, name: str, error: IngestdError) -> None:
        """Leave a table alone whose options cannot be understood."""
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
        urgent = work.is_over_stop or (choice == "pressing" and work.nears_stop)
        return Job("full" if work.wants_full else "compact", name, urgent)

    def _next_expiry(self, now: float) -> Job | None:
        """The table whose expiry has been due longest, if it was at this time."""
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
    return choice == "rested" and not work.rests(now)


def _may_run(work: TableWork) -> bool:
    return not work.running and not work.rules.write_only
