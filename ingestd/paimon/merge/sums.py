"""The aggregate functions sum and product.

Integers wrap around as in Java. Floating-point numbers are added one by one in the order of the
events, so the result equals Java's to the last bit.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/aggregation/#sum
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.merge.decimals import decimal_product, decimal_sum
from ingestd.paimon.merge.events import RETRACT, Chosen, MergeEvents, Ops, spread, whole
from ingestd.paimon.spec.arrow import Array, Column
from ingestd.paimon.spec.row_selection import Indices, Mask

_LONG_KEY = 64
"""A key with at least this many events is folded by itself, not together with other keys."""

Numbers = npt.NDArray[Any]
_Reduce = Callable[[Numbers, Numbers, Indices], Numbers]
"""Returns one number per key, given values, a mask of the retracted values, and the position of the
first value of each key.
"""


def total(column: Column, events: MergeEvents, ops: Ops) -> Column:
    """Return the sum of the non-null values of each key; retracted values are subtracted.

    `ops` (n,) are the operations of the events; values before the last SET of a key do not count.
    The sum of a key without values is null.
    """
    if pa.types.is_decimal(column.type):
        return decimal_sum(column, events, ops)
    return _reduced(column, events, ops, _sums)


def product(column: Column, events: MergeEvents, ops: Ops) -> Column:
    """Return the product of the non-null values of each key, divided by retracted values.

    `ops` (n,) are the operations of the events; values before the last SET of a key do not count.
    The product of a key without values is null. Raises UnsupportedError if an integer or a decimal
    is divided by zero, or if a quotient of decimals has no finite expansion.
    """
    if pa.types.is_decimal(column.type):
        return decimal_product(column, events, ops)
    return _reduced(column, events, ops, _products)


def _reduced(column: Column, events: MergeEvents, ops: Ops, reduce: _Reduce) -> Column:
    array = whole(column)
    counts = events.since_set(ops) & events.valid(array)
    if reduce is _products:
        counts &= ~_leading_divisions(events, ops, counts)
    chosen = Chosen.of(events, counts)
    filled: Any = array.fill_null(0) if array.null_count else array
    values = filled.to_numpy()[events.rows[chosen.at]]
    present = chosen.present
    folded = reduce(values, ops[chosen.at] == RETRACT, chosen.starts)
    cells: Array = pa.array(spread(folded, present), column.type, mask=~present)
    return cells


def _leading_divisions(events: MergeEvents, ops: Ops, counts: Mask) -> Mask:
    """Return a mask of retracted values without an earlier value that they could divide."""
    divides: Mask = counts & (ops == RETRACT)
    if not bool(divides.any()):
        return divides
    first = events.first(counts & ~divides)[events.key]
    leading: Mask = divides & ((first < 0) | (np.arange(len(ops)) < first))
    return leading


def _sums(values: Numbers, taken_back: Numbers, starts: Indices) -> Numbers:
    if bool(taken_back.any()):
        values = np.where(taken_back, -values, values)
    with np.errstate(all="ignore"):
        if values.dtype.kind == "f":
            return fold_left(np.add, values, starts)
        if not len(starts):
            return values[:0]
        return np.add.reduceat(values, starts).astype(values.dtype)


def _products(values: Numbers, taken_back: Numbers, starts: Indices) -> Numbers:
    with np.errstate(all="ignore"):
        if bool(taken_back.any()):
            return _with_divisions(values, taken_back, starts)
        if values.dtype.kind == "f":
            return fold_left(np.multiply, values, starts)
        if not len(starts):
            return values[:0]
        return np.multiply.reduceat(values, starts).astype(values.dtype)


def _with_divisions(values: Numbers, taken_back: Numbers, starts: Indices) -> Numbers:
    """Fold one event of each key at a time, because division does not commute."""
    sizes = np.diff(np.append(starts, len(values)))
    result = values[starts].copy()
    for step in range(1, int(sizes.max(initial=0))):
        unfinished = np.flatnonzero(sizes > step)
        at = starts[unfinished] + step
        now, divides = result[unfinished], taken_back[at]
        divisor = np.where(divides, values[at], values.dtype.type(1))
        factor = np.where(divides, values.dtype.type(1), values[at])
        result[unfinished] = _quotient(now, divisor) * factor
    return result


def _quotient(now: Numbers, divisor: Numbers) -> Numbers:
    if now.dtype.kind == "f":
        return now / divisor
    if bool((divisor == 0).any()):
        raise UnsupportedError("a product cannot take back the factor 0")
    # Java truncates towards zero; the smallest integer divided by -1 wraps around to itself.
    cut = now // divisor
    quotient: Numbers = cut + ((cut * divisor != now) & ((now < 0) != (divisor < 0)))
    return quotient


def fold_left(function: np.ufunc, values: Numbers, starts: Indices) -> Numbers:
    """Fold the values of each key with a binary function, strictly from left to right.

    `starts` (keys,) are the indices of the first value of each key. NumPy's `reduceat` groups
    values differently, which changes floating-point results.
    """
    sizes = np.diff(np.append(starts, len(values)))
    result: Numbers = values[starts].copy()
    short = sizes < _LONG_KEY
    for step in range(1, int(sizes[short].max(initial=1))):
        unfinished = np.flatnonzero(short & (sizes > step))
        result[unfinished] = function(result[unfinished], values[starts[unfinished] + step])
    for number in np.flatnonzero(~short).tolist():
        start = int(starts[number])
        own = values[start : start + int(sizes[number])]
        result[number] = function.accumulate(own)[-1]
    return result
