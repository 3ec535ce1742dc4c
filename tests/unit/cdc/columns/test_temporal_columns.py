"""ISO text and integers as dates, times and timestamps."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from ingestd.cdc.columns.temporal_columns import date_days, read_integers, read_texts, time_nanos
from ingestd.paimon.spec.data_types import DataType, parse_type

LTZ = DataType("TIMESTAMP_LTZ", precision=6)


def numbers(array: Any) -> list[int | None]:
    width = pa.int32() if array.type.bit_width == 32 else pa.int64()
    return list(array.view(width).to_pylist())


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("1970-01-01", 0),
        ("1969-12-31", -1),
        ("2000-02-29", 11016),
        ("0001-01-01", -719162),
        ("0000-02-29", -719469),
        ("-0001-12-31", -719529),
        ("+10000-01-01", 2932897),
        ("5881580-07-11", 2147483647),
    ],
)
def test_dates_of_any_year(text: str, days: int) -> None:
    assert date_days(text) == days


@pytest.mark.parametrize("text", ["2023-02-29", "2024-13-01", "2024-00-01", "24-01-01", "x", ""])
def test_days_that_do_not_exist(text: str) -> None:
    with pytest.raises(ValueError, match=r"day|ISO date"):
        date_days(text)


@pytest.mark.parametrize("text", ["24:00:00", "12:60:00", "12:00:60", "1:2:3", "12"])
def test_times_that_do_not_exist(text: str) -> None:
    with pytest.raises(ValueError, match="time"):
        time_nanos(text)


def test_texts_with_unusual_zones_and_fractions() -> None:
    wanted = datetime(2024, 2, 29, 12, 34, 56, 123456, tzinfo=UTC)
    texts = [
        "2024-02-29T12:34:56.123456Z",
        "2024-02-29T12:34:56.123456789Z",
        "2024-02-29 14:34:56.123456+02",
        "2024-02-29T07:04:56.123456-0530",
        "2024-02-29T12:34:56.123456+00:00:00",
    ]
    assert read_texts([*texts, None], LTZ).to_pylist() == [wanted] * 5 + [None]


@pytest.mark.parametrize("zone", ["+24:00", "-0060", "+01:00:60"])
def test_offsets_that_no_time_zone_has_are_refused(zone: str) -> None:
    with pytest.raises(ValueError, match="offset of a time zone"):
        read_texts([f"2024-02-29T12:34:56{zone}"], LTZ)


@pytest.mark.parametrize("clock", ["", "T10", " 10", "T10:11", "T10:11:12", "T10:11:12.5"])
@pytest.mark.parametrize("zone", ["", "Z", "+01", "+0100", "-01:30", "+23:59"])
@pytest.mark.parametrize("kind", ["TIMESTAMP(3)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"])
def test_text_that_is_valid_alone_is_valid_among_others(clock: str, zone: str, kind: str) -> None:
    data_type, text = parse_type(kind), f"2024-02-29{clock}{zone}"
    other = "-0001-01-01T00:00:00Z"  # Arrow does not parse it
    try:
        alone = read_texts([text], data_type)
    except ValueError:
        with pytest.raises(ValueError, match="ISO timestamp"):
            read_texts([text, other], data_type)
    else:
        assert numbers(read_texts([text, other], data_type))[:1] == numbers(alone)


def test_slow_and_fast_parser_agree() -> None:
    start = datetime(1, 1, 1, tzinfo=UTC)
    moments = [start + timedelta(days=36500.123456 * n, microseconds=n) for n in range(99)]
    texts = [f"{m.isoformat(timespec='microseconds').removesuffix('+00:00')}Z" for m in moments]
    fast = numbers(read_texts(texts, LTZ))
    slow = numbers(read_texts([*texts, "-0001-01-01T00:00:00Z"], LTZ))[:-1]
    assert fast == slow


@pytest.mark.parametrize(
    ("data_type", "value", "wanted"),
    [
        ("TIMESTAMP_LTZ(3)", "infinity", 9223372036825200),
        ("TIMESTAMP(6)", "-infinity", -9223372036832400000),
    ],
)
def test_infinity_is_the_number_that_plain_timestamps_have(
    data_type: str, value: str, wanted: int
) -> None:
    assert numbers(read_texts([value], parse_type(data_type))) == [wanted]


def test_infinity_in_nanoseconds_is_out_of_range() -> None:
    with pytest.raises(OverflowError):
        read_texts(["infinity"], DataType("TIMESTAMP", precision=9))


@pytest.mark.parametrize(
    ("data_type", "value", "wanted"),
    [
        ("DATE", -2147472692, -2147472692),
        ("TIME(0)", 86399999, 86399999),
        ("TIME(6)", 86399999999, 86399999),
        ("TIMESTAMP(0)", -1, -1),
        ("TIMESTAMP(6)", -(2**63), -(2**63)),
    ],
)
def test_integers_are_in_the_unit_of_the_type(data_type: str, value: int, wanted: int) -> None:
    assert numbers(read_integers([value, None], parse_type(data_type))) == [wanted, None]


@pytest.mark.parametrize(
    ("data_type", "value"),
    [("DATE", 2**31), ("TIME(3)", -1), ("TIME(3)", 86400000), ("TIMESTAMP(3)", 2**63)],
)
def test_integers_out_of_range(data_type: str, value: int) -> None:
    with pytest.raises((ValueError, OverflowError)):
        read_integers([value], parse_type(data_type))
