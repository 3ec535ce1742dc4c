"""Decide which truncates are applied, and which rows they delete.

For a truncate, a connector sends one record without a key to any partition of the topic, so it may
be read after rows that are newer in the source. In its own topic partition, the offset determines
which rows are older. In others, the source positions and the timestamps of records determine it, by
`source_points`. Rows in the table are stored without their positions, so the table is emptied; if
it may have newer rows, all records after its last snapshot from before the truncate are read again.
A truncate without a position is applied only if all rows are from its own topic partition. All
other truncates are handled according to the policy.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cmp_to_key

from ingestd.errors import PolicyStopError
from ingestd.ingest.rows.router import NAMED_IN
from ingestd.ingest.schemas.discovery import TableTruncate
from ingestd.ingest.settings.context import (
    BatchContext,
    CoveredOffsets,
    QualifiedSourceTable,
    TruncatePoint,
    other_pipelines,
)
from ingestd.ingest.stages.batch_result import AttemptResult
from ingestd.ingest.values.source_points import SourcePoint, last_truncate
from ingestd.kafka.isolated_fetch import Unreadable
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition, starts_of

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
class TruncateLookup:
    """Functions by which decisions on truncates look up the state of logs and tables.

    `partitions` returns the number of partitions of a topic, given source and topic. `held` returns
    the covered offsets of a table, and `source_topics` the (source, topic) pairs of its rows.
    `before`, given a table and a point, returns the offsets covered by the newest snapshot without
    rows newer than the point, or None if that snapshot has expired. `begins` returns the first
    offsets of logs; logs that no longer exist are omitted. `unreadable` are ranges that truncates
    would read again and that cannot be read, as far as a run of the batch has found them.
    """

    partitions: Callable[[str, str], int]
    held: Callable[[str], CoveredOffsets]
    source_topics: Callable[[str], Collection[tuple[str, str]]]
    before: Callable[[str, SourcePoint], CoveredOffsets | None]
    begins: Callable[[Collection[SourcePartition]], Mapping[SourcePartition, int]]
    unreadable: dict[SourcePartition, Unreadable] = field(default_factory=dict)


@dataclass(slots=True)
class Truncates:
    """The decisions on the truncates of a batch, by the state of logs and tables in `lookup`.

    `accepted` maps each table that is truncated to its truncate point. `refused` maps each truncate
    that is not applied, as (source, topic, partition, offset), to the reason.
    """

    lookup: TruncateLookup
    accepted: dict[str, TruncatePoint] = field(default_factory=dict)
    refused: dict[_Record, str] = field(default_factory=dict)

    def settle(self, context: BatchContext, result: AttemptResult) -> None:
        """Decide on the truncates that a run of the batch has found: `accepted`, or `refused`.

        `result` is the result of that run. A truncate that is refused is logged. Raises
        PolicyStopError if a truncate is ambiguous and the policy of its table fails, and the errors
        of the functions of `lookup`.
        """
        by_table: dict[str, list[TableTruncate]] = {}
        for truncate in result.truncates:
            by_table.setdefault(truncate.table, []).append(truncate)
        for truncates in by_table.values():
            for truncate, point in _latest_first(truncates):
                verdict = _by_point(context, result, truncate, point, self.lookup)
                self._take(context, truncate, verdict)
                if isinstance(verdict, TruncatePoint):
                    break  # the newer truncate deletes everything that an older one would
            for truncate in truncates:
                if truncate.point is None:
                    verdict = _by_offset(context, result, truncate, self.lookup)
                    self._take(context, truncate, verdict)

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

    def give_up(self, unreadable: Iterable[Unreadable], ranges: Iterable[OffsetRange]) -> bool:
        """Revoke all accepted truncates if a range that is read again for them is unreadable.

        Returns whether there is such a range. The next run of the batch finds the truncates again,
        and refuses the truncates that need the range. Unreadable ranges of the batch itself,
        `ranges`, do not count.
        """
        starts = starts_of(ranges)
        again = {
            partition: each
            for each in unreadable
            for partition in [each.range.source_partition]
            if each.range.start < starts.get(partition, each.range.until)
        }
        self.lookup.unreadable.update(again)
        if again:
            self.accepted.clear()
        return bool(again)

    def reading(self, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        """Return the ranges of a batch, extended by records that are read again for truncates.

        These are the records from the offsets `covered` of each accepted truncate on. The result is
        sorted and has no empty ranges.
        """
        by_partition = {range_.source_partition: range_ for range_ in ranges}
        for table, truncate_point in self.accepted.items():
            held = dict(_flat(self.lookup.held(table)))
            for topic_partition, start in _flat(truncate_point.covered or {}):
                known = by_partition.get(topic_partition) or OffsetRange(
                    *topic_partition, start, held.get(topic_partition, start)
                )
                by_partition[topic_partition] = replace(known, start=min(known.start, start))
        return sorted(offset_range for offset_range in by_partition.values() if offset_range.rows)

    def lasting_point(self, table: str, result: AttemptResult) -> SourcePoint | None:
        """Return the point before which later batches drop rows of a table.

        It is None if the batch does not truncate the table, if no later batch can read such rows,
        or if the truncate has no position.
        """
        truncate = self.accepted.get(table)
        if truncate is None or not outlives_batch(table, truncate.until, result, self.lookup):
            return None
        return truncate.point


def outlives_batch(
    table: str, until: CoveredOffsets, result: AttemptResult, lookup: TruncateLookup
) -> bool:
    """Return whether later batches may read rows that are older than a truncate of the table.

    That is possible if the topics of its rows and of the truncate have several partitions in total,
    because each of these may still have unread older rows. `until` are the offsets after the record
    of the truncate.
    """
    of_truncate = {(source, topic) for source, topics in until.items() for topic in topics}
    of_rows = {*result.topics.get(table, frozenset()), *lookup.source_topics(table)}
    topics = of_truncate | of_rows
    return len(topics) > 1 or any(lookup.partitions(*topic) > 1 for topic in topics)


def _latest_first(
    truncates: Iterable[TableTruncate],
) -> list[tuple[TableTruncate, SourcePoint]]:
    """Return the truncates with a position, and their points, the latest first."""
    known = [(truncate, truncate.point) for truncate in truncates if truncate.point is not None]

    def order(one: tuple[object, SourcePoint], other: tuple[object, SourcePoint]) -> int:
        return other[1].is_after(one[1]) - one[1].is_after(other[1])

    return sorted(known, key=cmp_to_key(order))


def _by_point(
    context: BatchContext,
    result: AttemptResult,
    truncate: TableTruncate,
    point: SourcePoint,
    lookup: TruncateLookup,
) -> TruncatePoint | str:
    """Return how the table applies a truncate with a position, or why it cannot apply it."""
    table, position = truncate.table, point.position
    shared = _shared(context, result, truncate)
    if shared is not None:
        return shared
    until = _until(truncate)
    if not outlives_batch(table, until, result, lookup):
        return TruncatePoint(None, until)
    if not context.tables[table].reached.is_after(point):
        return TruncatePoint(point, until)
    starts = lookup.before(table, point)
    if starts is None:
        return (
            f"it contains rows after source position {position} already, which were read from "
            "other topic partitions, and its snapshots from before these rows have expired"
        )
    held = dict(_flat(lookup.held(table)))
    read_from = {
        topic_partition: start
        for topic_partition, start in _flat(starts)
        if start < held.get(topic_partition, start)
    }
    rows = sum(held[topic_partition] - start for topic_partition, start in read_from.items())
    obstacle = _unreadable(read_from, rows, lookup)
    if obstacle is not None:
        return f"it contains rows after source position {position} already, and {obstacle}"
    _LOG.info(
        "truncate_reads_again", extra={"ctx": {"table": table, "position": position, "rows": rows}}
    )
    return TruncatePoint(point, until, starts)


def _until(truncate: TableTruncate) -> CoveredOffsets:
    """Return the offset after the record of a truncate, before which all rows are older."""
    source, topic, partition, offset = truncate.coordinates
    return {source: {topic: {partition: offset + 1}}}


def _unreadable(
    read_from: Mapping[SourcePartition, int], rows: int, lookup: TruncateLookup
) -> str | None:
    """Return why records cannot be read again from these offsets, or None if they can.

    `rows` is the number of these records.
    """
    if rows > MAX_READ_AGAIN:
        return (
            f"to find them {rows} records would be read again, above the limit of {MAX_READ_AGAIN}"
        )
    begins = lookup.begins(read_from.keys()) if read_from else {}
    for topic_partition, start in sorted(read_from.items()):
        source, topic, partition = topic_partition
        begin, unreadable = begins.get(topic_partition), lookup.unreadable.get(topic_partition)
        if begin is None:
            log = "no longer exists"
        elif start < begin:
            log = f"has a log that begins at {begin}"
        elif unreadable is not None and start <= unreadable.range.start:
            log = f"cannot be read at offset {unreadable.range.start}: {unreadable.reason}"
        else:
            continue
        return (
            "the records that distinguish them cannot be read again: from offset "
            f"{start} on they were in {topic}/{partition} of source {source}, which {log}"
        )
    return None


def _by_offset(
    context: BatchContext, result: AttemptResult, truncate: TableTruncate, lookup: TruncateLookup
) -> TruncatePoint | str:
    """Return how the table applies a truncate without a position, or why it cannot apply it.

    It can if all its rows are from the truncated source table and from the topic of the truncate,
    and this topic has one partition.
    """
    shared = _shared(context, result, truncate)
    if shared is not None:
        return shared
    source, topic = truncate.source_table.source, truncate.topic
    topics = {
        *lookup.source_topics(truncate.table),
        *result.topics.get(truncate.table, frozenset()),
    }
    if topics != {(source, topic)} or lookup.partitions(source, topic) > 1:
        return (
            "the truncate has no position in the source's log, and rows of the table can be in "
            "several topic partitions, so older and newer ones cannot be distinguished"
        )
    return TruncatePoint(None, _until(truncate))


def _shared(context: BatchContext, result: AttemptResult, truncate: TableTruncate) -> str | None:
    others = _source_tables(context, result, truncate.table) - {truncate.source_table}
    names = ", ".join(sorted(str(source_table) for source_table in others))
    pipelines = other_pipelines(context.tables[truncate.table].table, context.pipelines)
    if pipelines and not others:
        names = f"pipeline {', '.join(pipelines)}"
    if not names:
        return None
    return f"it also holds rows of {names}; give the truncated one a target of its own {NAMED_IN}"


def _source_tables(
    context: BatchContext, result: AttemptResult, table: str
) -> frozenset[QualifiedSourceTable]:
    return result.source_tables.get(table, frozenset()) | context.tables[table].source_tables


def _both(first: TruncatePoint | None, second: TruncatePoint) -> TruncatePoint:
    """Combine two truncates of a table: the later point, and the larger offsets."""
    if first is None:
        return second
    covered = first.covered or second.covered
    if first.covered is not None and second.covered is not None:
        covered = _larger(first.covered, second.covered)
    point = last_truncate(first.point, second.point)
    return TruncatePoint(point, _larger(first.until, second.until), covered)


def _larger(first: CoveredOffsets, second: CoveredOffsets) -> CoveredOffsets:
    larger = dict(_flat(first))
    for topic_partition, offset in _flat(second):
        larger[topic_partition] = max(offset, larger.get(topic_partition, offset))
    return _nested(larger)


def _flat(coverage: CoveredOffsets) -> Iterable[tuple[SourcePartition, int]]:
    for source, topics in coverage.items():
        for topic, partitions in topics.items():
            for partition, offset in partitions.items():
                yield SourcePartition(source, topic, partition), offset


def _nested(flat: Mapping[SourcePartition, int]) -> CoveredOffsets:
    nested: dict[str, dict[str, dict[int, int]]] = {}
    for (source, topic, partition), offset in flat.items():
        nested.setdefault(source, {}).setdefault(topic, {})[partition] = offset
    return nested
