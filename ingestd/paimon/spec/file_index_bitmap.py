"""Encode and read bitmap indexes of a file: the rows of each value of a column, and of null.

Values are sorted and stored in blocks, so that a lookup reads a single block; in the older version
1 they have no blocks, and no order if Java has written them. A value with one row stores the row
number instead of a bitmap. Numbers are big-endian.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-bitmap
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import Column, column_of
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, DataType
from ingestd.paimon.spec.file_index_cells import (
    INT,
    LAYOUTS,
    Cell,
    IndexDamage,
    decode_value,
    encode_value,
    has_nanos,
    null_rows,
    ranked_column,
    sort_key,
    stored_value,
)
from ingestd.paimon.spec.roaring import RowNumbers, decode_roaring, encode_roaring

DEFAULT_BLOCK_SIZE = 16 * 1024
BITMAP_VERSIONS = (1, 2)

_KIND = "bitmap"
_HEADER = struct.Struct(">Bii?")
_PLACE = struct.Struct(">ii")


def has_bitmap(t: DataType) -> bool:
    """Return whether columns of a type can have a bitmap index."""
    return (t.root in LAYOUTS and t.root != "DECIMAL") or t.root in CHARACTER_ROOTS


def encode_bitmap_index(
    column: Column, t: DataType, block_size: int = DEFAULT_BLOCK_SIZE, version: int = 2
) -> bytes:
    """Return the bitmap index of a column, in blocks of about `block_size` bytes.

    Version 1 has no blocks. Raises ValueError for a type without bitmap indexes.
    """
    if not has_bitmap(t):
        raise ValueError(f"columns of type {t} have no bitmap index")
    nulls = null_rows(column)
    null_bytes = encode_roaring(nulls)
    body = [null_bytes] if len(nulls) > 1 else []
    end = sum(map(len, body))
    entries: list[tuple[bytes, int, int]] = []
    for value, rows in _rows_by_value(column, t):
        raw = encode_value(value, t)
        if len(rows) == 1:
            entries.append((raw, -1 - int(rows[0]), -1))
            continue
        body.append(encode_roaring(rows))
        entries.append((raw, end, len(body[-1])))
        end += len(body[-1])
    head = [_HEADER.pack(version, len(column), len(entries), len(nulls) > 0)]
    null_offset = -1 - int(nulls[0]) if len(nulls) == 1 else 0
    if version == 1:
        head += [INT.pack(null_offset)] if len(nulls) else []
        return b"".join([*head, *(raw + INT.pack(offset) for raw, offset, _ in entries), *body])
    head += [_PLACE.pack(null_offset, len(null_bytes))] if len(nulls) else []
    placed = [(raw, _PLACE.pack(offset, length)) for raw, offset, length in entries]
    return b"".join([*head, *_encode_blocks(placed, block_size), *body])


def _rows_by_value(column: Column, t: DataType) -> Iterator[tuple[Cell, RowNumbers]]:
    """Yield the distinct values in ascending order, each with its row numbers."""
    ranked = ranked_column(column, t)
    order = np.argsort(ranked.ranks, kind="stable")
    starts = np.flatnonzero(np.diff(ranked.ranks[order], prepend=-1))
    groups = np.split(ranked.rows[order], starts[1:]) if len(order) else []
    yield from zip(ranked.values, groups, strict=True)


def _encode_blocks(entries: list[tuple[bytes, bytes]], block_size: int) -> list[bytes]:
    blocks: list[tuple[bytes, list[bytes]]] = []
    room = 0
    for raw, offset in entries:
        size = len(raw) + len(offset)
        if not blocks or size > room:
            blocks.append((raw, []))
            room = block_size - INT.size
        blocks[-1][1].append(raw + offset)
        room -= size
    bodies = [INT.pack(len(own)) + b"".join(own) for _, own in blocks]
    starts = np.cumsum([0, *map(len, bodies)]).tolist()
    first = [raw + INT.pack(start) for (raw, _), start in zip(blocks, starts, strict=False)]
    return [INT.pack(len(blocks)), *first, INT.pack(starts[-1]), *bodies]


@dataclass(frozen=True)
class BitmapIndex:
    """A decoded bitmap index.

    `null_offset` is the offset of the bitmap of null rows (None: no nulls). `blocks` has the first
    value of each block and the position of the block in `data`; of version 1 it has all values,
    each with its offset. `body` is the position of the bitmaps in `data`; offsets are relative to
    it, and a negative offset `-1 - row` stands for a single row without a bitmap. `source` names
    the index in errors.
    """

    data: bytes
    type: DataType
    source: str
    row_count: int
    null_offset: int | None
    blocks: tuple[tuple[Cell, int], ...]
    body: int

    def positions(self, value: Cell | None) -> RowNumbers:
        """Return the numbers of the rows that have a value (None: null).

        Raises FormatError if the index is damaged.
        """
        with IndexDamage(_KIND, self.source):
            offset = self.null_offset
            if value is not None:
                offset = self._find(stored_value(value, self.type))
            if offset is None:
                return np.empty(0, np.uint32)
            if offset < 0:
                return np.array([-1 - offset], np.uint32)
            return decode_roaring(self.data, self.source, self.body + offset)[0]

    def contains(self, value: Cell) -> bool:
        """Return whether any row has this value. Raises FormatError if the index is damaged."""
        with IndexDamage(_KIND, self.source):
            return self._find(stored_value(value, self.type)) is not None

    @property
    def has_null(self) -> bool:
        """Whether any row has null."""
        return self.null_offset is not None

    @cached_property
    def bounds(self) -> tuple[Cell, Cell] | None:
        """The smallest and the largest value; None if all are null.

        Timestamps of more than 6 digits are in microseconds. Raises FormatError if the index is
        damaged.
        """
        with IndexDamage(_KIND, self.source):
            if not self.blocks:
                return None
            if self._is_old:
                values = sorted((value for value, _ in self.blocks), key=sort_key)
                return values[0], values[-1]
            last = list(self._entries(self.blocks[-1][1]))
            return self.blocks[0][0], last[-1][0]

    def values(self) -> Iterator[Cell]:
        """Yield all distinct non-null values, in ascending order unless the index has version 1.

        Timestamps of more than 6 digits are in microseconds. Raises FormatError if the index is
        damaged.
        """
        with IndexDamage(_KIND, self.source):
            if self._is_old:
                yield from (value for value, _ in self.blocks)
                return
            for _, at in self.blocks:
                yield from (value for value, _ in self._entries(at))

    def matches(self, column: Column) -> bool:
        """Return whether a column has, in each row, the value that the index has for the row.

        Timestamps of more than 6 digits, which the index stores in microseconds, are not compared:
        the result is True. Raises FormatError if the index is damaged.
        """
        if has_nanos(self.type):
            return True
        cells: Any = column
        marked = np.zeros(len(cells), np.int64)
        for value in (None, *self.values()):
            positions = self.positions(value)
            if len(positions) and int(positions[-1]) >= len(cells):
                return False
            marked[positions] += 1
            if not _is_constant(cells.take(pa.array(positions)), value, self.type):
                return False
        return bool(np.all(marked == 1))

    @property
    def _is_old(self) -> bool:
        return self.data[0] == 1

    def _find(self, value: Cell) -> int | None:
        """Return the offset of the rows of a stored value; None if no row has it."""
        wanted = sort_key(value)
        if self._is_old:
            return next((at for first, at in self.blocks if sort_key(first) == wanted), None)
        # Only the last block with a first value at most the searched one can contain it.
        candidates = [at for first, at in self.blocks if sort_key(first) <= wanted]
        if not candidates:
            return None
        return next((p for v, p in self._entries(candidates[-1]) if sort_key(v) == wanted), None)

    def _entries(self, at: int) -> Iterator[tuple[Cell, int]]:
        (count,) = INT.unpack_from(self.data, at)
        at += INT.size
        for _ in range(count):
            value, at = decode_value(self.data, at, self.type)
            offset, _ = _PLACE.unpack_from(self.data, at)
            at += _PLACE.size
            yield value, offset


def _is_constant(cells: Any, value: Cell | None, t: DataType) -> bool:  # noqa: ANN401  (a column)
    """Return whether all cells have this value (None: null)."""
    if value is None:
        return bool(cells.null_count == len(cells))
    if value != value:
        return pc.all(pc.is_nan(cells)).as_py() is not False
    equal: Any = pc.equal(cells, column_of([value], t)[0])
    return cells.null_count == 0 and pc.all(equal).as_py() is not False


def decode_bitmap_index(data: bytes, t: DataType, source: str) -> BitmapIndex | None:
    """Return the decoded bitmap index of a column; None for an unsupported type or layout.

    Raises FormatError, naming `source`, if it is damaged.
    """
    if not has_bitmap(t) or not data or data[0] not in BITMAP_VERSIONS:
        return None
    with IndexDamage(_KIND, source):
        version, row_count, count, has_null = _HEADER.unpack_from(data)
        at, null_offset = _HEADER.size, None
        if has_null:
            (null_offset,) = INT.unpack_from(data, at)
            at += INT.size if version == 1 else _PLACE.size
        if version != 1:
            (count,) = INT.unpack_from(data, at)
            at += INT.size
        firsts = []
        for _ in range(count):
            value, at = decode_value(data, at, t)
            firsts.append((value, INT.unpack_from(data, at)[0]))
            at += INT.size
        if version != 1:
            (size,) = INT.unpack_from(data, at)
            start = at + INT.size
            firsts = [(value, start + offset) for value, offset in firsts]
            at = start + size
        return BitmapIndex(data, t, source, row_count, null_offset, tuple(firsts), at)
