"""Casts of text to other types, as in Java: invalid text is an error.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#update-schema
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.casts.numbers import decimals
from ingestd.paimon.spec.arrow import Array, timestamp_unit, to_arrow_type
from ingestd.paimon.spec.data_types import INTEGER_ROOTS, TIMESTAMP_ROOTS, DataType

_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_DIGITS = re.compile(r"[0-9]+")
_WHOLE = re.compile(r"([+-]?)([0-9]*)(?:\.[0-9]*)?")
_FLOAT = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)"
)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DATE = re.compile(r"([0-9]+)(?:-([0-9]+)(?:-([0-9]+))?)?")
_TIME = re.compile(
    r"([0-9]+)(?:: *([0-9]+)(?:: *([0-9]+)(?:\.([^+-]*))?)?)? *"
    r"(?:([+-]) *([0-9]+)(?:: *([0-9]+))?)?"
)
_TIMESTAMP = re.compile(
    r"([0-9]{4,})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?: ([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.([0-9]{0,9}))?)?"
)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_TICKS = {"ms": 10**3, "us": 10**6, "ns": 10**9}
"""Ticks per second of each Arrow unit."""
_EPOCH_DIGITS = {0: 1, 3: 10**3, 6: 10**6, 9: 10**9}


def cast_from_text(array: Array, target: DataType) -> Array:
    """Cast strings to a type that is neither a string nor nested.

    Raises UnsupportedError, naming the string, if it is invalid.
    """
    texts: Any = array.to_pylist()
    if target.root == "DECIMAL":
        return decimals(texts, _decimal, target)
    convert = _converter(target)
    distinct = {text: convert(text) for text in set(texts) - {None}}
    cells = [None if text is None else distinct[text] for text in texts]
    arrow_type = to_arrow_type(target)
    if target.root in TIMESTAMP_ROOTS:
        return pa.array(cells, pa.int64()).cast(arrow_type)
    if target.root in ("DATE", "TIME"):
        return pa.array(cells, pa.int32()).cast(arrow_type)
    if target.root == "FLOAT":
        with np.errstate(over="ignore"):
            return pa.array(cells, pa.float64()).cast(arrow_type, safe=False)
    return pa.array(cells, arrow_type)


def _converter(target: DataType) -> Callable[[str], object]:
    if target.root in INTEGER_ROOTS:
        return lambda text: _integer(text, target)
    if target.root in TIMESTAMP_ROOTS:
        return lambda text: _timestamp(text, target)
    return _SIMPLE[target.root]


def _unreadable(text: str, what: str) -> UnsupportedError:
    return UnsupportedError(f"'{text}' cannot be read as {what}")


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in _TRUE | _FALSE:
        raise _unreadable(text, "BOOLEAN")
    return lowered in _TRUE


def _integer(text: str, target: DataType) -> int:
    """Return the integer part; digits after the decimal point are dropped."""
    match = _WHOLE.fullmatch(text)
    if match is None or text in ("", "+", "-"):
        raise _unreadable(text, str(target))
    number = int(match[2] or 0) * (-1 if match[1] == "-" else 1)
    half = 1 << (_BITS[target.root] - 1)
    if not -half <= number < half:
        raise _unreadable(text, str(target))
    return number


def _double(text: str) -> float:
    stripped = text.strip()
    if _FLOAT.fullmatch(stripped) is None:
        raise _unreadable(text, "DOUBLE")
    named = stripped.endswith(("NaN", "Infinity"))
    return float(stripped if named else stripped.rstrip("fFdD"))


def _decimal(text: str) -> Decimal:
    if _DECIMAL.fullmatch(text) is None:
        raise _unreadable(text, "DECIMAL")
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise _unreadable(text, "DECIMAL") from error


def _date(text: str) -> int:
    """Return days since the epoch; a plain number is already in this form."""
    if _DIGITS.fullmatch(text):
        return _integer(text, DataType("INT"))
    end = text.find(" ")
    match = _DATE.fullmatch((text[:end] if end > 0 else text).strip())
    if match is None:
        raise _unreadable(text, "DATE")
    return _day(text, int(match[1]), int(match[2] or 1), int(match[3] or 1))


def _day(text: str, year: int, month: int, day: int) -> int:
    try:
        # The year 0 has no `date`; it has the days of the year 400.
        shift = 400 if year == 0 else 0
        return date(year + shift, month, day).toordinal() - _EPOCH_DAY - (146_097 if shift else 0)
    except ValueError as error:
        raise _unreadable(text, "DATE") from error


def _time(text: str) -> int:
    """Return milliseconds of the day; a plain number is already in this form."""
    if _DIGITS.fullmatch(text):
        return _integer(text, DataType("INT"))
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise _unreadable(text, "TIME")
    hour, minute, second = (int(match[i] or 0) for i in (1, 2, 3))
    sign = -1 if match[5] == "-" else 1
    hour, minute = hour + sign * int(match[6] or 0), minute + sign * int(match[7] or 0)
    return ((hour * 60 + minute) * 60 + second) * 1000 + _milliseconds((match[4] or "").strip())


def _milliseconds(digits: str) -> int:
    """Return the milliseconds of a fraction, rounded half up by its fourth digit."""
    plain = "".join(c if c.isdecimal() else "0" for c in digits)
    rounded = len(digits) > 3 and "5" <= digits[3] <= "9"
    return int(plain[:3].ljust(3, "0")) + rounded


def _timestamp(text: str, target: DataType) -> int:
    """Return timestamps in the target's unit; a plain number is the time since the epoch in this
    unit.
    """
    precision = target.precision or 0
    ticks = _TICKS[timestamp_unit(precision)]
    if _DIGITS.fullmatch(text) and target.root == "TIMESTAMP":
        if precision not in _EPOCH_DIGITS:
            raise _unreadable(text, str(target))
        return _integer(text, DataType("BIGINT")) * ticks // _EPOCH_DIGITS[precision]
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise _unreadable(text, str(target))
    days = _day(text, *(int(match[i]) for i in (1, 2, 3)))
    hour, minute, second = (int(match[i] or 0) for i in (4, 5, 6))
    if hour > 23 or minute > 59 or second > 59:
        raise _unreadable(text, str(target))
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    fraction = (match[7] or "")[:precision].ljust(9, "0")
    return seconds * ticks + int(fraction) * ticks // 10**9


_SIMPLE: Mapping[str, Callable[[str], object]] = {
    "BOOLEAN": _boolean,
    "FLOAT": _double,
    "DOUBLE": _double,
    "DATE": _date,
    "TIME": _time,
}
