"""Records of a topic partition that wait for their chunk, and chunks of bounded size."""

from typing import TypeVar

import numpy as np

from ingestd.cdc.base import RecordChunk
from ingestd.kafka.records import Header, Numbers, Records

T = TypeVar("T")


class Columns:
    """Records of one topic partition that wait for their chunk.

    Keys and values are joined as they come: later each would have to be fetched from memory again.
    """

    def __init__(self, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = partition
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._headers: list[list[Header] | None] = []
        self._numbers: list[tuple[Numbers, Numbers, Numbers]] = []
        self._bytes = 0  # of keys and values

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def bytes(self) -> int:
        """Bytes of keys and values that wait."""
        return self._bytes

    def add(self, records: Records) -> None:
        """Append records; their offsets rise, and all have headers or none has."""
        self._keys += records.keys
        self._values += records.values
        self._headers += records.headers or ()
        self._numbers.append((records.offsets, records.timestamps, records.sizes))
        self._bytes += int(records.sizes.sum())

    def full(self, max_records: int, max_bytes: int) -> bool:
        """Whether there is enough for a chunk of these bounds."""
        return len(self) >= max_records or self._bytes >= max_bytes

    def take(self, max_records: int, max_bytes: int) -> RecordChunk:
        """The first records as a chunk: at most so many records and bytes, but at least one."""
        offsets, timestamps, sizes = map(np.concatenate, zip(*self._numbers, strict=True))
        ends = np.cumsum(sizes)
        fitting = int(np.searchsorted(ends, max_bytes, side="right"))
        count = min(max(1, min(max_records, fitting)), len(self))
        self._numbers = [(offsets[count:], timestamps[count:], sizes[count:])]
        self._bytes -= int(ends[count - 1])
        keys, self._keys = _cut(self._keys, count)
        values, self._values = _cut(self._values, count)
        headers, self._headers = _cut(self._headers, count)
        return RecordChunk(
            topic=self._topic,
            partition=self._partition,
            offsets=offsets[:count],
            timestamps=timestamps[:count],
            keys=keys,
            values=values,
            headers=headers or None,
            sizes=sizes[:count],
        )


def _cut(cells: list[T], count: int) -> tuple[list[T], list[T]]:
    """A list that keeps its first cells, and the few others in one of their own."""
    rest = cells[count:]
    del cells[count:]
    return cells, rest
