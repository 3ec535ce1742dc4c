"""Dates and timestamps that are declared as each other."""

import pyarrow as pa
import pytest

from ingestd.cdc.columns.wire_column import WireColumn, recast
from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import parse_type

DAY_MICROS = 86_400_000_000


def declared(array: pa.Array, sent: str, as_type: str) -> pa.Array:
    column = WireColumn("c", parse_type(sent)).declared_as(parse_type(as_type))
    return recast(array, column)


def test_a_date_becomes_its_first_moment() -> None:
    found = declared(pa.array([1, None, -1], pa.date32()), "DATE", "TIMESTAMP(6)")
    assert found.cast(pa.int64()).to_pylist() == [DAY_MICROS, None, -DAY_MICROS]


def test_a_timestamp_becomes_its_day_also_before_1970() -> None:
    moments = pa.array([DAY_MICROS + 1, None, -1], pa.timestamp("us"))
    found = declared(moments, "TIMESTAMP(6)", "DATE")
    assert found.cast(pa.int32()).to_pylist() == [1, None, -1]


@pytest.mark.parametrize(
    ("sent", "numbers", "texts"),
    [
        ("DATE", [2**31 - 1, -(2**31), None, 2_932_896, 2_932_897],
         ["+5881580-07-11", "-5877641-06-23", None, "9999-12-31", "+10000-01-01"]),
        ("DATE", [-719_529, -719_528], ["-0001-12-31", "0000-01-01"]),
        ("TIMESTAMP(6)", [9_223_372_036_825_200_000, -9_223_372_036_832_400_000, 1],
         ["+294247-01-10 04:00:25.200000", "-290308-12-21 19:59:27.600000",
          "1970-01-01 00:00:00.000001"]),
        ("TIMESTAMP_LTZ(6)", [9_223_372_036_825_200_000, None],
         ["+294247-01-10 04:00:25.200000Z", None]),
        ("TIMESTAMP(3)", [9_223_372_036_825_200, 253_402_300_799_999],
         ["+294247-01-10 04:00:25.200", "9999-12-31 23:59:59.999"]),
        ("TIMESTAMP_LTZ(0)", [253_402_300_800_000, 0],
         ["+10000-01-01 00:00:00Z", "1970-01-01 00:00:00Z"]),
        ("TIMESTAMP(9)", [2**63 - 1, None], ["2262-04-11 23:47:16.854775807", None]),
        ("DATE", [None], [None]),
    ],
)  # fmt: skip
def test_years_of_more_than_four_digits_have_a_sign_as_text(
    sent: str, numbers: list[int | None], texts: list[str | None]
) -> None:
    """PostgreSQL's infinity is such a date or timestamp."""
    assert declared(column_of(numbers, parse_type(sent)), sent, "STRING").to_pylist() == texts
