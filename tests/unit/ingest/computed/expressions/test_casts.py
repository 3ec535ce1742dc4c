"""CAST fails where a value does not fit, TRY_CAST gives NULL."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from ingestd.errors import ConfigError
from tests.support.sql_values import FAILED, Columns, values

BEFORE_1970 = datetime.fromisoformat("1969-12-31T23:59:59")
LEAP_DAY = datetime.fromisoformat("2024-02-29T12:00:00")
COLUMNS: Columns = {
    "n": ("STRING", ["12", " -7 ", "x", None, "1e2", "99999999999"]),
    "d": ("DECIMAL(5, 2)", [Decimal("1.25"), Decimal("-1.35"), None, Decimal("999.99"), 0, 1]),
    "f": ("DOUBLE", [1.9, -1.9, float("nan"), 1e300, None, 0.0]),
    "b": ("BIGINT", [1, -1, 2**40, None, 0, 200]),
    "t": ("TIMESTAMP(6)", [BEFORE_1970, LEAP_DAY]
          + [None] * 4),
    "s": ("STRING", ["2024-02-29", "2024-02-29 12:30:00", "2023-02-29", None, "", "1970-01-01"]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("cast(n as int)", [12, -7, FAILED, None, FAILED, FAILED]),
        ("try_cast(n as int)", [12, -7, None, None, None, None]),
        ("cast(n as decimal(5, 1))",
         [Decimal("12.0"), Decimal("-7.0"), FAILED, None, Decimal("100.0"), FAILED]),
        ("cast(n as double)", [12.0, -7.0, FAILED, None, 100.0, 99999999999.0]),
        ("cast(d as decimal(4, 1))",
         [Decimal("1.3"), Decimal("-1.4"), None, FAILED, Decimal("0.0"), Decimal("1.0")]),
        ("cast(d as int)", [1, -1, None, 999, 0, 1]),
        ("cast(f as int)", [1, -1, FAILED, FAILED, None, 0]),
        ("cast(b as tinyint)", [1, -1, FAILED, None, 0, FAILED]),
        ("cast(b as decimal(3, 1))",
         [Decimal("1.0"), Decimal("-1.0"), FAILED, None, Decimal("0.0"), FAILED]),
        ("cast(b as boolean)", [True, True, True, None, False, True]),
        ("cast(t as date)", [date(1969, 12, 31), date(2024, 2, 29), None, None, None, None]),
        ("try_cast(s as date)",
         [date(2024, 2, 29)] * 2 + [None] * 3 + [date(1970, 1, 1)]),
        ("cast(b as string)", ["1", "-1", str(2**40), None, "0", "200"]),
        ("cast(1 / b as int)", [1, -1, 0, None, FAILED, 0]),
        ("try_cast(1 / b as int)", [1, -1, 0, None, FAILED, 0]),
    ],
)  # fmt: skip
def test_values(sql: str, wanted: list[Any]) -> None:
    assert values(sql, COLUMNS) == wanted


def test_a_decimal_is_exact_or_fails() -> None:
    columns: Columns = {"d": ("DECIMAL(38, 2)", [Decimal("9" * 36), Decimal("2728028.80")])}
    assert values("cast(d as decimal(38, 10))", columns) == [FAILED, Decimal("2728028.80")]
    assert values("cast(d as double)", columns) == [1e36, 2728028.8]


def test_many_bad_texts_are_each_read_once() -> None:
    found = values("cast(n as int)", {"n": ("STRING", ["7", "x", None] * 500)})
    assert found == [7, FAILED, None] * 500


@pytest.mark.parametrize(
    "data_type", ["TIMESTAMP(9)", "TIMESTAMP_LTZ(9)", "DATE", "TIME(0)", "INT"]
)
@pytest.mark.parametrize("text", ["9999999-12-31", "9" * 5000, f"{'9' * 30}:00:00"])
def test_a_text_out_of_range_fails_for_its_row(data_type: str, text: str) -> None:
    columns: Columns = {"s": ("STRING", [text, None])}
    assert values(f"cast(s as {data_type})", columns) == [FAILED, None]


@pytest.mark.parametrize("other", ["1970-01-01 00:00:00.5", "1970-01-01", "no time", None])
@pytest.mark.parametrize("data_type", ["timestamp(3)", "timestamp_ltz(3)", "date"])
def test_a_time_with_the_t_of_iso_8601_is_read_whatever_the_other_rows_are(
    data_type: str, other: str | None
) -> None:
    columns: Columns = {"s": ("STRING", ["2024-02-29T12:00:00", "2024-02-29T12:00:00Z", other])}
    found = values(f"cast(s as {data_type})", columns)
    wanted = LEAP_DAY.date() if data_type == "date" else LEAP_DAY
    assert found[0] == (wanted.replace(tzinfo=UTC) if "ltz" in data_type else wanted)
    assert (found[1] == FAILED) is (data_type != "date")


def test_a_constant_with_a_zone_is_refused_with_the_form_to_write() -> None:
    columns: Columns = {"t": ("TIMESTAMP_LTZ(3)", [LEAP_DAY.replace(tzinfo=UTC), None])}
    assert values("t = '2024-02-29T12:00:00'", columns) == [True, None]
    for text in ("2024-02-29T12:00:00Z", "2024-02-29 13:00:00+01:00"):
        with pytest.raises(ConfigError, match="write it in UTC, as '2025-01-31 23:59:59'"):
            values(f"t = '{text}'", columns)
    with pytest.raises(ConfigError, match="has more digits than"):
        values("t = '2024-02-29T12:00:00.0001'", columns)


def test_a_day_beyond_the_range_of_nanoseconds_fails_for_its_row() -> None:
    columns: Columns = {"s": ("STRING", ["9999-12-31", "1970-01-02"])}
    found = values("cast(s as timestamp(9))", columns)
    assert found == [FAILED, datetime.fromisoformat("1970-01-02")]
