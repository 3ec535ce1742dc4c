"""Dates, times and timestamps from JSON integers and ISO 8601 strings.

Timestamps have the full range of 64 bits. Years may be negative or have more than four digits, in
the format of ISO 8601 and Java.
"""

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.civil_dates import days_since_1970
from ingestd.paimon.spec.data_types import DataType

TimestampType = Any
"""pa.TimestampType, which is generic in the type stubs."""
DAY_MILLIS = 86_400_000
_DAY_NANOS = 86_400_000_000_000
_NANOS_OF = {"ms": 1_000_000, "us": 1_000, "ns": 1}
_INFINITE_MICROS = {"infinity": 9_223_372_036_825_200_000, "-infinity": -9_223_372_036_832_400_000}
"""The microseconds that Debezium sends for infinite timestamps."""
_NO_TIME = (
    "; 24:00:00 and durations are not a TIME: declare the column as BIGINT, or as STRING if its "
    "values are text, in schema.column-types"
)
_DATE = r"([+-]?\d{4,9})-(\d\d)-(\d\d)"
_TIME = r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?"
_ZONE = r"(Z|[+-]\d\d(?::?\d\d)?(?::?\d\d)?)?"
_DATE_TEXT = re.compile(_DATE + _ZONE, re.ASCII)
_TIME_TEXT = re.compile(_TIME, re.ASCII)
_TIMESTAMP_TEXT = re.compile(
    rf"{_DATE}(?:[T ](\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d{{1,9}}))?)?)?{_ZONE})?", re.ASCII
)
"""All texts that Arrow casts, and more. They are parsed by it if Arrow cannot cast one of them."""
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def read_integers(values: Sequence[int | None], data_type: DataType) -> Array:
    """Convert integers in the unit of the type to an array.

    The unit is days for a DATE, and milliseconds, microseconds or nanoseconds for a timestamp, by
    its precision. Values of a TIME with a precision above 3 are in microseconds, and truncated to
    milliseconds; values of other TIME types are in milliseconds. Raises ValueError or OverflowError
    if a value is out of range.
    """
    if data_type.root == "DATE":
        return pa.array(values, pa.date32())
    if data_type.root == "TIME":
        return time_of_day(
            pa.array(values, pa.int64()), 1 if (data_type.precision or 0) <= 3 else 1000
        )
    return pa.array(values, arrow_timestamp(data_type))


def arrow_timestamp(data_type: DataType) -> TimestampType:
    """Return the Arrow type of a TIMESTAMP or TIMESTAMP_LTZ type; its precision gives the unit."""
    arrow_type: TimestampType = to_arrow_type(data_type)
    return arrow_type


def time_of_day(values: Array, per_milli: int) -> Array:
    """Convert int64 values with `per_milli` units per millisecond to times of day in milliseconds.

    Values are rounded down. Raises ValueError if a value is out of range of a day.
    """
    millis = values if per_milli == 1 else _floor_divide(values, per_milli)
    bounds = pc.min_max(millis)
    if millis.null_count < len(millis) and not (
        0 <= bounds["min"].as_py() <= bounds["max"].as_py() < DAY_MILLIS
    ):
        raise ValueError(f"out of range of a time of day{_NO_TIME}")
    return millis.cast(pa.int32()).cast(pa.time32("ms"))


def _floor_divide(values: Array, divisor: int) -> Array:
    mask = values.is_null().to_numpy(zero_copy_only=False)
    numbers = values.fill_null(0).to_numpy()
    return pa.array(numbers // divisor, pa.int64(), mask=mask)


def coarser_timestamps(values: Array, target: TimestampType) -> Array:
    """Cast timestamps to a type with a coarser unit, rounding down."""
    divisor = _NANOS_OF[target.unit] // _NANOS_OF[values.type.unit]
    return _floor_divide(values.cast(pa.int64()), divisor).cast(target)


def read_texts(values: Sequence[str | None], data_type: DataType) -> Array:
    """Convert ISO 8601 strings to an array of the type.

    Fractions finer than the unit are truncated. A TIMESTAMP_LTZ requires a time zone; a TIMESTAMP
    with a time zone is converted to UTC. Raises ValueError, which contains the first invalid
    string.
    """
    if data_type.root == "DATE":
        return pa.array([None if v is None else date_days(v) for v in values], pa.date32())
    if data_type.root == "TIME":
        millis = [None if v is None else time_nanos(v) // 1_000_000 for v in values]
        return pa.array(millis, pa.int32()).cast(pa.time32("ms"))
    target = arrow_timestamp(data_type)
    try:
        return pa.array(values, pa.string()).cast(target)
    except pa.ArrowInvalid:
        zoned = data_type.root == "TIMESTAMP_LTZ"
        numbers = [None if v is None else _instant(v, target.unit, zoned=zoned) for v in values]
        return pa.array(numbers, target)


def date_days(text: str) -> int:
    """Return the days from the epoch to a date in ISO 8601.

    A time zone after the date is ignored. Raises ValueError if the date is invalid.
    """
    match = _DATE_TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an ISO date")
    return _days(*(int(group) for group in match.groups()[:3]))


def time_nanos(text: str) -> int:
    """Return a time of day in ISO 8601 as nanoseconds since midnight.

    Raises ValueError if it is invalid, has a time zone, or is 24:00:00 or later.
    """
    match = _TIME_TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an ISO time")
    try:
        return _nanos(match.groups())
    except ValueError as error:
        raise ValueError(f"{error}{_NO_TIME}") from error


def _instant(text: str, unit: str, *, zoned: bool) -> int:
    if text in _INFINITE_MICROS:
        # Nanoseconds overflow, and Arrow then raises an error.
        return _INFINITE_MICROS[text] * 1000 // _NANOS_OF[unit]
    match = _TIMESTAMP_TEXT.fullmatch(text)
    if match is None or (zoned and match[8] is None):
        raise ValueError(f"{text!r} is not an ISO timestamp{' with a zone' if zoned else ''}")
    days = _days(int(match[1]), int(match[2]), int(match[3]))
    nanos = days * _DAY_NANOS + _nanos(match.groups()[3:7]) - _zone_nanos(match[8])
    return nanos // _NANOS_OF[unit]


def _days(year: int, month: int, day: int) -> int:
    """Return the days from the epoch to a date, of any year, in the proleptic Gregorian calendar.

    Raises ValueError if there is no such date.
    """
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _MONTH_DAYS[month - 1] + (leap and month == 2):
        raise ValueError(f"there is no day {year}-{month:02}-{day:02}")
    return days_since_1970(year, month, day)


def _nanos(parts: Sequence[Any]) -> int:
    hour, minute, second = (int(digits or 0) for digits in parts[:3])
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"out of range of a time of day: {hour:02}:{minute:02}:{second:02}")
    return ((hour * 60 + minute) * 60 + second) * 1_000_000_000 + int(
        (parts[3] or "").ljust(9, "0")
    )


def _zone_nanos(zone: str | None) -> int:
    """Return an offset such as `+05:30` in nanoseconds. Raises ValueError if no zone has it."""
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = (int(digits[at : at + 2]) for at in (0, 2, 4))
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError(f"{zone!r} is not the offset of a time zone")
    nanos = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000
    return -nanos if zone[0] == "-" else nanos
