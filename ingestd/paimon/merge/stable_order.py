"""A stable sort of rows by several numbers.

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

Places = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]

_WORD = 64
_RUN_ROWS = 1024
"""Runs of at least this many rows on average are merged instead of sorted."""


@dataclass(frozen=True, slots=True)
class _Codes:
    """Numbers of at most this many bits."""

    values: npt.NDArray[np.uint64]
    bits: int

    def before(self, lower: "_Codes") -> "_Codes":
        """Return both codes packed into one number."""
        if not self.bits:
            return lower
        shifted = self.values << np.uint64(lower.bits)
        return _Codes(shifted | lower.values, self.bits + lower.bits)


def stable_order(ranks: Sequence[Numbers]) -> Places:
    """Return row positions ordered by `ranks`, the most significant first (at least one)."""
    if not len(ranks[0]):
        return np.empty(0, np.int64)
    if len(ranks) == 1 and _stands_in_runs(ranks[0]):
        return np.argsort(ranks[0], kind="stable")
    codes = _fused(ranks)
    order = _by_one(codes[0])
    return order if len(codes) == 1 else _within_ties(order, [code.values for code in codes])


def places_by_number(numbers: Numbers) -> Iterator[tuple[int, Places]]:
    """Yield each distinct number, ascending, with its positions in order."""
    order = np.argsort(numbers, kind="stable")
    borders = np.flatnonzero(np.diff(numbers[order])) + 1
    for mine in np.split(order, borders) if len(order) else ():
        yield int(numbers[mine[0]]), mine


def _fused(ranks: Sequence[Numbers]) -> list[_Codes]:
    """Return as few numbers as possible that order rows like `ranks`."""
    fused: list[_Codes] = []
    for rank in ranks:
        codes = _from_zero(rank)
        if fused and fused[-1].bits + codes.bits <= _WORD:
            fused[-1] = fused[-1].before(codes)
        else:
            fused.append(codes)
    return fused


def _from_zero(rank: Numbers) -> _Codes:
    low, high = int(rank.min()), int(rank.max())
    wide = rank if rank.dtype == np.uint64 else rank.astype(np.int64, copy=False).view(np.uint64)
    # Numbers wrap around at 64 bits, so this is right for negative numbers as well.
    return _Codes(wide - np.uint64(low % 2**_WORD), (high - low).bit_length())


def _by_one(codes: _Codes) -> Places:
    values, count = codes.values, len(codes.values)
    place_bits = (count - 1).bit_length()
    if codes.bits + place_bits > _WORD or _stands_in_runs(values):
        return np.argsort(values, kind="stable")
    placed = values << np.uint64(place_bits) | np.arange(count, dtype=np.uint64)
    placed.sort()
    return (placed & np.uint64((1 << place_bits) - 1)).view(np.int64)


def _stands_in_runs(numbers: Numbers) -> bool:
    falls = int(np.count_nonzero(numbers[1:] < numbers[:-1]))
    return falls <= len(numbers) // _RUN_ROWS


def _within_ties(order: Places, codes: Sequence[Numbers]) -> Places:
    """Return the order with rows of equal first numbers ordered by the other numbers."""
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
    again = [one.values for one in _fused([groups[at], *(numbers[rows] for numbers in others)])]
    inner = np.lexsort(again[::-1]) if len(again) > 1 else np.argsort(again[0], kind="stable")
    order[at] = rows[inner]
    return order


def _falls(order: Places, at: Places, others: Sequence[Numbers]) -> Places:
    """Return the positions of the order at which a row is less than the one before it."""
    left, right = order[at - 1], order[at]
    equal, less = np.ones(len(at), np.bool_), np.zeros(len(at), np.bool_)
    for numbers in others:
        before, here = numbers[left], numbers[right]
        less |= equal & (here < before)
        equal &= here == before
    return at[less]
