"""Fetch the records of exact offset ranges as columns.

Offsets without a record (compacted, transaction markers, aborted) are not errors: a range is
complete when the client has reached its end. If the log no longer has an offset of a range,
LogChangedError is raised; the next start of the pipeline then applies the source's policy.

Switching to another topic partition costs the client more than reading a small range of it, so
small ranges are read together.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from confluent_kafka import KafkaError

from ingestd.cdc.base import RecordChunk
from ingestd.errors import LogChangedError, SourceError, SourceSilentError
from ingestd.kafka.auth_errors import explain
from ingestd.kafka.consumer_pool import PooledConsumer, borrow_consumer
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.records import LogEvent, Problem, RecordColumns, Records, TopicAndPartition

_POLL_SECONDS = 0.02
_POLL_RECORDS = 2_000
_WASTED_RECORDS = 1_000
"""Number of discarded records past the ends of ranges after which these are unassigned."""
STALL_SECONDS = 30.0
"""Seconds without a record before the brokers count as silent."""
_GONE = frozenset(
    {
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
    }
)
_ASK_SECONDS = 10.0
_OUT_OF_RANGE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


@dataclass(slots=True)
class Reading:
    """The progress of reading one offset range.

    `position` is the next offset to read; `problems` are the errors that the client has reported
    for the topic partition.
    """

    source: KafkaSource
    range: OffsetRange
    position: int = field(init=False)
    problems: list[Problem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.position = self.range.start

    @property
    def left(self) -> int:
        """Number of offsets still to read; 0 if the range is complete."""
        return max(self.range.until - self.position, 0)

    @property
    def where(self) -> str:
        """The topic partition as text, for messages."""
        return f"{self.range.topic}/{self.range.partition} of source {self.source.name}"

    def take(self, records: Records) -> Records:
        """Advance the position past records and events; return the records within the range.

        Raises LogChangedError if the log no longer has an offset that is still to be read, and
        SourceError if the brokers do not respond to a request for the bounds of the log.
        """
        if len(records):
            # Before the events, which may advance the position further.
            self.position = max(self.position, int(records.offsets[-1]) + 1)
        for event in records.events:
            self._on_event(event)
        return records.first(int(np.searchsorted(records.offsets, self.range.until)))

    def _on_event(self, event: LogEvent) -> None:
        problem = event.problem
        if problem.code == KafkaError._PARTITION_EOF:
            # The position is past markers and aborted records, too; later data corrects it.
            self.position = max(self.position, event.offset)
        elif problem.code in _OUT_OF_RANGE:
            if self.left:
                self._on_lost(problem)
        else:
            self.problems.append(problem)

    def _on_lost(self, problem: Problem) -> None:
        topic, partition, until = self.range.topic, self.range.partition, self.range.until
        partitions = {topic: (partition,)}
        cluster = OffsetClient(self.source, request_seconds=_ASK_SECONDS)
        low = cluster.beginning_offsets(partitions)[topic][partition]
        high = cluster.end_offsets(partitions)[topic][partition]
        raise LogChangedError(
            f"offsets {self.position} to {until} of {self.where} are no longer in the log, "
            f"which has {low} to {high} ({problem.text})"
        )

    def check_gone(self) -> None:
        """Raise LogChangedError if the topic partition no longer exists.

        Raises SourceError if the brokers do not respond to a request for the partitions.
        """
        cluster = OffsetClient(self.source, request_seconds=_ASK_SECONDS)
        if self.range.partition not in cluster.list_topic_partitions().get(self.range.topic, ()):
            raise LogChangedError(
                f"{self.where} no longer exists, offsets {self.position} to {self.range.until} "
                "were still to be read"
            )


_Readings: TypeAlias = Mapping[TopicAndPartition, Reading]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a chunk: the number of records, and the bytes of their keys and values."""

    max_records: int
    max_bytes: int


class StalledError(SourceSilentError):
    """No record arrived in time; `left` are the unread parts of the ranges read together."""

    def __init__(self, message: str, left: Sequence[OffsetRange] = ()) -> None:
        super().__init__(message)
        self.left = list(left)


def fetch(
    source: KafkaSource,
    offset_range: OffsetRange,
    *,
    max_records: int,
    max_bytes: int,
    headers: bool = False,
) -> Iterator[RecordChunk]:
    """Yield the committed records of one range in chunks, in order of offset.

    A chunk has at most `max_records` records and `max_bytes` bytes of keys and values, but at least
    one record. Headers are read only if `headers` is set. Raises LogChangedError if the log no
    longer has the range; StalledError if no record arrives for 30 seconds; SourceError if the
    brokers reject the client; ConfigError for invalid properties.
    """
    bounds = {"max_records": max_records, "max_bytes": max_bytes}
    yield from fetch_all(source, [offset_range], **bounds, headers=headers)


def fetch_all(
    source: KafkaSource,
    ranges: Iterable[OffsetRange],
    *,
    max_records: int,
    max_bytes: int,
    headers: bool = False,
    stall_seconds: float | None = None,
) -> Iterator[RecordChunk]:
    """Yield the committed records of ranges in chunks, in order of offset for each partition.

    A chunk has at most `max_records` records and `max_bytes` bytes of keys and values, but at least
    one record. Headers are read only if `headers` is set. Raises LogChangedError if a log no longer
    has its range; StalledError if no record arrives for `stall_seconds` (None: 30), after the
    records that did arrive; SourceError if the brokers reject the client; ConfigError for invalid
    properties.
    """
    with borrow_consumer(source, headers=headers) as pooled:
        for bundle in bundles(ranges, max_records):
            readings = {
                (range_.topic, range_.partition): Reading(source, range_) for range_ in bundle
            }
            together = _JointFetch(source, readings, pooled, stall_seconds or STALL_SECONDS)
            columns = {reading: RecordColumns(*reading) for reading in readings}
            stalled: StalledError | None = None
            try:
                for partition, records in together.batches():
                    columns[partition].add(records)
                    while (
                        full := _full(columns[partition], columns, max_records, max_bytes)
                    ) is not None:
                        yield full.take(max_records, max_bytes)
                        together.touch()
            except StalledError as error:
                stalled = error
            for waiting in columns.values():
                while waiting:
                    yield waiting.take(max_records, max_bytes)
            if stalled is not None:
                raise stalled


