"""The order of rows by key, and stable sorts by several numbers.

Numeric keys compare by value, strings and binary keys by their bytes.

As many of a row's numbers as fit are packed into 64 bits. If the row's position fits as well, an
unstable sort of the packed numbers gives the stable order, and is several times faster than a
stable sort. Rows that consist of a few sorted runs are merged.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/#overview
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.merge.text_ranks import text_ranks
from ingestd.paimon.spec.arrow import Array, Column, fold_zeros
from ingestd.paimon.spec.float_order import float_codes

Ranks = npt.NDArray[Any]
"""Ranks that compare like the values of a column."""
Positions = npt.NDArray[np.int64]
"""Row positions in a table, from 0."""

_WORD = 64
_RUN_ROWS = 1024
"""Runs of at least this many rows on average are merged instead of sorted."""


@dataclass(frozen=True, slots=True)
class SortedKeys:
    """Rows grouped by key.

    `order` (n,) holds row positions by key, from oldest to newest within a key; `first` (n,) marks
    the positions of `order` at which a key begins.
    """

    order: Positions
    first: npt.NDArray[np.bool_]

    @property
    def last(self) -> npt.NDArray[np.bool_]:
        """A mask (n,) of the positions of `order` at which a key ends."""
        if not len(self.first):
            return self.first
        return np.append(self.first[1:], True)


def key_order(table: pa.Table, key_columns: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return row positions ordered by key; rows of one key keep their order.

    Raises ValueError without key columns, or if a key column has nulls or a type that cannot be a
    key.
    """
    return sort_keys(table, key_columns).order


def sort_keys(
    table: pa.Table,
    key_columns: Sequence[str],
    sequence: npt.NDArray[np.int64] | None = None,
) -> SortedKeys:
    """Sort the rows of a table by key, sequence number and row position.

    `sequence` (rows,) are the sequence numbers (None: all equal). Raises ValueError without key
    columns, or if a key column has nulls or a type that cannot be a key.
    """
    ranks = [rank for name in key_columns for rank in column_ranks(table.column(name))]
    if not ranks:
        raise ValueError("rows cannot be sorted without key columns")
    falls = sequence is not None and bool(np.any(sequence[1:] < sequence[:-1]))
    order = stable_order([*ranks, sequence] if sequence is not None and falls else ranks)
    return SortedKeys(order, _starts([rank[order] for rank in ranks]))


def is_key_sorted(table: pa.Table, key_columns: Sequence[str]) -> bool:
    """Return whether each row has a greater key than the row before it.

    Raises ValueError if a key column has nulls or a type that cannot be a key.
    """
    ranks = [rank for name in key_columns for rank in column_ranks(table.column(name))]
    greater = np.zeros(max(table.num_rows - 1, 0), bool)
    equal = ~greater
    for rank in ranks:
        greater |= equal & (rank[1:] > rank[:-1])
        equal &= rank[1:] == rank[:-1]
    return bool(greater.all())


def _starts(ranks: Sequence[Ranks]) -> npt.NDArray[np.bool_]:
    first = np.zeros(len(ranks[0]), bool)
    first[:1] = True
    for rank in ranks:
        first[1:] |= rank[1:] != rank[:-1]
    return first


def column_ranks(column: Column) -> list[Ranks]:
    """Return arrays (rows,) of ranks that order a column, the most significant array first.

    Raises ValueError if the column has nulls or a type that cannot be a key.
    """
    array = _whole(column)
    if array.null_count:
        raise ValueError("a key column has nulls")
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return text_ranks(array)
    if pa.types.is_decimal128(kind):
        return _decimal_ranks(array)
    if pa.types.is_floating(kind):
        return [float_codes(fold_zeros(array).to_numpy())]
    if pa.types.is_boolean(kind):
        return [array.cast(pa.uint8()).to_numpy()]
    if pa.types.is_integer(kind):
        return [array.to_numpy()]
    if pa.types.is_temporal(kind):
        return [array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_numpy()]
    raise ValueError(f"a column of type {kind} cannot be a key")


def _whole(column: Column) -> Array:
    if isinstance(column, pa.Array):
        return column
    # Text of more than 2 GiB does not fit into one array and stays in chunks.
    whole: Any = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        raise ValueError("a key column has more text than one array can hold")
    array: Array = whole
    return array


