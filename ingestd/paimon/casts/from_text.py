"""Casts of text to other types, as in Java: invalid text is an error.

Texts have the form `[a, b]` for an ARRAY, `{k -> v}` for a MAP, and `{a, b}` for a ROW. They are
split one by one; the elements of all texts are then cast as one column.

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
from ingestd.paimon.spec.arrow import Array, list_offsets, timestamp_unit, to_arrow_type
from ingestd.paimon.spec.data_types import INTEGER_ROOTS, TIMESTAMP_ROOTS, DataType

_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TIME_BITS = {"DATE": 32, "TIME": 32, **dict.fromkeys(TIMESTAMP_ROOTS, 64)}
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
_FORMS = {
    "ARRAY": (re.compile(r"\s*\[(.*)\]\s*"), re.compile(r"\s*ARRAY\s*\((.*)\)\s*", re.I)),
    "MAP": (re.compile(r"\s*\{(.*)\}\s*"), re.compile(r"\s*MAP\s*\((.*)\)\s*", re.I)),
    "ROW": (re.compile(r"\s*\{(.*)\}\s*"), re.compile(r"\s*STRUCT\s*\((.*)\)\s*", re.I)),
}
"""Type root -> the patterns of the bracket form and of the function form."""
_ENTRY = re.compile(r"(.+?)\s*->\s*(.+)")
Cast = Callable[[Array, DataType], Array]
"""Casts the values of an array to a type."""
_Parts = list[str | None]


def cast_from_text(array: Array, target: DataType) -> Array:
    """Cast strings to a number, BOOLEAN, DATE, TIME or timestamp type; nulls remain null.

    Raises UnsupportedError, naming the string, if it is invalid.
    """
    texts: Any = array.to_pylist()
    if target.root == "DECIMAL":
        return decimals(texts, _decimal, target)
    convert = _converter(target)
    distinct = {text: _converted(text, convert, target) for text in set(texts) - {None}}
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


def _converted(text: str, convert: Callable[[str], object], target: DataType) -> object:
    """Convert a string; raise UnsupportedError if it is invalid, or out of range of the type."""
    try:
        value = convert(text)
    except ValueError as error:
        # Python does not convert more than 4300 digits to an integer.
        raise _unreadable(text, str(target)) from error
    bits = _TIME_BITS.get(target.root)
    if bits is not None and isinstance(value, int):
        half = 1 << (bits - 1)
        if not -half <= value < half:
            raise _unreadable(text, str(target))
    return value


def _converter(target: DataType) -> Callable[[str], object]:
    if target.root in INTEGER_ROOTS:
        return lambda text: _integer(text, target)
    if target.root in TIMESTAMP_ROOTS:
        return lambda text: _timestamp(text, target)
    return _SIMPLE[target.root]


def _unreadable(text: str, type_name: str) -> UnsupportedError:
    return UnsupportedError(f"'{text}' cannot be read as {type_name}")


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in _TRUE | _FALSE:
        raise _unreadable(text, "BOOLEAN")
    return lowered in _TRUE


def _integer(text: str, target: DataType) -> int:
    """Parse a number and return its integer part; digits after the decimal point are dropped."""
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
    """Parse a date and return its days since 1970; a plain number is the number of days."""
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
    """Parse a time and return its milliseconds of the day; a plain number is the milliseconds."""
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
    """Return the digits of a fraction of a second as milliseconds, rounded by the fourth digit."""
    plain = "".join(c if c.isdecimal() else "0" for c in digits)
    rounded = len(digits) > 3 and "5" <= digits[3] <= "9"
    return int(plain[:3].ljust(3, "0")) + rounded


def _timestamp(text: str, target: DataType) -> int:
    """Parse a timestamp and return it as an integer in the unit of the target's Arrow type.

    For TIMESTAMP, a plain number is the time since 1970 in units of the precision, which must be 0,
    3, 6 or 9.
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


def cast_text_to_nested(array: Array, target: DataType, cast: Cast) -> Array:
    """Cast strings to ARRAY, MAP or ROW; nulls remain null.

    `cast` casts an array of strings to the type of an element or field. Raises UnsupportedError for
    an invalid string, and for a null as the key of a map.
    """
    texts: Any = array.to_pylist()
    if target.root == "ARRAY" and target.element is not None:
        return _arrays(texts, target, target.element, cast)
    if target.root == "MAP":
        return _maps(texts, target, cast)
    return _rows(texts, target, cast)


