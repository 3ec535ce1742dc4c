"""Find the newest records of keys in the Kafka logs that a table was written from."""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ingestd.compare.canonical import canonical_texts
from ingestd.compare.column_pairs import ComparedColumn, Key
from ingestd.ingest.key_changes.table_history import BaseSnapshot, TableHistory
from ingestd.ingest.recovery.logs import LogCluster, Logs, ask_logs
from ingestd.ingest.recovery.recount import covered_span
from ingestd.ingest.rows.blobs import OFFSET, POSITION
from ingestd.ingest.settings.context import BatchContext
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.log_positions import UNKNOWN, Vector, offset_in
from ingestd.ingest.tables.managed_table import ManagedTable, table_context
from ingestd.ingest.tables.registry_opening import OpenedTables
from ingestd.kafka.fetch import Bounds
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition
from ingestd.kafka.record_log import KafkaRecordLog


@dataclass(frozen=True, slots=True)
class RecordCoordinates:
    """The topic, partition and offset of a record.

    `position` is the position of its change in the log of the source, -1 if unknown.
    """

    topic: str
    partition: int
    offset: int
    position: int = UNKNOWN


@dataclass(frozen=True, slots=True)
class NewestRecords:
    """The newest Kafka record of each key, and the number of offsets that were searched."""

    by_key: Mapping[Key, RecordCoordinates]
    searched: int


@dataclass(frozen=True, slots=True)
class RecordSearch:
    """A search for the records of keys in the logs of a pipeline.

    `clusters` are the clients of brokers by source. `limit` is the maximum number of offsets that
    `find` reads; it reads the newest.
    """

    settings: PipelineSettings
    clusters: Mapping[str, LogCluster]
    limit: int

    def find(
        self,
        opened: OpenedTables,
        table: str,
        key_columns: Sequence[ComparedColumn],
        keys: Collection[Key],
    ) -> NewestRecords:
        """Return the newest record of each key among the records that a table covers.

        `key_columns` are the compared key columns of the table. Keys without such a record in the
        searched offsets are left out, and rejected records are not found. Raises SourceError if
        brokers do not respond, LogChangedError if the records expire meanwhile, and the errors of
        decoding.
        """
        if not keys:
            return NewestRecords({}, 0)
        ranges = search_ranges(table, opened, ask_logs(self.clusters), self.limit)
        return self._search(opened, table, ranges, key_columns, keys)

    def keys_since(
        self,
        opened: OpenedTables,
        table: str,
        key_columns: Sequence[ComparedColumn],
        keys: Collection[Key],
        since: Vector,
    ) -> Collection[Key]:
        """Return those of the `keys` that have a record from the offsets `since` on.

        `key_columns` are the compared key columns of the table. Only records that the table covers
        count. Raises SourceError if brokers do not respond, LogChangedError if the records expire
        meanwhile, and the errors of decoding.
        """
        logs = ask_logs(self.clusters)
        ranges = []
        for covered in search_ranges(table, opened, logs, sys.maxsize):
            topic_key = logs.keys[covered.source, covered.topic]
            start = max(covered.start, offset_in(since, topic_key, covered.partition))
            if start < covered.until:
                ranges.append(replace(covered, start=start))
        return self._search(opened, table, ranges, key_columns, keys).by_key.keys()

    def _search(
        self,
        opened: OpenedTables,
        table: str,
        ranges: Sequence[OffsetRange],
        key_columns: Sequence[ComparedColumn],
        keys: Collection[Key],
    ) -> NewestRecords:
        limits = self.settings.limits
        log = KafkaRecordLog(Bounds(limits.max_chunk_records, limits.max_chunk_bytes))
        context = _context(self.settings, table, opened.tables[table])
        return search(
            TableHistory(context, table, BaseSnapshot(None, {}), log), ranges, key_columns, keys
        )


def search_ranges(table: str, opened: OpenedTables, logs: Logs, limit: int) -> list[OffsetRange]:
    """Return the newest offsets that a table covers and its logs still have, at most `limit`.

    `logs` are the logs of the pipeline's topics; only topics from which the table was written are
    searched. Each topic partition gets the same share of the limit.
    """
    progress = opened.tables[table].progress
    own = frozenset[str]() if progress is None else progress.topic_keys
    span = covered_span(table, opened.tables, opened.progress.origin, logs)
    ranges = [
        OffsetRange(source, topic, partition, start, span.end[source][topic][partition])
        for source, topics in span.start.items()
        for topic, partitions in topics.items()
        if logs.keys[source, topic] in own
        for partition, start in partitions.items()
    ]
    readable = [offset_range for offset_range in ranges if offset_range.rows > 0]
    share = limit // max(len(readable), 1)
    newest = (
        replace(offset_range, start=max(offset_range.start, offset_range.until - share))
        for offset_range in readable
    )
    return [offset_range for offset_range in newest if offset_range.rows > 0]


def search(
    history: TableHistory,
    ranges: Sequence[OffsetRange],
    key_columns: Sequence[ComparedColumn],
    keys: Collection[Key],
) -> NewestRecords:
    """Read the ranges, and return the newest record of each key that has one.

    `history` decodes the records of a range to rows of the table. If several partitions have
    records of a key, the record with the largest position in the source is the newest.
    """
    wanted = frozenset(keys)
    by_key: dict[Key, RecordCoordinates] = {}
    for read in ranges:
        where = read.source_partition
        newest: dict[Key, RecordCoordinates] = {}
        for rows in history.read(where, read.start, read.until):
            newest |= _rows_of_keys(where, rows.rows, key_columns, wanted)
        for key, record in newest.items():
            if key not in by_key or record.position >= by_key[key].position:
                by_key[key] = record
    return NewestRecords(by_key, sum(read.rows for read in ranges))


def _rows_of_keys(
    where: SourcePartition,
    rows: pa.Table,
    key_columns: Sequence[ComparedColumn],
    keys: frozenset[Key],
) -> Iterator[tuple[Key, RecordCoordinates]]:
    """Yield those of `keys` that the rows contain, with the coordinates of their records.

    A key is yielded for each of its rows, in the order of the rows.
    """
    has_position = POSITION in rows.column_names
    for batch in rows.combine_chunks().to_batches():
        texts = [
            canonical_texts(batch.column(column.name), column.type, column.form).to_pylist()
            for column in key_columns
        ]
        offsets = batch.column(OFFSET).to_numpy()
        positions = batch.column(POSITION).to_numpy() if has_position else None
        for index, key in enumerate(zip(*texts, strict=True)):
            if key in keys:
                position = UNKNOWN if positions is None else int(positions[index])
                offset = int(offsets[index])
                yield key, RecordCoordinates(where.topic, where.partition, offset, position)


def _context(settings: PipelineSettings, table: str, managed: ManagedTable) -> BatchContext:
    """Return a context in which records are decoded to rows of one table."""
    limits = settings.limits
    return BatchContext(
        pipeline=settings.name,
        database=settings.database,
        tables={table: table_context(table, managed, {}, None)},
        routing=settings.routing,
        sources=settings.sources,
        dead_letters=settings.dead_letters,
        defaults=settings.defaults,
        settings=settings.tables,
        max_chunk_records=limits.max_chunk_records,
        max_chunk_bytes=limits.max_chunk_bytes,
        max_record_bytes=limits.max_record_bytes,
    )
