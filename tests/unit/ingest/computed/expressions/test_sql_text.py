"""Texts of SQL expressions: what is read, and what is said of what is not."""

import pytest

from ingestd.errors import ConfigError
from ingestd.ingest.computed.expressions.nodes import CallNode, ColumnNode, ConstantNode, columns_of
from ingestd.ingest.computed.expressions.sql_text import MAX_LENGTH, read_sql
from tests.support.sql_values import values


def test_functions_keep_their_names_and_arguments() -> None:
    node = read_sql("Date_Format(ts, 'yyyy')")
    wanted = (ColumnNode("ts", 12), ConstantNode("yyyy", 16))
    assert node == CallNode("date_format", wanted, 0)


def test_names_are_quoted_both_ways_and_keep_their_letters() -> None:
    found = columns_of(read_sql("`order no` || \"Größe\" || Plain || 'it''s' || first"))
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
        ("'open", "cannot be parsed"),
        ("9" * 40, "a number has at most 38 digits"),
        ("a" * (MAX_LENGTH + 1), "10001 characters, at most 10000 are allowed"),
        ("(" * 3000 + "a" + ")" * 3000, "too deep"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_sql(text)
    assert message in caught.value.message
