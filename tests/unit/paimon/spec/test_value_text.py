"""Values as text."""

from decimal import Decimal

import pyarrow as pa
import pytest

from ingestd.paimon.spec.value_text import (
    date_texts,
    decimal_texts,
    time_texts,
    timestamp_texts,
)


def _texts(array: pa.Array) -> list[str | None]:
    found: list[str | None] = array.to_pylist()
    return found


def test_decimals_keep_their_scale_and_have_no_exponent() -> None:
    values = [Decimal("0E-18"), Decimal("-1.500000000000000000"), None]
    texts = _texts(decimal_texts(pa.array(values, pa.decimal128(38, 18))))
    assert texts == ["0.000000000000000000", "-1.500000000000000000", None]


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (11016, "2000-02-29"),
        (47540, "2100-02-28"),
        (47541, "2100-03-01"),
        (-719528, "0000-01-01"),
        (-719529, "-0001-12-31"),
        (2932896, "9999-12-31"),
        (2932897, "+10000-01-01"),
        (2**31 - 1, "+5881580-07-11"),
        (-(2**31), "-5877641-06-23"),
    ],
)
def test_dates_of_any_year(days: int, text: str) -> None:
    column = pa.array([days, None], pa.int32()).cast(pa.date32())
    assert _texts(date_texts(column)) == [text, None]


def test_times_have_three_digits() -> None:
    column = pa.array([0, 86_399_999, None], pa.int32()).cast(pa.time32("ms"))
    assert _texts(time_texts(column)) == ["00:00:00.000", "23:59:59.999", None]


@pytest.mark.parametrize(
    ("unit", "precision", "value", "text"),
    [
        ("ms", 0, -1, "1969-12-31T23:59:59"),
        ("ms", 3, -1, "1969-12-31T23:59:59.999"),
        ("us", 4, 1_234_567, "1970-01-01T00:00:01.2345"),
        ("us", 6, 2**63 - 1, "+294247-01-10T04:00:54.775807"),
        ("ns", 9, -1, "1969-12-31T23:59:59.999999999"),
        ("ns", 7, 123, "1970-01-01T00:00:00.0000001"),
    ],
)
def test_timestamps_have_the_digits_of_their_precision(
    unit: str, precision: int, value: int, text: str
) -> None:
    column = pa.array([value, None], pa.int64()).cast(pa.timestamp(unit))
    assert _texts(timestamp_texts(column, precision, "Z")) == [text + "Z", None]
