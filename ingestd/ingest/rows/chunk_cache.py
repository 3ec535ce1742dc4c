"""Cache decoded chunks for a table that is created between two runs of a batch.

If a table does not exist yet, the batch runs twice. Decoding does not need the table, so the first
run caches the rows of chunks without rejected records. The next run uses them instead of fetching
and decoding again, if the table was created with exactly their types.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.cdc.base import ChangeBatch, Decoded, RecordChunk
from ingestd.ingest.rows.blobs import KIND, OFFSET, POSITION, UNAVAILABLE_PREFIX, Encoded
from ingestd.ingest.rows.conform import conform
from ingestd.ingest.schemas.column_history import COLUMN_HISTORY_OPTION
from ingestd.ingest.schemas.discovery import CachedChunk
from ingestd.ingest.settings.context import BatchContext
from ingestd.ingest.values.counts import TopicPartition
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.paimon.spec.changelog_checks import writes_input

LEAST_RECORDS = 1_000
"""Minimum number of records of a cached chunk. Decoding smaller chunks again is faster."""

_SNAPSHOT = "ingestd:snapshot"


class BlobStore(Protocol):
    """A store of blobs between two runs of a batch, on one machine."""

    def put(self, blob: Encoded) -> str | None:
        """Store a blob and return its name, or None if there is no space."""
        ...

    def get(self, name: str) -> Encoded | None:
        """Return the blob with this name, or None if it is not stored here."""
        ...


def keep(
    blob_store: BlobStore,
    source: str,
    table: str,
    start: int,
    chunk: RecordChunk,
    decoded: Decoded,
) -> CachedChunk | None:
    """Cache the rows of a chunk; return the cached chunk, or None if it cannot be cached.

    A chunk is cached if it has at least LEAST_RECORDS records, rows of one source table, and no
    rejected records, truncates or schema changes. `start` is the first offset after the previous
    chunk.
    """
    plain = (
        len(decoded.batches) == 1
        and not decoded.rejected
        and not decoded.truncates
        and not any(event.columns for event in decoded.schema_changes)
    )
    if not plain or len(chunk.offsets) < LEAST_RECORDS:
        return None
    batch = decoded.batches[0]
    name = blob_store.put(_encode(batch))
    if name is None:
        return None
    return CachedChunk(
        name=name,
        where=TopicPartition(source, chunk.topic, chunk.partition),
        start=start,
        until=int(chunk.offsets[-1]) + 1,
        records=len(chunk.offsets),
        size=int(chunk.record_sizes().sum()),
        control=decoded.control,
        last=chunk.last_checksum(),
        table=table,
        source_table=batch.source,
        types=dict(batch.types),
        primary_keys=batch.primary_keys,
    )


def chunk_without_records(cached: CachedChunk) -> RecordChunk:
    """Return an empty chunk that identifies the topic partition of a cached chunk."""
    none, where = np.zeros(0, np.int64), cached.where
    return RecordChunk(where.topic, where.partition, none, none, [], [], None)


def leading(kept: Iterable[CachedChunk], offset_range: OffsetRange) -> Iterator[CachedChunk]:
    """Yield the cached chunks that cover the start of a range without gaps."""
    where = TopicPartition(offset_range.source, offset_range.topic, offset_range.partition)
    start = offset_range.start
    of_partition = (cached for cached in kept if cached.where == where)
    for cached in sorted(of_partition, key=lambda cached: cached.start):
        if cached.start == start and cached.until <= offset_range.until:
            yield cached
            start = cached.until


def take(
    blob_store: BlobStore | None, kept: CachedChunk, context: BatchContext
) -> ChangeBatch | None:
    """Return the rows of a cached chunk, or None if the chunk must be decoded again.

    It must be decoded again if the table has another key or another type for a column, if a row
    does not fit the table, if before images are needed but were not decoded, if column renames
    apply, or if the blob is not stored here.
    """
    target = context.tables.get(kept.table)
    if blob_store is None or target is None:
        return None
    if writes_input(target.table.schema) and not context.announces_input_changelog():
        return None
    schema = target.table.schema
    if COLUMN_HISTORY_OPTION in schema.options:
        return None  # renames are applied by the position of records, which are not cached
    columns = {column.name: column.type.as_nullable() for column in schema.fields}
    if schema.primary_keys != kept.primary_keys or not kept.types.items() <= columns.items():
        return None
    blob = blob_store.get(kept.name)
    if blob is None:
        return None
    batch = _decode(kept, blob)
    settings = context.settings_of(kept.table)
    conformed = conform(batch, schema, settings.column_types, settings.evolution)
    return None if conformed.rows is None or conformed.failures else batch


def _encode(batch: ChangeBatch) -> pa.Buffer:
    rows = batch.columns
    arrays: dict[str, npt.NDArray[Any]] = {
        KIND: batch.row_kind,
        OFFSET: batch.offset,
        POSITION: batch.position,
        _SNAPSHOT: batch.snapshot_row,
        **{f"{UNAVAILABLE_PREFIX}{name}": marks for name, marks in batch.unavailable.items()},
    }
    for name, values in arrays.items():
        rows = rows.append_column(name, pa.array(values))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def _decode(kept: CachedChunk, blob: Encoded) -> ChangeBatch:
    with pa.ipc.open_stream(blob) as reader:
        rows = reader.read_all()
    marks = [name for name in rows.column_names if name.startswith(UNAVAILABLE_PREFIX)]
    return ChangeBatch(
        source=kept.source_table,
        columns=rows.drop_columns([KIND, OFFSET, POSITION, _SNAPSHOT, *marks]),
        types=kept.types,
        primary_keys=kept.primary_keys,
        row_kind=rows.column(KIND).to_numpy(),
        offset=rows.column(OFFSET).to_numpy(),
        position=rows.column(POSITION).to_numpy(),
        snapshot_row=rows.column(_SNAPSHOT).to_numpy(),
        unavailable={
            name.removeprefix(UNAVAILABLE_PREFIX): rows.column(name).to_numpy() for name in marks
        },
    )
