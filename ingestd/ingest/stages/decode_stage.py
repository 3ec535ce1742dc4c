"""Stage 1 of a batch, one task: read offset ranges and produce (slot, blob) pairs.

Records are fetched, decoded, routed, filtered by the offsets that the table covers, converted to
the table's columns, and sent to the write task of their slot. Rejected records are sent in the same
way, as rows of the dead-letter table.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
import pyarrow as pa

from ingestd.cdc.base import ChangeBatch, Decoded, RecordChunk, shared_data_format
from ingestd.errors import IngestdError
from ingestd.ingest.dead_letters.dead_letter import DeadLetter, dead_letter_rows
from ingestd.ingest.rows.batch_rows import (
    drop_oversized,
    judge_records,
    rejected_record,
)
from ingestd.ingest.rows.before_images import wants_images
from ingestd.ingest.rows.blobs import Blob, encode_abort_marker, encode_report
from ingestd.ingest.rows.chunk_cache import BlobStore, keep, leading, place_of, take
from ingestd.ingest.rows.router import Admission, Router
from ingestd.ingest.rows.row_shape import DeclaredColumns, Shapes, TableColumns
from ingestd.ingest.schemas.discovery import CachedChunk, Discovery
from ingestd.ingest.settings.context import BatchContext, Feed, TableContext
from ingestd.ingest.stages.findings import EventClock, Findings
from ingestd.ingest.stages.map_side_dedup import MapSideDedup
from ingestd.ingest.stages.shaped_rows import IMPOSSIBLE, RowShaper, ShapedRows
from ingestd.ingest.stages.table_events import TableEvents
from ingestd.ingest.values.counts import TopicPartition
from ingestd.kafka.fetch import Bounds
from ingestd.kafka.isolated_fetch import fetch_readable
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import OffsetRange
from ingestd.kafka.registry_tally import take_figures
from ingestd.paimon.spec.data_types import DataType

Fetch = Callable[[KafkaSource, OffsetRange], Iterator[RecordChunk]]
_Types = Mapping[str, DataType]
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
    left: list[OffsetRange] = []
    for wanted in ranges:
        rest = yield from task.go_on(wanted, kept)
        left += [rest] if rest.rows else []
    for _, of_source in groupby(left, lambda one: one.source):
        yield from task.decode(tuple(of_source), fetch)
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

    def go_on(
        self, wanted: OffsetRange, kept: Sequence[CachedChunk]
    ) -> Generator[tuple[int, Blob], None, OffsetRange]:
        """Yield blobs of the cached chunks at the beginning of a range; return the rest of it."""
        for one in leading(kept, wanted):
            refused = self._admission.rejection_reason(
                one.table, Feed(wanted.source, *one.source_table)
            )
            batch = None if refused else take(self._blob_store, one, self._context)
            if batch is None:
                break
            self._findings.note_kept(one)
            yield from self._decode_batch(wanted.source, place_of(one.where), batch, [])
            if self._held.is_full:
                yield from self._release()
            wanted = replace(wanted, start=one.until)
        return wanted

    def _records(self, wanted: Sequence[OffsetRange], fetch: Fetch | None) -> Iterator[RecordChunk]:
        context = self._context
        settings = context.sources[wanted[0].source]
        if fetch is not None:
            return (chunk for one in wanted for chunk in fetch(settings.kafka, one))
        return fetch_readable(
            settings.kafka,
            wanted,
            Bounds(context.max_chunk_records, context.max_chunk_bytes),
            self._findings.unreadable.append,
            headers=settings.format_settings.framing.needs_headers,
        )

    def decode(self, wanted: Sequence[OffsetRange], fetch: Fetch | None) -> Pairs:
        """Yield blobs of the records of ranges of one source, each of another topic partition."""
        source = wanted[0].source
        starts = {(one.topic, one.partition): one.start for one in reversed(wanted)}
        for chunk in self._records(wanted, fetch):
            place = (chunk.topic, chunk.partition)
            yield from self._decode_chunk(source, chunk, starts[place])
            starts[place] = int(chunk.offsets[-1]) + 1
            if self._held.is_full:
                yield from self._release()

    def _decoded(self, source: str, chunk: RecordChunk) -> Decoded:
        settings = self._context.sources[source]
        asked = replace(settings.format_settings, images=self._images, renames=self._renames)
        data_format = shared_data_format(settings.data_format, source, asked)
        known = TableColumns(self._context, self._router, chunk.topic)
        declared = DeclaredColumns(self._context, self._router, chunk.topic)
        return data_format.decode(chunk, known, declared)

    def _decode_chunk(self, source: str, chunk: RecordChunk, start: int) -> Pairs:
        self._findings.note_chunk(source, chunk)
        self._clock.note_chunk(source, chunk)
        usable, oversized = drop_oversized(chunk, self._context.max_record_bytes)
        decoded = self._decoded(source, usable)
        self._findings.counts.control += decoded.control
        dead_letters = [DeadLetter(one) for one in (*oversized, *decoded.rejected)]
        events = TableEvents(self._context, self._admission, self._findings, source)
        dead_letters += events.note(chunk, decoded)
        for batch in decoded.batches:
            yield from self._decode_batch(source, chunk, batch, dead_letters)
        yield from self._bury(source, chunk, dead_letters)
        if len(decoded.batches) == 1 and not dead_letters:
            self._keep(source, chunk, decoded, start)

    def finish(self) -> Pairs:
        """Yield the task's report, and abort markers if the batch must run again."""
        yield from self._release()
        if self._findings.runs_again:
            yield from ((slot, encode_abort_marker()) for slot in range(self._context.slots))
        self._findings.counts.registry.update(take_figures())
        yield self._index % self._context.slots, encode_report(self._findings.report())

    def _decode_batch(
        self, source: str, chunk: RecordChunk, batch: ChangeBatch, dead_letters: list[DeadLetter]
    ) -> Pairs:
        table, refused = self._admission.target(source, chunk, batch)
        if table is None or refused:
            dead_letters += [DeadLetter(one, table) for one in refused]
            self._findings.counts.skip("", "excluded", 0 if refused else len(batch.offset))
            return
        self._shapes.check_key(chunk.topic, batch.source, self._context.tables.get(table))
        try:
            made = self._shaper.shape(source, chunk, batch, table)
        except IMPOSSIBLE as error:
            if self._context.settings_of(table).evolution.fails:
                raise
            yield from self._decode_apart(source, chunk, batch, dead_letters, error)
            return
        for reason, rows in made.skipped.items():
            self._findings.counts.skip(table, reason, rows)
        dead_letters += [DeadLetter(one, table) for one in made.lost]
        if made.lost or not len(made.batch.offset):
            return
        self._findings.note_rows(table, Feed(source, *batch.source), chunk.topic, made.batch)
        self._clock.note_rows(table, source, chunk, made.batch.offset)
        yield from self._accept(source, chunk, table, made, dead_letters)

    def _accept(
        self,
        source: str,
        chunk: RecordChunk,
        table: str,
        made: ShapedRows,
        dead_letters: list[DeadLetter],
    ) -> Pairs:
        """Yield blobs of converted rows, or report what their table lacks."""
        target = self._context.tables.get(table)
        if target is None or made.rows is None:
            self._discover(source, chunk, table, made)
            return
        rows = made.rows
        if made.failures:
            good, rejected = judge_records(chunk, made.shaped.offset, made.failures)
            dead_letters += [DeadLetter(one, table) for one in rejected]
            rows = rows.filter(good)
        if rows.num_rows:
            yield from self._hand_on(source, chunk, target, rows)

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
            one = rejected_record(chunk, int(offsets[0]), cause, error.message)
            dead_letters.append(DeadLetter(one, table))
            return
        for half in np.array_split(offsets, 2):
            part = chunk.take(np.searchsorted(chunk.offsets, half))
            decoded = self._decoded(source, part)
            dead_letters += [DeadLetter(one) for one in decoded.rejected]
            for again in decoded.batches:
                if again.source == batch.source:
                    yield from self._decode_batch(source, part, again, dead_letters)

    def _keep(self, source: str, chunk: RecordChunk, decoded: Decoded, start: int) -> None:
        """Cache a chunk whose rows all wait for the same new table."""
        source_table = decoded.batches[0].source
        table = self._router.route(chunk.topic, source_table)
        shaped = self._shapes.of(chunk.topic, source_table) is not None
        if table is None or shaped or table in self._context.tables:
            return  # the shape of rows needs the records, which are not cached
        if (kept := keep(self._blob_store, source, table, start, chunk, decoded)) is not None:
            self._findings.keep(kept)

    def _hand_on(
        self, source: str, chunk: RecordChunk, target: TableContext, rows: pa.Table
    ) -> Pairs:
        if not self._findings.runs_again:
            where = TopicPartition(source, chunk.topic, chunk.partition)
            yield from self._held.add(target, where, rows)

    def _release(self) -> Pairs:
        """Yield rows that were held back for deduplication, unless the batch runs again."""
        if not self._findings.runs_again:
            yield from self._held.release()

    def _discover(self, source: str, chunk: RecordChunk, table: str, made: ShapedRows) -> None:
        feed = Feed(source, *made.batch.source)
        place = (chunk.topic, chunk.partition, int(made.batch.offset[0]))
        fresh, keys = table not in self._context.tables, made.shaped.primary_keys
        found = Discovery(table, feed, dict(made.beyond), keys, *place, fresh=fresh)
        self._findings.discoveries.add(found)

    def _bury(self, source: str, chunk: RecordChunk, dead_letters: list[DeadLetter]) -> Pairs:
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
        yield from self._hand_on(source, chunk, target, rows)
