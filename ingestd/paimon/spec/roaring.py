"""Roaring bitmaps as bytes, in the portable form that all implementations of Roaring share.

A bitmap is a sorted array of distinct unsigned 32-bit numbers here. It is stored in containers
of the numbers that share their upper 16 bits: an array, a bit set, or runs, whichever is least.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/tableindex/#deletion-vectors
"""

import struct

import numpy as np
import numpy.typing as npt

from ingestd.errors import FormatError

Numbers = npt.NDArray[np.uint32]
_Words = npt.NDArray[np.uint16]

_COOKIE = 12346
_COOKIE_WITH_RUNS = 12347
_OFFSETS_FROM = 4
"""With the cookie of runs, offsets of containers stand there only from this many containers on."""
_ARRAY_LIMIT = 4096
_BIT_SET_BYTES = 8192
_MAX_CONTAINERS = 1 << 16


def encode_roaring(numbers: Numbers) -> bytes:
    """Return the bytes of a bitmap of sorted distinct numbers."""
    keys, starts = np.unique(numbers >> 16, return_index=True)
    parts = [part.astype(np.uint16) for part in np.split(numbers, starts[1:])] if len(keys) else []
    containers = [_encode_container(part) for part in parts]
    counts = np.array([len(part) - 1 for part in parts], np.uint16)
    header = np.column_stack([keys.astype(np.uint16), counts]).astype("<u2").tobytes()
    bodies = [body for _, body in containers]
    runs = [is_run for is_run, _ in containers]
    if any(runs):
        flags = np.packbits(np.array(runs), bitorder="little").tobytes()
        start = struct.pack("<I", _COOKIE_WITH_RUNS | (len(parts) - 1) << 16) + flags + header
        with_offsets = len(parts) >= _OFFSETS_FROM
    else:
        start = struct.pack("<II", _COOKIE, len(parts)) + header
        with_offsets = True
    offsets = b""
    if with_offsets:
        first = len(start) + 4 * len(parts)
        ends = np.cumsum([first, *(len(body) for body in bodies)])
        offsets = ends[:-1].astype("<u4").tobytes()
    return b"".join([start, offsets, *bodies])


def _encode_container(part: _Words) -> tuple[bool, bytes]:
    """Return whether it is a container of runs, and its bytes."""
    wide = part.astype(np.int64)
    breaks = np.flatnonzero(np.diff(wide) != 1)
    runs = len(breaks) + 1
    plain = 2 * len(part) + 2 if len(part) <= _ARRAY_LIMIT else _BIT_SET_BYTES
    if plain > 2 + 4 * runs:
        first = wide[np.append(0, breaks + 1)]
        last = wide[np.append(breaks, len(part) - 1)]
        pairs = np.column_stack([first, last - first]).astype("<u2")
        return True, struct.pack("<H", runs) + pairs.tobytes()
    if len(part) <= _ARRAY_LIMIT:
        return False, part.astype("<u2").tobytes()
    bits = np.zeros(_BIT_SET_BYTES * 8, bool)
    bits[part] = True
    return False, np.packbits(bits, bitorder="little").tobytes()


def decode_roaring(data: bytes, source: str, start: int = 0) -> tuple[Numbers, int]:
    """Return the numbers of a bitmap that begins at `start`, and where it ends.

    FormatError names `source` if it is cut off or contradicts itself.
    """
    try:
        return _Reader(data, start).read()
    except (struct.error, ValueError, IndexError) as error:
        raise FormatError(f"{source}: its Roaring bitmap is damaged: {error}") from error


class _Reader:
    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self._at = start

    def read(self) -> tuple[Numbers, int]:
        count, runs, with_offsets = self._read_start()
        header = self._words(2 * count).reshape(-1, 2)
        keys, sizes = header[:, 0].astype(np.uint32), header[:, 1].astype(np.int64) + 1
        if np.any(np.diff(keys.astype(np.int64)) <= 0):
            raise ValueError("containers are out of order")
        if with_offsets:
            self._take(4 * count)
        parts = [
            self._container(int(size), bool(is_run)) + (key << np.uint32(16))
            for key, size, is_run in zip(keys, sizes, runs, strict=True)
        ]
        return np.concatenate(parts) if parts else np.empty(0, np.uint32), self._at

    def _read_start(self) -> tuple[int, npt.NDArray[np.bool_], bool]:
        (cookie,) = struct.unpack("<I", self._take(4))
        if cookie == _COOKIE:
            (count,) = struct.unpack("<I", self._take(4))
            if count > _MAX_CONTAINERS:
                raise ValueError(f"{count} containers")
            return count, np.zeros(count, bool), True
        if cookie & 0xFFFF != _COOKIE_WITH_RUNS:
            raise ValueError(f"begins with {cookie}")
        count = (cookie >> 16) + 1
        flags = np.frombuffer(self._take((count + 7) // 8), np.uint8)
        runs = np.unpackbits(flags, bitorder="little")[:count].astype(bool)
        return count, runs, count >= _OFFSETS_FROM

    def _container(self, size: int, is_run: bool) -> Numbers:
        if is_run:
            return self._runs(size)
        if size > _ARRAY_LIMIT:
            bits = np.unpackbits(
                np.frombuffer(self._take(_BIT_SET_BYTES), np.uint8), bitorder="little"
            )
            numbers: Numbers = np.flatnonzero(bits).astype(np.uint32)
        else:
            numbers = self._words(size).astype(np.uint32)
        if len(numbers) != size or np.any(numbers[1:] <= numbers[:-1]):
            raise ValueError("a container does not hold what it promises")
        return numbers

    def _runs(self, size: int) -> Numbers:
        (count,) = struct.unpack("<H", self._take(2))
        pairs = self._words(2 * count).reshape(-1, 2).astype(np.int64)
        first, lengths = pairs[:, 0], pairs[:, 1] + 1
        ends = first + lengths
        if int(lengths.sum()) != size or np.any(ends > 1 << 16) or np.any(first[1:] < ends[:-1]):
            raise ValueError("runs do not hold what they promise")
        before = np.cumsum(lengths) - lengths
        numbers: Numbers = (np.arange(size) + np.repeat(first - before, lengths)).astype(np.uint32)
        return numbers

    def _words(self, count: int) -> _Words:
        words: _Words = np.frombuffer(self._take(2 * count), "<u2")
        return words

    def _take(self, size: int) -> bytes:
        part = self._data[self._at : self._at + size]
        if len(part) < size:
            raise ValueError("it ends too early")
        self._at += size
        return part
