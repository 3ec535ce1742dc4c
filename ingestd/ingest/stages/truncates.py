"""Decide which truncates are applied, and which rows they delete.

For a truncate, a connector sends one record without a key to any partition of the topic, so it may
be read after rows that are newer in the source. If rows have source positions, these determine
which rows are older. Rows in the table are stored without their positions, so the table is emptied;
if it may have newer rows, all records after its last snapshot from before the truncate are read
again. In a topic with one partition, the offset determines which rows are older, even without a
position. All other truncates are handled according to the policy.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ingestd.errors import PolicyStopError
from ingestd.ingest.rows.router import NAMED_IN
from ingestd.ingest.schemas.discovery import TableTruncate
from ingestd.ingest.settings.context import (
    BatchContext,
    CoveredOffsets,
    QualifiedSourceTable,
    TruncatePoint,
)
from ingestd.ingest.stages.batch_result import AttemptResult
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition

_LOG = logging.getLogger(__name__)
MAX_READ_AGAIN = 10_000_000
"""Maximum number of offsets that a batch reads again to truncate a table.

They are all part of one batch, which ends with one OVERWRITE and cannot be split. The limit bounds
the duration of the batch, during which nothing else is committed and after which the watchdog
assumes a hang; the size of the blobs between the stages; and the memory of merge engines that need
all rows of a key. Decoding and other writes use chunks of bounded size. As with
`max-offsets-per-trigger`, the limit is a count, because Kafka reports offsets but not the size of
unread records.
"""
_WAY_OUT = (
    "let on-ambiguous-truncate be dead-letter or ignore, which keeps the rows, and empty the table "
    "yourself"
)

_Record = tuple[str, str, int, int]


@dataclass(frozen=True, slots=True)
class Stream:
    """Functions by which decisions on truncates query the logs and tables.

    `partitions` returns the number of partitions of a topic, given source and topic. `held` returns
    the covered offsets of a table, and `source_topics` the (source, topic) pairs of its rows.
    `before`, given a table and a source position, returns the offsets covered by its last snapshot
    without rows from after that position, or None if that snapshot has expired. `begins` returns
    the first offsets of logs; logs that no longer exist are omitted.
    """

    partitions: Callable[[str, str], int]
    held: Callable[[str], CoveredOffsets]
    source_topics: Callable[[str], Collection[tuple[str, str]]]
    before: Callable[[str, int], CoveredOffsets | None]
    begins: Callable[[Collection[SourcePartition]], Mapping[SourcePartition, int]]


@dataclass(slots=True)
class Truncates:
    """The decisions on the truncates of a batch.

    `accepted` maps tables to truncate to how they are truncated. `refused` maps each truncate that
    is not applied, as (source, topic, partition, offset), to the reason.
    """

    accepted: dict[str, TruncatePoint] = field(default_factory=dict)
    refused: dict[_Record, str] = field(default_factory=dict)

    def settle(self, context: BatchContext, result: AttemptResult, stream: Stream) -> None:
        """Decide on the truncates that a run of the batch has found.

        Raises PolicyStopError if a truncate is ambiguous and the policy of its table fails, and the
        errors of the functions of `stream`.
        """
        by_table: dict[str, list[TableTruncate]] = {}
        for truncate in result.truncates:
            by_table.setdefault(truncate.table, []).append(truncate)
        for truncates in by_table.values():
            with_position = [truncate for truncate in truncates if truncate.position is not None]
            for truncate in sorted(
                with_position, key=lambda truncate: truncate.position or 0, reverse=True
            ):
                verdict = _by_position(context, result, truncate, stream)
                self._take(context, truncate, verdict)
                if isinstance(verdict, TruncatePoint):
                    break  # the newer truncate deletes everything that an older one would
            for truncate in truncates:
                if truncate.position is None:
                    self._take(context, truncate, _by_offset(context, result, truncate, stream))

    def _take(
        self, context: BatchContext, truncate: TableTruncate, verdict: TruncatePoint | str
    ) -> None:
        if isinstance(verdict, TruncatePoint):
            known = self.accepted.get(truncate.table)
            self.accepted[truncate.table] = _both(known, verdict)
            return
        source, topic, partition, offset = truncate.coordinates
        policy = context.settings_of(truncate.table).truncates
        where = f"{topic}/{partition} at offset {offset}"
        if policy.fails:
            raise PolicyStopError(
                f"{truncate.source_table} was truncated ({where}), but table {truncate.table} "
                f"cannot follow: {verdict}; {_WAY_OUT}"
            )
        self.refused[truncate.coordinates] = f"table {truncate.table} is not emptied: {verdict}"
        at = {"source": source, "topic": topic, "partition": partition, "offset": offset}
        _LOG.warning(
            "truncate_refused", extra={"ctx": {"table": truncate.table, **at, "reason": verdict}}
        )

    def reading(self, ranges: Iterable[OffsetRange], stream: Stream) -> list[OffsetRange]:
        """Return the ranges of a batch, extended by the records that accepted truncates read again.

        The result is sorted and has no empty ranges.
        """
        by_partition = {
            (range_.source, range_.topic, range_.partition): range_ for range_ in ranges
        }
        for table, truncate_point in self.accepted.items():
            held = dict(_flat(stream.held(table)))
            for topic_partition, start in _flat(truncate_point.covered or {}):
                known = by_partition.get(topic_partition) or OffsetRange(
                    *topic_partition, start, held.get(topic_partition, start)
                )
                by_partition[topic_partition] = replace(known, start=min(known.start, start))
        return sorted(offset_range for offset_range in by_partition.values() if offset_range.rows)


def outlives_batch(table: str, result: AttemptResult, stream: Stream) -> bool:
    """Return whether later batches may read rows that are older than a truncate of the table.

    That is possible if the topics of its rows have several partitions in total, because each of
    these may still have unread older rows.
    """
    topics = {*result.topics.get(table, frozenset()), *stream.source_topics(table)}
    return len(topics) > 1 or any(stream.partitions(*topic) > 1 for topic in topics)


def _by_position(
    context: BatchContext, result: AttemptResult, truncate: TableTruncate, stream: Stream
) -> TruncatePoint | str:
    """Return how the table applies a truncate with a position, or why it cannot apply it."""
    table = truncate.table
    shared = _shared(context, result, truncate)
    if shared is not None:
        return shared
    position = truncate.position or 0
    target = context.tables[table]
    if not outlives_batch(table, result, stream) or position >= target.position_reached:
        return TruncatePoint(position)
    starts = stream.before(table, position)
    if starts is None:
        return (
            f"it contains rows after source position {position} already, which were read from "
            "other topic partitions, and its snapshots from before these rows have expired"
        )
    held = dict(_flat(stream.held(table)))
    read_from = {
        topic_partition: start
        for topic_partition, start in _flat(starts)
        if start < held.get(topic_partition, start)
    }
    rows = sum(held[topic_partition] - start for topic_partition, start in read_from.items())
    obstacle = _unreadable(read_from, rows, stream)
    if obstacle is not None:
        return f"it contains rows after source position {position} already, and {obstacle}"
    _LOG.info(
        "truncate_reads_again", extra={"ctx": {"table": table, "position": position, "rows": rows}}
    )
    return TruncatePoint(position, starts)


def _unreadable(read_from: Mapping[SourcePartition, int], rows: int, stream: Stream) -> str | None:
    """Return why records cannot be read again from these offsets, or None if they can.

    `rows` is the number of these records.
    """
    if rows > MAX_READ_AGAIN:
        return (
            f"to find them {rows} records would be read again, above the limit of {MAX_READ_AGAIN}"
        )
    begins = stream.begins(read_from.keys()) if read_from else {}
    for topic_partition, start in sorted(read_from.items()):
        source, topic, partition = topic_partition
        begin = begins.get(topic_partition)
        if begin is None or start < begin:
            log = "no longer exists" if begin is None else f"has a log that begins at {begin}"
            return (
                "the records that distinguish them cannot be read again: from offset "
                f"{start} on they were in {topic}/{partition} of source {source}, which {log}"
            )
    return None


def _by_offset(
    context: BatchContext, result: AttemptResult, truncate: TableTruncate, stream: Stream
) -> TruncatePoint | str:
    """Return how the table applies a truncate without a position, or why it cannot apply it.

    It can if all its rows are from the truncated source table and from the topic of the truncate,
    and this topic has one partition.
    """
    shared = _shared(context, result, truncate)
    if shared is not None:
        return shared
    source, topic, partition, offset = truncate.coordinates
    topics = {
        *stream.source_topics(truncate.table),
        *result.topics.get(truncate.table, frozenset()),
    }
    if topics != {(source, topic)} or stream.partitions(source, topic) > 1:
        return (
            "the truncate has no position in the source's log, and rows of the table can be in "
            "several topic partitions, so older and newer ones cannot be distinguished"
        )
    return TruncatePoint(None, {source: {topic: {partition: offset + 1}}})


def _shared(context: BatchContext, result: AttemptResult, truncate: TableTruncate) -> str | None:
    others = _source_tables(context, result, truncate.table) - {truncate.source_table}
    if not others:
        return None
    names = ", ".join(sorted(str(source_table) for source_table in others))
    return f"it also holds rows of {names}; give the truncated one a target of its own {NAMED_IN}"


def _source_tables(
    context: BatchContext, result: AttemptResult, table: str
) -> frozenset[QualifiedSourceTable]:
    return result.source_tables.get(table, frozenset()) | context.tables[table].source_tables


def _both(first: TruncatePoint | None, second: TruncatePoint) -> TruncatePoint:
    """Combine two truncates of a table: the larger position, and the larger offsets."""
    if first is None:
        return second
    position = max((p for p in (first.position, second.position) if p is not None), default=None)
    if first.covered is None or second.covered is None:
        return TruncatePoint(position, first.covered or second.covered)
    later = dict(_flat(first.covered))
    for topic_partition, offset in _flat(second.covered):
        later[topic_partition] = max(offset, later.get(topic_partition, offset))
    return TruncatePoint(position, _nested(later))


def _flat(coverage: CoveredOffsets) -> Iterable[tuple[SourcePartition, int]]:
    for source, topics in coverage.items():
        for topic, partitions in topics.items():
            for partition, offset in partitions.items():
                yield (source, topic, partition), offset


def _nested(flat: Mapping[SourcePartition, int]) -> CoveredOffsets:
    nested: dict[str, dict[str, dict[int, int]]] = {}
    for (source, topic, partition), offset in flat.items():
        nested.setdefault(source, {}).setdefault(topic, {})[partition] = offset
    return nested
