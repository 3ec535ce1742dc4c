"""Which offsets a table holds: the record in its snapshots, and how a batch is judged by it.

The record is cumulative: every snapshot of ours carries the next offset of each topic partition
that ever fed the table. What lies across tables (the mirror) is in `mirror`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ingestd.errors import FormatError, UnsupportedError
from ingestd.ingest.settings.context import Coverage, Feed
from ingestd.ingest.values.counts import TopicPartition
from ingestd.kafka.ranges import OffsetRange

RECORD_VERSION = 1
VERSION = "ingestd.v"
JOB = "ingestd.job"
EPOCH = "ingestd.epoch"
BATCH = "ingestd.batch"
SOURCES = "ingestd.src"
ROWS = "ingestd.rows"
TRUNCATED = "ingestd.truncated"
FEEDS = "ingestd.feeds"
POSITION = "ingestd.position"


class Span(NamedTuple):
    """Offsets `start` (inclusive) to `until` (exclusive) of a topic partition."""

    start: int
    until: int


@dataclass(frozen=True, slots=True)
class TopicProgress:
    """What a snapshot says of one topic.

    `spans` by partition: the offsets that this very snapshot brought; an empty span repeats the
    next offset of a partition that brought nothing. `topic_id` is Kafka's, None if unknown.
    """

    topic_id: str | None
    spans: Mapping[int, Span]


@dataclass(frozen=True, slots=True)
class TableProgress:
    """The record of one snapshot.

    `batch` names the engine's micro-batch, for people only; `sources` by source and topic;
    `rows` counts that close the books of the batch; `truncated` is the source position of the
    last truncate that rows may still have to be measured by; `feeds` the source tables that the
    table's rows came from; `position` the largest source position of its rows, -1 if unknown.
    """

    job: str
    epoch: int
    batch: str
    sources: Mapping[str, Mapping[str, TopicProgress]]
    rows: Mapping[str, int] = field(default_factory=dict)
    truncated: int | None = None
    feeds: frozenset[Feed] = frozenset()
    position: int = -1

    @property
    def covered(self) -> dict[str, dict[str, dict[int, int]]]:
        """Source -> topic -> partition -> first offset that the table does not hold."""
        return {
            source: {
                topic: {partition: span.until for partition, span in one.spans.items()}
                for topic, one in topics.items()
            }
            for source, topics in self.sources.items()
        }


def encode_properties(progress: TableProgress) -> dict[str, str]:
    """The record as snapshot properties."""
    sources = {
        source: {topic: _encode_topic(one) for topic, one in topics.items()}
        for source, topics in progress.sources.items()
    }
    properties = {
        VERSION: str(RECORD_VERSION),
        JOB: progress.job,
        EPOCH: str(progress.epoch),
        BATCH: progress.batch,
        SOURCES: _compact(sources),
        ROWS: _compact(progress.rows),
    }
    if progress.truncated is not None:
        properties[TRUNCATED] = str(progress.truncated)
    if progress.feeds:
        properties[FEEDS] = _compact(sorted(progress.feeds, key=str))
    if progress.position >= 0:
        properties[POSITION] = str(progress.position)
    return properties


def _encode_topic(topic: TopicProgress) -> dict[str, Any]:
    return {"id": topic.topic_id, "p": {str(p): list(span) for p, span in topic.spans.items()}}


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def decode_properties(properties: Mapping[str, str], where: str) -> TableProgress | None:
    """The record in the properties of a snapshot; None if another program wrote the snapshot.

    `where` names the snapshot in errors: FormatError if the record is damaged, UnsupportedError
    if a newer version of ingestd wrote it.
    """
    if VERSION not in properties:
        return None
    try:
        version = int(properties[VERSION])
        if version > RECORD_VERSION:
            raise UnsupportedError(
                f"{where}: its progress record has version {version}, this program knows "
                f"{RECORD_VERSION}; run a newer ingestd"
            )
        return _decode(properties)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"{where}: its progress record is damaged: {error!r}") from error


def _decode(properties: Mapping[str, str]) -> TableProgress:
    sources = json.loads(properties[SOURCES])
    truncated = properties.get(TRUNCATED)
    return TableProgress(
        job=properties[JOB],
        epoch=int(properties[EPOCH]),
        batch=properties.get(BATCH, ""),
        sources={
            source: {topic: _decode_topic(one) for topic, one in topics.items()}
            for source, topics in sources.items()
        },
        rows={str(k): int(v) for k, v in json.loads(properties.get(ROWS, "{}")).items()},
        truncated=None if truncated is None else int(truncated),
        feeds=frozenset(Feed(*feed) for feed in json.loads(properties.get(FEEDS, "[]"))),
        position=int(properties.get(POSITION, "-1")),
    )


def _decode_topic(document: Mapping[str, Any]) -> TopicProgress:
    spans = {int(p): Span(int(start), int(until)) for p, (start, until) in document["p"].items()}
    return TopicProgress(document["id"], spans)


@dataclass(frozen=True, slots=True)
class Step:
    """What one batch adds to the record of one table.

    `ranges` are the batch's; those of topics that never fed the table are left out unless the
    topic is in `topics`, the (source, topic) pairs that fed it in this batch. `topic_ids` by
    (source, topic); `rows`, `truncated`, `feeds` and `position` as in `TableProgress`.
    """

    job: str
    epoch: int
    batch: str
    ranges: tuple[OffsetRange, ...]
    topics: frozenset[tuple[str, str]]
    topic_ids: Mapping[tuple[str, str], str | None] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    truncated: int | None = None
    feeds: frozenset[Feed] = frozenset()
    position: int = -1


def advance(previous: TableProgress | None, step: Step) -> TableProgress:
    """The record of a table's next snapshot: the previous one, with what the batch brings.

    Offsets never go back, and a range the table partly holds counts only for its new part.
    """
    sources: dict[str, dict[str, TopicProgress]] = {}
    for source, topics in (previous.sources if previous else {}).items():
        for topic, one in topics.items():
            spans = {p: Span(span.until, span.until) for p, span in one.spans.items()}
            sources.setdefault(source, {})[topic] = TopicProgress(one.topic_id, spans)
    for partition, span in _batch_spans(step.ranges).items():
        _extend(sources, partition, span, step)
    return TableProgress(
        job=step.job,
        epoch=step.epoch,
        batch=step.batch,
        sources=sources,
        rows=step.rows,
        truncated=_newest(previous.truncated if previous else None, step.truncated),
        feeds=(previous.feeds if previous else frozenset()) | step.feeds,
        position=max(previous.position if previous else -1, step.position),
    )


def _batch_spans(ranges: Iterable[OffsetRange]) -> dict[TopicPartition, Span]:
    """One span a topic partition: its ranges may have been split over tasks."""
    spans: dict[TopicPartition, Span] = {}
    for one in ranges:
        key = TopicPartition(one.source, one.topic, one.partition)
        known = spans.get(key, Span(one.start, one.until))
        spans[key] = Span(min(known.start, one.start), max(known.until, one.until))
    return spans


def _extend(
    sources: dict[str, dict[str, TopicProgress]], key: TopicPartition, span: Span, step: Step
) -> None:
    known = sources.get(key.source, {}).get(key.topic)
    if known is None and (key.source, key.topic) not in step.topics:
        return
    spans = dict(known.spans) if known else {}
    start = spans[key.partition].until if key.partition in spans else span.start
    spans[key.partition] = Span(start, max(start, span.until))
    topic_id = step.topic_ids.get((key.source, key.topic), known.topic_id if known else None)
    sources.setdefault(key.source, {})[key.topic] = TopicProgress(topic_id, spans)


def _newest(one: int | None, other: int | None) -> int | None:
    positions = [position for position in (one, other) if position is not None]
    return max(positions, default=None)


@dataclass(frozen=True, slots=True)
class Skip:
    """The table holds the whole range."""


@dataclass(frozen=True, slots=True)
class Whole:
    """The table holds nothing of the range, and it begins where the table ends."""


@dataclass(frozen=True, slots=True)
class Partial:
    """The table holds the range up to `start`; only the rest is new."""

    start: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets `start` to `until` (exclusive) are missing between the table and the range."""

    start: int
    until: int


