"""Stage 1 of a batch, one task: read offset ranges and produce (slot, blob) pairs.

Records are fetched, decoded, routed, filtered by the offsets that the table covers, converted to
the table's columns, and sent to the write task of their slot. Rejected records are sent in the same
way, as rows of the dead-letter table.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
import pyarrow as pa

from ingestd.cdc.base import (
    ChangeBatch,
    DataFormat,
    Decoded,
    RecordChunk,
    RejectedRecord,
    shared_data_format,
)
from ingestd.errors import IngestdError
from ingestd.ingest.dead_letters.dead_letter import DeadLetter, dead_letter_rows
from ingestd.ingest.rows.batch_rows import (
    drop_oversized,
    judge_records,
    rejected_record,
)
from ingestd.ingest.rows.blobs import Blob, encode_abort_marker, encode_report
from ingestd.ingest.rows.chunk_cache import BlobStore, chunk_without_records, keep, leading, take
from ingestd.ingest.rows.conform import IMPOSSIBLE, RowShaper, ShapedRows
from ingestd.ingest.rows.router import Admission, Router
from ingestd.ingest.rows.row_shape import DeclaredColumns, Shapes, TableColumns, wants_images
from ingestd.ingest.schemas.discovery import CachedChunk, Discovery
from ingestd.ingest.settings.context import BatchContext, Feed, TableContext
from ingestd.ingest.stages.findings import EventClock, Findings
from ingestd.ingest.stages.map_side_dedup import MapSideDedup
from ingestd.ingest.stages.table_events import TableEvents
from ingestd.ingest.values.counts import TopicPartition
from ingestd.kafka.fetch import Bounds
from ingestd.kafka.isolated_fetch import fetch_readable
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import OffsetRange
from ingestd.kafka.registry_http import take_figures

Fetch = Callable[[KafkaSource, OffsetRange], Iterator[RecordChunk]]
Pairs = Iterator[tuple[int, Blob]]


def decode_ranges(
    context: BatchContext,
    ranges: Iterable[OffsetRange],
    *,
    task_index: int = 0,
    fetch: Fetch | None = None,
    blob_store: BlobStore | None = None,
    kept: Sequence[CachedChunk] = (),
) -> Pairs:
    """Decode the ranges of one task into (slot, blob) pairs for the write stage.

    The last pair is the task's report, in slot `task_index` modulo the slots. If the batch must run
    again, every slot also gets an abort marker, so that nothing is written; decoding continues, to
    discover all differences of the batch at once. Chunks of tables that do not exist yet are put
    into `blob_store`; `kept` are chunks that earlier runs of the batch cached there, which are not
    read and decoded again.

    Raises SourceError from fetching; PolicyStopError, SchemaConflictError and UnsupportedError if
    the configuration or a table does not allow the records.
    """
    task = _DecodeTask(context, task_index, blob_store)
    unread: list[OffsetRange] = []
    for offset_range in ranges:
        rest = (yield from task.resume(offset_range, kept)) if kept else offset_range
        unread += [rest] if rest.rows else []
    for source, of_source in groupby(unread, lambda offset_range: offset_range.source):
        for chunk in task.fetch(source, tuple(of_source), fetch):
            yield from task.decode_chunk(source, chunk)
    yield from task.finish()


class _DecodeTask:
    """One task: its context, its output, and the findings about its chunks."""

    def __init__(
        self, context: BatchContext, task_index: int, blob_store: BlobStore | None
    ) -> None:
        self._context = context
        self._blob_store = blob_store
        self._index = task_index
        self._router = Router(context.routing, context.database)
        self._admission = Admission(context, self._router)
        self._shapes = Shapes(context, self._router)
        self._shaper = RowShaper(context, self._shapes)
        self._findings = Findings()
        self._clock = EventClock(context.sources, self._findings.times)
        self._held = MapSideDedup(context, task_index, self._findings.counts)
        self._images = wants_images(context)
        self._renames = context.follows_renames()
        self._starts: dict[tuple[str, int], int] = {}
        """First offset of each topic partition of the current source that was not read yet."""

    def resume(
        self, offset_range: OffsetRange, kept: Sequence[CachedChunk]
    ) -> Generator[tuple[int, Blob], None, OffsetRange]:
        """Yield blobs of the cached chunks at the beginning of a range; return the rest of it."""
        for cached in leading(kept, offset_range):
            feed = Feed(offset_range.source, *cached.source_table)
            refused = self._admission.rejection_reason(cached.table, feed)
            batch = None if refused else take(self._blob_store, cached, self._context)
            if batch is None:
                break
            self._findings.note_kept(cached)
            yield from self._route(offset_range.source, chunk_without_records(cached), batch, [])
            if self._held.is_full:
                yield from self._release()
            offset_range = replace(offset_range, start=cached.until)
        return offset_range

    def fetch(
        self, source: str, ranges: Sequence[OffsetRange], fetch: Fetch | None
    ) -> Iterator[RecordChunk]:
        """Return the chunks of ranges of a source, each of another topic partition."""
        context, settings = self._context, self._context.sources[source]
        self._starts = {
            (wanted.topic, wanted.partition): wanted.start for wanted in reversed(ranges)
        }
        if fetch is not None:
            return (
                chunk for offset_range in ranges for chunk in fetch(settings.kafka, offset_range)
            )
        return fetch_readable(
            settings.kafka,
            ranges,
            Bounds(context.max_chunk_records, context.max_chunk_bytes),
            self._findings.unreadable.append,
            headers=settings.format_settings.framing.needs_headers,
        )

    def decode_chunk(self, source: str, chunk: RecordChunk) -> Pairs:
        """Yield blobs of the records of a chunk."""
        self._findings.note_chunk(source, chunk)
        self._clock.note_chunk(source, chunk)
        usable, oversized = drop_oversized(chunk, self._context.max_record_bytes)
        known = TableColumns(self._context, self._router, chunk.topic)
        declared = DeclaredColumns(self._context, self._router, chunk.topic)
        decoded = self._decoder(source).decode(usable, known, declared)
        self._findings.counts.control += decoded.control
        rejected = (*oversized, *decoded.rejected)
        dead_letters = [DeadLetter(rejected_record) for rejected_record in rejected]
        if decoded.truncates or decoded.schema_changes:
            events = TableEvents(self._context, self._admission, self._findings, source)
            dead_letters += events.note(chunk, decoded)
        for batch in decoded.batches:
            yield from self._route(source, chunk, batch, dead_letters)
        if dead_letters:
            yield from self._send_dead_letters(source, chunk, dead_letters)
        elif self._blob_store is not None and len(decoded.batches) == 1:
            self._keep(self._blob_store, source, chunk, decoded)
        self._starts[chunk.topic, chunk.partition] = int(chunk.offsets[-1]) + 1
        if self._held.is_full:
            yield from self._release()

    def _decoder(self, source: str) -> DataFormat:
        settings = self._context.sources[source]
        format_settings = replace(
            settings.format_settings, images=self._images, renames=self._renames
        )
        return shared_data_format(settings.data_format, source, format_settings)

    def _route(
        self, source: str, chunk: RecordChunk, batch: ChangeBatch, dead_letters: list[DeadLetter]
    ) -> Pairs:
        """Yield blobs of a batch of the chunk in the columns of its target table."""
        table, refused = self._admission.target(source, chunk, batch)
        if table is None or refused:
            dead_letters += [DeadLetter(rejected, table) for rejected in refused]
            self._findings.counts.skip("", "excluded", 0 if refused else len(batch.offset))
            return
        self._shapes.check_key(chunk.topic, batch.source, self._context.tables.get(table))
        try:
            shaped = self._shaper.shape(source, chunk, batch, table)
        except IMPOSSIBLE as error:
            if self._context.settings_of(table).evolution.fails:
                raise
            yield from self._decode_apart(source, chunk, batch, dead_letters, error)
            return
        for reason, skipped in shaped.skipped.items():
            self._findings.counts.skip(table, reason, skipped)
        dead_letters += [DeadLetter(rejected, table) for rejected in shaped.lost]
        if shaped.lost or not len(shaped.batch.offset):
            return
        self._findings.note_rows(table, Feed(source, *batch.source), chunk.topic, shaped.batch)
        self._clock.note_rows(table, source, chunk, shaped.batch.offset)
        target = self._context.tables.get(table)
        if target is None or shaped.rows is None:
            self._discover(source, chunk, table, shaped)
            return
        rows, refused = _valid_rows(chunk, shaped.rows, shaped)
        dead_letters += [DeadLetter(rejected, table) for rejected in refused]
        if rows.num_rows:
            yield from self._send(source, chunk, target, rows)

    def _decode_apart(
        self,
        source: str,
        chunk: RecordChunk,
        batch: ChangeBatch,
        dead_letters: list[DeadLetter],
        error: IngestdError,
    ) -> Pairs:
        """Decode a batch that its table cannot accept in halves, down to single records.

        So the columns and types of one record do not affect others. A record that fails by itself
        is rejected.
        """
        if not len(chunk.offsets):
            raise error  # a cached chunk, whose records are all valid
        offsets = np.unique(batch.offset)
        if len(offsets) == 1:
            table = self._router.route(chunk.topic, batch.source)
            cause = ("schema", "impossible-columns")
            rejected = rejected_record(chunk, int(offsets[0]), cause, error.message)
            dead_letters.append(DeadLetter(rejected, table))
            return
        known = TableColumns(self._context, self._router, chunk.topic)
        declared = DeclaredColumns(self._context, self._router, chunk.topic)
        for half_offsets in np.array_split(offsets, 2):
            half = chunk.take(np.searchsorted(chunk.offsets, half_offsets))
            decoded = self._decoder(source).decode(half, known, declared)
            dead_letters += [DeadLetter(rejected) for rejected in decoded.rejected]
            for again in decoded.batches:
                if again.source == batch.source:
                    yield from self._route(source, half, again, dead_letters)

    def _keep(
        self, blob_store: BlobStore, source: str, chunk: RecordChunk, decoded: Decoded
    ) -> None:
        """Cache a chunk whose rows all wait for the same new table."""
        source_table = decoded.batches[0].source
        table = self._router.route(chunk.topic, source_table)
        shaped = self._shapes.of(chunk.topic, source_table) is not None
        if table is None or shaped or table in self._context.tables:
            return  # the shape of rows needs the records, which are not cached
        start = self._starts[chunk.topic, chunk.partition]
        if (kept := keep(blob_store, source, table, start, chunk, decoded)) is not None:
            self._findings.keep(kept)

    def _send(self, source: str, chunk: RecordChunk, target: TableContext, rows: pa.Table) -> Pairs:
        if not self._findings.runs_again:
            where = TopicPartition(source, chunk.topic, chunk.partition)
            yield from self._held.add(target, where, rows)

    def _release(self) -> Pairs:
        """Yield rows that were held back for deduplication, unless the batch runs again."""
        if not self._findings.runs_again:
            yield from self._held.release()

    def _discover(self, source: str, chunk: RecordChunk, table: str, shaped: ShapedRows) -> None:
        self._findings.discoveries.add(
            Discovery(
                table,
                Feed(source, *shaped.batch.source),
                dict(shaped.beyond),
                shaped.shaped.primary_keys,
                chunk.topic,
                chunk.partition,
                int(shaped.batch.offset[0]),
                fresh=table not in self._context.tables,
            )
        )

    def _send_dead_letters(
        self, source: str, chunk: RecordChunk, dead_letters: list[DeadLetter]
    ) -> Pairs:
        """Yield rejected records as rows of the dead-letter table, except those it contains."""
        target = self._context.tables[self._context.dead_letters]
        covered = target.covered_until(source, chunk.topic, chunk.partition)
        new = [
            dead_letter for dead_letter in dead_letters if dead_letter.rejected.offset >= covered
        ]
        new = self._findings.note_rejected(source, new, self._context.error_policy)
        if not new:
            return
        self._findings.note_topic(target.identifier, source, chunk.topic)
        rows = dead_letter_rows(self._context.pipeline, source, new, chunk)
        yield from self._send(source, chunk, target, rows)

    def finish(self) -> Pairs:
        """Yield the task's report, and abort markers if the batch must run again."""
        yield from self._release()
        if self._findings.runs_again:
            yield from ((slot, encode_abort_marker()) for slot in range(self._context.slots))
        self._findings.counts.registry.update(take_figures())
        yield self._index % self._context.slots, encode_report(self._findings.report())


def _valid_rows(
    chunk: RecordChunk, rows: pa.Table, shaped: ShapedRows
) -> tuple[pa.Table, list[RejectedRecord]]:
    """Return the rows whose records are valid, and the rejected records."""
    if not shaped.failures:
        return rows, []
    valid, refused = judge_records(chunk, shaped.shaped.offset, shaped.failures)
    return rows.filter(valid), refused
