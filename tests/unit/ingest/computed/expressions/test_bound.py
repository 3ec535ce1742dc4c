"""Expressions bound to types: results have types, and errors name the position."""

import pytest

from ingestd.errors import ConfigError
from ingestd.ingest.computed.expressions.bound import NAMES
from ingestd.ingest.computed.expressions.expression import read_expression
from ingestd.paimon.spec.data_types import parse_type
from tests.support.sql_values import Columns, type_of, values

COLUMNS: Columns = {
    "i": ("INT", [1]),
    "b": ("BIGINT", [2]),
    "d": ("DECIMAL(10, 2)", [None]),
    "f": ("DOUBLE", [1.5]),
    "s": ("STRING", ["x"]),
    "o": ("BOOLEAN", [True]),
    "t": ("TIMESTAMP(6)", [None]),
    "w": ("DECIMAL(38, 18)", [None]),
}


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("cast(d as decimal(10,2)) * 1.19", "DECIMAL(14, 4)"),
        ("i + 1", "INT"),
        ("i + b", "BIGINT"),
        ("d + i", "DECIMAL(13, 2)"),
        ("d / 3", "DECIMAL(14, 6)"),
        ("i / 2", "DOUBLE"),
        ("d * f", "DOUBLE"),
        ("w + w", "DECIMAL(38, 18)"),
        ("round(d, 1)", "DECIMAL(10, 1)"),
        ("case when o then 1 else 2.5 end", "DECIMAL(11, 1)"),
        ("coalesce(null, d, i)", "DECIMAL(12, 2)"),
        ("concat(i, s)", "STRING"),
        ("i > 1 and s like 'a%'", "BOOLEAN"),
        ("date_trunc('day', t)", "TIMESTAMP(6)"),
        ("now()", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        ("cast(s as varchar(3))", "VARCHAR(3)"),
        ("null", "NULL"),
        ("missing", "NULL"),
        ("missing + 1", "INT"),
        ("coalesce(missing, s)", "STRING"),
    ],
)
def test_results_have_types(text: str, data_type: str) -> None:
    assert type_of(text, COLUMNS) == data_type


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 + lwer(s)", "at character 5: unknown function 'lwer'; did you mean 'lower'?"),
        ("zzzz(s)", "unknown function 'zzzz'; known: abs, "),
        ("lower(s, s)", "lower takes 1 arguments, not 2"),
        ("coalesce()", "coalesce takes at least 1 arguments, not 0"),
        ("now(1)", "now takes 0 arguments"),
        ("to_date()", "to_date takes 1 arguments"),
        ("substring(s, 'a')", "second argument of substring must be a whole number"),
        ("date_format(t, 'qqq')", "'qqq' is not supported"),
        ("s rlike '('", "pattern '(' cannot be used"),
        (f"s rlike '{'.{1000}' * 900}'", "...' cannot be used: Invalid regular expression"),
        ("regexp_replace(s, 'a', '\\2')", "cannot be used: Invalid replacement"),
        ("regexp_replace(s, 'a', 'b\\')", "cannot be used: Invalid replacement"),
        ("s like 'a!' escape '!'", "must be followed by %, _ or itself"),
        ("cast('x' as int)", "'x' is not a valid INT"),
        ("1 + true", "+ does not take INT, BOOLEAN"),
    ],
)
def test_mistakes_that_need_no_types_are_reported_when_the_text_is_read(
    text: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_expression(text)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i + s", "at character 1: + does not take INT, STRING; add a CAST"),
        ("o and i", "AND does not take BOOLEAN, INT"),
        ("i = s", "= does not take INT, STRING"),
        ("upper(i)", "at character 1: upper does not take INT"),
        ("year(s)", "year does not take STRING"),
        ("case when i then 1 end", "a condition is INT, not BOOLEAN"),
        ("case when o then 1 else 'x' end", "CASE does not take"),
        ("t > 'soon'", "'soon' is not a valid TIMESTAMP(6)"),
        ("w * w", "too many digits; CAST one of them to fewer"),
        ("cast(o as date)", "BOOLEAN cannot be cast to DATE"),
        ("f % 2", "% takes exact numbers"),
    ],
)
def test_types_that_do_not_go_together_are_reported(text: str, message: str) -> None:
    types = {name: parse_type(kind) for name, (kind, _) in COLUMNS.items()}
    with pytest.raises(ConfigError) as caught:
        read_expression(text).type_with(types)
    assert message in caught.value.message


def test_what_is_not_known_yet_is_judged_as_far_as_it_can_be() -> None:
    expression = read_expression("case when a > 1 then lower(b) else 'x' end")
    assert expression.type_with({}) is None
    with pytest.raises(ConfigError, match="lower does not take INT"):
        expression.type_with({"b": parse_type("INT")})


def test_equal_numbers_of_other_types_are_not_mixed_up() -> None:
    assert type_of("1", {}) == "INT"
    assert type_of("1.0", {}) == "DECIMAL(2, 1)"
    assert type_of("true", {}) == "BOOLEAN"
    assert values("1", {}) == [1]


def test_all_functions_have_names_for_people() -> None:
    assert {"coalesce", "now", "to_date", "substring", "year"} <= set(NAMES)
    assert "+" not in NAMES
