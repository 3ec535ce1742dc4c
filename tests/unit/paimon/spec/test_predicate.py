from typing import Any

import pytest

from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.predicate import (
    And,
    Comparison,
    IsIn,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    columns_of,
    conjuncts,
    holds,
    like_prefix,
    matching,
    only_on,
)

import pyarrow as pa  # isort: skip

TYPES = {"a": parse_type("INT"), "s": parse_type("STRING"), "x": parse_type("DOUBLE")}
ROWS = pa.table(
    {
        "a": column_of([1, 2, None, 4], TYPES["a"]),
        "s": column_of(["ab", "a%", None, "b\nc"], TYPES["s"]),
        "x": column_of([1.0, float("nan"), None, -0.0], TYPES["x"]),
    }
)
ONE, TWO = Comparison("a", "=", 1), Comparison("s", "!=", "ab")


@pytest.mark.parametrize(
    ("predicate", "wanted"),
    [
        (ONE, [True, False, None, False]),
        (Not(ONE), [False, True, None, True]),
        (Comparison("a", ">=", 2), [False, True, None, True]),
        (Comparison("s", "<", "b"), [True, True, None, False]),
        (Comparison("x", "=", 0.0), [False, False, None, False]),
        (Comparison("x", "<", 0.0), [False, False, None, True]),
        (Comparison("x", ">", 0.0), [True, True, None, False]),
        (IsIn("a", (1, 4, 9)), [True, False, None, True]),
        (IsIn("x", (-0.0, float("nan"))), [False, True, None, True]),
        (Not(IsIn("x", (0.0, 1.0))), [False, True, None, True]),
        (Not(IsIn("a", (1,))), [False, True, None, True]),
        (IsNull("a"), [False, False, True, False]),
        (Not(IsNull("a")), [True, True, False, True]),
        (Like("s", "a%"), [True, True, None, False]),
        (Like("s", "a\\%"), [False, True, None, False]),
        (Like("s", "b_c"), [False, False, None, True]),
        (Like("s", "%"), [True, True, None, True]),
        (Like("s", "a"), [False, False, None, False]),
        (And((ONE, IsNull("x"))), [False, False, None, False]),
        (Or((ONE, IsNull("x"))), [True, False, True, False]),
        (And((IsNull("a"), TWO)), [False, False, None, False]),
    ],
)
def test_truth_has_three_values(predicate: Predicate, wanted: list[Any]) -> None:
    assert holds(predicate, ROWS, TYPES).to_pylist() == wanted
    count = sum(1 for one in wanted if one)
    assert matching(predicate, ROWS, TYPES).num_rows == count


def test_no_predicate_holds_for_all() -> None:
    assert matching(None, ROWS, TYPES) is ROWS


def test_conjunctions_are_taken_apart() -> None:
    both = And((ONE, And((TWO, IsNull("x")))))
    assert list(conjuncts(both)) == [ONE, TWO, IsNull("x")]
    assert only_on(both, frozenset({"a", "x"})) == And((ONE, IsNull("x")))
    assert only_on(both, frozenset()) is None
    assert only_on(Or((ONE, TWO)), frozenset({"a"})) is None
    assert columns_of(Not(Or((both, ONE)))) == {"a", "s", "x"}


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [("ab%", ("ab", False)), ("ab", ("ab", True)), ("a\\%b_", ("a%b", False)), ("%", ("", False))],
)
def test_patterns_begin_with_a_text(pattern: str, wanted: tuple[str, bool]) -> None:
    assert like_prefix(pattern) == wanted