def _decimal_ranks(array: Array) -> list[Ranks]:
    """Return arrays by which decimals sort: their high and low 64 bits, or one for all bits.

    One array is enough for a precision of at most 18 digits.
    """
    kind: Any = array.type
    data: Any = array.buffers()[1]
    words = np.frombuffer(data, np.int64)
    words = words[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2)
    low = np.ascontiguousarray(words[:, 0])
    if kind.precision <= 18:
        return [low]
    return [np.ascontiguousarray(words[:, 1]), low.view(np.uint64)]


@dataclass(frozen=True, slots=True)
class _Codes:
    """Ranks from 0, of at most `bits` bits."""

    values: npt.NDArray[np.uint64]
    bits: int

    def before(self, lower: "_Codes") -> "_Codes":
        """Return these codes packed with the less significant codes `lower`, one number per row."""
        if not self.bits:
            return lower
        shifted = self.values << np.uint64(lower.bits)
        return _Codes(shifted | lower.values, self.bits + lower.bits)


def stable_order(ranks: Sequence[Ranks]) -> Positions:
    """Return row positions ordered by arrays of ranks, of which the first is the most significant.

    Rows with equal ranks keep their order. At least one array is required.
    """
    if not len(ranks[0]):
        return np.empty(0, np.int64)
    if len(ranks) == 1 and _is_mostly_sorted(ranks[0]):
        return np.argsort(ranks[0], kind="stable")
    codes = _fused(ranks)
    order = _by_one(codes[0])
    return order if len(codes) == 1 else _within_ties(order, [code.values for code in codes])


def positions_by_number(numbers: Ranks) -> Iterator[tuple[int, Positions]]:
    """Yield each distinct number, ascending, with its positions in order."""
    order = np.argsort(numbers, kind="stable")
    borders = np.flatnonzero(np.diff(numbers[order])) + 1
    for positions in np.split(order, borders) if len(order) else ():
        yield int(numbers[positions[0]]), positions


def _fused(ranks: Sequence[Ranks]) -> list[_Codes]:
    """Return as few codes as possible that order rows like `ranks`."""
    fused: list[_Codes] = []
    for rank in ranks:
        codes = _from_zero(rank)
        if fused and fused[-1].bits + codes.bits <= _WORD:
            fused[-1] = fused[-1].before(codes)
        else:
            fused.append(codes)
    return fused


def _from_zero(rank: Ranks) -> _Codes:
    low, high = int(rank.min()), int(rank.max())
    wide = rank if rank.dtype == np.uint64 else rank.astype(np.int64, copy=False).view(np.uint64)
    # Ranks wrap around at 64 bits, so this is right for negative numbers as well.
    return _Codes(wide - np.uint64(low % 2**_WORD), (high - low).bit_length())


def _by_one(codes: _Codes) -> Positions:
    values, count = codes.values, len(codes.values)
    place_bits = (count - 1).bit_length()
    if codes.bits + place_bits > _WORD or _is_mostly_sorted(values):
        return np.argsort(values, kind="stable")
    placed = values << np.uint64(place_bits) | np.arange(count, dtype=np.uint64)
    placed.sort()
    return (placed & np.uint64((1 << place_bits) - 1)).view(np.int64)


def _is_mostly_sorted(numbers: Ranks) -> bool:
    falls = int(np.count_nonzero(numbers[1:] < numbers[:-1]))
    return falls <= len(numbers) // _RUN_ROWS


def _within_ties(order: Positions, codes: Sequence[Ranks]) -> Positions:
    """Order rows with equal first codes by the other codes, in place; return the order."""
    first, others = codes[0][order], codes[1:]
    same = np.append(False, first[1:] == first[:-1])
    falls = _falls(order, np.flatnonzero(same), others)
    if not len(falls):
        return order
    groups = np.cumsum(~same)
    mixed = np.zeros(int(groups[-1]) + 1, np.bool_)
    mixed[groups[falls]] = True
    at = np.flatnonzero(mixed[groups])
    rows = order[at]
    again = [code.values for code in _fused([groups[at], *(numbers[rows] for numbers in others)])]
    inner = np.lexsort(again[::-1]) if len(again) > 1 else np.argsort(again[0], kind="stable")
    order[at] = rows[inner]
    return order


def _falls(order: Positions, at: Positions, others: Sequence[Ranks]) -> Positions:
    """Return those of the positions `at` of `order` whose row is less than the row before it."""
    left, right = order[at - 1], order[at]
    equal, less = np.ones(len(at), np.bool_), np.zeros(len(at), np.bool_)
    for numbers in others:
        before, here = numbers[left], numbers[right]
        less |= equal & (here < before)
        equal &= here == before
    return at[less]
