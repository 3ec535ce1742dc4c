"""Compute the 8-byte words of the BinaryRows of columns without building the rows.

A row consists of null bits, one word per field, and the variable-length values that do not fit into
their word. The words of the fixed part exist in all rows; those of the variable-length part are
computed word by word, only for the rows that have them.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#binaryrow
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.binary_row import (
    DECIMAL_RESERVED,
    FIXED_FORMATS,
    INLINE_BYTES,
    is_compact,
    null_area_size,
    ticks_per_milli,
)
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)
from ingestd.wording import counted

Words = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]
_Sizes = npt.NDArray[np.int64]
_Reader = Callable[[int, Rows | None], Words]

_HEADER_BITS = 8
_UNSIGNED: Mapping[int, npt.DTypeLike] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_CANONICAL_NAN = {4: 0x7FC00000, 8: 0x7FF8000000000000}


@dataclass(frozen=True, slots=True)
class _Field:
    """A column: its slots and, if its values have a variable length, their sizes and words.

    `sizes` are the bytes of the values in the variable-length part. `read(n, rows)` returns the
    n-th word of the values in the given rows (None: all). `slot` is the final word of the slot,
    except in rows with a size above 0, whose offset is still missing in the high half.
    """

    slot: Words
    sizes: _Sizes | None = None
    read: _Reader | None = None


@dataclass(frozen=True, slots=True)
class RowWords:
    """The BinaryRows of several rows: their lengths in bytes (without the arity), and their words.

    Iteration yields a pair for each word: its values (64-bit), and the indices of the rows that
    have it, or None if all rows do. Words of the variable-length part follow the others.
    """

    lengths: npt.NDArray[np.int64]
    fields: tuple[_Field, ...]
    null_words: tuple[Words, ...]

    def __iter__(self) -> Iterator[tuple[Words, Rows | None]]:
        """Yield each word together with the indices of the rows that have it; None for all rows."""
        for word in self.null_words:
            yield word, None
        position = np.full(len(self.lengths), 8 * (len(self.null_words) + len(self.fields)))
        for field in self.fields:
            yield self._slot(field, position), None
        for field in self.fields:
            if field.sizes is not None and field.read is not None:
                yield from _tail(field.sizes, field.read)

    @staticmethod
    def _slot(field: _Field, position: npt.NDArray[np.int64]) -> Words:
        """Return the slots of a field, whose variable-length values are at `position` in each row.

        `position` is advanced past the values.
        """
        if field.sizes is None:
            return field.slot
        offsets = np.where(field.sizes > 0, position, 0).astype(np.uint64)
        position += field.sizes
        return field.slot | offsets << np.uint64(32)


def _tail(sizes: _Sizes, read: _Reader) -> Iterator[tuple[Words, Rows | None]]:
    most, least = (int(sizes.max()), int(sizes.min())) if len(sizes) else (0, 0)
    for index in range(most // 8):
        rows = None if 8 * index < least else np.flatnonzero(sizes > 8 * index)
        yield read(index, rows), rows


def can_make_words(t: DataType) -> bool:
    """Return whether `row_words` supports a type; nested types are encoded in `binary_row`."""
    return (
        t.root in FIXED_FORMATS
        or t.root in CHARACTER_ROOTS
        or t.root in BINARY_ROOTS
        or t.root in TIMESTAMP_ROOTS
        or t.root == "DECIMAL"
    )


def row_words(columns: Sequence[Array], types: Sequence[DataType]) -> RowWords:
    """Return the words of the BinaryRows of rows, which are given as columns of equal length.

    `can_make_words` must be true for all types. Raises ValueError if there are no columns, or not
    as many types as columns.
    """
    if not columns or len(columns) != len(types):
        raise ValueError(f"{counted(len(columns), 'column')} for {len(types)} types")
    rows, arity = len(columns[0]), len(columns)
    null_words = tuple(np.zeros(rows, np.uint64) for _ in range(null_area_size(arity) // 8))
    fields = []
    for i, (column, t) in enumerate(zip(columns, types, strict=True)):
        known = column if column.type == to_arrow_type(t) else column.cast(to_arrow_type(t))
        nulls = _nulls(known)
        if nulls is not None:
            bit = i + _HEADER_BITS
            null_words[bit // 64][nulls] |= np.uint64(1 << bit % 64)
        fields.append(_field(known, t, nulls))
    lengths = np.full(rows, 8 * (len(null_words) + arity), np.int64)
    for field in fields:
        if field.sizes is not None:
            lengths += field.sizes
    return RowWords(lengths, tuple(fields), null_words)


def _nulls(column: Array) -> npt.NDArray[np.bool_] | None:
    if column.null_count == 0:
        return None
    return np.asarray(pc.is_null(column).to_numpy(zero_copy_only=False))


def _field(column: Array, t: DataType, nulls: npt.NDArray[np.bool_] | None) -> _Field:
    if t.root in CHARACTER_ROOTS or t.root in BINARY_ROOTS:
        return _bytes_field(column, nulls)
    if t.root == "DECIMAL" and not is_compact(t):
        return _wide_decimal_field(column, nulls)
    if is_compact(t):
        return _Field(_without(_compact_slot(column, t), nulls))
    ticks = ticks_per_milli(t)
    value = _values(column, np.int64)
    millis = _without((value // ticks).view(np.uint64), nulls)
    nanos = _without((value % ticks).astype(np.uint64) * np.uint64(1_000_000 // ticks), nulls)
    return _Field(nanos, np.full(len(column), 8, np.int64), lambda _, rows: _at(millis, rows))


def _at(words: Words, rows: Rows | None) -> Words:
    return words if rows is None else words[rows]


def _without(words: Words, nulls: npt.NDArray[np.bool_] | None) -> Words:
    if nulls is None:
        return words
    return np.where(nulls, np.uint64(0), words)


def _values(column: Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the value buffer of a fixed-width column; the values of null cells are arbitrary."""
    return _buffer(column, 1, dtype, len(column), column.offset)


