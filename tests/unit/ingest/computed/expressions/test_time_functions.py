"""Functions of dates and times."""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from ingestd.ingest.computed.expressions.cells import Frame
from ingestd.ingest.computed.expressions.expression import read_expression, run_expression
from ingestd.paimon.spec.data_types import parse_type
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


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("year(d)", [5881580, -5877641, 2024]),
        ("month(d) * 100 + day(d)", [711, 623, 229]),
        ("week(d)", [28, 26, 9]),
        ("year(t)", [294247, -290308, 2024]),
        ("dayofyear(t) * 100 + hour(t)", [1004, 35619, 6012]),
        ("date_format(t, 'yyyy-MM-dd EEE HH:mm')",
         ["294247-01-10 Sun 04:00", "-290308-12-21 Sun 19:59", "2024-02-29 Thu 12:00"]),
        ("date_format(t, 'yyyyMM')", ["29424701", "-29030812", "202402"]),
        ("unix_timestamp(date_trunc('month', t))", [9223371244800, FAILED, 1706745600]),
        ("unix_timestamp(date_trunc('hour', t))",
         [9223372036800, FAILED, 1709208000]),
        ("datediff(date_trunc('week', d), to_date('1970-01-01'))",
         [2147483643, FAILED, 19779]),
        ("cast(d as string)", ["+5881580-07-11", "-5877641-06-23", "2024-02-29"]),
    ],
)  # fmt: skip
def test_infinite_dates_and_timestamps_have_the_fields_of_their_numbers(
    sql: str, expected: list[Any]
) -> None:
    """PostgreSQL's infinities are numbers that Debezium sends, beyond the calendar of Arrow."""
    days = pa.array([2**31 - 1, -(2**31), 19_782], pa.int32()).cast(pa.date32())
    micros = [9_223_372_036_825_200_000, -9_223_372_036_832_400_000, 1_709_208_000_000_000]
    moments = pa.array(micros, pa.timestamp("us"))
    frame = Frame({"d": days, "t": moments}, 3, NOW_MS)
    types = {"d": parse_type("DATE"), "t": parse_type("TIMESTAMP(6)")}
    found = run_expression(read_expression(sql), types, frame)
    assert found is not None
    pairs = zip(found.values.to_pylist(), found.failed.tolist(), strict=True)
    assert [FAILED if failed else value for value, failed in pairs] == expected
