"""Functions on dates and times for computed columns: parts, and formatting by a pattern.

They accept dates, timestamps, strings that contain them, and numbers since the epoch. TIMESTAMP_LTZ
values are interpreted in UTC.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.casts.evolution import cast_text
from ingestd.paimon.spec.arrow import Values
from ingestd.paimon.spec.civil_dates import DAYS_OF_ERA
from ingestd.paimon.spec.data_types import (
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)

PARTS = ("year", "month", "day", "hour", "minute", "second")
_UNITS: Mapping[str, Values] = {
    "0": pa.timestamp("s"),
    "3": pa.timestamp("ms"),
    "6": pa.timestamp("us"),
    "9": pa.timestamp("ns"),
}
_NOON: Values = pa.scalar(12, pa.int64())
_ZERO: Values = pa.scalar(0, pa.int64())
_ERA_YEARS = 400
_SECONDS_OF_ERA = DAYS_OF_ERA * 86_400
"""Seconds in 400 years, after which the calendar repeats, days of the week included."""
_NEAR_ERAS = 75
"""Eras before and after 1970 that are certainly in Arrow's calendar, which ends with year 32767."""
_ONE: Values = pa.scalar(1, pa.int64())
_TIMESTAMP = DataType("TIMESTAMP", precision=6)
_TOKEN = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|[^A-Za-z']+|(')")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NUMBERED: Mapping[str, str] = {
    "y": "year", "u": "year", "d": "day", "D": "day_of_year", "H": "hour", "h": "hour",
    "m": "minute", "s": "second",
}  # fmt: skip
_GRAINS: Sequence[tuple[int | None, frozenset[str]]] = (
    (None, frozenset("S")),
    (1, frozenset("s")),
    (60, frozenset("m")),
    (3600, frozenset("Hha")),
)
PER_SECOND: Mapping[str, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""The number of ticks per second, by Arrow timestamp unit."""
_MOST_LETTERS: Mapping[str, int] = {
    "y": 4, "u": 4, "M": 4, "L": 4, "d": 2, "D": 3, "E": 4, "H": 2, "h": 2, "m": 2, "s": 2,
    "S": 9, "a": 1,
}  # fmt: skip


def check_precision(text: str) -> None:
    """Raise ConfigError unless a text is a valid precision of epoch numbers: 0, 3, 6 or 9."""
    if text not in _UNITS:
        raise ConfigError(
            f"'{text}' is not a precision of an epoch number: use one of {', '.join(_UNITS)}"
        )


def points_in_time(values: Values, source: DataType, precision: str = "0") -> Values:
    """Convert values to Arrow timestamps without a time zone.

    Numbers are in seconds (precision 0), milliseconds (3), microseconds (6) or nanoseconds (9)
    since the epoch; `precision` has no effect on other types. Raises UnsupportedError if a string
    is not a timestamp, or if the type is not an integer, string, date or timestamp.
    """
    if source.root in INTEGER_ROOTS:
        return values.cast(pa.int64()).cast(_UNITS[precision])
    if source.root in CHARACTER_ROOTS:
        return _from_texts(values)
    if source.root == "DATE":
        return values.cast(pa.timestamp("s"))
    if source.root in TIMESTAMP_ROOTS:
        return values.cast(pa.timestamp(values.type.unit))
    raise UnsupportedError(f"{source} is not a date or timestamp")


def _from_texts(values: Values) -> Values:
    for arrow_type in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return values.cast(arrow_type).cast(pa.timestamp("us"))
        except pa.ArrowInvalid:
            continue
    # Strings that Arrow does not parse are parsed one by one, each distinct string once.
    distinct = values.dictionary_encode()
    read: Values = cast_text(distinct.dictionary, _TIMESTAMP)
    return read.take(distinct.indices)


def part_of(name: str, points: Values) -> Values:
    """Return a calendar field of timestamps as INT.

    `name` is the name of an Arrow function, such as `year` or `iso_week`.
    """
    return _calendar_field(name, points).cast(pa.int32())


def _calendar_field(name: str, points: Values) -> Values:
    near, eras = near_points(points)
    numbers: Values = pc.call_function(name, [near])
    if eras is None or name != "year":
        return numbers
    return pc.add(numbers, pa.array(eras * _ERA_YEARS))


def near_points(points: Values) -> tuple[Values, npt.NDArray[np.int64] | None]:
    """Move timestamps into the years that Arrow's calendar supports; return them, and the moves.

    The moves (n,) are numbers of eras of 400 years, so that all fields of the calendar except the
    year stay the same; they are None if no timestamp is moved. Arrow would wrap around years that
    it does not support, such as that of PostgreSQL's infinity.
    """
    per_era = _SECONDS_OF_ERA * PER_SECOND[points.type.unit]
    if points.type.unit == "ns":
        return points, None
    numbers: Values = points.cast(pa.int64())
    bounds: Values = pc.min_max(numbers)
    first, last = bounds["min"].as_py(), bounds["max"].as_py()
    if first is None or (first > -(_NEAR_ERAS + 1) * per_era and last < _NEAR_ERAS * per_era):
        return points, None
    ticks = np.asarray(pc.fill_null(numbers, 0))
    # Rounded towards zero, so that the moves do not overflow.
    rest = np.fmod(ticks, per_era)
    eras = (ticks - rest) // per_era
    moved = pa.array(rest, pa.int64(), mask=np.asarray(points.is_null()))
    return moved.cast(points.type), eras


def floor_times(points: Values, unit: str) -> Values:
    """Round timestamps down to a unit of `date_trunc`.

    Raises ArrowInvalid if the result is out of the range of the type.
    """
    floor: Values = pc.floor_temporal
    near, eras = near_points(points)
    if eras is None:
        return floor(points, unit=unit)
    per_era = _SECONDS_OF_ERA * PER_SECOND[points.type.unit]
    ticks = floor(near, unit=unit).cast(pa.int64())
    return pc.add_checked(ticks, pa.array(eras * per_era)).cast(points.type)


def check_pattern(pattern: str) -> None:
    """Raise ConfigError if a pattern is empty, has no letters, or is not supported."""
    if not pattern:
        raise ConfigError("the pattern is empty")
    sample: Values = pa.array([0], pa.timestamp("s"))
    format_times(sample, pattern)


def format_times(points: Values, pattern: str) -> Values:
    """Format timestamps by a Java pattern, such as `yyyy-MM-dd HH:mm:ss.SSS`.

    Timestamps that have the same text, such as timestamps of the same day for a pattern without a
    time, are formatted once. Raises ConfigError if the pattern is not supported.
    """
    seconds = _grain(pattern)
    if seconds is None or near_points(points)[1] is not None:
        return _written(points, pattern)
    step = seconds * PER_SECOND[points.type.unit]
    ticks: Values = pc.fill_null(points.cast(pa.int64()), 0)
    floor = np.asarray(ticks) // step * step
    nulls = np.asarray(points.is_null())
    coarse = pa.array(floor, pa.int64(), mask=nulls).dictionary_encode()
    texts = _written(coarse.dictionary.cast(points.type), pattern)
    return texts.take(coarse.indices)


def _grain(pattern: str) -> int | None:
    """Return the smallest unit of a pattern in seconds, at most a day.

    Returns None if the pattern contains fractions of a second.
    """
    letters = {token[1] for token in _TOKEN.finditer(pattern) if token[1]}
    return next((seconds for seconds, names in _GRAINS if letters & names), 86_400)


def _written(points: Values, pattern: str) -> Values:
    texts: list[Values] = []
    for token in _TOKEN.finditer(pattern):
        letter, quoted, stray = token.groups()
        if stray:
            raise ConfigError(f"pattern {pattern}: a quote is not closed")
        if letter:
            texts.append(_lettered(points, letter, len(token[0]), pattern))
        else:
            literal = token[0] if quoted is None else quoted.replace("''", "'") or "'"
            texts.append(pa.scalar(literal))
    if all(isinstance(text, pa.Scalar) for text in texts):
        raise ConfigError(
            f"pattern {pattern} has no letter; supported letters: {' '.join(_MOST_LETTERS)}"
        )
    joined: Values = pc.binary_join_element_wise(*texts, pa.scalar(""))
    return joined


def _lettered(points: Values, letter: str, count: int, pattern: str) -> Values:
    if count <= _MOST_LETTERS.get(letter, 0):
        if letter in _NUMBERED:
            return _number(points, letter, count)
        if letter in "ML":
            return _month(points, count)
        if letter == "E":
            return _named(_calendar_field("day_of_week", points), _DAYS, count)
        if letter == "S":
            return pc.utf8_slice_codeunits(_fraction(points), 0, count)
        hours = _calendar_field("hour", points)
        return pc.if_else(pc.less(hours, _NOON), "AM", "PM")
    raise ConfigError(
        f"pattern {pattern}: '{letter * count}' is not supported; put texts into single quotes; "
        f"supported letters: {' '.join(_MOST_LETTERS)}"
    )


def _number(points: Values, letter: str, count: int) -> Values:
    numbers = _calendar_field(_NUMBERED[letter], points)
    if letter == "h":
        # Hour 0 and hour 12 are both 12.
        late = pc.subtract(numbers, _NOON)
        numbers = pc.if_else(pc.greater(numbers, _NOON), late, numbers)
        numbers = pc.if_else(pc.equal(numbers, _ZERO), _NOON, numbers)
    padded: Values = pc.utf8_lpad(numbers.cast(pa.string()), count, "0")
    if letter in "yu" and count == 2:
        return pc.utf8_slice_codeunits(padded, -2)
    return padded


def _month(points: Values, count: int) -> Values:
    months = _calendar_field("month", points)
    if count > 2:
        return _named(pc.subtract(months, _ONE), _MONTHS, count)
    padded: Values = pc.utf8_lpad(months.cast(pa.string()), count, "0")
    return padded


def _named(numbers: Values, names: Sequence[str], count: int) -> Values:
    """Return names by number: full names if `count` is 4, else their first three characters."""
    texts: Values = pa.array(names if count == 4 else [name[:3] for name in names])
    return texts.take(numbers)


def _fraction(points: Values) -> Values:
    """Return the nine fractional digits of the seconds of each timestamp, as strings."""
    parts: tuple[Values, ...] = (
        pc.millisecond(points),
        pc.microsecond(points),
        pc.nanosecond(points),
    )
    texts = [pc.utf8_lpad(number.cast(pa.string()), 3, "0") for number in parts]
    joined: Values = pc.binary_join_element_wise(*texts, pa.scalar(""))
    return joined
