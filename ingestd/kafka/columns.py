"""Buffered records of a topic partition, and chunks of bounded size."""

import numpy as np

from ingestd.cdc.base import RecordChunk
from ingestd.cdc.texts import Texts, joined
from ingestd.kafka.records import Header, Numbers, Records


class RecordColumns:
    """Buffered records of one topic partition that are not yet part of a chunk."""

    def __init__(self, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = partition
        self._keys: list[Texts] = []
        self._values: list[Texts] = []
        self._records = 0
        self._headers: list[list[Header] | None] = []
        self._numbers: list[tuple[Numbers, Numbers, Numbers]] = []
        self._bytes = 0  # of keys and values

    def __len__(self) -> int:
        return self._records

    @property
    def bytes(self) -> int:
        """Bytes of buffered keys and values."""
        return self._bytes

    def add(self, records: Records) -> None:
        """Append records with ascending offsets; either all or none have headers."""
        self._keys.append(records.keys)
        self._values.append(records.values)
        self._records += len(records)
        self._headers += records.headers or ()
        self._numbers.append((records.offsets, records.timestamps, records.sizes))
        self._bytes += int(records.sizes.sum())

    def full(self, max_records: int, max_bytes: int) -> bool:
        """Return whether the buffered records fill a chunk of these bounds."""
        return len(self) >= max_records or self._bytes >= max_bytes

    def take(self, max_records: int, max_bytes: int) -> RecordChunk:
        """Remove and return the first records as a chunk within the bounds, but at least one."""
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


def _cut(parts: list[Texts], count: int) -> tuple[Texts, list[Texts]]:
    """Split off the first `count` texts; return them, and the rest as a list of one part."""
    whole = joined(parts)
    return (whole, []) if count == len(whole) else (whole[:count], [whole[count:]])
