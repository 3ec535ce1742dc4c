"""Offsets and offset ranges, and pure functions that cut micro-batches from them.

`Offsets` contain the next offset of each topic partition, by source, topic and partition.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeAlias, TypeVar

TopicOffsets: TypeAlias = Mapping[str, Mapping[int, int]]
Offsets: TypeAlias = Mapping[str, TopicOffsets]
_VERSION = 2
_OFFSET_LOG_HEADER = "v1"
_NO_OFFSET = "-"
_CRUMBS = 10  # a remainder below a tenth of a group is not worth its own fetch

_K = TypeVar("_K")


class SourcePartition(NamedTuple):
    """A Kafka topic partition of a configured source."""

    source: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """Offsets [start, until) of one topic partition; an offset may have no record."""

    source: str
    topic: str
    partition: int
    start: int
    until: int

    @property
    def source_partition(self) -> SourcePartition:
        """The topic partition of the range."""
        return SourcePartition(self.source, self.topic, self.partition)

    @property
    def rows(self) -> int:
        """The number of offsets, an upper bound of the number of records."""
        return self.until - self.start


@dataclass(frozen=True, slots=True)
class BatchOffsets:
    """The ranges of one micro-batch: from `start` (inclusive) to `until` (exclusive).

    `epochs` are the leader epochs under which logs reached `until`, -1 if unknown; a missing epoch
    is 0. `following` is the next batch if it is already planned; it is only a hint. Methods raise
    ValueError for a partition that `start` lacks or that ends before its start.
    """

    start: Offsets
    until: Offsets
    epochs: Offsets = field(default_factory=dict)
    following: "BatchOffsets | None" = None

    def ranges(self) -> list[OffsetRange]:
        """Return the non-empty ranges, ordered by source, topic and partition."""
        return [range_ for range_ in self.all_ranges() if range_.rows]

    def all_ranges(self) -> list[OffsetRange]:
        """Return all ranges, ordered by source, topic and partition.

        The empty ranges of idle partitions are included.
        """
        return _ranges_between(self.start, self.until)


def starts_of(ranges: Iterable[OffsetRange]) -> dict[SourcePartition, int]:
    """Return the smallest start offset of each topic partition that `ranges` contain."""
    starts: dict[SourcePartition, int] = {}
    for range_ in ranges:
        partition = range_.source_partition
        starts[partition] = min(range_.start, starts.get(partition, range_.start))
    return starts


def ranges_between(start: Offsets, end: Offsets) -> list[OffsetRange]:
    """Return non-empty ranges from `start` to `end`, ordered by source, topic and partition.

    Raises ValueError for a partition that `start` lacks or that ends before its start, because a
    silent jump would lose records.
    """
    return [offset_range for offset_range in _ranges_between(start, end) if offset_range.rows]


def _ranges_between(start: Offsets, end: Offsets) -> list[OffsetRange]:
    ranges: list[OffsetRange] = []
    for source, topic, partition, until in _flat(end):
        try:
            first = start[source][topic][partition]
        except KeyError:
            raise ValueError(f"no start offset of {source}/{topic}/{partition}") from None
        if until < first:
            raise ValueError(f"{source}/{topic}/{partition} ends at {until}, before {first}")
        ranges.append(OffsetRange(source, topic, partition, first, until))
    return sorted(ranges)


def cut(start: Offsets, end: Offsets, limit_rows: int | None) -> Offsets:
    """Return the end of a batch of at most `limit_rows` offsets (None: all), never beyond `end`.

    Topics share the limit evenly; larger topics get what smaller topics do not use. The partitions
    of a topic divide its share in the same way. A limit of at least 1 always makes progress if
    there are new offsets. Raises ValueError for a smaller limit, and with a limit for a partition
    that `start` lacks or that ends before its start.
    """
    if limit_rows is None:
        return end
    if limit_rows < 1:
        raise ValueError(f"a limit of {limit_rows} rows makes no progress")
    topics: dict[tuple[str, str], dict[int, int]] = {}
    for offset_range in ranges_between(start, end):
        topics.setdefault((offset_range.source, offset_range.topic), {})[offset_range.partition] = (
            offset_range.rows
        )
    shares = _share({topic: sum(rows.values()) for topic, rows in topics.items()}, limit_rows)
    taken = {topic: _share(topics[topic], rows) for topic, rows in shares.items()}
    return {
        source: {
            topic: {
                partition: start[source][topic][partition]
                + taken.get((source, topic), {}).get(partition, 0)
                for partition in partitions
            }
            for topic, partitions in by_topic.items()
        }
        for source, by_topic in end.items()
    }


def split(ranges: Sequence[OffsetRange], parts: int) -> list[list[OffsetRange]]:
    """Group ranges into at most `parts` non-empty groups of about the same number of rows.

    A group ends when it has its share of the rows, which may cut a range; if the end of a range is
    close, the group ends there instead, to avoid small remainders. All rows are covered exactly
    once, in order. Raises ValueError if `parts` is less than 1.
    """
    if parts < 1:
        raise ValueError(f"cannot split into {parts} parts")
    borders = [0, *accumulate(range_.rows for range_ in ranges)]
    total = borders[-1]
    slack = total // (parts * _CRUMBS)
    targets = (number * total // parts for number in range(1, parts))
    edges = sorted({0, total, *(_snap(target, borders, slack) for target in targets)})
    groups = [
        [
            replace(
                offset_range,
                start=offset_range.start + max(0, first - before),
                until=offset_range.until - max(0, after - last),
            )
            for offset_range, before, after in zip(ranges, borders, borders[1:], strict=False)
            if max(first, before) < min(last, after)
        ]
        for first, last in pairwise(edges)
    ]
    return [group for group in groups if group]


def covers(reached: Offsets, bounds: Offsets) -> bool:
    """Return whether every topic partition has reached its offset in `bounds`.

    A topic partition that `reached` lacks is at offset 0.
    """
    return all(
        reached.get(source, {}).get(topic, {}).get(partition, 0) >= offset
        for source, topic, partition, offset in _flat(bounds)
    )


def encode(offsets: BatchOffsets) -> dict[str, Any]:
    """Encode the offsets of a batch as the JSON document that Spark stores for the batch.

    Equal offsets give documents with equal text.
    """
    document: dict[str, Any] = {
        "v": _VERSION,
        "start": encode_offsets(offsets.start),
        "until": encode_offsets(offsets.until),
    }
    epochs = _without_zeros(offsets.epochs)
    if epochs:
        document["epochs"] = encode_offsets(epochs)
    if offsets.following is not None:
        document["following"] = encode(offsets.following)
    return document


def decode(document: Mapping[str, Any]) -> BatchOffsets:
    """Decode the offsets of a batch from Spark's JSON document. Raises ValueError if invalid."""
    try:
        if document["v"] != _VERSION:
            raise ValueError(f"offsets of version {document['v']!r}, expected {_VERSION}")
        return BatchOffsets(
            decode_offsets(document["start"]),
            decode_offsets(document["until"]),
            decode_offsets(document.get("epochs", {})),
            decode(document["following"]) if "following" in document else None,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a document of offsets: {error!r}") from error


def _without_zeros(offsets: Offsets) -> Offsets:
    """Return only the epochs that are not 0, because nearly all logs are in their first epoch."""
    positive: dict[str, dict[str, dict[int, int]]] = {}
    for source, topic, partition, offset in _flat(offsets):
        if offset:
            positive.setdefault(source, {}).setdefault(topic, {})[partition] = offset
    return positive


def encode_offsets(offsets: Offsets) -> dict[str, dict[str, dict[str, int]]]:
    """Encode offsets as a JSON document with sorted string keys."""
    return {
        source: {
            topic: {str(partition): partitions[partition] for partition in sorted(partitions)}
            for topic, partitions in sorted(topics.items())
        }
        for source, topics in sorted(offsets.items())
    }


def decode_offsets(document: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Offsets:
    """Decode offsets from a JSON document of `encode_offsets`.

    Raises AttributeError, TypeError or ValueError for any other document.
    """
    return {
        source: {
            topic: {int(partition): int(offset) for partition, offset in partitions.items()}
            for topic, partitions in topics.items()
        }
        for source, topics in document.items()
    }


def parse_offset_log(text: str) -> BatchOffsets:
    """Parse Spark's `offsets/<batch id>` file of a query with one source.

    Returns empty offsets if the source had none. Raises ValueError if the text is truncated or of
    another version.
    """
    lines = text.splitlines()
    if not lines or lines[0] != _OFFSET_LOG_HEADER:
        raise ValueError(f"begins with {text[:20]!r}, not with {_OFFSET_LOG_HEADER!r}")
    if len(lines) != 3:  # header, metadata, the offsets of the one source
        raise ValueError(f"has {len(lines)} lines instead of 3")
    if lines[2] == _NO_OFFSET:
        return BatchOffsets({}, {})
    return decode(json.loads(lines[2]))


def _flat(offsets: Offsets) -> Iterator[tuple[str, str, int, int]]:
    for source, topics in offsets.items():
        for topic, partitions in topics.items():
            for partition, offset in partitions.items():
                yield source, topic, partition, offset


def _snap(target: int, borders: Sequence[int], slack: int) -> int:
    nearest = min(borders, key=lambda border: abs(border - target))
    return nearest if abs(nearest - target) <= slack else target


def _share(sizes: Mapping[_K, int], limit: int) -> dict[_K, int]:
    """Divide `limit` evenly; return the share of each key, which is not larger than its size.

    Larger sizes get what smaller sizes do not use. The largest gets the remainder, so that every
    partition makes progress within a few batches.
    """
    shares: dict[_K, int] = {}
    left = limit
    ascending = sorted(sizes, key=lambda key: sizes[key])
    for position, key in enumerate(ascending):
        shares[key] = min(sizes[key], left // (len(ascending) - position))
        left -= shares[key]
    return shares


def sample_ranges(
    source: str, begin: TopicOffsets, end: TopicOffsets, limit: int
) -> list[OffsetRange]:
    """Return ranges of at most `limit` offsets per topic, ordered by topic, partition and offset.

    `begin` and `end` are the first and the end offsets of the logs. The partitions of a topic share
    the limit evenly; larger partitions get what smaller ones do not use. If the share of a
    partition is smaller than its log, half of it is taken from the beginning, where a pipeline
    starts, and half from the end, where messages have their current structure. Offsets without a
    record count too. Raises ValueError if the limit is less than 1.
    """
    ranges: list[OffsetRange] = []
    for topic in sorted(end):
        start, stop = {source: {topic: begin[topic]}}, {source: {topic: end[topic]}}
        shares = cut(start, stop, limit)[source][topic]
        for partition, until in sorted(end[topic].items()):
            first = begin[topic][partition]
            share = shares.get(partition, first) - first
            oldest = share if share == until - first else (share + 1) // 2
            newest = share - oldest
            for low, high in ((first, first + oldest), (until - newest, until)):
                if high > low:
                    ranges.append(OffsetRange(source, topic, partition, low, high))
    return ranges