def bundles(ranges: Iterable[OffsetRange], max_records: int) -> Iterator[list[OffsetRange]]:
    """Yield groups of consecutive ranges, to be read together; their order is kept.

    A group has at most `max_records` offsets and no topic partition twice; a larger range is a
    group of its own. All ranges are of one source.
    """
    bundle: list[OffsetRange] = []
    partitions: set[TopicAndPartition] = set()
    rows = 0
    for range_ in ranges:
        partition = (range_.topic, range_.partition)
        if bundle and (rows + range_.rows > max_records or partition in partitions):
            yield bundle
            bundle, partitions, rows = [], set(), 0
        bundle.append(range_)
        partitions.add(partition)
        rows += range_.rows
    if bundle:
        yield bundle


def _full(
    latest: RecordColumns,
    columns: Mapping[TopicAndPartition, RecordColumns],
    max_records: int,
    max_bytes: int,
) -> RecordColumns | None:
    """Return the buffered columns from which to take a chunk, or None.

    Returns `latest` if it fills a chunk. Otherwise, if the columns of several topic partitions
    together reach `max_bytes`, returns those with the most bytes.
    """
    if latest.is_full(max_records, max_bytes):
        return latest
    if len(columns) == 1 or sum(column.bytes for column in columns.values()) < max_bytes:
        return None
    return max(columns.values(), key=lambda buffered: buffered.bytes)


class _JointFetch:
    """Ranges of different topic partitions that one consumer reads together."""

    def __init__(
        self, source: KafkaSource, readings: _Readings, pooled: PooledConsumer, stall_seconds: float
    ) -> None:
        self._stall_seconds = stall_seconds
        self._source = source
        self._readings = readings
        self._pooled = pooled
        self._wasted = 0
        self.touch()

    def touch(self) -> None:
        """Restart the stall timer: time that the caller spends between chunks does not count."""
        self._deadline = time.monotonic() + self._stall_seconds

    def batches(self) -> Iterator[tuple[TopicAndPartition, Records]]:
        """Yield the records of the ranges in batches, each of one topic partition and not empty.

        The batches of a topic partition are in the order of their offsets.
        """
        left = self._assign()
        while left:
            yield from self._read(left)
            rest = {partition: reading for partition, reading in left.items() if reading.left}
            left = self._assign() if rest and self._wasted > _WASTED_RECORDS else rest

    def _assign(self) -> _Readings:
        """Assign the unfinished ranges to the client, and return them."""
        left = {partition: reading for partition, reading in self._readings.items() if reading.left}
        self._wasted = 0
        try:
            self._pooled.reader.assign(
                {partition: reading.position for partition, reading in left.items()}
            )
        except SourceError as error:
            raise SourceError(f"cannot read {_where(left)}: {error}") from error
        return left

    def _read(self, left: _Readings) -> Iterator[tuple[TopicAndPartition, Records]]:
        expected = sum(reading.left for reading in left.values())
        try:
            fetched = self._pooled.reader.read(min(_POLL_RECORDS, expected), _POLL_SECONDS)
        except SourceError as error:
            raise SourceError(f"cannot read {_where(left)}: {error}") from error
        in_range = [(partition, self._taken(partition, records)) for partition, records in fetched]
        if sum(reading.left for reading in left.values()) < expected:
            self.touch()
        else:
            self._check_stalled(left)
        yield from ((partition, records) for partition, records in in_range if len(records))

    def _taken(self, partition: TopicAndPartition, records: Records) -> Records:
        """Return the records in the range of their topic partition; record the client's errors."""
        reading = self._readings.get(partition)
        if reading is None:  # an error that concerns no single topic partition
            self._pooled.client_errors.extend(event.problem for event in records.events)
            return records.first(0)
        in_range = reading.take(records)
        self._pooled.client_errors.extend(reading.problems)
        reading.problems.clear()
        self._wasted += len(records) - len(in_range)
        return in_range

    def _check_stalled(self, left: _Readings) -> None:
        self._pooled.listen()
        rejection_reason = self._pooled.client_errors.rejection_reason
        if rejection_reason is not None:
            reason = explain(self._source, rejection_reason)
            raise SourceError(f"cannot read {_where(left)}: {reason}")
        if any(problem.code in _GONE for problem in self._pooled.client_errors.problems):
            # The client reports "unknown" for a deleted topic, but also during a leader election.
            self._pooled.client_errors.forget()
            for reading in left.values():
                reading.check_gone()
        if time.monotonic() > self._deadline:
            reading = next(iter(left.values()))
            raise StalledError(
                f"{_where(left)} returned no record for {self._stall_seconds:.0f} s at offset "
                f"{reading.position} of up to {reading.range.until}, from "
                f"{self._source.bootstrap}{self._pooled.error_clause(self._source)}",
                [replace(each.range, start=each.position) for each in left.values()],
            )


def _where(left: _Readings) -> str:
    first = next(iter(left.values()), None)
    more = f" and {len(left) - 1} more" if len(left) > 1 else ""
    return "" if first is None else f"{first.where}{more}"
