"""Functions of dates and times."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from tests.support.sql_values import FAILED, NOW_MS, Columns, values

AT = datetime.fromisoformat("2024-02-29T13:04:05.678901")
BEFORE_1970 = datetime.fromisoformat("1969-12-31T23:59:59")
FEBRUARY = datetime.fromisoformat("2024-02-01")
DECEMBER = datetime.fromisoformat("1969-12-01")
COLUMNS: Columns = {
    "t": ("TIMESTAMP(6)", [AT, BEFORE_1970, None]),
    "d": ("DATE", [date(2024, 2, 29), date(1970, 1, 1), None]),
    "z": ("TIMESTAMP_LTZ(3)", [AT.replace(microsecond=0, tzinfo=UTC), None, None]),
    "n": ("BIGINT", [1, -1, None]),
}


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("date_format(t, 'yyyy-MM')", ["2024-02", "1969-12", None]),
        ("year(t) * 100 + month(t)", [202402, 196912, None]),
        ("extract(hour from z)", [13, None, None]),
        ("quarter(d)", [1, 1, None]),
        ("date_trunc('month', t)", [FEBRUARY, DECEMBER, None]),
        ("date_trunc('week', d)", [date(2024, 2, 26), date(1969, 12, 29), None]),
        ("date_trunc('hour', d)", [date(2024, 2, 29), date(1970, 1, 1), None]),
        ("date_add(d, 1)", [date(2024, 3, 1), date(1970, 1, 2), None]),
        ("date_sub(t, 1)", [date(2024, 2, 28), date(1969, 12, 30), None]),
        ("datediff(t, d)", [0, -1, None]),
        ("to_date('2024-02-29')", [date(2024, 2, 29)] * 3),
        ("timestamp_seconds(n)",
         [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
          None]),
        ("unix_timestamp(t)", [1709211845, -1, None]),
        ("unix_timestamp(now())", [NOW_MS // 1000] * 3),
        ("current_date", [date(2023, 11, 14)] * 3),
        ("cast(t as timestamp_ltz(3)) < timestamp_seconds(100)", [False, True, None]),
        ("date_add(d, cast(n * 4000000000 as int))", [FAILED, FAILED, None]),
    ],
)  # fmt: skip
def test_values(sql: str, wanted: list[Any]) -> None:
    assert values(sql, COLUMNS) == wanted
