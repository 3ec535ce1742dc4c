"""Parts and texts of points in time, as Java's letters name them."""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.ingest.computed.time_parts import (
    PARTS,
    check_pattern,
    check_precision,
    format_times,
    part_of,
    points_in_time,
)
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import parse_type

AT = datetime(2025, 6, 15, 13, 2, 3, 4000, tzinfo=UTC)
OLD = datetime(1969, 12, 31, 0, 0, 9, tzinfo=UTC)
POINTS = pa.array([AT, OLD, None], pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))


@pytest.mark.parametrize(
    ("values", "source", "precision"),
    [
        ([1_749_992_523], "BIGINT", "0"),
        ([1_749_992_523_004], "BIGINT", "3"),
        ([1_749_992_523_004_000], "BIGINT", "6"),
        ([1_749_992_523_004_000_000], "BIGINT", "9"),
        ([AT.replace(tzinfo=None)], "TIMESTAMP(3)", "0"),
        ([AT], "TIMESTAMP_LTZ(6)", "0"),
        (["2025-06-15 13:02:03.004"], "STRING", "0"),
        (["2025-06-15T13:02:03.004Z"], "STRING", "0"),
        (["2025-06-15T15:02:03+02:00"], "VARCHAR(40)", "0"),
        (["2025-6-15 13:02:03"], "STRING", "0"),
    ],
)
def test_points_in_time_of_every_kind(values: list[Any], source: str, precision: str) -> None:
    data_type = parse_type(source)
    points = points_in_time(pa.array(values, to_arrow_type(data_type)), data_type, precision)
    assert format_times(points, "yyyy-MM-dd HH:mm:ss").to_pylist() == ["2025-06-15 13:02:03"]


def test_dates_are_points_in_time() -> None:
    points = points_in_time(pa.array([date(2025, 6, 15)]), parse_type("DATE"))
    assert format_times(points, "yyyyMMdd HHmm").to_pylist() == ["20250615 0000"]


def test_what_is_no_point_in_time_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="BOOLEAN is not a date or timestamp"):
        points_in_time(pa.array([True]), parse_type("BOOLEAN"))
    with pytest.raises((UnsupportedError, pa.ArrowInvalid)):
        points_in_time(pa.array(["someday"]), parse_type("STRING"))
    with pytest.raises(ConfigError, match="'1' is not a precision"):
        check_precision("1")


def test_parts() -> None:
    found = [part_of(name, POINTS).to_pylist() for name in PARTS]
    assert [part[0] for part in found] == [2025, 6, 15, 13, 2, 3]
    assert [part[1] for part in found] == [1969, 12, 31, 0, 0, 9]
    assert {part[2] for part in found} == {None}
    assert part_of("year", POINTS).type == pa.int32()


@pytest.mark.parametrize(
    ("pattern", "first", "second"),
    [
        ("yyyy-MM-dd HH:mm:ss.SSS", "2025-06-15 13:02:03.004", "1969-12-31 00:00:09.000"),
        ("yyyy=MM", "2025=06", "1969=12"),
        ("yy u M d H h m s", "25 2025 6 15 13 1 2 3", "69 1969 12 31 0 12 0 9"),
        ("EEEE, EEE MMMM MMM LL D DDD", "Sunday, Sun June Jun 06 166 166",
         "Wednesday, Wed December Dec 12 365 365"),
        ("hh a S SSSSSSSSS", "01 PM 0 004000000", "12 AM 0 000000000"),
        ("yyyy'T'HH 'o''clock' ''", "2025T13 o'clock '", "1969T00 o'clock '"),
    ],
)  # fmt: skip
def test_patterns(pattern: str, first: str, second: str) -> None:
    check_pattern(pattern)
    assert format_times(POINTS, pattern).to_pylist() == [first, second, None]


def test_times_far_off_have_parts_of_seconds_too() -> None:
    points = points_in_time(pa.array(["9999-12-31 23:59:59.123456"]), parse_type("STRING"))
    assert format_times(points, "y S SSSSSSS").to_pylist() == ["9999 1 1234560"]


@pytest.mark.parametrize("pattern", ["", "'x'", "yyyyy", "q", "VV", "yyyy'T", "--"])
def test_patterns_that_are_not_understood_are_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="pattern"):
        check_pattern(pattern)
