"""Stage 1 of a batch, in one task: read offset ranges and produce (slot, blob) pairs.

Records are fetched and decoded to change batches. Each batch is routed to its target, and its rows
are converted to the columns of the table, without rows that the table already covers. Each row is
sent to the write task of its slot. Rejected records are sent in the same way, as rows of the
dead-letter table.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
import pyarrow as pa

from ingestd.cdc.base import (
    ChangeBatch,
    Decoded,
    RecordChunk,
    RejectedRecord,
    shared_data_format,
)
from ingestd.cdc.record_errors import Reason
from ingestd.errors import IngestdError, SchemaConflictError
from ingestd.ingest.dead_letters.dead_letter import DeadLetter, dead_letter_rows
from ingestd.ingest.dead_letters.stored_records import without_stored
from ingestd.ingest.rows.blobs import Blob, encode_abort_marker, encode_report
from ingestd.ingest.rows.chunk_cache import CachedChunk, ChunkCache, ChunkKey, NotCachedError
from ingestd.ingest.rows.conform import IMPOSSIBLE, ShapedRows, shape_rows
from ingestd.ingest.rows.rejected_records import rejected_record
from ingestd.ingest.rows.slot_assignment import assign_slots
from ingestd.ingest.rows.targets import (
    Target,
    TargetColumns,
    Targets,
    rejected_all,
    rejected_unrouted,
)
from ingestd.ingest.settings.context import BatchContext, QualifiedSourceTable, TableContext
from ingestd.ingest.stages.findings import Findings
from ingestd.ingest.stages.map_side_dedup import MapSideDedup, Pairs
from ingestd.ingest.stages.table_events import TableEvents
from ingestd.kafka.fetch import Bounds
from ingestd.kafka.isolated_fetch import fetch_readable
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.registry_http import take_figures

Fetch = Callable[[KafkaSource, OffsetRange], Iterator[RecordChunk]]


def decode_ranges(
    context: BatchContext,
    ranges: Iterable[OffsetRange],
    *,
    task_index: int = 0,
    fetch: Fetch | None = None,
    cache: ChunkCache | None = None,
) -> Pairs:
    """Decode the ranges of one task, and yield (slot, blob) pairs for the write stage.

    A slot is the number of the write task that gets the blob. `fetch` reads a range; None reads it
    from Kafka. `cache` holds decoded chunks between two runs of the batch. The last pair is the
    report of the task, in slot `task_index` modulo the number of slots. If the batch must run
    again, every slot also gets an abort marker, so that nothing is written. Decoding continues, so
    that one run discovers all schema differences.

    Raises SourceError if fetching fails (LogChangedError if a log no longer has its range), and
    PolicyStopError, SchemaConflictError, ConfigError or UnsupportedError if the configuration or a
    table does not allow the records.
    """
    task = _DecodeTask(context, task_index, cache)
    for source, of_source in groupby(ranges, lambda offset_range: offset_range.source):
        unread = []
        for offset_range in of_source:
            rest = yield from task.resume(offset_range)
            unread += [rest] if rest.start < rest.until else []
        for chunk in task.fetch(source, unread, fetch):
            decoded = task.decode(source, chunk)
            yield from task.send(source, chunk, decoded)
            if cache is not None:
                task.keep(cache, source, chunk, decoded)
    yield from task.finish()


def shape_again(
    context: BatchContext, source: str, chunks: Iterable[RecordChunk]
) -> Iterator[ShapedRows]:
    """Decode chunks of a source again, and yield the rows of their targets without sending them.

    Raises PolicyStopError, SchemaConflictError, ConfigError or UnsupportedError if the
    configuration or a table does not allow the records.
    """
    task = _DecodeTask(context, 0)
    for chunk in chunks:
        shaped = task.shape_all(source, chunk, task.decode(source, chunk))
        if source not in task.images and any(rows.needs_before_images for rows in shaped):
            again = task.decode_with_before_images(source, chunk)
            shaped = task.shape_all(source, chunk, again)
        yield from shaped


class _DecodeTask:
    """One decode task: its context, its caches, and its findings."""

    def __init__(
        self, context: BatchContext, task_index: int, cache: ChunkCache | None = None
    ) -> None:
        self._context = context
        self._cache = cache
        self._cached_until: dict[tuple[str, str, int], int] = {}
        """By topic partition, the end of the cached chunks that cover a range from its start."""
        self._held: list[tuple[ChunkKey, CachedChunk]] = []
        """The chunks to cache if a later one makes the batch run again."""
        self._held_bytes = 0
        self._task_index = task_index
        self._targets = Targets(context)
        self._findings = Findings(context.sources, context.event_time_columns())
        self._dedup = MapSideDedup(context, self._findings.counts)
        self.images = set(context.sources) if context.needs_before_images() else set[str]()
        """Sources that are decoded with the before images of changes."""
        self._renames = context.follows_renames()
        self._filters = context.filters_rows()

    def resume(self, offset_range: OffsetRange) -> Generator[tuple[int, Blob], None, OffsetRange]:
        """Yield blobs of cached chunks from the start of a range; return the rest of the range."""
        source, where = offset_range.source, (offset_range.topic, offset_range.partition)
        while self._cache is not None:
            key = ChunkKey(source, *where, offset_range.start, images=source in self.images)
            cached = self._cache.get(key, self._known(source, offset_range.topic))
            if cached is None or cached[0].offsets[-1] >= offset_range.until:
                break
            try:
                yield from self.send(source, *cached)
            except NotCachedError:
                break
            offset_range = replace(offset_range, start=int(cached[0].offsets[-1]) + 1)
        self._cached_until[source, *where] = offset_range.start
        return offset_range

    def keep(self, cache: ChunkCache, source: str, chunk: RecordChunk, decoded: Decoded) -> None:
        """Cache a chunk if all before it in its range are cached, and the batch runs again.

        Until a chunk makes the batch run again, chunks are held in memory, with columns of at most
        `max_chunk_bytes`.
        """
        where = (source, chunk.topic, chunk.partition)
        start = self._cached_until.pop(where, None)
        if start is None:
            return
        cached = CachedChunk.of(chunk, decoded, self._known(*where[:2]))
        if cached is None:
            return
        self._held.append((ChunkKey(*where, start, source in self.images), cached))
        self._held_bytes += cached.size
        self._cached_until[where] = int(chunk.offsets[-1]) + 1
        if self._findings.runs_again:
            for held in self._held:
                cache.put(*held)
        elif self._held_bytes > self._context.max_chunk_bytes:
            self._cached_until.clear()
        else:
            return
        self._held, self._held_bytes = [], 0

    def _known(self, source: str, topic: str) -> TargetColumns:
        return TargetColumns(self._context, self._targets, source, topic)

    def fetch(
        self, source: str, ranges: Sequence[OffsetRange], fetch: Fetch | None
    ) -> Iterator[RecordChunk]:
        """Return an iterator over the chunks of ranges of a source.

        The ranges are of different topic partitions. Ranges that cannot be read are recorded in the
        findings.
        """
        context, settings = self._context, self._context.sources[source]
        if fetch is not None:
            return (
                chunk for offset_range in ranges for chunk in fetch(settings.kafka, offset_range)
            )
        return fetch_readable(
            settings.kafka,
            ranges,
            Bounds(context.max_chunk_records, context.max_chunk_bytes),
            self._findings.note_unreadable,
            headers=settings.needs_headers,
        )

    def decode(self, source: str, chunk: RecordChunk) -> Decoded:
        """Decode a chunk into changes by source table, in the column types of their targets."""
        known = self._known(source, chunk.topic)
        usable, oversized = drop_oversized(chunk, self._context.max_record_bytes)
        settings = self._context.sources[source]
        format_settings = replace(
            settings.format_settings,
            images=source in self.images,
            renames=self._renames,
            presence=self._filters,
        )
        data_format = shared_data_format(settings.data_format, source, format_settings)
        decoded = data_format.decode(usable, known, replace(known, only_declared=True))
        return replace(decoded, rejected=[*oversized, *decoded.rejected])

    def send(self, source: str, chunk: RecordChunk, decoded: Decoded) -> Pairs:
        """Yield blobs with the rows of a decoded chunk, and with its rejected records."""
        shaped = self.shape_all(source, chunk, decoded)
        if source not in self.images and any(rows.needs_before_images for rows in shaped):
            yield from self.send(source, chunk, self.decode_with_before_images(source, chunk))
            return
        self._findings.note_chunk(source, chunk, shaped)
        self._findings.counts.control += decoded.control
        dead_letters = [
            DeadLetter(record, self._table_of(source, record)) for record in decoded.rejected
        ]
        if decoded.truncates or decoded.schema_changes:
            events = TableEvents(self._context, self._targets, self._findings, source)
            dead_letters += events.note(chunk, decoded)
        dead_letters += [
            DeadLetter(record, rows.table or self._table_of(source, record))
            for rows in shaped
            for record in rows.rejected
        ]
        where = SourcePartition(source, chunk.topic, chunk.partition)
        for rows in shaped:
            if rows.table is not None and rows.rows is not None:
                yield from self._place(self._context.tables[rows.table], where, rows.rows)
        if dead_letters:
            yield from self._send_dead_letters(source, chunk, dead_letters)
        if self._dedup.is_full:
            yield from self._release()

    def decode_with_before_images(self, source: str, chunk: RecordChunk) -> Decoded:
        """Decode a chunk with before images; `decode` then includes them in all later chunks."""
        self.images.add(source)
        self._cached_until.clear()  # the chunk was not decoded as it is sent
        return self.decode(source, chunk)

    def shape_all(self, source: str, chunk: RecordChunk, decoded: Decoded) -> list[ShapedRows]:
        """Return the rows of all batches of a decoded chunk, in the columns of their targets."""
        return [rows for batch in decoded.batches for rows in self.shape(source, chunk, batch)]

    def _table_of(self, source: str, record: RejectedRecord) -> str | None:
        """Return the table to which a rejected record is routed, or None if it is unknown."""
        if record.source_table is None:
            return None
        source_table = QualifiedSourceTable(source, *record.source_table)
        target = self._targets.of(record.topic, source_table)
        return None if target is None else target.table

    def _place(self, target: TableContext, where: SourcePartition, rows: pa.Table) -> Pairs:
        """Yield blobs of rows by slot, unless rows are buffered or the batch runs again."""
        if rows.num_rows and not self._findings.runs_again:
            assigned, slots = assign_slots(target, rows, self._context.slots, self._task_index)
            yield from self._dedup.add(target, where, assigned, slots)

    def shape(self, source: str, chunk: RecordChunk, batch: ChangeBatch) -> Iterator[ShapedRows]:
        """Yield the rows of a batch of the chunk, in the columns of its target.

        Raises SchemaConflictError if the key of the target cannot distinguish its sources, and one
        of `IMPOSSIBLE` if rows conflict with the settings and the policy fails.
        """
        source_table = QualifiedSourceTable(source, *batch.source)
        target = self._targets.of(chunk.topic, source_table)
        if target is None:
            rejected = rejected_unrouted(self._targets.router, chunk, batch)
            skipped = {} if rejected else {"excluded": len(batch.offset)}
            yield ShapedRows(None, source_table, skipped, rejected)
            return
        if target.rejection is not None:
            rejected = rejected_all(chunk, batch, target.rejection)
            yield ShapedRows(target.table, source_table, rejected=rejected)
            return
        if target.key_conflict is not None:
            raise SchemaConflictError(target.key_conflict)
        rest = yield from self._judge_covered(target, chunk, batch)
        yield from self._shape_for(target, chunk, rest)

    def _shape_for(
        self, target: Target, chunk: RecordChunk, batch: ChangeBatch
    ) -> Iterator[ShapedRows]:
        settings = self._context.sources[target.source_table.source]
        try:
            shaped = shape_rows(target, chunk, batch, settings)
        except IMPOSSIBLE as error:
            if target.settings.evolution.fails:
                raise
            yield from self._shape_apart(target, chunk, batch, error)
        else:
            yield shaped

    def _judge_covered(
        self, target: Target, chunk: RecordChunk, batch: ChangeBatch
    ) -> Generator[ShapedRows, None, ChangeBatch]:
        """Judge the rows again that the target covers and the dead-letter table does not.

        There are such rows if the dead-letter table was rolled back or restored. Yields rejected
        records among them, and none of the rows; returns the other rows of the batch. Records that
        are read for a comparison have no dead-letter table.
        """
        dead_letters, table = self._context.tables.get(self._context.dead_letters), target.context
        if dead_letters is None or table is None:
            return batch
        where = (target.source_table.source, chunk.topic, chunk.partition)
        start, until = dead_letters.covered_until(*where), table.covered_until(*where)
        if start >= until:
            return batch
        judged = (batch.offset >= start) & (batch.offset < until)
        if not judged.any():
            return batch
        uncovered = replace(target, context=replace(table, covered={}))
        covered = batch.filter(judged)
        yield ShapedRows(target.table, target.source_table, {"covered": len(covered.offset)})
        for shaped in self._shape_for(uncovered, chunk, covered):
            yield ShapedRows(
                shaped.table,
                shaped.source_table,
                rejected=shaped.rejected,
                needs_before_images=shaped.needs_before_images,
            )
        return batch.filter(~judged)

    def _shape_apart(
        self, target: Target, chunk: RecordChunk, batch: ChangeBatch, error: IngestdError
    ) -> Iterator[ShapedRows]:
        """Bisect a batch that its table cannot accept, and yield the rows of the halves.

        The halves are decoded again, and halved again if they fail, down to single records, so that
        the columns and types of one record do not affect others. A single record that fails is
        rejected.
        """
        offsets = np.unique(batch.offset)
        if len(offsets) == 1:
            reason = Reason("schema", "impossible-columns", error.message)
            rejected = rejected_record(chunk, int(offsets[0]), reason)
            yield ShapedRows(target.table, target.source_table, rejected=[rejected])
            return
        source = target.source_table.source
        for half_offsets in np.array_split(offsets, 2):
            half = chunk.take(np.searchsorted(chunk.offsets, half_offsets))
            decoded = self.decode(source, half)
            yield ShapedRows(None, target.source_table, rejected=decoded.rejected)
            for half_batch in decoded.batches:
                if half_batch.source == batch.source:
                    yield from self.shape(source, half, half_batch)

    def _send_dead_letters(
        self, source: str, chunk: RecordChunk, dead_letters: list[DeadLetter]
    ) -> Pairs:
        """Yield the records that become dead letters, as rows of the dead-letter table.

        Records that their tables cover are left out, and records that have a dead letter already.
        Raises PolicyStopError if the policy stops the pipeline because of one of the records, and
        FormatError if the dead-letter table is damaged.
        """
        context, position = self._context, (source, chunk.topic, chunk.partition)
        target = context.tables[context.dead_letters]
        tables = {dead_letter.table for dead_letter in dead_letters}
        covered = {table: context.covered_by_all(table, *position) for table in tables}
        new = [letter for letter in dead_letters if letter.rejected.offset >= covered[letter.table]]
        if context.dead_letter_topic is None:
            pipelines, until = context.pipelines, target.covered_until(*position)
            reading = {n for n, one in context.sources.items() if one.kafka.selects(chunk.topic)}
            others = reading - {source}
            new = without_stored(target.table, pipelines, others, new, until)
        new = self._findings.note_rejected(source, new, self._context.error_policy)
        if not new:
            return
        self._findings.note_topic(target.identifier, source, chunk.topic)
        rows = dead_letter_rows(context.pipeline, source, new, chunk)
        yield from self._place(target, SourcePartition(*position), rows)

    def _release(self) -> Pairs:
        """Yield blobs of rows that were buffered for deduplication, unless the batch runs again."""
        if not self._findings.runs_again:
            yield from self._dedup.release()

    def finish(self) -> Pairs:
        """Yield buffered rows, or abort markers if the batch must run again; then the report."""
        yield from self._release()
        if self._findings.runs_again:
            yield from ((slot, encode_abort_marker()) for slot in range(self._context.slots))
        sources = self._context.sources.values()
        if any(source.format_settings.schemas is not None for source in sources):
            self._findings.counts.registry.update(take_figures())
        yield self._task_index % self._context.slots, encode_report(self._findings.report())


def drop_oversized(chunk: RecordChunk, max_bytes: int) -> tuple[RecordChunk, list[RejectedRecord]]:
    """Return the chunk without records larger than `max_bytes`, and these as rejected records.

    The size of a record is the size of its key and value together.
    """
    sizes = chunk.record_sizes()
    if int(sizes.max(initial=0)) <= max_bytes:
        return chunk, []
    rejected = [
        rejected_record(chunk, int(chunk.offsets[index]), _too_large(int(sizes[index]), max_bytes))
        for index in np.flatnonzero(sizes > max_bytes).tolist()
    ]
    return chunk.take(np.flatnonzero(sizes <= max_bytes)), rejected


def _too_large(size: int, max_bytes: int) -> Reason:
    return Reason("decode", "too-large", f"{size} bytes, above the limit of {max_bytes}")
