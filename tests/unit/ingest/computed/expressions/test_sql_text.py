"""Texts of SQL expressions: what is read, and what is said of what is not."""

import pytest

from ingestd.errors import ConfigError
from ingestd.ingest.computed.expressions.nodes import (
    CallNode,
    ColumnNode,
    ConstantNode,
    column_nodes,
)
from ingestd.ingest.computed.expressions.sql_text import MAX_LENGTH, read_sql
from tests.support.sql_values import values


def test_functions_keep_their_names_and_arguments() -> None:
    node = read_sql("Date_Format(ts, 'yyyy')")
    wanted = (ColumnNode("ts", 12), ConstantNode("yyyy", 16))
    assert node == CallNode("date_format", wanted, 0)


def test_names_are_quoted_both_ways_and_keep_their_letters() -> None:
    found = column_nodes(read_sql("`order no` || \"Größe\" || Plain || 'it''s' || first"))
    assert [one.name for one in found] == ["order no", "Größe", "Plain", "first"]


def test_precedence_is_that_of_sql() -> None:
    assert values("2 + 3 * 4 - 1", {}) == [13]
    node = read_sql("not a = 1 and b or c")
    assert isinstance(node, CallNode)
    assert node.function == "or"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a +", "at character 3: it cannot be parsed from '+' on"),
        ("lower(a", "at character 7"),
        ("a, b", "at character 2: it cannot be parsed from ',' on"),
        ("a; b", "not a single expression"),
        ("", "not a single expression"),
        ("a b", "ALIAS is not supported"),
        ("select 1", "SELECT is not supported"),
        ("a in (select 1)", "IN takes a list"),
        ("count(*)", "at character 1: count(*) is not a function of a row"),
        ("1 + sum(a) over ()", "WINDOW is not supported"),
        ("a.b", "'a.b' is not a column"),
        ("a[1]", "BRACKET is not supported"),
        ("a is 5", "IS must be followed by NULL, TRUE or FALSE"),
        ("cast(a as array<int>)", "unknown type ARRAY<INT>"),
        ("cast(a as decimal(39, 2))", "unknown type DECIMAL(39, 2)"),
        ("ts + interval '1' day", "INTERVAL is not supported"),
        (":x", "PLACEHOLDER is not supported"),
        ("cast(a as int format '99')", "FORMAT of CAST is not supported"),
        ("a in b", "FIELD of IN is not supported"),
        ('cast(a as text collate "C")', "unknown type TEXT COLLATE"),
        ("a rlike 'b' escape '!'", "ESCAPE must follow LIKE"),
        ("'open", "cannot be parsed"),
        ("9" * 40, "a number has at most 38 digits"),
        ("a" * (MAX_LENGTH + 1), "10001 characters, at most 10000 are allowed"),
        ("(" * 3000 + "a" + ")" * 3000, "too deep"),
    ],
)
def test_what_cannot_be_read_is_reported_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_sql(text)
    assert message in caught.value.message


TEXT_COLUMN = {"s": ("STRING", ["abc", "A%", "b", None])}
TRUTHS = {"a": ("BOOLEAN", [True, False, None]), "b": ("BOOLEAN", [False, True, None])}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("s like 'a%'", [True, False, False, None]),
        ("s not like 'a%'", [False, True, True, None]),
        ("not s like 'a%'", [False, True, True, None]),
        ("not s not like 'a%'", [True, False, False, None]),
        ("s not ilike 'a%'", [False, False, True, None]),
        ("s not like 'A!%' escape '!'", [True, False, True, None]),
        ("s not ilike 'a!%' escape '!'", [True, False, True, None]),
        ("s not rlike '^a'", [False, True, True, None]),
        ("s not in ('b', 'c')", [True, True, False, None]),
        ("s not between 'a' and 'b'", [False, True, False, None]),
        ("s not like 'a%' and s not like 'A%'", [False, False, True, None]),
        ("s is not null", [True, True, True, False]),
        ("s notnull", [True, True, True, False]),
        ("s is not distinct from 'b'", [False, False, True, False]),
    ],
)
def test_negated_predicates_are_the_opposite(text: str, wanted: list[bool | None]) -> None:
    assert values(text, TEXT_COLUMN) == wanted


def test_bounds_of_a_symmetric_between_are_in_either_order() -> None:
    columns = {"n": ("INT", [0, 1, 3, 5, None])}
    between = [False, True, True, True, None]
    assert values("n between symmetric 5 and 1", columns) == between
    assert values("n between symmetric 1 and 5", columns) == between
    assert values("n between asymmetric 5 and 1", columns) == [False] * 4 + [None]
    assert values("n not between symmetric 5 and 1", columns) == [True, False, False, False, None]


def test_is_binds_less_than_comparisons_as_in_postgresql_and_spark() -> None:
    assert values("a = b is null", TRUTHS) == [False, False, True]
    assert values("a = true is not false", TRUTHS) == [True, False, True]
    assert values("not a = b is null", TRUTHS) == [True, True, False]