def _content(text: str, root: str) -> tuple[str, bool]:
    """Return the text between the brackets, and whether it is in the function form `ARRAY(...)`."""
    trimmed = text.strip()
    for number, form in enumerate(_FORMS[root]):
        match = form.fullmatch(trimmed)
        if match is not None:
            return match[1].strip(), number == 1
    raise UnsupportedError(f"'{text}' cannot be read as {root}")


def split_elements(content: str, *, keep_marks: bool = True) -> list[str]:
    """Split a string at the commas outside quotes and brackets.

    Empty elements are dropped; then blanks around elements are removed, so that an element of
    blanks is returned as "". Without `keep_marks`, quotes, backslashes and characters after a
    backslash are removed.
    """
    parts: list[str] = []
    current: list[str] = []
    depth, quoted, escaped = 0, False, False
    for c in content:
        is_mark = escaped or c in '\\"'
        if c == "," and depth == 0 and not (quoted or escaped):
            parts.append("".join(current))
            current.clear()
        elif keep_marks or not is_mark:
            current.append(c)
        if not (is_mark or quoted):
            depth = max(0, depth + (c in "([{") - (c in ")]}"))
        quoted ^= c == '"' and not escaped
        escaped = c == "\\" and not escaped
    parts.append("".join(current))
    return [piece.strip() for piece in parts if piece]


def _null_or(text: str) -> str | None:
    return None if text == "null" else text


def _arrays(texts: list[str | None], target: DataType, element: DataType, cast: Cast) -> Array:
    lists = [None if text is None else split_elements(_content(text, "ARRAY")[0]) for text in texts]
    flat: _Parts = [_null_or(text) for parts in lists for text in parts or ()]
    values = cast(pa.array(flat, pa.string()), element)
    make: Any = pa.ListArray.from_arrays
    array: Array = make(
        list_offsets([len(parts or ()) for parts in lists]),
        values,
        to_arrow_type(target),
        mask=_mask(lists),
    )
    return array


def _maps(texts: list[str | None], target: DataType, cast: Cast) -> Array:
    entries = [None if text is None else _entries(text) for text in texts]
    keys: _Parts = [_null_or(key) for pairs in entries for key, _ in pairs or ()]
    items: _Parts = [_null_or(item) for pairs in entries for _, item in pairs or ()]
    if target.key is None or target.value is None or None in keys:
        raise UnsupportedError(f"a key of a {target} is null")
    map_array: Any = pa.MapArray
    result: Array = map_array.from_arrays(
        list_offsets([len(parts or ()) for parts in entries]),
        cast(pa.array(keys, pa.string()), target.key),
        cast(pa.array(items, pa.string()), target.value),
        to_arrow_type(target),
        mask=_mask(entries),
    )
    return result


def _entries(text: str) -> list[tuple[str, str]] | None:
    if text.strip().upper() == "NULL":
        return None
    content, is_function = _content(text, "MAP")
    parts = split_elements(content, keep_marks=False)
    if is_function:
        if len(parts) % 2:
            raise UnsupportedError(f"'{text}' cannot be read as MAP: a key has no value")
        return list(dict(zip(parts[::2], parts[1::2], strict=True)).items())
    entries: dict[str, str] = {}
    for entry in parts:
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise UnsupportedError(f"'{text}' cannot be read as MAP")
        entries[match[1].strip()] = match[2].strip()
    return list(entries.items())


def _rows(texts: list[str | None], target: DataType, cast: Cast) -> Array:
    width = len(target.fields)
    columns: list[_Parts] = [[] for _ in range(width)]
    for text in texts:
        parts: _Parts = [None] * width
        content = "" if text is None else _content(text, "ROW")[0]
        if content:
            parts = [_null_or(element) for element in split_elements(content)]
        if len(parts) != width:
            raise UnsupportedError(f"'{text}' cannot be read as {target}: {len(parts)} fields")
        for column, field_text in zip(columns, parts, strict=True):
            column.append(field_text)
    cells = zip(columns, target.fields, strict=True)
    children = [cast(pa.array(column, pa.string()), field.type) for column, field in cells]
    arrow_type: Any = to_arrow_type(target)
    fields = [arrow_type.field(i) for i in range(width)]
    mask = pa.array([text is None for text in texts])
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _mask(lists: list[Any]) -> Array:
    return pa.array([parts is None for parts in lists], pa.bool_())
