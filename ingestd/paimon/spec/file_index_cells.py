"""Encode, decode and order values as the bitmap and range-bitmap indexes of a file do.

Numbers are big-endian.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-bitmap
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.errors import FormatError
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, TIMESTAMP_ROOTS, DataType
from ingestd.paimon.spec.roaring import RowNumbers

INT = struct.Struct(">i")
LAYOUTS = {
    "BOOLEAN": struct.Struct(">?"),
    "TINYINT": struct.Struct(">b"),
    "SMALLINT": struct.Struct(">h"),
    **dict.fromkeys(("INT", "DATE", "TIME"), struct.Struct(">i")),
    **dict.fromkeys(("BIGINT", "TIMESTAMP", "TIMESTAMP_LTZ", "DECIMAL"), struct.Struct(">q")),
    "FLOAT": struct.Struct(">f"),
    "DOUBLE": struct.Struct(">d"),
}
"""Layouts of values of a fixed length, by the root of their type; decimals are unscaled."""
_NANOS_PER_MICRO = 1000
_DECIMAL_DIGITS = 18
Cell = Any
"""A value of a column, not null: a decimal, or as it is stored."""


class DecodedIndex(Protocol):
    """An index of a column of a file. Its methods raise FormatError if it is damaged."""

    @property
    def may_hold_null(self) -> bool:
        """Whether a row may have null; True if the index cannot exclude it."""
        ...

    @property
    def may_hold_value(self) -> bool:
        """Whether a row may have a value that is not null; True if the index cannot exclude it."""
        ...

    def may_hold(self, operator: str, values: Sequence[Cell]) -> bool:
        """Return whether `column operator value` may be true for a row and one of `values`.

        `operator` is an operator of `Comparison`. Returns True if the index cannot exclude it.
        """
        ...

    def matches(self, column: Column) -> bool:
        """Return whether this can be the index of `column`, which has all rows of the file."""
        ...


class ValueIndex(Protocol):
    """An index of a column of a file that determines which values the column has."""

    @property
    def bounds(self) -> tuple[Cell, Cell] | None:
        """The smallest and the largest value; None if all are null."""
        ...

    @property
    def has_null(self) -> bool:
        """Whether any row has null."""
        ...

    def contains(self, value: Cell) -> bool:
        """Return whether any row has this value. Raises FormatError if the index is damaged."""
        ...

    def matches(self, column: Column) -> bool:
        """Return whether a column has, in each row, the value that the index has for the row.

        Raises FormatError if the index is damaged.
        """
        ...


@dataclass(frozen=True, slots=True)
class ExactIndex:
    """A `DecodedIndex` that gives exact answers, because it is based on a `ValueIndex`.

    Its methods raise FormatError if the index is damaged.
    """

    index: ValueIndex

    @property
    def may_hold_null(self) -> bool:
        """Whether any row has null."""
        return self.index.has_null

    @property
    def may_hold_value(self) -> bool:
        """Whether any row has a value that is not null."""
        return self.index.bounds is not None

    def may_hold(self, operator: str, values: Sequence[Cell]) -> bool:
        """Return whether `column operator value` is true for some row and one of `values`."""
        return any(may_hold(self.index, operator, value) for value in values)

    def matches(self, column: Column) -> bool:
        """Return whether a column has, in each row, the value that the index has for the row."""
        return self.index.matches(column)


def may_hold(index: ValueIndex, operator: str, value: Cell) -> bool:
    """Return whether `column operator value` is true for at least one row; the answer is exact.

    `operator` is an operator of `Comparison`; a null in the column never makes it true. Floats
    compare as in Java: -0.0 precedes 0.0, and NaN is last. Raises FormatError if the index is
    damaged.
    """
    if index.bounds is None:
        return False
    if operator == "=":
        return index.contains(value)
    low, high, wanted = (sort_key(cell) for cell in (*index.bounds, value))
    if operator in ("<", "<="):
        return bool(low < wanted or (operator == "<=" and low == wanted))
    if operator in (">", ">="):
        return bool(high > wanted or (operator == ">=" and high == wanted))
    return not low == high == wanted


def is_short_decimal(t: DataType) -> bool:
    """Return whether a type is a DECIMAL of at most 18 digits, which fits in 64 bits."""
    return t.root == "DECIMAL" and (t.precision or 0) <= _DECIMAL_DIGITS


def has_nanos(t: DataType) -> bool:
    """Return whether a type is a timestamp finer than microseconds; indexes store microseconds."""
    return t.root in TIMESTAMP_ROOTS and (t.precision or 0) > 6


def sort_key(value: Cell) -> Cell:
    """Return a sort key for the order of Java: texts by their bytes, -0.0 before 0.0, NaN last."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (value != value, 0.0 if value != value else value, not str(value).startswith("-"))
    return value


