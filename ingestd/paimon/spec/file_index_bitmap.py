"""Encode and read bitmap indexes of a file: the rows of each value of a column, and of null.

Values are sorted and stored in blocks, so that a lookup reads a single block. A value with one row
stores the row number instead of a bitmap. Numbers are big-endian. An older layout without blocks is
not supported; such an index excludes no rows.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-bitmap
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ingestd.errors import FormatError
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, TIMESTAMP_ROOTS, DataType
from ingestd.paimon.spec.roaring import Numbers, decode_roaring, encode_roaring

DEFAULT_BLOCK_SIZE = 16 * 1024

_VERSION = 2
_INT = struct.Struct(">i")
_HEADER = struct.Struct(">Bii?")
_PLACE = struct.Struct(">ii")
_LAYOUTS = {
    "BOOLEAN": struct.Struct(">?"),
    "TINYINT": struct.Struct(">b"),
    "SMALLINT": struct.Struct(">h"),
    **dict.fromkeys(("INT", "DATE", "TIME"), struct.Struct(">i")),
    **dict.fromkeys(("BIGINT", "TIMESTAMP", "TIMESTAMP_LTZ"), struct.Struct(">q")),
    "FLOAT": struct.Struct(">f"),
    "DOUBLE": struct.Struct(">d"),
}
_NANOS_PER_MICRO = 1000
_Value = Any


def has_bitmap(t: DataType) -> bool:
    """Return whether columns of a type can have a bitmap index."""
    return t.root in _LAYOUTS or t.root in CHARACTER_ROOTS


def encode_bitmap_index(column: Column, t: DataType, block_size: int = DEFAULT_BLOCK_SIZE) -> bytes:
    """Return the bitmap index of a column, in blocks of about `block_size` bytes.

    Raises ValueError for a type without bitmap indexes (see `has_bitmap`).
    """
    if not has_bitmap(t):
        raise ValueError(f"columns of type {t} have no bitmap index")
    nulls = _null_rows(column)
    body: list[bytes] = []
    null_bytes = encode_roaring(nulls)
    if len(nulls) > 1:
        body.append(null_bytes)
    end = sum(map(len, body))
    entries: list[tuple[bytes, bytes]] = []
    for value, rows in _rows_by_value(column, t):
        raw = _encode_value(value, t)
        if len(rows) == 1:
            entries.append((raw, _PLACE.pack(-1 - int(rows[0]), -1)))
            continue
        body.append(encode_roaring(rows))
        entries.append((raw, _PLACE.pack(end, len(body[-1]))))
        end += len(body[-1])
    head = [_HEADER.pack(_VERSION, len(column), len(entries), len(nulls) > 0)]
    if len(nulls):
        offset = -1 - int(nulls[0]) if len(nulls) == 1 else 0
        head.append(_PLACE.pack(offset, len(null_bytes)))
    return b"".join([*head, *_encode_blocks(entries, block_size), *body])


def _encode_blocks(entries: list[tuple[bytes, bytes]], block_size: int) -> list[bytes]:
    blocks: list[tuple[bytes, list[bytes]]] = []
    room = 0
    for raw, offset in entries:
        size = len(raw) + len(offset)
        if not blocks or size > room:
            blocks.append((raw, []))
            room = block_size - _INT.size
        blocks[-1][1].append(raw + offset)
        room -= size
    bodies = [_INT.pack(len(own)) + b"".join(own) for _, own in blocks]
    starts = np.cumsum([0, *map(len, bodies)]).tolist()
    first = [raw + _INT.pack(start) for (raw, _), start in zip(blocks, starts, strict=False)]
    return [_INT.pack(len(blocks)), *first, _INT.pack(starts[-1]), *bodies]


def _null_rows(column: Column) -> Numbers:
    mask: Any = column.is_null()
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False)).astype(np.uint32)


def _rows_by_value(column: Column, t: DataType) -> Iterator[tuple[_Value, Numbers]]:
    """Yield the distinct values in ascending order, each with its row numbers."""
    array: Any = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    rows = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    encoded = _physical(array.drop_null(), t).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    groups = np.split(rows[order].astype(np.uint32), starts[1:]) if len(order) else []
    values = [_from_physical(value, t) for value in encoded.dictionary.to_pylist()]
    for code in sorted(range(len(values)), key=lambda code: _sort_key(values[code])):
        yield values[code], groups[code]


def _physical(array: Any, t: DataType) -> Any:  # noqa: ANN401  (any type)
    """Return floats as their bits, so that -0.0 and 0.0 differ, and times as integers.

    Timestamps in nanoseconds become microseconds.
    """
    if t.root in ("FLOAT", "DOUBLE"):
        return array.view(pa.int32() if t.root == "FLOAT" else pa.int64())
    if t.root in ("DATE", "TIME"):
        return array.view(pa.int32())
    if t.root not in TIMESTAMP_ROOTS:
        return array
    ticks = array.view(pa.int64())
    if (t.precision or 0) <= 6:
        return ticks
    return pa.array(ticks.to_numpy() // _NANOS_PER_MICRO)


def _from_physical(value: _Value, t: DataType) -> _Value:
    if t.root == "FLOAT":
        return struct.unpack("<f", struct.pack("<i", value))[0]
    return struct.unpack("<d", struct.pack("<q", value))[0] if t.root == "DOUBLE" else value


def _sort_key(value: _Value) -> _Value:
    """Return a sort key for the order of Java: texts by their bytes, -0.0 before 0.0, NaN last."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (value != value, 0.0 if value != value else value, not str(value).startswith("-"))
    return value


