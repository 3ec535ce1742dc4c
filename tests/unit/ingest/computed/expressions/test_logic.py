"""Comparisons and conditions with three values."""

from typing import Any

import pytest

from ingestd.errors import ConfigError
from tests.support.sql_values import FAILED, Columns, values

COLUMNS: Columns = {
    "a": ("INT", [0, 2, None]),
    "d": ("DECIMAL(5, 2)", [0, 2, 3]),
    "s": ("STRING", ["a_b", "A%", None]),
    "t": ("TIMESTAMP(3)", [0, 86_400_000, None]),
    "o": ("BOOLEAN", [True, False, None]),
    "x": ("DOUBLE", [-0.0, 0.0, None]),
}


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("a = d", [True, True, None]),
        ("a <> 0", [False, True, None]),
        ("a <=> null", [False, False, True]),
        ("a is distinct from 2", [True, False, True]),
        ("a in (0, 1)", [True, False, None]),
        ("x in (0.0, 1.0)", [True, True, None]),
        ("a in (0, null)", [True, None, None]),
        ("a not in (0, null)", [False, None, None]),
        ("a in (d, 7)", [True, True, None]),
        ("a between 1 and 3", [False, True, None]),
        ("s like 'a!_b' escape '!'", [True, False, None]),
        ("s like 'A\\%'", [False, True, None]),
        ("s ilike 'a_'", [False, True, None]),
        ("s like null", [None, None, None]),
        ("s rlike '^[a-z]'", [True, False, None]),
        ("t >= '1970-01-02'", [False, True, None]),
        ("t = date '1970-01-01'", [True, False, None]),
        ("o and null", [None, False, None]),
        ("o or null", [True, None, None]),
        ("not o", [False, True, None]),
        ("o is true", [True, False, False]),
        ("o is not false", [True, False, True]),
        ("a is null", [False, False, True]),
        ("a <> 0 and 1 div a > 0", [False, False, None]),
        ("1 div a > 0 and a <> 0", [FAILED, False, None]),
        ("a = 0 or 1 div a > 0", [True, False, None]),
    ],
)
def test_values(sql: str, wanted: list[Any]) -> None:
    assert values(sql, COLUMNS) == wanted


@pytest.mark.parametrize("pattern", ["\\", "a\\", "%\\\\\\"])
def test_a_pattern_that_ends_with_its_escape_character_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="the pattern of LIKE ends with its escape character"):
        values(f"s like '{pattern}'", COLUMNS)
    assert values(f"s like '{pattern}\\'", COLUMNS) == [False, False, None]


@pytest.mark.parametrize(
    ("sql", "data_type"),
    [
        ("t = '1970-01-02 00:00:00.0001'", "TIMESTAMP(3)"),
        ("t in ('1970-01-01', '1969-12-31 23:59:59.9999')", "TIMESTAMP(3)"),
        ("z < '1970-01-01 00:00:00.5'", "TIMESTAMP(0) WITH LOCAL TIME ZONE"),
        ("y < '1970-01-01 12:00:00'", "DATE"),
        ("m < '1970-01-01 00:00:00.0000001'", "TIMESTAMP(6)"),
    ],
)
def test_a_time_with_more_digits_than_the_column_is_refused(sql: str, data_type: str) -> None:
    columns = {**COLUMNS, "z": ("TIMESTAMP_LTZ(0)", [0] * 3), "y": ("DATE", [0, 1, None])}
    columns["m"] = ("TIMESTAMP(6)", [0] * 3)
    with pytest.raises(ConfigError) as caught:
        values(sql, columns)
    assert f"has more digits than {data_type}; CAST the column" in caught.value.message


def test_a_time_with_the_digits_of_the_column_is_compared() -> None:
    assert values("t < '1970-01-02 00:00:00.000000'", COLUMNS) == [True, False, None]
    assert values("y <= '1970-01-01 00:00:00'", {"y": ("DATE", [0, 1])}) == [True, False]
    assert values("cast(t as timestamp(6)) < '1970-01-01 00:00:00.0001'", COLUMNS)[0] is True
    nanoseconds = {"n": ("TIMESTAMP(9)", [123_456_788, 123_456_789])}
    assert values("n < '1970-01-01 00:00:00.123456789'", nanoseconds) == [True, False]
    assert values("m < '9999-12-31 00:00:00'", {"m": ("TIMESTAMP(6)", [0])}) == [True]