def encode_value(value: Cell, t: DataType) -> bytes:
    """Return the bytes of a value in an index: fixed width, or for a text, its length and UTF-8."""
    if t.root in CHARACTER_ROOTS:
        raw: bytes = value.encode()
        return INT.pack(len(raw)) + raw
    return LAYOUTS[t.root].pack(value)


def decode_value(data: bytes, at: int, t: DataType) -> tuple[Cell, int]:
    """Return the value at the position `at`, and the position after it.

    Decimals are returned as `Decimal`. Raises ValueError or struct.error if the value is truncated.
    """
    if t.root in CHARACTER_ROOTS:
        (length,) = INT.unpack_from(data, at)
        at += INT.size
        raw = data[at : at + length]
        if length < 0 or len(raw) < length:
            raise ValueError("a text ends too late")
        return raw.decode(errors="replace"), at + length
    layout = LAYOUTS[t.root]
    (value,) = layout.unpack_from(data, at)
    return (from_unscaled(value, t) if t.root == "DECIMAL" else value), at + layout.size


def from_unscaled(number: int, t: DataType) -> Decimal:
    """Return the decimal of an unscaled number, at the scale of the type `t`."""
    return Decimal(number).scaleb(-(t.scale or 0))


def stored_value(value: Cell, t: DataType) -> Cell:
    """Return a value as an index has it: timestamps of more than 6 digits in microseconds."""
    return value // _NANOS_PER_MICRO if has_nanos(t) else value


@dataclass(frozen=True, slots=True)
class RankedColumn:
    """The values of a column by rank.

    `rows` (n,) are the numbers of the rows that are not null, `ranks` (n,) the positions of their
    values in `values`, which are distinct and ascending. Decimals are unscaled.
    """

    rows: RowNumbers
    ranks: npt.NDArray[np.int64]
    values: Sequence[Cell]


def ranked_column(column: Column, t: DataType) -> RankedColumn:
    """Return the values of a column of type `t` by rank, for an index that orders them."""
    rows, present = present_values(column, t)
    encoded = present.dictionary_encode()
    values = [_from_physical(value, t) for value in encoded.dictionary.to_pylist()]
    order = sorted(range(len(values)), key=lambda code: sort_key(values[code]))
    rank_of_code = np.empty(len(values), np.int64)
    rank_of_code[order] = np.arange(len(values))
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return RankedColumn(rows, rank_of_code[codes], [values[code] for code in order])


def null_rows(column: Column) -> RowNumbers:
    """Return the numbers of the rows with null, ascending."""
    mask: Any = column.is_null()
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False)).astype(np.uint32)


def present_values(column: Column, t: DataType) -> tuple[RowNumbers, Any]:
    """Return the numbers of the rows that are not null, and their values, an array.

    Floats are represented by the integers of their bits, so that -0.0 and 0.0 differ. Dates, times
    and timestamps are represented by integers (timestamps finer than microseconds by microseconds),
    decimals by unscaled integers.
    """
    array: Any = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    rows = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False)).astype(np.uint32)
    return rows, _physical(array.drop_null(), t)


def _physical(array: Any, t: DataType) -> Any:  # noqa: ANN401  (any type)
    if t.root in ("FLOAT", "DOUBLE"):
        return array.view(pa.int32() if t.root == "FLOAT" else pa.int64())
    if t.root in ("DATE", "TIME"):
        return array.view(pa.int32())
    if t.root == "DECIMAL":
        words = np.frombuffer(array.buffers()[1] or b"", np.int64)[::2]
        return pa.array(words[array.offset : array.offset + len(array)])
    if t.root not in TIMESTAMP_ROOTS:
        return array
    ticks = array.view(pa.int64())
    return pa.array(ticks.to_numpy() // _NANOS_PER_MICRO) if has_nanos(t) else ticks


def _from_physical(value: Cell, t: DataType) -> Cell:
    if t.root == "FLOAT":
        return struct.unpack("<f", struct.pack("<i", value))[0]
    return struct.unpack("<d", struct.pack("<q", value))[0] if t.root == "DOUBLE" else value


class IndexDamage:
    """A context manager that converts decoding errors to a FormatError about a damaged index.

    The message names the index type `kind` and the file `source`.
    """

    def __init__(self, kind: str, source: str) -> None:
        self._kind = kind
        self._source = source

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, struct.error | ValueError | IndexError):
            message = f"{self._kind} index of {self._source} is damaged: {error}"
            raise FormatError(message) from error
