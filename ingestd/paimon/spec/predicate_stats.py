"""Evaluate predicates on statistics: whether any row of a file may match.

The result is false only if no row can match. A bound need not be an existing value, because texts
in statistics are truncated.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#simplestats
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ingestd.paimon.spec.predicate import (
    And,
    Comparison,
    IsIn,
    IsNull,
    Leaf,
    Like,
    Not,
    Or,
    Predicate,
    Value,
    like_prefix,
)

LeafTest: TypeAlias = Callable[[Leaf, bool], bool]
"""Returns whether a leaf (its negation, if the flag is set) may be true for some row."""

CONTRARY: Mapping[str, str] = {
    "=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
}  # fmt: skip
"""The operators of the negations of comparisons."""


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Bounds of the values of a column, and its numbers of nulls and rows; None means unknown."""

    low: Value | None
    high: Value | None
    null_count: int | None
    row_count: int | None


def may_match(predicate: Predicate, leaf_test: LeafTest, negated: bool = False) -> bool:
    """Return whether a predicate may be true for some row; with `negated`, whether it may be false.

    `leaf_test` decides this for single conditions: it is called with a condition and with whether
    the condition is negated.
    """
    if isinstance(predicate, Not):
        return may_match(predicate.inner, leaf_test, not negated)
    if isinstance(predicate, And | Or):
        # The negation of a conjunction is a disjunction of negations, also with nulls.
        every = isinstance(predicate, And) is not negated
        answers = (may_match(operand, leaf_test, negated) for operand in predicate.parts)
        return all(answers) if every else any(answers)
    return leaf_test(predicate, negated)


def stats_test(stats: Mapping[str, ColumnStats]) -> LeafTest:
    """Return a function that tests a single condition (=, <, IN, IS NULL, ...) by statistics.

    The function returns whether the condition, or its negation, may be true for some row. A column
    without statistics may have any value.
    """

    def test(leaf: Leaf, negated: bool) -> bool:
        column_stats = stats.get(leaf.column)
        return column_stats is None or _may_match_leaf(leaf, negated, column_stats)

    return test


def _may_match_leaf(leaf: Leaf, negated: bool, stats: ColumnStats) -> bool:
    if isinstance(leaf, IsNull):
        if negated:
            return stats.null_count is None or stats.null_count != stats.row_count
        return stats.null_count != 0
    if stats.null_count is not None and stats.null_count == stats.row_count:
        return False
    if isinstance(leaf, Comparison):
        operator = CONTRARY[leaf.operator] if negated else leaf.operator
        return _compares(operator, leaf.value, stats)
    if isinstance(leaf, IsIn):
        if negated:
            return not (_is_constant(stats) and stats.low in leaf.values) or _is_float(stats.low)
        return any(_compares("=", value, stats) for value in leaf.values)
    return negated or _may_be_like(leaf, stats)


def _compares(operator: str, value: Value, stats: ColumnStats) -> bool:
    if isinstance(value, float) and _is_uncertain(operator, value, stats):
        return True
    low, high = stats.low, _sure_high(stats)
    if operator in ("=", ">=", ">") and high is not None and not high >= value:
        return False
    if operator in ("=", "<=", "<") and low is not None and not low <= value:
        return False
    if (operator == ">" and high == value) or (operator == "<" and low == value):
        return False
    return operator != "!=" or not (_is_constant(stats) and low == value)


def _is_uncertain(operator: str, value: float, stats: ColumnStats) -> bool:
    """Return whether bounds of floating-point numbers prove nothing about a comparison.

    A bound of zero may have either sign. In ORC files, a bound that is NaN may be wrong.
    """
    bounds = (stats.low, stats.high)
    is_nan = any(number != number for number in (value, *bounds))
    return operator == "!=" or is_nan or (value == 0 and 0 in bounds)


def _may_be_like(leaf: Like, stats: ColumnStats) -> bool:
    prefix, exact = like_prefix(leaf.pattern)
    if exact:
        return _compares("=", prefix, stats)
    low, high = stats.low, _sure_high(stats)
    below = high is not None and high < prefix
    above = low is not None and low[: len(prefix)] > prefix
    return not (below or above)


def _sure_high(stats: ColumnStats) -> Value | None:
    """Return the upper bound; None if Java may have truncated it incorrectly.

    When Java truncates a text after U+D7FF, it writes a question mark for the next code point, so
    that the bound is less than its values.
    """
    high = stats.high
    return None if isinstance(high, str) and high.endswith("?") and high != stats.low else high


def _is_constant(stats: ColumnStats) -> bool:
    """Return whether the bounds of a column prove that all its values are equal.

    The bounds of truncated texts are never equal.
    """
    return stats.low is not None and stats.high is not None and bool(stats.low == stats.high)


def _is_float(value: Value) -> bool:
    return isinstance(value, float)
