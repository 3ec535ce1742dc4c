"""What the driver tells of its micro-batches: the listener, and the summary of a finished batch."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from ingestd.ingest.maintenance.table_maintenance import TableGrowth
from ingestd.ingest.settings.topic_trial import SetAside
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.counts import Counts, RejectedSample
from ingestd.kafka.ranges import OffsetRange, Offsets
from ingestd.paimon.spec.schema import TableSchema

CommitStatus = Literal["committed", "replayed", "empty"]


@dataclass(frozen=True, slots=True)
class TableCommit:
    """How a batch ended for one table, "database.table".

    `snapshot_id` is that of the snapshot which holds the batch, None if there is none; `attempts`
    counts tries at publishing it; `seconds` the whole commit, which began at `begun` (seconds
    since 1970). `growth` is what maintenance wants to know of it, None if nothing was committed.
    """

    table: str
    status: CommitStatus
    snapshot_id: int | None
    attempts: int
    seconds: float
    growth: TableGrowth | None = None
    begun: float = 0.0


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """One micro-batch whose commits have landed.

    `until` holds the next offset to read of every topic partition; `counts` the sums over all
    tasks; `rejected` some of the rejected records, for the log; `seconds` by phase, "total"
    among them. `cut`: it took as much as its limits allow, so more may be waiting. `times` tell
    when its changes were made; `topics` which (source, topic) pairs brought rows to a table.
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
    """Hears of batches on the thread that runs them; must be quick and must not raise."""

    def tables_opened(self, tables: Mapping[str, TableSchema]) -> None:
        """A run begins with these tables, "database.table", which it has written before."""
        ...

    def offsets_lost(self, source: str, topic: str, records: int) -> None:
        """At most this many records of a topic are lost, which was accepted at the start."""
        ...

    def topic_set_aside(self, topic: SetAside, message: str) -> None:
        """A topic is read no more in this run, and why."""
        ...

    def partition_set_aside(self, left: OffsetRange, message: str) -> None:
        """A topic partition is read no more in this run, from the start of `left` on, and why."""
        ...

    def batch_started(self, batch_id: str, ranges: tuple[OffsetRange, ...]) -> None:
        """A batch over these ranges begins, for the first time or again."""
        ...

    def phase(self, name: str, seconds: float) -> None:
        """A phase of the running batch took so long; phases may come more than once."""
        ...

    def batch_finished(self, summary: BatchSummary) -> None:
        """All commits of a batch have landed."""
        ...

    def between_batches(self, stopping: threading.Event) -> None:
        """The next batch is planned when this returns; only here a listener may wait, for a
        bounded time and not after `stopping` is set."""
        ...
