"""Comparisons of Arrow arrays of one type, with the order of floating-point numbers of SQL.

As in PostgreSQL and Spark, NaN is equal to itself and greater than all other numbers, and -0.0 is
equal to 0.0. In Arrow, comparisons with NaN are false.
"""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import Values


def equal(left: Values, right: Values) -> Values:
    """Return whether the values of each row are equal; null if one of them is null.

    NaN is equal to NaN, and -0.0 to 0.0.
    """
    return _with_nan(pc.equal, left, right, pc.and_)


def not_equal(left: Values, right: Values) -> Values:
    """Return whether the values of each row differ; null if one of them is null.

    NaN is equal to NaN, and -0.0 to 0.0.
    """
    return pc.invert(equal(left, right))


def less(left: Values, right: Values) -> Values:
    """Return whether the left value of each row is less; null if one of them is null.

    NaN is equal to NaN and greater than all other numbers, and -0.0 is equal to 0.0.
    """
    return _with_nan(pc.less, left, right, lambda first, second: pc.and_(pc.invert(first), second))


def less_equal(left: Values, right: Values) -> Values:
    """Return whether the left value of each row is at most the right; null if one is null.

    NaN is equal to NaN and greater than all other numbers, and -0.0 is equal to 0.0.
    """
    return pc.invert(less(right, left))


def greater(left: Values, right: Values) -> Values:
    """Return whether the left value of each row is greater; null if one of them is null.

    NaN is equal to NaN and greater than all other numbers, and -0.0 is equal to 0.0.
    """
    return less(right, left)


def greater_equal(left: Values, right: Values) -> Values:
    """Return whether the left value of each row is at least the right; null if one is null.

    NaN is equal to NaN and greater than all other numbers, and -0.0 is equal to 0.0.
    """
    return pc.invert(less(left, right))


def _with_nan(
    compare: Callable[[Values, Values], Values],
    left: Values,
    right: Values,
    holds: Callable[[Values, Values], Values],
) -> Values:
    """Compare, and correct rows with NaN: `holds` takes the masks of NaN of both sides."""
    result: Values = compare(left, right)
    if not pa.types.is_floating(left.type):
        return result
    first, second = pc.is_nan(left), pc.is_nan(right)
    if not (pc.any(first).as_py() or pc.any(second).as_py()):
        return result
    return pc.or_(result, holds(first, second))
