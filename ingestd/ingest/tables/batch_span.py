"""The positions that a batch covers, and the progress record that its commit gives each table."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ingestd.errors import OffsetGapError
from ingestd.ingest.settings.context import QualifiedSourceTable
from ingestd.ingest.tables.log_positions import (
    LogOffsets,
    Position,
    TopicKeys,
    TopicName,
    Vector,
    fingerprint_at,
    offset_in,
    replaced,
)
from ingestd.ingest.tables.progress import PipelineProgress, TableProgress
from ingestd.ingest.values.source_points import NO_POINT, SourcePoint, last_truncate, later_point
from ingestd.kafka.offset_ranges import BatchOffsets, SourcePartition
from ingestd.paimon.spec.paths import MAIN_BRANCH


@dataclass(frozen=True, slots=True)
class BatchSpan:
    """The positions between which a batch reads each log: from `start` up to `until`.

    Both are by topic key and partition, and have the same logs. `until` is the first offset that
    the batch does not read.
    """

    start: LogOffsets = field(default_factory=dict)
    until: Vector = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableStep:
    """What a batch changes in the progress record and the watermark of one table.

    `topic_keys` are the keys of the topics from which the batch has rows for the table,
    `source_tables` the source tables of these rows, and `rows` their numbers by row kind.
    `truncated` is the point of a truncate (None: no truncate), and `reached` the latest point of
    the rows. `batch` names the batch. `dropped` are names of properties of the previous snapshot
    that the new one does not repeat. `watermark` is the watermark of the new snapshot, in
    milliseconds since the epoch; None keeps the watermark of the newest snapshot.
    """

    topic_keys: frozenset[str] = frozenset()
    source_tables: frozenset[QualifiedSourceTable] = frozenset()
    rows: Mapping[str, int] = field(default_factory=dict)
    truncated: SourcePoint | None = None
    reached: SourcePoint = NO_POINT
    batch: str = ""
    dropped: tuple[str, ...] = ()
    watermark: int | None = None


def span_of(
    offsets: BatchOffsets, keys: TopicKeys, progress: PipelineProgress
) -> tuple[BatchSpan, PipelineProgress]:
    """Return the positions that a batch covers, and the progress with the new logs of the batch.

    `keys` maps (source, topic) to the topic key, for all topics of the batch. Ranges without
    records are included only for new logs. The progress has the starts of these: their topic may be
    set aside, and expire unread. Without new topics and logs, it is the same `progress` object.
    """
    start: dict[str, dict[int, int]] = {}
    until: dict[str, dict[int, Position]] = {}
    begun: dict[str, dict[int, Position]] = {}
    origin: dict[str, dict[int, int]] = {}
    topics: dict[str, TopicName] = {}
    for range_ in offsets.all_ranges():
        key = keys[range_.source, range_.topic]
        known = range_.partition in progress.end.get(key, {})
        if known and not range_.rows:
            continue
        if key not in progress.topics:
            topics[key] = TopicName(range_.topic, range_.source)
        if not known and range_.start:
            origin.setdefault(key, {})[range_.partition] = range_.start
        start.setdefault(key, {})[range_.partition] = range_.start
        epoch = offsets.epochs.get(range_.source, {}).get(range_.topic, {}).get(range_.partition, 0)
        if not known:
            begun.setdefault(key, {})[range_.partition] = Position(range_.start, epoch)
        until.setdefault(key, {})[range_.partition] = Position(range_.until, epoch)
    if topics or begun:
        merged = {
            key: {**offsets_of_key, **progress.origin.get(key, {})}
            for key, offsets_of_key in origin.items()
        }
        progress = replace(
            progress,
            end=replaced(progress.end, begun),
            origin={**progress.origin, **merged},
            topics={**progress.topics, **topics},
        )
    return BatchSpan(start, until), progress


def with_fingerprints(
    span: BatchSpan, records: Mapping[SourcePartition, tuple[int, int]], keys: TopicKeys
) -> BatchSpan:
    """Return the span with the fingerprints of its end positions, where they are known.

    `records` maps topic partitions to (offset, checksum) of the last record that was read, and
    `keys` maps (source, topic) to the topic key.
    """
    until = {key: dict(positions) for key, positions in span.until.items()}
    for where, (offset, checksum) in records.items():
        positions = until.get(keys[where.source, where.topic], {})
        position = positions.get(where.partition)
        if position is not None:
            fingerprint = fingerprint_at(position.offset, offset, checksum)
            positions[where.partition] = position._replace(fingerprint=fingerprint)
    return replace(span, until=until)


@dataclass(frozen=True, slots=True)
class CoverageGap:
    """A log in which a batch starts after the first offset that a table does not cover.

    `covered_until` is that offset, `start` the first of the batch, and `key` the topic key.
    """

    key: str
    partition: int
    covered_until: int
    start: int


def first_gap(covered: Vector, span: BatchSpan, progress: PipelineProgress) -> CoverageGap | None:
    """Return the first log in which a batch leaves out offsets that a table lacks, or None.

    `covered` are the covered offsets of the table; a log that they lack is covered up to its origin
    in `progress`, from which the pipeline reads it.
    """
    for key, partitions in span.start.items():
        for partition, start in partitions.items():
            origin = progress.origin.get(key, {}).get(partition, 0)
            held = offset_in(covered, key, partition, origin)
            if held < start:
                return CoverageGap(key, partition, held, start)
    return None


def refuse_gap(table: str, covered: Vector, span: BatchSpan, progress: PipelineProgress) -> None:
    """Raise OffsetGapError if a batch starts after the covered offsets of a table."""
    gap = first_gap(covered, span, progress)
    if gap is not None:
        raise OffsetGapError(
            f"table {table} covers {progress.topic_name(gap.key)}/{gap.partition} up to offset "
            f"{gap.covered_until}, but the batch starts at {gap.start}; nothing is written. Start "
            "ingestd again: it continues from what the table covers"
        )


def next_record(
    before: TableProgress | None,
    pipeline: PipelineProgress,
    step: TableStep,
    branch: str = MAIN_BRANCH,
) -> TableProgress:
    """Return the progress record of a table's next snapshot: the previous one with `step` applied.

    `branch` is the branch of the snapshot. `before` is None if the table has no record. The result
    has a new record id.
    """
    before = before or TableProgress(pipeline)
    return TableProgress(
        pipeline=pipeline,
        topic_keys=before.topic_keys | step.topic_keys,
        source_tables=before.source_tables | step.source_tables,
        rows=step.rows,
        truncated=last_truncate(before.truncated, step.truncated),
        reached=later_point(before.reached, step.reached),
        batch=step.batch,
        record_id=uuid.uuid4().hex[:16],
        branch=branch,
    )


def where_less(start: LogOffsets, end: Vector) -> dict[str, dict[int, int]]:
    """Return the offsets in `start` that are less than the offset of the same log in `end`.

    A log that `end` lacks has the offset 0 there, so it is not in the result.
    """
    smaller = {
        key: {p: o for p, o in offsets.items() if o < offset_in(end, key, p)}
        for key, offsets in start.items()
    }
    return {key: offsets for key, offsets in smaller.items() if offsets}
