"""Wait until a table has all changes that its source database has made so far.

The current position of the source's log is read first, and the connector must pass it. If a running
connector has not moved for some time, the source is regarded as idle; if the state of the connector
is not visible, only this time is waited for. Then all records are in the topics, and the table must
cover their end offsets.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ingestd.errors import SourceError
from ingestd.ingest.recovery.logs import LogCluster, LogPartition, ask_logs
from ingestd.ingest.tables.log_positions import offset_in
from ingestd.ingest.tables.registry_opening import OpenedTables
from ingestd.wording import counted

_POLL_SECONDS = 0.5
_P = TypeVar("_P")


@dataclass(frozen=True, slots=True)
class CatchUpTimeouts:
    """Time limits of the waits for a table, in seconds.

    A connector that has not moved for `connector` seconds is regarded as idle. `table` limits the
    wait for the connector, and again the wait for the table.
    """

    connector: float = 10.0
    table: float = 300.0


@dataclass(frozen=True, slots=True)
class ConnectorState:
    """The state of a source connector with respect to a requested log position.

    `has_passed` states whether the connector has reached the position, and `is_active` whether it
    runs. `position` is a text of its own position, which changes when it moves.
    """

    has_passed: bool
    is_active: bool
    position: str


class Connector(Protocol[_P]):
    """A source connector, as far as its progress in the log of the database is visible.

    `_P` is the type of positions in that log. Methods raise SourceError if the database or the
    brokers do not respond.
    """

    def source_position(self) -> _P:
        """Return the current end of the source's log."""

    def state_at(self, position: _P) -> ConnectorState | None:
        """Return whether the connector has passed a position of the log, and whether it runs.

        Returns None if its state is not visible. Raises ConfigError if the connector is not found,
        or several connectors match.
        """


@dataclass(frozen=True, slots=True)
class ChangeStream:
    """The stream of changes from a database through connector and Kafka logs to one table.

    `table` is the name of the table, and `clusters` are the clients of brokers by source.
    `open_tables` reads the progress of the pipeline again at each call. `clock` returns the seconds
    of a monotonic clock, and `sleep` waits a number of seconds.
    """

    connector: Connector[Any]
    clusters: Mapping[str, LogCluster]
    open_tables: Callable[[], OpenedTables]
    table: str
    timeouts: CatchUpTimeouts
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def wait_until_passed(self) -> None:
        """Wait until the table covers all changes that the source had made at the time of the call.

        If the connector runs but does not move for `timeouts.connector` seconds, or if its state is
        not visible, the topics are assumed to have all of these changes after that time. Raises
        SourceError after a time limit or if brokers do not respond, and ConfigError if the
        connector is not found or several connectors match.
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
        position = self.connector.source_position()
        began = moved = self.clock()
        known: ConnectorState | None = None
        while True:
            state = self.connector.state_at(position)
            if state is not None and state.has_passed:
                return
            # A connector that moves has not caught up; one that does not run is not idle.
            if state is not None and (state != known or not state.is_active):
                known, moved = state, self.clock()
            if self.clock() - moved >= self.timeouts.connector:
                return
            if self.clock() - began > self.timeouts.table:
                raise SourceError(
                    f"the connector has not passed the log position {position} of the source "
                    f"within {self.timeouts.table:g} s: check that it runs, and that --source is "
                    "the server that it reads"
                )
            self.sleep(_POLL_SECONDS)

    def _uncovered(self, ends: Mapping[LogPartition, int]) -> int:
        """Return the number of offsets in the table's topics that the table does not cover yet.

        `ends` are the end offsets of the logs.
        """
        table = self.open_tables().tables[self.table]
        topic_keys = frozenset[str]() if table.progress is None else table.progress.topic_keys
        return sum(
            max(0, end - offset_in(table.covered, log.key, log.partition))
            for log, end in ends.items()
            if log.key in topic_keys
        )
