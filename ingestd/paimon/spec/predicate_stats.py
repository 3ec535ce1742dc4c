"""What statistics say of a predicate: whether it may hold for a row that was never looked at.

The answer is no only if it is certain. A bound need not be a value that occurs, since texts in
statistics are cut.

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
"""Whether a leaf (its contrary, if the flag is set) may be true for some row."""

_CONTRARY: Mapping[str, str] = {
    "=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Bounds of the values of a column and its number of nulls; None is unknown."""

    low: Value | None
    high: Value | None
    null_count: int | None
    row_count: int | None


def may_match(predicate: Predicate, leaf_test: LeafTest, negated: bool = False) -> bool:
    """Return whether a predicate may be true for some row, from what is known of its leaves."""
    if isinstance(predicate, Not):
        return may_match(predicate.inner, leaf_test, not negated)
    if isinstance(predicate, And | Or):
        # The contrary of a conjunction is a disjunction of contraries, nulls included.
        every = isinstance(predicate, And) is not negated
        answers = (may_match(part, leaf_test, negated) for part in predicate.parts)
        return all(answers) if every else any(answers)
    return leaf_test(predicate, negated)


def stats_test(stats: Mapping[str, ColumnStats]) -> LeafTest:
    """Return the test of leaves by column statistics; a column without any may hold everything."""

    def test(leaf: Leaf, negated: bool) -> bool:
        found = stats.get(leaf.column)
        return found is None or _may_match_leaf(leaf, negated, found)

    return test


def _may_match_leaf(leaf: Leaf, negated: bool, stats: ColumnStats) -> bool:
    if isinstance(leaf, IsNull):
        if negated:
            return stats.null_count is None or stats.null_count != stats.row_count
        return stats.null_count != 0
    if stats.null_count is not None and stats.null_count == stats.row_count:
        return False
    if isinstance(leaf, Comparison):
        operator = _CONTRARY[leaf.operator] if negated else leaf.operator
        # NaN makes contraries of floating point comparisons true; statistics do not tell of it.
        if isinstance(leaf.value, float) and (negated or operator == "!="):
            return True
        return _compares(operator, leaf.value, stats)
    if isinstance(leaf, IsIn):
        if negated:
            return not (_is_constant(stats) and stats.low in leaf.values) or _is_float(stats.low)
        return any(_compares("=", value, stats) for value in leaf.values)
    return negated or _may_be_like(leaf, stats)


def _compares(operator: str, value: Value, stats: ColumnStats) -> bool:
    if value != value:
        return True
    low, high = stats.low, _sure_high(stats)
    if operator in ("=", ">=", ">") and high is not None and not high >= value:
        return False
    if operator in ("=", "<=", "<") and low is not None and not low <= value:
        return False
    if (operator == ">" and high == value) or (operator == "<" and low == value):
        return False
    return operator != "!=" or not (_is_constant(stats) and low == value)


def _may_be_like(leaf: Like, stats: ColumnStats) -> bool:
    prefix, exact = like_prefix(leaf.pattern)
    if exact:
        return _compares("=", prefix, stats)
    low, high = stats.low, _sure_high(stats)
    below = high is not None and high < prefix
    above = low is not None and low[: len(prefix)] > prefix
    return not (below or above)


def _sure_high(stats: ColumnStats) -> Value | None:
    """Return the upper bound, unless it may be one that Java cut wrongly.

    Cutting a text after U+D7FF, Java writes a question mark for the next code point, which
    makes the bound less than its values.
    """
    high = stats.high
    return None if isinstance(high, str) and high.endswith("?") and high != stats.low else high


def _is_constant(stats: ColumnStats) -> bool:
    """Return whether one value is all there is; cut bounds are never equal."""
    return stats.low is not None and stats.high is not None and bool(stats.low == stats.high)


def _is_float(value: Value) -> bool:
    return isinstance(value, float)