def _encode_value(value: _Value, t: DataType) -> bytes:
    if t.root in CHARACTER_ROOTS:
        raw: bytes = value.encode()
        return _INT.pack(len(raw)) + raw
    return _LAYOUTS[t.root].pack(value)


@dataclass(frozen=True, slots=True)
class BitmapIndex:
    """A decoded bitmap index.

    `null_place` is the offset and the length of the bitmap of the rows with null (None: there are
    none). `blocks` has the first value of each block and its position in `data`. `body` is the
    position of the bitmaps in `data`; offsets are relative to it, and a negative offset `-1 - row`
    stands for a single row without a bitmap.
    """

    data: bytes
    type: DataType
    source: str
    row_count: int
    value_count: int
    null_place: tuple[int, int] | None
    blocks: tuple[tuple[_Value, int], ...]
    body: int

    def positions(self, value: _Value | None) -> Numbers:
        """Return the row numbers of a value (None: null).

        Raises FormatError if the index is damaged.
        """
        with _Damage(self.source):
            position = self.null_place if value is None else self._find(_stored(value, self.type))
            if position is None:
                return np.empty(0, np.uint32)
            offset, _ = position
            if offset < 0:
                return np.array([-1 - offset], np.uint32)
            return decode_roaring(self.data, self.source, self.body + offset)[0]

    def contains(self, value: _Value | None) -> bool:
        """Return whether any row has a value (None: null).

        Raises FormatError if the index is damaged.
        """
        with _Damage(self.source):
            if value is None:
                return self.null_place is not None
            return self._find(_stored(value, self.type)) is not None

    def values(self) -> Iterator[_Value]:
        """Yield all non-null values in ascending order.

        Timestamps of more than 6 digits are in microseconds. Raises FormatError if the index is
        damaged.
        """
        with _Damage(self.source):
            for _, at in self.blocks:
                yield from (value for value, _ in self._entries(at))

    def _find(self, value: _Value) -> tuple[int, int] | None:
        wanted = _sort_key(value)
        # Only the last block with a first value at most the searched one can contain it.
        candidates = [at for first, at in self.blocks if _sort_key(first) <= wanted]
        if not candidates:
            return None
        return next((p for v, p in self._entries(candidates[-1]) if _sort_key(v) == wanted), None)

    def _entries(self, at: int) -> Iterator[tuple[_Value, tuple[int, int]]]:
        (count,) = _INT.unpack_from(self.data, at)
        at += _INT.size
        for _ in range(count):
            value, at = _decode_value(self.data, at, self.type)
            offset, length = _PLACE.unpack_from(self.data, at)
            at += _PLACE.size
            yield value, (offset, length)


def decode_bitmap_index(data: bytes, t: DataType, source: str) -> BitmapIndex | None:
    """Return the decoded bitmap index of a column; None for an unsupported type or layout.

    Raises FormatError, naming `source`, if it is damaged.
    """
    if not has_bitmap(t) or data[:1] != bytes([_VERSION]):
        return None
    with _Damage(source):
        _, row_count, value_count, has_null = _HEADER.unpack_from(data)
        at = _HEADER.size
        null_place: tuple[int, int] | None = None
        if has_null:
            null_place = _PLACE.unpack_from(data, at)
            at += _PLACE.size
        (count,) = _INT.unpack_from(data, at)
        at += _INT.size
        firsts = []
        for _ in range(count):
            value, at = _decode_value(data, at, t)
            firsts.append((value, _INT.unpack_from(data, at)[0]))
            at += _INT.size
        (size,) = _INT.unpack_from(data, at)
        start = at + _INT.size
        blocks = tuple((value, start + offset) for value, offset in firsts)
        return BitmapIndex(
            data, t, source, row_count, value_count, null_place, blocks, start + size
        )


def _decode_value(data: bytes, at: int, t: DataType) -> tuple[_Value, int]:
    if t.root in CHARACTER_ROOTS:
        (length,) = _INT.unpack_from(data, at)
        at += _INT.size
        raw = data[at : at + length]
        if length < 0 or len(raw) < length:
            raise ValueError("a text ends too late")
        return raw.decode(errors="replace"), at + length
    layout = _LAYOUTS[t.root]
    return layout.unpack_from(data, at)[0], at + layout.size


def _stored(value: _Value, t: DataType) -> _Value:
    nanos = t.root in TIMESTAMP_ROOTS and (t.precision or 0) > 6
    return value // _NANOS_PER_MICRO if nanos else value


class _Damage:
    """A context manager that turns decoding errors into a FormatError about a damaged index."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, struct.error | ValueError | IndexError):
            raise FormatError(f"bitmap index of {self._source} is damaged: {error}") from error
