"""Wait until a table has all changes that its source database has made so far.

The source's log position is taken first. The connector has passed it if its replication slot is
confirmed beyond it. If a slot in use by a connector has not moved for some time, the source is
regarded as idle; if no slot is visible, only this time is waited for. Then all records are in the
topics, and the table must cover their end offsets.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ingestd.compare import postgres
from ingestd.compare.drivers import Connection
from ingestd.errors import ConfigError, SourceError
from ingestd.ingest.recovery.logs import LogCluster, ask_logs
from ingestd.ingest.tables.log_positions import offset_in
from ingestd.ingest.tables.registry_opening import OpenedTables
from ingestd.wording import counted

_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class CatchUpTimeouts:
    """Time limits of the waits for a table, in seconds.

    A slot that has not moved for `connector` seconds is regarded as idle. `table` limits each wait.
    """

    connector: float = 10.0
    table: float = 300.0


@dataclass(frozen=True, slots=True)
class _Slot:
    """The state of a replication slot.

    `has_passed`: its confirmed position has reached the requested position. `is_active`: a
    connector uses it. `confirmed` is the confirmed position.
    """

    has_passed: bool
    is_active: bool
    confirmed: str


@dataclass(frozen=True, slots=True)
class ChangeStream:
    """The stream of changes from a database to one table.

    `slot` is the connector's replication slot (None: the only one of the database). `open_tables`
    reads the progress of the pipeline again at each call.
    """

    connection: Connection
    slot: str | None
    clusters: Mapping[str, LogCluster]
    open_tables: Callable[[], OpenedTables]
    table: str
    timeouts: CatchUpTimeouts
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def wait_until_passed(self) -> None:
        """Wait until the table covers all changes that the source had made at the time of the call.

        Raises SourceError after the time limit, ConfigError if the slot of the connector does not
        exist or is ambiguous.
        """
        self._wait_for_connector()
        ends = {log: state.end for log, state in ask_logs(self.clusters).states.items()}
        deadline = self.clock() + self.timeouts.table
        while left := self._uncovered(ends):
            if self.clock() > deadline:
                raise SourceError(
                    f"table {self.table} has not reached the end of its topics within "
                    f"{self.timeouts.table:g} s ({counted(left, 'record')} left): check that "
                    f"the daemon runs; "
                    "for a source without changes, use --as-of"
                )
            self.sleep(_POLL_SECONDS)

    def _wait_for_connector(self) -> None:
        [(position,)] = self.connection.query(postgres.POSITION)
        began = moved = self.clock()
        known: _Slot | None = None
        while True:
            slot = self._slot_at(str(position))
            if slot is not None and slot.has_passed:
                return
            # A slot that moves has not caught up; one without a connector is not regarded as idle.
            if slot is not None and (slot != known or not slot.is_active):
                known, moved = slot, self.clock()
            if self.clock() - moved >= self.timeouts.connector:
                return
            if self.clock() - began > self.timeouts.table:
                raise SourceError(
                    f"the connector has not passed the log position {position} of the source "
                    f"within {self.timeouts.table:g} s: check that it runs"
                )
            self.sleep(_POLL_SECONDS)

    def _slot_at(self, position: str) -> "_Slot | None":
        """Return the state of the connector's slot, or None if no slot is visible.

        Raises ConfigError if the named slot does not exist, or none is named and there are several.
        """
        rows = self.connection.query(postgres.SLOTS, (position,))
        slots = {name: _Slot(*state) for name, *state in rows}
        names = ", ".join(sorted(slots)) or "none"
        if self.slot is not None:
            if self.slot not in slots:
                raise ConfigError(f"the source has no slot {self.slot}; its logical slots: {names}")
            return slots[self.slot]
        if len(slots) > 1:
            raise ConfigError(f"the source has several slots, name one by --slot: {names}")
        return next(iter(slots.values()), None)

    def _uncovered(self, ends: Mapping[tuple[str, int], int]) -> int:
        """Return the number of records in the table's topics that the table does not cover yet."""
        table = self.open_tables().tables[self.table]
        topic_keys = frozenset[str]() if table.progress is None else table.progress.topic_keys
        return sum(
            max(0, end - offset_in(table.covered, topic, partition))
            for (topic, partition), end in ends.items()
            if topic in topic_keys
        )
