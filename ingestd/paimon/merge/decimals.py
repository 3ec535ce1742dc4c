"""Sums and products of decimals.

Sums that stay within the precision are computed in whole arrays. Sums that may overflow, and all
products, are computed row by row, because the result in Java depends on where it overflows: the
number becomes null there, and the next value starts a new sum or product.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/aggregation/#sum
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.merge.events import RETRACT, Chosen, MergeEvents, Ops, spread, whole
from ingestd.paimon.spec.arrow import Array, Column
from ingestd.paimon.spec.row_selection import Mask

_COMPACT_DIGITS = 18
_LIMB = 32
_WORD = 64

DecimalWords = npt.NDArray[np.int64]
"""Unscaled decimals, shape (n, 2): the lower and the higher 64-bit word of each."""
Step = Callable[[int | None, int, bool], int | None]
"""Returns the new accumulator from the accumulator, a value, and whether the value is retracted.

Numbers are unscaled; None is null.
"""


def decimal_sum(column: Column, events: MergeEvents, ops: Ops) -> Column:
    """Return the sum of the non-null values of each key; retracted values are subtracted.

    `ops` (n,) are the operations of the events; values before the last SET of a key do not count.
    The sum of a key without values is null. A sum that exceeds the precision becomes null, and the
    next value begins a new sum.
    """
    array = whole(column)
    kind: Any = array.type
    chosen = Chosen.of(events, events.since_set(ops) & events.valid(array))
    words = _words(array)[events.rows[chosen.at]]
    taken_back = ops[chosen.at] == RETRACT
    present, result = chosen.present, np.zeros((events.count, 2), np.int64)
    result[present] = _limb_sums(words, taken_back, chosen)
    # Compact numbers may exceed the precision, but not 64 bits. The bound is a float, so keys near
    # it are computed exactly.
    limit = 2.0**62 if kind.precision <= _COMPACT_DIGITS else 10.0**kind.precision * (1 - 1e-9)
    doubtful = _bounds(words, chosen) >= limit
    if bool(doubtful.any()):
        step = _adding(kind.precision)
        row_by_row(words, taken_back, chosen, step, doubtful, result=result, present=present)
    return _from_words(result, present, kind)


def decimal_product(column: Column, events: MergeEvents, ops: Ops) -> Column:
    """Return the product of the non-null values of each key, divided by retracted values.

    `ops` (n,) are the operations of the events; values before the last SET of a key do not count.
    Each step is rounded half up. The product of a key without values is null. A product that
    exceeds the precision becomes null, and the next value begins a new product. Like Java, raises
    UnsupportedError for a division by zero, and for a quotient with an infinite expansion.
    """
    array = whole(column)
    kind: Any = array.type
    chosen = Chosen.of(events, events.since_set(ops) & events.valid(array))
    words = _words(array)[events.rows[chosen.at]]
    result, present = np.zeros((events.count, 2), np.int64), np.zeros(events.count, np.bool_)
    step = _multiplying(kind.precision, kind.scale)
    every = np.ones(events.count, np.bool_)
    taken_back = ops[chosen.at] == RETRACT
    row_by_row(words, taken_back, chosen, step, every, result=result, present=present)
    return _from_words(result, present, kind)


def row_by_row(
    words: DecimalWords,
    taken_back: Mask,
    chosen: Chosen,
    step: Step,
    wanted: Mask,
    *,
    result: DecimalWords,
    present: Mask,
) -> None:
    """Fold the decimals of some keys one row at a time, as Java does.

    `words` (n, 2) are the 64-bit words of the unscaled decimals of the chosen events, the lower
    word first; `taken_back` (n,) marks retractions. `step` returns the new result of a key, given
    the previous result (None: no result), a value, and whether it is retracted. `wanted` marks the
    keys to fold. `result` (keys, 2) and the mask `present` of keys with a result are updated.
    """
    recomputed = np.flatnonzero(wanted[chosen.key])
    decoded: dict[int, int | None] = {}
    rows = zip(
        chosen.key[recomputed].tolist(),
        words[recomputed].tolist(),
        taken_back[recomputed].tolist(),
        strict=True,
    )
    for key, (low, high), back in rows:
        decoded[key] = step(decoded.get(key), (high << _WORD) + low % 2**_WORD, back)
    for key in np.flatnonzero(wanted).tolist():
        value = decoded.get(key)
        present[key] = value is not None
        low = (value or 0) % 2**_WORD
        result[key] = (low - 2**_WORD if low >= 2 ** (_WORD - 1) else low, (value or 0) >> _WORD)


def _adding(precision: int) -> Step:
    limit = 2 ** (_WORD - 1) if precision <= _COMPACT_DIGITS else 10**precision

    def step(now: int | None, value: int, back: bool) -> int | None:
        total = (now or 0) + (-value if back else value)
        return total if -limit < total < limit else None

    return step


def _multiplying(precision: int, scale: int) -> Step:
    def step(now: int | None, value: int, back: bool) -> int | None:
        if now is None:
            return None if back else value
        exact = _quotient(now, value) * 10**scale if back else Fraction(now * value, 10**scale)
        rounded = int(abs(exact) + Fraction(1, 2))
        signed = rounded if exact >= 0 else -rounded
        return signed if rounded < 10**precision else None

    return step


def _quotient(now: int, value: int) -> Fraction:
    if value == 0:
        raise UnsupportedError("a product cannot take back the factor 0")
    exact = Fraction(now, value)
    rest = exact.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        raise UnsupportedError(
            f"a product cannot take back a factor: {now} / {value} has no end; set "
            "'fields.<column>.ignore-retract' = 'true'"
        )
    return exact


def _words(array: Array) -> DecimalWords:
    """Return the low and high halves of 128-bit numbers; shape (n, 2)."""
    data: Any = array.buffers()[1]
    if data is None:
        return np.zeros((len(array), 2), np.int64)
    words = np.frombuffer(data, np.int64)
    return words[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2)


def _bounds(words: DecimalWords, chosen: Chosen) -> npt.NDArray[np.float64]:
    """Return the sum of the absolute values of each key, approximately."""
    values = np.abs(words[:, 1] * 2.0**_WORD + words[:, 0].view(np.uint64))
    sums = np.add.reduceat(values, chosen.starts) if len(values) else values
    return spread(sums, chosen.present)


def _limb_sums(words: DecimalWords, taken_back: Mask, chosen: Chosen) -> DecimalWords:
    """Return 128-bit sums, computed from sums of 32-bit limbs, of the keys that have events."""
    starts = chosen.starts
    if not len(starts):
        return np.zeros((0, 2), np.int64)
    mask = 2**_LIMB - 1
    low, high = words[:, 0], words[:, 1]
    limbs = [low & mask, (low >> _LIMB) & mask, high & mask, high >> _LIMB]
    sign = np.where(taken_back, -1, 1)
    sums = [np.add.reduceat(limb * sign, starts) for limb in limbs]
    for limb_number in range(3):
        sums[limb_number + 1] += sums[limb_number] >> _LIMB
        sums[limb_number] &= mask
    return np.stack([sums[0] | (sums[1] << _LIMB), sums[2] | (sums[3] << _LIMB)], axis=1)


def _from_words(words: DecimalWords, present: Mask, kind: pa.DataType) -> Array:
    validity = pa.py_buffer(np.packbits(present, bitorder="little").tobytes())
    data = pa.py_buffer(words.tobytes())
    missing = int(len(present) - np.count_nonzero(present))
    array: Array = pa.Array.from_buffers(kind, len(present), [validity, data], missing)
    return array
