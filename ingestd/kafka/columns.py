"""Records of a topic partition that wait for their chunk, and chunks of bounded size."""

from collections import deque
from itertools import chain

import numpy as np

from ingestd.cdc.base import RecordChunk
from ingestd.kafka.records import Numbers, Records


class Columns:
    """Records of one topic partition that wait for their chunk."""

    def __init__(self, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = partition
        self._parts: deque[Records] = deque()
        self._count = 0
        self._bytes = 0  # of keys and values

    def __len__(self) -> int:
        return self._count

    @property
    def bytes(self) -> int:
        """Bytes of keys and values that wait."""
        return self._bytes

    def add(self, records: Records) -> None:
        """Append records; their offsets rise."""
        self._parts.append(records)
        self._count += len(records)
        self._bytes += int(records.sizes.sum())

    def full(self, max_records: int, max_bytes: int) -> bool:
        """Whether there is enough for a chunk of these bounds."""
        return self._count >= max_records or self._bytes >= max_bytes

    def take(self, max_records: int, max_bytes: int) -> RecordChunk:
        """The first records as a chunk: at most so many records and bytes, but at least one."""
        taken: list[Records] = []
        records = size = 0
        while self._parts and records < max_records and size < max_bytes:
            part = self._parts.popleft()
            count = _fitting(part, max_records - records, max_bytes - size)
            if count < len(part):
                count = count if records else max(1, count)
                self._parts.appendleft(part.behind(count))
                part = part.first(count)
                max_records = records + count  # nothing more fits
            taken.append(part)
            records += len(part)
            size += int(part.sizes.sum())
        self._count -= records
        self._bytes -= size
        return self._chunk(_joined(taken))

    def _chunk(self, taken: Records) -> RecordChunk:
        return RecordChunk(
            topic=self._topic,
            partition=self._partition,
            offsets=taken.offsets,
            timestamps=taken.timestamps,
            keys=taken.keys,
            values=taken.values,
            headers=taken.headers,
            sizes=taken.sizes,
        )


def _fitting(part: Records, max_records: int, max_bytes: int) -> int:
    """How many of the first records are within both bounds."""
    ends = np.cumsum(part.sizes)
    return min(max_records, int(np.searchsorted(ends, max_bytes, side="right")))


def _joined(parts: list[Records]) -> Records:
    if len(parts) == 1:
        return parts[0]
    headers = [one.headers for one in parts if one.headers is not None]
    return Records(
        offsets=_concatenated([one.offsets for one in parts]),
        timestamps=_concatenated([one.timestamps for one in parts]),
        sizes=_concatenated([one.sizes for one in parts]),
        keys=list(chain.from_iterable(one.keys for one in parts)),
        values=list(chain.from_iterable(one.values for one in parts)),
        headers=list(chain.from_iterable(headers)) if headers else None,
    )


def _concatenated(parts: list[Numbers]) -> Numbers:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
