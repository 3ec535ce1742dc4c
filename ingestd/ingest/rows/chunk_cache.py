"""Decoded chunks that wait for their table: what a run that discovers it leaves to the next one.

A table that is not there yet makes a batch run twice. Its decoded rows need no table, so the first
run puts those of a good chunk into the cache, and the next run takes them from there instead of
fetching and decoding again, provided that the table came to be of exactly the types that they have.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.cdc.base import ChangeBatch, Decoded, RecordChunk
from ingestd.ingest.rows.batch_rows import record_sizes
from ingestd.ingest.rows.before_images import announced
from ingestd.ingest.rows.blobs import KIND, OFFSET, POSITION, UNAVAILABLE_PREFIX, Encoded
from ingestd.ingest.rows.conform import conform
from ingestd.ingest.schemas.column_history import COLUMN_HISTORY_OPTION
from ingestd.ingest.schemas.discovery import CachedChunk
from ingestd.ingest.settings.context import BatchContext
from ingestd.ingest.values.counts import TopicPartition
from ingestd.kafka.log_checks import fingerprint_of_last
from ingestd.kafka.ranges import OffsetRange
from ingestd.paimon.spec.changelog_checks import writes_input

LEAST_RECORDS = 1_000
"""A smaller chunk is decoded again sooner than kept and found."""

_SNAPSHOT = "ingestd:snapshot"


class BlobStore(Protocol):
    """Where blobs lie from one run of a batch to the next."""

    def put(self, blob: Encoded) -> str | None:
        """The name under which the blob is found again; None where there is no room."""
        ...

    def get(self, name: str) -> Encoded | None:
        """The blob; None if it is not here."""
        ...


def keep(
    blob_store: BlobStore | None,
    source: str,
    table: str,
    start: int,
    chunk: RecordChunk,
    decoded: Decoded,
) -> CachedChunk | None:
    """Put the rows of a chunk into the cache; None unless every record of it is good.

    `start` is the offset from which on nothing was read before the chunk.
    """
    plain = (
        len(decoded.batches) == 1
        and not decoded.rejected
        and not (decoded.truncates or decoded.schema_changes)
    )
    if blob_store is None or not plain or len(chunk.offsets) < LEAST_RECORDS:
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
        size=int(record_sizes(chunk).sum()),
        control=decoded.control,
        last=fingerprint_of_last(chunk),
        table=table,
        source_table=batch.source,
        types=dict(batch.types),
        primary_keys=batch.primary_keys,
    )


def place_of(where: TopicPartition) -> RecordChunk:
    """A chunk of a topic partition without records, for what asks where it was."""
    none = np.zeros(0, np.int64)
    return RecordChunk(where.topic, where.partition, none, none, [], [], None)


def leading(kept: Iterable[CachedChunk], wanted: OffsetRange) -> Iterator[CachedChunk]:
    """The kept chunks that a range begins with, without a gap between them."""
    where = TopicPartition(wanted.source, wanted.topic, wanted.partition)
    at = wanted.start
    for one in sorted((one for one in kept if one.where == where), key=lambda one: one.start):
        if one.start == at and one.until <= wanted.until:
            yield one
            at = one.until


def take(
    blob_store: BlobStore | None, kept: CachedChunk, context: BatchContext
) -> ChangeBatch | None:
    """The rows of a kept chunk as decoding it again would give them; None if it has to be.

    That is when the table has another key or another type for one of its columns, a row does not
    fit into the table, no one knew that rows before changes are wanted, or the blob is not here.
    """
    target = context.tables.get(kept.table)
    if blob_store is None or target is None:
        return None
    if writes_input(target.table.schema) and not announced(context):
        return None
    schema = target.table.schema
    if COLUMN_HISTORY_OPTION in schema.options:
        return None  # what its columns are called today, the records themselves must tell
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
