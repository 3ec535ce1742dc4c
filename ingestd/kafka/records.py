"""Records as columns, errors and events: the results of a reader of topic partitions.

There are two readers, one in the native extension and one based on the Python client. Both use the
same client library and return the same results. `RecordColumns` buffers records, and cuts chunks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ingestd.cdc.base import Numbers, RecordChunk, Texts, joined

Header = tuple[str, bytes | None]
TopicAndPartition = tuple[str, int]
"""Topic and partition."""
NOWHERE: TopicAndPartition = ("", -1)
"""Replaces the topic partition of errors that concern no single topic partition."""


class Problem(NamedTuple):
    """An error of the client library: its code (as in `KafkaError`) and its text."""

    code: int
    text: str


class LogEvent(NamedTuple):
    """An error or an end of a partition, which the client returned instead of a record.

    `offset` is the offset at which the client reports it, negative if unknown.
    """

    problem: Problem
    offset: int


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one topic partition with ascending offsets, as parallel columns.

    `timestamps` are in ms since 1970; `sizes` are the bytes of key and value together. `headers`
    and `timestamp_types` (0 unknown, 1 creation, 2 append to the log) are None if headers were not
    requested. `events` are the errors and ends of partitions that the client returned besides
    records.
    """

    offsets: Numbers
    timestamps: Numbers
    sizes: Numbers
    keys: Texts
    values: Texts
    headers: list[list[Header] | None] | None
    events: Sequence[LogEvent] = ()
    timestamp_types: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def first(self, count: int) -> "Records":
        """Return the first `count` records, without `events`."""
        return self if count >= len(self) and not self.events else self._part(0, count)

    def _part(self, start: int, stop: int) -> "Records":
        return Records(
            offsets=self.offsets[start:stop],
            timestamps=self.timestamps[start:stop],
            sizes=self.sizes[start:stop],
            keys=self.keys[start:stop],
            values=self.values[start:stop],
            headers=None if self.headers is None else self.headers[start:stop],
            timestamp_types=self.timestamp_types and self.timestamp_types[start:stop],
        )


class Reader(Protocol):
    """A reader of assigned topic partitions.

    Methods raise SourceError if the client library fails.
    """

    def assign(self, offsets: Mapping[TopicAndPartition, int]) -> None:
        """Read only these topic partitions from now on, each from its offset."""

    def unassign(self) -> None:
        """Stop reading until the next `assign`."""

    def read(self, count: int, seconds: float) -> Sequence[tuple[TopicAndPartition, Records]]:
        """Wait for `count` records, but at most `seconds`; return those that arrived, or [].

        Consecutive records of one topic partition form one pair; a partition can occur in several.
        """

    def problems(self) -> list[Problem]:
        """Return the errors since the last call that belong to no single topic partition."""

    def close(self) -> None:
        """Close the connections."""


class RecordColumns:
    """A buffer of fetched records of one topic partition, from which chunks are cut."""

    def __init__(self, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = partition
        self._keys: list[Texts] = []
        self._values: list[Texts] = []
        self._records = 0
        self._headers: list[list[Header] | None] = []
        self._timestamp_types: list[int] = []
        self._numbers: list[tuple[Numbers, Numbers, Numbers]] = []
        self._bytes = 0  # of keys and values

    def __len__(self) -> int:
        return self._records

    @property
    def bytes(self) -> int:
        """The total size of the buffered keys and values in bytes."""
        return self._bytes

    def add(self, records: Records) -> None:
        """Append records with ascending offsets; either all or none have headers."""
        self._keys.append(records.keys)
        self._values.append(records.values)
        self._records += len(records)
        self._headers += records.headers or ()
        self._timestamp_types += records.timestamp_types or ()
        self._numbers.append((records.offsets, records.timestamps, records.sizes))
        self._bytes += int(records.sizes.sum())

    def is_full(self, max_records: int, max_bytes: int) -> bool:
        """Return whether enough records are buffered to fill a chunk of these bounds."""
        return len(self) >= max_records or self._bytes >= max_bytes

    def take(self, max_records: int, max_bytes: int) -> RecordChunk:
        """Remove the first records from the buffer, and return them as a chunk.

        The chunk has at most `max_records` records and `max_bytes` bytes of keys and values, but at
        least one record; the buffer must not be empty.
        """
        offsets, timestamps, sizes = map(np.concatenate, zip(*self._numbers, strict=True))
        ends = np.cumsum(sizes)
        fitting = int(np.searchsorted(ends, max_bytes, side="right"))
        count = min(max(1, min(max_records, fitting)), len(self))
        self._numbers = [(offsets[count:], timestamps[count:], sizes[count:])]
        self._bytes -= int(ends[count - 1])
        self._records -= count
        keys, self._keys = _cut(self._keys, count)
        values, self._values = _cut(self._values, count)
        headers, self._headers = self._headers[:count], self._headers[count:]
        kinds, self._timestamp_types = self._timestamp_types[:count], self._timestamp_types[count:]
        return RecordChunk(
            topic=self._topic,
            partition=self._partition,
            offsets=offsets[:count],
            timestamps=timestamps[:count],
            keys=keys,
            values=values,
            headers=headers or None,
            sizes=sizes[:count],
            timestamp_types=kinds or None,
        )


def _cut(buffered: list[Texts], count: int) -> tuple[Texts, list[Texts]]:
    """Return the first `count` texts, and a list with the sequence of the others.

    The list is empty if no other texts are left.
    """
    whole = joined(buffered)
    return (whole, []) if count == len(whole) else (whole[:count], [whole[count:]])
