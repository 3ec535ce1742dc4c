"""Encode and read bsi indexes of a file: numbers, dates, times and decimals as bit slices.

Numbers that are not negative and the absolute values of negative ones are stored apart. Numbers of
the layout are big-endian.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-bit-slice-index-bitmap
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.bit_slices import BitSlices, decode_bit_slices, encode_bit_slices
from ingestd.paimon.spec.data_types import INTEGER_ROOTS, TIMESTAMP_ROOTS, DataType
from ingestd.paimon.spec.decimal_digits import unscaled
from ingestd.paimon.spec.file_index_cells import (
    Cell,
    IndexDamage,
    from_unscaled,
    has_nanos,
    is_short_decimal,
    present_values,
)
from ingestd.paimon.spec.roaring import RowNumbers, decode_bitmap, encode_roaring

_VERSION = 1
_KIND = "bsi"
_HEADER = struct.Struct(">Bi")
_FLAG = struct.Struct(">?")
_RANGE = struct.Struct(">Bqq")
_COUNT = struct.Struct(">i")
_ROOTS = INTEGER_ROOTS | TIMESTAMP_ROOTS | {"DATE", "TIME"}
_LEAST = np.iinfo(np.int64).min


def has_bsi(t: DataType) -> bool:
    """Return whether columns of a type can have a bsi index."""
    return t.root in _ROOTS or is_short_decimal(t)


def encode_bsi_index(column: Column, t: DataType) -> bytes | None:
    """Return the bsi index of a column; None if it has the number -2^63, which cannot be stored.

    Raises ValueError for a type without bsi indexes.
    """
    if not has_bsi(t):
        raise ValueError(f"columns of type {t} have no bsi index")
    rows, values = present_values(column, t)
    numbers = values.to_numpy(zero_copy_only=False).astype(np.int64)
    if len(numbers) and numbers.min() == _LEAST:
        return None
    negative = numbers < 0
    return b"".join(
        (
            _HEADER.pack(_VERSION, len(column)),
            *_encode_side(rows[~negative], numbers[~negative]),
            *_encode_side(rows[negative], -numbers[negative]),
        )
    )


def _encode_side(rows: RowNumbers, numbers: npt.NDArray[np.int64]) -> Sequence[bytes]:
    """Return the parts of the slices of numbers that are not negative."""
    if not len(rows):
        return (_FLAG.pack(False),)
    high = int(numbers.max())
    slices = list(encode_bit_slices(rows, numbers.astype(np.uint64), high.bit_length()))
    head = _FLAG.pack(True) + _RANGE.pack(_VERSION, 0, high)
    return (head, encode_roaring(rows), _COUNT.pack(len(slices)), *slices)


@dataclass(frozen=True)
class BsiIndex:
    """A decoded bsi index: the numbers that are not negative, and the negative numbers.

    `positive` and `negative` each consist of a base, and of the differences between the absolute
    values of the numbers and the base.
    """

    type: DataType
    row_count: int
    positive: tuple[int, BitSlices]
    negative: tuple[int, BitSlices]

    @property
    def content(self) -> object:
        """The numbers of all rows, for comparison: equal for indexes of equal columns."""
        return self.row_count, self.positive, self.negative

    @property
    def has_null(self) -> bool:
        """Whether any row has null."""
        values = len(self.positive[1].present) + len(self.negative[1].present)
        return values < self.row_count

    @cached_property
    def bounds(self) -> tuple[Cell, Cell] | None:
        """The smallest and the largest value; None if all are null."""
        numbers = [sign * number for sign, number in self._extremes()]
        if not numbers:
            return None
        low, high = min(numbers), max(numbers)
        if self.type.root == "DECIMAL":
            return from_unscaled(low, self.type), from_unscaled(high, self.type)
        return low, high

    def contains(self, value: Cell) -> bool:
        """Return whether any row has this value."""
        number = value
        if self.type.root == "DECIMAL":
            try:
                number = unscaled(value, self.type.scale or 0)
            except ValueError:
                return False
        base, slices = self.negative if number < 0 else self.positive
        return slices.contains(abs(number) - base)

    def matches(self, column: Column) -> bool:
        """Return whether a column has, in each row, the value that the index has for the row."""
        encoded = encode_bsi_index(column, self.type)
        of_column = None if encoded is None else decode_bsi_index(encoded, self.type, "the rows")
        return of_column is not None and of_column.content == self.content

    def _extremes(self) -> Sequence[tuple[int, int]]:
        sides = ((1, self.positive), (-1, self.negative))
        return [
            (sign, base + number)
            for sign, (base, slices) in sides
            for number in slices.bounds() or ()
        ]


def decode_bsi_index(data: bytes, t: DataType, source: str) -> BsiIndex | None:
    """Return the decoded bsi index of a column; None for an unsupported type or layout.

    An index of timestamps in nanoseconds, which stores microseconds, is not supported. Raises
    FormatError, naming `source`, if it is damaged.
    """
    if not has_bsi(t) or has_nanos(t) or data[:1] != bytes([_VERSION]):
        return None
    with IndexDamage(_KIND, source):
        row_count = _HEADER.unpack_from(data)[1]
        positive, at = _decode_side(data, _HEADER.size, source)
        negative, _ = _decode_side(data, at, source)
        return BsiIndex(t, row_count, positive, negative)


def _decode_side(data: bytes, at: int, source: str) -> tuple[tuple[int, BitSlices], int]:
    (given,) = _FLAG.unpack_from(data, at)
    at += _FLAG.size
    if not given:
        return (0, BitSlices(BitMap(), ())), at
    version, low, _ = _RANGE.unpack_from(data, at)
    if version != _VERSION:
        raise ValueError(f"slices of version {version}")
    present, at = decode_bitmap(data, source, at + _RANGE.size)
    (count,) = _COUNT.unpack_from(data, at)
    slices, at = decode_bit_slices(data, source, at + _COUNT.size, count)
    return (low, BitSlices(present, slices)), at
