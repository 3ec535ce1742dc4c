"""Parse ORC footers for the streams of decimal scales, the time zones and the width of rows.

The library applies a decimal scale one digit at a time, so a few damaged bytes could keep it busy
for years. The scales found here are therefore validated first (`check_scales`).

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#orc
"""

import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ingestd.errors import UnsupportedError

_Message = Mapping[int, list[Any]]
"""Field number -> its values: numbers, or bytes for fields with a length."""

_NOT_SUPPORTED = {3: "LZO", 6: "BROTLI"}
"""Compressions of ORC that Arrow's reader does not support."""
_NONE, _ZLIB, _SNAPPY, _LZ4, _ZSTD = 0, 1, 2, 4, 5
_DECIMAL = 14
_SECONDARY = 5
"""Kind of the stream that contains the scales of a decimal column."""
_SUMS = ((4, 3), (8, 1))
"""Statistics of string and binary columns -> the field with their total bytes (signed)."""
_CELL_BYTES = 8
_MOST_DIGITS = 38
_MOST_BITS = 128
"""Maximum width of a varint: the unscaled value of a decimal."""
_BIGGEST_BLOCK = 1 << 23
"""Maximum size in bytes of a compressed block; valid blocks are smaller."""
_LARGE_FOOTER = 1 << 24
_MOST_FIELDS = 1 << 18
"""Maximum number of fields of a message.

The library allocates 100 bytes for two bytes of a footer.
"""
_LARGE_STREAM = 1 << 30


@dataclass(frozen=True, slots=True)
class ScaleStream:
    """The encoded scales of the values of one decimal column in one stripe.

    `data` is decompressed; `encoding` is 0 for version 1 of run-length encoding, 2 for version 2.
    """

    encoding: int
    data: bytes


class OrcLayout:
    """The footers of an ORC file.

    The constructor and the methods raise an error of the decoders (ValueError, IndexError,
    KeyError, OSError or zlib.error) if the footers are invalid. The constructor raises
    UnsupportedError for a compression that cannot be read.
    """

    def __init__(self, source: pa.NativeFile) -> None:
        self._source = source
        self._size = int(source.size())
        tail = self._bytes(self._size - 1, 1)[0]
        script = _message(self._bytes(self._size - 1 - tail, tail))
        self._inflate = _codec(_number(script, 2))
        self._block = _number(script, 3, _BIGGEST_BLOCK)
        if self._block > _BIGGEST_BLOCK:
            raise ValueError(f"compressed blocks of {self._block} bytes")
        length = _number(script, 1)
        footer = self._inflated(self._size - 1 - tail - length, length, _LARGE_FOOTER)
        self._footer = _message(footer)
        self._types = _messages(self._footer, 4)

    def scale_streams(self, columns: Collection[str] | None) -> Iterator[ScaleStream]:
        """Yield the scale streams of all decimals in some columns (None: all), by stripe.

        The footers of all stripes are read. Raises ValueError if a footer is too large, or if the
        scale of a decimal type is invalid.
        """
        decimals = self._decimals(columns)
        for stripe in _messages(self._footer, 3):
            start = _number(stripe, 1)
            end = start + _number(stripe, 2) + _number(stripe, 3)
            footer = _message(self._inflated(end, _number(stripe, 4), _LARGE_FOOTER))
            if not decimals:
                continue
            encodings = [_number(message, 1) for message in _messages(footer, 2)]
            for stream in _messages(footer, 1):
                length, column = _number(stream, 3), _number(stream, 2)
                if _number(stream, 1) == _SECONDARY and column in decimals:
                    scales = self._inflated(start, length, _LARGE_STREAM)
                    yield ScaleStream(encodings[column], scales)
                start += length

    @property
    def zones(self) -> frozenset[str]:
        """The writers' time zones that the footers of the stripes contain."""
        zones = set[str]()
        for stripe in _messages(self._footer, 3):
            end = _number(stripe, 1) + _number(stripe, 2) + _number(stripe, 3)
            footer = _message(self._inflated(end, _number(stripe, 4), _LARGE_FOOTER))
            zones |= {name.decode() for name in _texts(footer, 3)}
        return frozenset(zones)

    def row_bytes(self, columns: Collection[str] | None) -> float:
        """Return the approximate mean size in bytes of a row of some columns (None: all) in memory.

        The size is the sum of 8 bytes for each column and of the mean length of strings and
        binaries, which is computed from the statistics in the footer.
        """
        numbers = self._numbers(columns)
        statistics = _messages(self._footer, 7)
        total = sum(
            _number(values, field) >> 1
            for number in numbers
            if number < len(statistics)
            for kind, field in _SUMS
            for values in _messages(statistics[number], kind)
        )
        return _CELL_BYTES * len(numbers) + total / max(_number(self._footer, 6), 1)

    def _decimals(self, columns: Collection[str] | None) -> set[int]:
        """Return the type numbers of the decimals in some columns (None: all).

        Raises ValueError for an invalid scale.
        """
        numbers = self._numbers(columns)
        decimals = {number for number in numbers if _number(self._types[number], 1) == _DECIMAL}
        for number in decimals:
            if _number(self._types[number], 6) > _MOST_DIGITS:
                raise ValueError(f"a decimal of scale {_number(self._types[number], 6)}")
        return decimals

    def _numbers(self, columns: Collection[str] | None) -> set[int]:
        """Return the type numbers of some columns (None: all) and of their nested types.

        The numbers of a column and its nested types are consecutive.
        """
        root = self._types[0]
        starts = [*_packed(root.get(2, [])), len(self._types)]
        names = [name.decode("utf-8", "replace") for name in _texts(root, 3)]
        selected = set()
        for position, name in enumerate(names):
            if columns is None or name in columns:
                selected |= set(
                    range(starts[position], min(starts[position + 1], len(self._types)))
                )
        return selected

    def _bytes(self, start: int, length: int) -> bytes:
        if start < 0 or length < 0 or start + length > self._size:
            raise ValueError(f"no {length} bytes at {start}")
        source: Any = self._source
        data: bytes = source.read_at(length, start)
        return data

    def _inflated(self, start: int, length: int, most: int) -> bytes:
        """Decompress a stream chunk by chunk. Raises ValueError if it exceeds `most` bytes."""
        data = self._bytes(start, length)
        if self._inflate is None:
            return data
        parts, at, total = [], 0, 0
        while at < len(data):
            head = int.from_bytes(data[at : at + 3], "little")
            chunk = data[at + 3 : at + 3 + (head >> 1)]
            at += 3 + (head >> 1)
            parts.append(chunk if head & 1 else self._inflate(chunk, self._block))
            total += len(parts[-1])
            if total > most:
                raise ValueError(f"a stream of more than {most} bytes")
        return b"".join(parts)


