"""Events of micro-batches on the driver: the listener interface, and the summary of a batch."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ingestd.ingest.maintenance.table_maintenance import TableGrowth
from ingestd.ingest.settings.wrong_format import SetAside
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.counts import Counts, RejectedSample
from ingestd.kafka.offset_ranges import OffsetRange, Offsets
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.commit.table_commit import CommitStatus


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """An existing table at the start of a run.

    `snapshot_id` is its newest snapshot, committed at `committed_at` in seconds since the epoch;
    both are None if the table has no snapshot.
    """

    schema: TableSchema
    snapshot_id: int | None = None
    committed_at: float | None = None


@dataclass(frozen=True, slots=True)
class TableCommit:
    """The commit of a batch to one table, "database.table".

    `snapshot_id` is the snapshot that contains the batch, or None if the table has no snapshot.
    `attempts` is the number of attempts to publish it. The commit started at `begun`, in seconds
    since the epoch, and took `seconds`. `growth` is what maintenance needs to know about the
    commit, or None if nothing was committed.
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
    """A micro-batch that has been committed to all tables.

    `until` is the next offset to read in each topic partition. `counts` are the sums over all
    tasks, and `rejected` some of the rejected records, for the log. `seconds` maps phases,
    including "total", to their duration in seconds. If `cut`, the batch reached its limits, so more
    records may be available. `times` are the event times of its changes, and `topics` maps tables
    to the (source, topic) pairs of their rows. `iceberg_failures` are the tables for which writing
    Iceberg metadata has failed since the last batch.
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
    iceberg_failures: tuple[str, ...] = ()


class BatchListener(Protocol):
    """A receiver of the events of a run and its batches.

    `tables_opened`, `offsets_lost` and `losses_accepted` are called while the pipeline starts, the
    other methods on the thread that runs the batches. Methods must not raise, and must be quick,
    except `between_batches`.
    """

    def tables_opened(self, tables: Mapping[str, OpenedTable]) -> None:
        """Handle the start of a run; `tables` are the existing tables, by "database.table"."""
        ...

    def table_created(self, table: str, schema: TableSchema) -> None:
        """Handle a new table, "database.table", with its first schema."""
        ...

    def schema_changed(self, table: str, before: TableSchema, after: TableSchema) -> None:
        """Handle a new schema of a table, before rows with it are committed."""
        ...

    def offsets_lost(self, source: str, topic: str, records: int) -> None:
        """Handle the loss of at most `records` records of a topic, accepted at startup."""
        ...

    def losses_accepted(self, reasons: Sequence[str]) -> None:
        """Handle the dead letters about losses that the start has committed, by their reasons."""
        ...

    def topic_set_aside(self, topic: SetAside, message: str) -> None:
        """Handle a topic that is set aside for the rest of the run; `message` states the reason."""
        ...

    def partition_set_aside(self, unread: OffsetRange, message: str) -> None:
        """Handle a topic partition that is set aside for the rest of the run.

        Its records from offset `unread.start` on are not read; `message` states the reason.
        """
        ...

    def batch_started(self, batch_id: str, ranges: tuple[OffsetRange, ...]) -> None:
        """Handle the start of a batch over these offset ranges, for the first time or again."""
        ...

    def phase(self, name: str, seconds: float) -> None:
        """Handle the end of the phase `name` of a batch, which took `seconds`.

        A phase may occur repeatedly in a batch.
        """
        ...

    def batch_finished(self, summary: BatchSummary) -> None:
        """Handle a batch that has been committed to all tables."""
        ...

    def between_batches(self, stopping: threading.Event) -> None:
        """Handle the pause before the next batch is planned.

        This method may wait, for a limited time and only until `stopping` is set.
        """
        ...