def _buffer(
    column: Array, number: int, dtype: npt.DTypeLike, count: int, start: int
) -> npt.NDArray[Any]:
    """Return `count` items of one of the column's buffers; zeros where Arrow has no buffer."""
    data: Any = column.buffers()[number]
    if data is None or count == 0:
        return np.zeros(count, dtype)
    return np.frombuffer(data, dtype, count, start * np.dtype(dtype).itemsize)


def _compact_slot(column: Array, t: DataType) -> Words:
    if t.root == "BOOLEAN":
        return np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False)).astype(np.uint64)
    if t.root == "DECIMAL":
        return _decimal_halves(column)[:, 0]
    width = column.type.bit_width // 8
    bits = _values(column, _UNSIGNED[width]).astype(np.uint64)
    if t.root in ("FLOAT", "DOUBLE"):
        numbers = _values(column, np.float32 if width == 4 else np.float64)
        bits[np.isnan(numbers)] = _CANONICAL_NAN[width]
    return bits


def _decimal_halves(column: Array) -> Words:
    """Return the low and the high word of each decimal, shape (rows, 2)."""
    return _buffer(column, 1, np.uint64, 2 * len(column), 2 * column.offset).reshape(-1, 2)


def _wide_decimal_field(column: Array, nulls: npt.NDArray[np.bool_] | None) -> _Field:
    """Return the field of a long DECIMAL: Java's minimal big-endian bytes, left-aligned in 16."""
    halves = np.ascontiguousarray(_decimal_halves(column))
    if nulls is not None:
        halves = np.where(nulls[:, None], np.uint64(0), halves)
    big_endian = halves.view(np.uint8).reshape(-1, 16)[:, ::-1]
    sizes = _significant_bytes(big_endian)
    shifted = np.zeros((len(column), DECIMAL_RESERVED), np.uint8)
    for size in np.unique(sizes):
        rows = sizes == size
        shifted[rows, :size] = big_endian[rows, 16 - size :]
    if nulls is not None:
        sizes = np.where(nulls, 0, sizes)
    words = shifted.view(np.uint64).reshape(-1, 2)
    reserved = np.full(len(column), DECIMAL_RESERVED, np.int64)
    return _Field(
        sizes.astype(np.uint64),
        reserved,
        lambda index, rows: _at(np.ascontiguousarray(words[:, index]), rows),
    )


def _significant_bytes(big_endian: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Return the length in bytes of the shortest two's complement form of 16-byte numbers."""
    fill = (big_endian[:, :1].view(np.int8) >> 7).view(np.uint8)
    redundant = (big_endian[:, :-1] == fill) & ((big_endian[:, 1:] ^ fill) < 0x80)
    leading = np.logical_and.accumulate(redundant, axis=1).sum(axis=1)
    return np.asarray(16 - leading, np.int64)


def _bytes_field(column: Array, nulls: npt.NDArray[np.bool_] | None) -> _Field:
    if len(column) == 0:
        return _Field(np.zeros(0, np.uint64))
    offsets = _buffer(column, 1, np.int32, len(column) + 1, column.offset)
    first, last = int(offsets[0]), int(offsets[-1])
    text = np.zeros(last - first + 8, np.uint8)
    text[:-8] = _buffer(column, 2, np.uint8, last - first, first)
    starts = offsets[:-1].astype(np.int64) - first
    lengths = np.diff(offsets).astype(np.int64)
    if nulls is not None:
        lengths = np.where(nulls, 0, lengths)
    # Unaligned 8-byte words of the text from any byte on.
    window: Words = np.ndarray((len(text) - 7,), "<u8", text, strides=(1,))

    def read(index: int, rows: Rows | None) -> Words:
        start, length = (starts, lengths) if rows is None else (starts[rows], lengths[rows])
        present = np.clip(length - 8 * index, 0, 8)
        word = window[np.minimum(start + 8 * index, len(window) - 1)]
        shift = (np.uint64(8) * (8 - present).astype(np.uint64)) & np.uint64(63)
        kept = word & (np.uint64(0xFFFFFFFFFFFFFFFF) >> shift)
        return np.where(present > 0, kept, np.uint64(0))

    inline = read(0, None) | (lengths.astype(np.uint64) | np.uint64(0x80)) << np.uint64(56)
    long = lengths > INLINE_BYTES
    slot = _without(np.where(long, lengths.astype(np.uint64), inline), nulls)
    return _Field(slot, np.where(long, (lengths + 7) // 8 * 8, 0), read)
