"""Messages of the client turned into columns, and columns cut into bounded chunks."""

from collections.abc import Callable, Sequence
from operator import add
from typing import TypeVar, cast

import numpy as np
from confluent_kafka.cimpl import Message

from ingestd.cdc.base import RecordChunk

_T = TypeVar("_T")

Header = tuple[str, bytes | None]

# The client's types allow for messages that were not read from a broker.
_offset_of = cast("Callable[[Message], int]", Message.offset)
_headers_of = cast("Callable[[Message], list[Header] | None]", Message.headers)


class Columns:
    """Records of one topic partition that wait for their chunk.

    Work for one record is a handful of calls into C; the message objects are not kept.
    """

    def __init__(self, topic: str, partition: int, headers: bool) -> None:
        self._topic = topic
        self._partition = partition
        self._offsets: list[int] = []
        self._timestamps: list[int] = []
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._sizes: list[int] = []
        self._headers: list[list[Header] | None] | None = [] if headers else None
        self._bytes = 0  # of keys and values

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, messages: Sequence[Message]) -> None:
        """Append records; their offsets rise."""
        keys = list(map(Message.key, messages))
        sizes = list(map(add, map(Message.__len__, messages), map(_length, keys)))
        self._offsets.extend(map(_offset_of, messages))
        self._timestamps.extend(stamp for _, stamp in map(Message.timestamp, messages))
        self._keys.extend(keys)
        self._values.extend(map(Message.value, messages))
        self._sizes.extend(sizes)
        self._bytes += sum(sizes)
        if self._headers is not None:
            self._headers.extend(map(_headers_of, messages))

    def full(self, max_records: int, max_bytes: int) -> bool:
        """Whether there is enough for a chunk of these bounds."""
        return len(self) >= max_records or self._bytes >= max_bytes

    def take(self, max_records: int, max_bytes: int) -> RecordChunk:
        """The first records as a chunk: at most so many records and bytes, but at least one."""
        count = min(len(self), max_records)
        if self._bytes > max_bytes:
            ends = np.cumsum(self._sizes[:count])
            count = max(1, int(np.searchsorted(ends, max_bytes, side="right")))
        self._bytes -= sum(_cut(self._sizes, count))
        return RecordChunk(
            topic=self._topic,
            partition=self._partition,
            offsets=np.array(_cut(self._offsets, count), dtype=np.int64),
            timestamps=np.array(_cut(self._timestamps, count), dtype=np.int64),
            keys=_cut(self._keys, count),
            values=_cut(self._values, count),
            headers=None if self._headers is None else _cut(self._headers, count),
        )


def _cut(values: list[_T], count: int) -> list[_T]:
    """Take the first values out of a list."""
    taken = values[:count]
    del values[:count]
    return taken


def _length(key: bytes | None) -> int:
    return 0 if key is None else len(key)