def _message(data: bytes) -> _Message:
    """Decode a message in Protocol Buffers. Raises IndexError or ValueError if it is invalid."""
    fields: dict[int, list[Any]] = {}
    at = count_of_fields = 0
    while at < len(data):
        count_of_fields += 1
        if count_of_fields > _MOST_FIELDS:
            raise ValueError(f"a message of more than {_MOST_FIELDS} fields")
        tag, at = varint(data, at)
        value: int | bytes
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            count, at = {1: (8, at), 5: (4, at)}.get(tag & 7) or varint(data, at)
            if tag & 7 not in (1, 2, 5) or at + count > len(data):
                raise ValueError(f"a field of type {tag & 7} that does not fit")
            value, at = data[at : at + count], at + count
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Decode a varint; return it and the position after it.

    Raises IndexError at the end of the data, ValueError if the varint is too long.
    """
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
        if shift > _MOST_BITS:
            raise ValueError(f"a number of more than {_MOST_BITS} bits")


def _messages(message: _Message, field: int) -> list[_Message]:
    return [_message(text) for text in _texts(message, field)]


def _texts(message: _Message, field: int) -> list[bytes]:
    values = message.get(field, [])
    if not all(isinstance(value, bytes) for value in values):
        raise ValueError(f"field {field} is a number")
    return values


def _packed(values: list[Any]) -> list[int]:
    """Return the numbers of a repeated field, whether its encoding is packed or not."""
    numbers: list[int] = []
    for value in values:
        if isinstance(value, int):
            numbers.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            numbers.append(number)
    return numbers


def _number(message: _Message, field: int, default: int = 0) -> int:
    value = message.get(field, [default])[-1]
    if not isinstance(value, int):
        raise ValueError(f"field {field} is not a number")
    return value


def _zlib(chunk: bytes, block: int) -> bytes:
    return zlib.decompressobj(-zlib.MAX_WBITS).decompress(chunk, block)


def _zstd(chunk: bytes, block: int) -> bytes:
    stream: Any = pa.CompressedInputStream(pa.BufferReader(chunk), "zstd")
    data: bytes = stream.read(block)
    return data


def _snappy(chunk: bytes, block: int) -> bytes:
    return _whole("snappy", chunk, min(varint(chunk, 0)[0], block))


def _lz4(chunk: bytes, block: int) -> bytes:
    return _whole("lz4_raw", chunk, min(_lz4_size(chunk), block))


def _whole(codec: str, chunk: bytes, size: int) -> bytes:
    open_codec: Any = pa.Codec
    data: bytes = open_codec(codec).decompress(chunk, size, asbytes=True)
    return data


def _lz4_size(chunk: bytes) -> int:
    """Return the decompressed length of an LZ4 block, which does not store it."""
    at = size = 0
    while at < len(chunk):
        token = chunk[at]
        literals, at = _lz4_length(chunk, at + 1, token >> 4)
        at, size = at + literals, size + literals
        if at >= len(chunk):
            break
        matched, at = _lz4_length(chunk, at + 2, token & 15)
        size += matched + 4
    return size


def _lz4_length(chunk: bytes, at: int, length: int) -> tuple[int, int]:
    more = 255 if length == 15 else 0
    while more == 255:
        more = chunk[at]
        length, at = length + more, at + 1
    return length, at


_CODECS: Mapping[int, Callable[[bytes, int], bytes] | None] = {
    _NONE: None, _ZLIB: _zlib, _SNAPPY: _snappy, _LZ4: _lz4, _ZSTD: _zstd,
}  # fmt: skip


def _codec(kind: int) -> Callable[[bytes, int], bytes] | None:
    name = _NOT_SUPPORTED.get(kind)
    if name is not None:
        raise UnsupportedError(
            f"ORC compression {name} is not supported; rewrite the file with another "
            "'file.compression', as by a full compaction of the engine that wrote it"
        )
    return _CODECS[kind]
