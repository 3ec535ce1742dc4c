"""Report each batch on the driver: metrics, status, and one log line."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from ingestd import lag_metrics, metrics
from ingestd.daemon.batch_trace import BatchTrace
from ingestd.daemon.maintenance import Maintenance
from ingestd.daemon.notices import Notices
from ingestd.daemon.status import Status
from ingestd.errors import IngestdError
from ingestd.ingest.batch_events import BatchSummary, OpenedTable, TableCommit
from ingestd.ingest.settings.error_policy import CLAIM_STAGES
from ingestd.ingest.settings.rejection import GAP_STAGE
from ingestd.ingest.settings.wrong_format import SetAside
from ingestd.ingest.values.counts import Counts
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.log import bind_thread
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.table_schema import TableSchema

_LOG = logging.getLogger(__name__)
TOTAL = "total"


class BatchLog:
    """Reports the events of batches to log, metrics, status, maintenance, traces and notices.

    It calls `succeeded` after each finished batch. `clock` returns seconds since 1970, `ticks` the
    seconds of a monotonic clock.
    """

    def __init__(
        self,
        status: Status,
        succeeded: Callable[[], None],
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
        *,
        maintenance: Maintenance | None = None,
        trace: BatchTrace | None = None,
        notices: Notices | None = None,
    ) -> None:
        self._status = status
        self._maintenance = maintenance
        self._trace = trace
        self._notices = notices
        self._succeeded = succeeded
        self._clock = clock
        self._ticks = ticks
        self._begun = ticks()

    def tables_opened(self, tables: Mapping[str, OpenedTable]) -> None:
        """Pass the tables to maintenance and status, and clear the metrics of set-aside topics."""
        lag_metrics.forget_set_aside()
        self._status.tables_opened(tables)
        if self._maintenance is not None:
            self._maintenance.opened({name: table.schema for name, table in tables.items()})

    def table_created(self, table: str, schema: TableSchema) -> None:
        """Send a notice of a new table."""
        if self._notices is not None:
            self._notices.table_created(table, schema)

    def schema_changed(self, table: str, before: TableSchema, after: TableSchema) -> None:
        """Send a notice of a new schema."""
        if self._notices is not None:
            self._notices.schema_changed(table, before, after)

    def offsets_lost(self, source: str, topic: str, records: int) -> None:
        """Count records of a topic that were lost before they were read."""
        metrics.record_gap(source, topic, records)

    def losses_accepted(self, reasons: Sequence[str]) -> None:
        """Count the dead letters about losses that the start has committed."""
        metrics.record_rejected(len(reasons), 0)
        for reason in reasons:
            metrics.record_dead_letters(GAP_STAGE, reason, 1)

    def topic_set_aside(self, topic: SetAside, message: str) -> None:
        """Show a topic as set aside in status and metrics until the next run, and send a notice.

        `message` states the reason.
        """
        lag_metrics.record_set_aside(topic.source, topic.topic)
        self._status.set_aside.add(topic, message)
        if self._notices is not None:
            self._notices.topic_set_aside(topic, message)

    def partition_set_aside(self, unread: OffsetRange, message: str) -> None:
        """Show a topic partition as set aside until the next run, and send a notice.

        `unread` is the range that is not read, and `message` states the reason.
        """
        lag_metrics.record_unreadable(unread.source, unread.topic, unread.partition)
        self._status.set_aside.add_partition(unread, message)
        if self._notices is not None:
            self._notices.partition_set_aside(unread, message)

    def batch_started(self, batch_id: str, ranges: tuple[OffsetRange, ...]) -> None:
        """Record the start of a batch, and add its id to all log lines of this thread."""
        self._begun = self._ticks()
        bind_thread(batch_id=batch_id)
        self._status.batch_started(batch_id, ranges)
        if self._maintenance is not None:
            self._maintenance.batch_started()
        if self._trace is not None:
            self._trace.started(batch_id, ranges)
        _LOG.debug(
            "batch_started", extra={"ctx": {"offsets": sum(range_.rows for range_ in ranges)}}
        )

    def phase(self, name: str, seconds: float) -> None:
        """Show a finished phase of the batch in progress, which took `seconds`.

        Metrics count the phase when the batch has finished.
        """
        self._status.phase(name, seconds)
        if self._trace is not None:
            self._trace.phase(name, seconds)
        _LOG.debug("phase", extra={"ctx": {"phase": name, "seconds": round(seconds, 3)}})

    def batch_finished(self, summary: BatchSummary) -> None:
        """Update metrics, status and maintenance, send the trace, call `succeeded`, and log."""
        seconds = summary.seconds.get(TOTAL, self._ticks() - self._begun)
        _count(summary.counts)
        now = self._clock()
        for commit in summary.commits:
            _count_commit(commit, now)
        for table in summary.iceberg_failures:
            metrics.record_iceberg_failure(table)
        for phase, spent in summary.seconds.items():
            if phase != TOTAL:
                metrics.record_phase(phase, spent)
        metrics.record_batch(seconds, now)
        self._status.batch_finished(summary)
        if self._maintenance is not None:
            self._maintenance.committed(summary.commits, cut=summary.cut)
        if self._trace is not None:
            self._trace.finished(summary)
        self._succeeded()
        _log_rejected(summary)
        _log_batch(summary, seconds)
        bind_thread(batch_id=None)

    def run_died(self, error: IngestdError) -> None:
        """Report a failed run to maintenance, and to the trace of its batch in progress, if any."""
        if self._trace is not None:
            self._trace.failed(error)
        if self._maintenance is not None:
            self._maintenance.run_died()

    def between_batches(self, stopping: threading.Event) -> None:
        """Wait while maintenance throttles ingest, but only until `stopping` is set."""
        if self._maintenance is not None:
            self._status.delayed(delayed=True)
            self._maintenance.between_batches(stopping)
            self._status.delayed(delayed=False)


def _count(counts: Counts) -> None:
    read: dict[tuple[str, str], tuple[int, int]] = {}
    for source_partition, records in counts.records.items():
        so_far = read.get((source_partition.source, source_partition.topic), (0, 0))
        size = counts.bytes.get(source_partition, 0)
        read[source_partition.source, source_partition.topic] = (
            so_far[0] + records,
            so_far[1] + size,
        )
    for (source, topic), (records, size) in read.items():
        metrics.record_read(source, topic, records, size)
    metrics.record_control(counts.control)
    metrics.record_registry(counts.registry)
    metrics.record_index_lookups(counts.index_lookups)
    for (table, kind), rows in counts.rows.items():
        metrics.record_rows(table, RowKind(kind).symbol, rows)
    for table, cells in (+counts.unknown).items():
        metrics.record_unknown(table, cells)
        _LOG.warning("values_unknown", extra={"ctx": {"table": table, "cells": cells}})
    for table, rows in (+counts.unknown_keys).items():
        metrics.record_unknown_keys(table, rows)
        _LOG.warning("keys_unknown", extra={"ctx": {"table": table, "rows": rows}})
    for (table, reason), rows in counts.skipped.items():
        metrics.record_skipped(table, reason, rows)
    for table, files in counts.files.items():
        metrics.record_files(table, files, counts.file_bytes.get(table, 0))
    _count_rejected(counts)


def _count_rejected(counts: Counts) -> None:
    claims = (n for (stage, _), n in counts.rejected.items() if stage in CLAIM_STAGES)
    metrics.record_rejected(sum(counts.rejected.values()), sum(claims))
    for (stage, reason), records in counts.dropped.items():
        metrics.record_dropped(stage, reason, records)
    for (stage, reason), records in (counts.rejected - counts.dropped).items():
        metrics.record_dead_letters(stage, reason, records)


def _count_commit(commit: TableCommit, now: float) -> None:
    metrics.record_commit(commit.table, commit.status, commit.attempts, commit.seconds)
    if commit.status == "committed" and commit.snapshot_id is not None:
        metrics.record_snapshot(commit.table, commit.snapshot_id, now)


def _log_rejected(summary: BatchSummary) -> None:
    for rejected_record in summary.rejected:
        position = {
            "source": rejected_record.source,
            "topic": rejected_record.topic,
            "partition": rejected_record.partition,
        }
        cause = {
            "stage": rejected_record.stage,
            "reason": rejected_record.reason,
            "message": rejected_record.message,
        }
        _LOG.warning(
            "record_rejected",
            extra={"ctx": {**position, "offset": rejected_record.offset, **cause}},
        )


def _log_batch(summary: BatchSummary, seconds: float) -> None:
    counts = summary.counts
    records = sum(counts.records.values())
    snapshots = {
        commit.table: commit.snapshot_id for commit in summary.commits if commit.snapshot_id
    }
    fields = {
        "records": records,
        "bytes": sum(counts.bytes.values()),
        "rows": sum(counts.rows.values()),
        "rejected": sum(counts.rejected.values()),
        "seconds": round(seconds, 3),
        "phases": {name: round(spent, 3) for name, spent in summary.seconds.items()},
        "snapshots": snapshots,
    }
    level = logging.INFO if records or summary.commits else logging.DEBUG
    _LOG.log(level, "batch_finished", extra={"ctx": fields})