Judgement = Skip | Whole | Partial | Gap


def judge(one_range: OffsetRange, covered: int | None) -> Judgement:
    """What a range means to a table; `covered` is None if the table never saw the partition."""
    if covered is None or covered == one_range.start:
        return Whole()
    if one_range.until <= covered:
        return Skip()
    if covered > one_range.start:
        return Partial(covered)
    return Gap(covered, one_range.start)


def start_offsets(covered: Iterable[Coverage]) -> dict[str, dict[str, dict[int, int]]]:
    """Where a new checkpoint starts: for each topic partition the least advanced table's offset.

    Only tables that ever saw a partition count for it.
    """
    starts: dict[str, dict[str, dict[int, int]]] = {}
    for coverage in covered:
        for source, topics in coverage.items():
            for topic, partitions in topics.items():
                known = starts.setdefault(source, {}).setdefault(topic, {})
                for partition, offset in partitions.items():
                    known[partition] = min(offset, known.get(partition, offset))
    return starts


def furthest(one: Coverage, other: Coverage) -> dict[str, dict[str, dict[int, int]]]:
    """The larger offset of each topic partition of two coverages."""
    result: dict[str, dict[str, dict[int, int]]] = {}
    for coverage in (one, other):
        for source, topics in coverage.items():
            for topic, partitions in topics.items():
                known = result.setdefault(source, {}).setdefault(topic, {})
                for partition, offset in partitions.items():
                    known[partition] = max(offset, known.get(partition, offset))
    return result
