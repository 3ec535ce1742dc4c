"""Parse literals typed by users as values of a column's type."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation

import numpy as np

from ingestd.errors import ArgumentError
from ingestd.paimon.spec.arrow import timestamp_unit
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    NESTED_ROOTS,
    TIMESTAMP_ROOTS,
    DataField,
    DataType,
)
from ingestd.paimon.spec.decimal_digits import unscaled

_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?")
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:?\d{2})?)?"
)
_BOOLEANS = {"true": True, "false": False}
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TICKS = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOS = 10**9


def parse_literal(text: str, field: DataField) -> object:
    """Parse a literal as a value of a column; dates, times and timestamps become integers.

    Dates, times and timestamps are given in ISO 8601, binary values in hexadecimal. A timestamp may
    have a time zone only if its type is TIMESTAMP WITH LOCAL TIME ZONE; the default is UTC.

    Raises ArgumentError, naming the column, for an invalid literal, such as one with more digits
    than the unit of the column has.
    """
    try:
        return _parse(text.strip() if field.type.root not in CHARACTER_ROOTS else text, field.type)
    except (ValueError, KeyError, InvalidOperation, OverflowError) as error:
        raise ArgumentError(
            f"column {field.name}: '{text}' is no value of type {field.type.as_nullable()}"
        ) from error


def _parse(text: str, t: DataType) -> object:
    root = t.root
    if root in CHARACTER_ROOTS:
        return text
    if root in NESTED_ROOTS or root in ("MULTISET", "VARIANT", "BLOB", "VECTOR"):
        raise ValueError("no literals")
    if root in BINARY_ROOTS:
        return bytes.fromhex(text.removeprefix("0x").removeprefix("0X"))
    if root in INTEGER_ROOTS or root in ("FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN"):
        return _parse_number(text, t)
    if root == "DATE":
        return _days(text)
    return _whole_ticks(_nanos(text), 10**6) if root == "TIME" else _ticks(text, t)


def _parse_number(text: str, t: DataType) -> object:
    if t.root == "BOOLEAN":
        return _BOOLEANS[text.lower()]
    if t.root == "FLOAT":
        # The nearest number that the column can have: statistics are compared with it, too.
        with np.errstate(over="ignore"):
            return float(np.float32(text))
    if t.root == "DOUBLE":
        return float(text)
    number = Decimal(text)
    if t.root in INTEGER_ROOTS:
        limit = 1 << (_BITS[t.root] - 1)
        if number != int(number) or not -limit <= number < limit:
            raise ValueError("out of range")
        return int(number)
    if abs(unscaled(number, t.scale or 0)) >= 10 ** (t.precision or 0):
        raise ValueError("out of range")
    return number


def _days(text: str) -> int:
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError("no date")
    return (datetime(*map(int, match.groups()), tzinfo=UTC) - _EPOCH).days  # type: ignore[misc,arg-type]  # three numbers


def _nanos(text: str) -> int:
    """Parse a time and return its nanoseconds since midnight."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError("no time")
    hours, minutes, seconds = (int(match[i] or 0) for i in (1, 2, 3))
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError("no time of the day")
    whole = (hours * 60 + minutes) * 60 + seconds
    return whole * _NANOS + int((match[4] or "0").ljust(9, "0"))


def _ticks(text: str, t: DataType) -> int:
    match = _TIMESTAMP.fullmatch(text)
    if match is None or t.root not in TIMESTAMP_ROOTS:
        raise ValueError("no timestamp")
    if match[3] and t.root == "TIMESTAMP":
        raise ValueError("a time zone in a type without")
    nanos = _days(match[1]) * 86_400 * _NANOS + _nanos(match[2] or "00:00")
    nanos -= _offset_nanos(match[3])
    return _whole_ticks(nanos, _NANOS // _TICKS[timestamp_unit(t.precision or 0)])


def _whole_ticks(nanos: int, per_tick: int) -> int:
    if nanos % per_tick:
        raise ValueError("more digits than the column has")
    return nanos // per_tick


def _offset_nanos(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return int(offset.total_seconds()) * _NANOS * (-1 if zone[0] == "-" else 1)


def timestamp_millis(text: str) -> int:
    """Parse an ISO 8601 timestamp, by default in UTC, and return its milliseconds since 1970.

    A text of digits only is a number of milliseconds since 1970. Raises ArgumentError if the text
    is neither, or has digits below the millisecond.
    """
    if text.isascii() and text.isdigit():
        return int(text)
    field = DataField(0, "timestamp", DataType("TIMESTAMP_LTZ", precision=3))
    try:
        return int(str(parse_literal(text, field)))
    except ArgumentError as error:
        raise ArgumentError(
            f"'{text}' is no time: write ISO 8601 to the millisecond, such as 2026-01-31T12:00:00Z"
        ) from error
