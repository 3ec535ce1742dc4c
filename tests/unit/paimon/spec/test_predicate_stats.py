from typing import Any

import pytest

from ingestd.paimon.spec.predicate import And, Comparison, IsIn, IsNull, Like, Not, Or, Predicate
from ingestd.paimon.spec.predicate_stats import ColumnStats, may_match, stats_test

STATS = {
    "a": ColumnStats(3, 7, 0, 10),
    "one": ColumnStats(5, 5, 2, 10),
    "s": ColumnStats("ba", "bz", 1, 10),
    "x": ColumnStats(1.0, 1.0, 0, 10),
    "zero": ColumnStats(0.0, 0.0, 0, 10),
    "nan": ColumnStats(1.0, float("nan"), 0, 10),
    "nulls": ColumnStats(None, None, 10, 10),
    "open": ColumnStats(None, None, None, 10),
    "cut": ColumnStats("a\ud7ff", "a?", 0, 10),
}


def comparison(column: str, operator: str, value: Any) -> Comparison:
    return Comparison(column, operator, value)


@pytest.mark.parametrize(
    "impossible",
    [
        comparison("a", "=", 2),
        comparison("a", "=", 8),
        comparison("a", "<", 3),
        comparison("a", "<=", 2),
        comparison("a", ">", 7),
        comparison("a", ">=", 8),
        Not(comparison("a", "<=", 7)),
        comparison("one", "!=", 5),
        Not(comparison("one", "=", 5)),
        Not(IsIn("one", (4, 5))),
        IsIn("a", (1, 2, 8)),
        IsNull("a"),
        Not(IsNull("nulls")),
        comparison("nulls", "=", 1),
        comparison("nulls", "!=", 1),
        Not(Like("nulls", "x%")),
        Like("s", "c%"),
        Like("s", "az%"),
        Like("s", "bzz"),
        And((comparison("a", "=", 4), IsNull("a"))),
        comparison("x", ">", 1.0),
        Not(comparison("x", ">=", 0.0)),
        comparison("zero", "=", 1.0),
        Or((comparison("a", "=", 1), IsNull("a"))),
        Not(Or((Not(IsNull("a")), comparison("open", "=", 1)))),
    ],
)
def test_what_cannot_be_is_known(impossible: Predicate) -> None:
    assert not may_match(impossible, stats_test(STATS))


@pytest.mark.parametrize(
    "possible",
    [
        comparison("a", "=", 3),
        comparison("a", "<=", 3),
        comparison("a", ">=", 7),
        comparison("a", "!=", 3),
        comparison("one", "=", 5),
        Not(comparison("a", "=", 5)),
        IsIn("a", (1, 5)),
        Not(IsIn("a", (3, 7))),
        IsNull("one"),
        IsNull("open"),
        Not(IsNull("open")),
        comparison("open", ">", 5),
        comparison("unknown", "=", 5),
        Like("s", "b%"),
        Like("s", "bab%"),
        Like("s", "%z"),
        Not(Like("s", "b%")),
        comparison("x", "!=", 1.0),
        comparison("zero", ">", -0.0),
        comparison("nan", "=", 5.0),
        comparison("nan", "<", 5.0),
        comparison("x", "=", float("nan")),
        comparison("cut", ">", "a@"),
        And((comparison("a", "=", 4), comparison("open", "=", 1))),
        Or((comparison("a", "=", 1), comparison("a", "=", 4))),
        Not(And((comparison("a", "=", 4), IsNull("a")))),
    ],
)
def test_what_may_be_is_not_ruled_out(possible: Predicate) -> None:
    assert may_match(possible, stats_test(STATS))
