"""The driver's reports of its micro-batches: the listener, and the summary of a finished batch."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from ingestd.ingest.maintenance.table_maintenance import TableGrowth
from ingestd.ingest.settings.topic_trial import SetAside
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.counts import Counts, RejectedSample
from ingestd.kafka.ranges import OffsetRange, Offsets
from ingestd.paimon.spec.table_schema import TableSchema

CommitStatus = Literal["committed", "replayed", "empty"]


@dataclass(frozen=True, slots=True)
class TableCommit:
    """How a batch ended for one table, "database.table".

    `snapshot_id` is the snapshot that contains the batch, None if there is no snapshot; `attempts`
    counts the tries to publish it; `seconds` is the duration of the commit, which started at
    `begun` (seconds since 1970). `growth` is for maintenance, None if nothing was committed.
    `iceberg_failed`: the table's Iceberg metadata could not be written.
    """

    table: str
    status: CommitStatus
    snapshot_id: int | None
    attempts: int
    seconds: float
    growth: TableGrowth | None = None
    begun: float = 0.0
    iceberg_failed: bool = False


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """One micro-batch whose commits have succeeded.

    `until` contains the next offset to read of every topic partition; `counts` the sums over all
    tasks; `rejected` some of the rejected records, for the log; `seconds` by phase, including
    "total". `cut`: the batch reached its limits, so more records may be waiting. `times` are the
    event times of its changes; `topics` the (source, topic) pairs with rows for each table.
    """

    batch_id: str
    until: Offsets
    commits: tuple[TableCommit, ...]
    counts: Counts
    rejected: tuple[RejectedSample, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    cut: bool = False
    times: BatchTimes = field(default_factory=BatchTimes)
    topics: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict)


class BatchListener(Protocol):
    """Receives events of batches on the thread that runs them; must be quick and must not raise."""

    def tables_opened(self, tables: Mapping[str, TableSchema]) -> None:
        """A run starts with these existing tables, "database.table"."""
        ...

    def offsets_lost(self, source: str, topic: str, records: int) -> None:
        """At most this many records of a topic are lost, which the policy accepted at the start."""
        ...

    def topic_set_aside(self, topic: SetAside, message: str) -> None:
        """A topic is set aside for the rest of this run, for the reason in the message."""
        ...

    def partition_set_aside(self, left: OffsetRange, message: str) -> None:
        """A topic partition is set aside from the start of `left` on, for the rest of this run."""
        ...

    def batch_started(self, batch_id: str, ranges: tuple[OffsetRange, ...]) -> None:
        """A batch over these ranges starts, for the first time or again."""
        ...

    def phase(self, name: str, seconds: float) -> None:
        """A phase of the running batch took `seconds`; a phase may be reported more than once."""
        ...

    def batch_finished(self, summary: BatchSummary) -> None:
        """All commits of a batch have succeeded."""
        ...

    def between_batches(self, stopping: threading.Event) -> None:
        """Called before the next batch is planned; only here a listener may wait, for a bounded
        time and not after `stopping` is set."""
        ...
