"""Convert single JSON values of any kind to Python values for Arrow.

This is slow; columns whose values have uniform kinds have faster readers.
"""

import binascii
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ingestd.cdc.cell_budget import CellBudget
from ingestd.cdc.columns.decimal_columns import VariableScale, plain_number, within_reach
from ingestd.cdc.columns.temporal_columns import read_integers, read_texts
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)

Cell = Any
"""A Python value that Arrow accepts for a cell."""

_DECODE = msgspec.json.Decoder(float_hook=Decimal).decode
_DECODE_ARRAY = msgspec.json.Decoder(list[msgspec.Raw]).decode
_DECODE_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_DECODE_VARIABLE = msgspec.json.Decoder(VariableScale).decode
_INTEGER = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_LONGEST_INTEGER = 40
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
SPECIAL_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def read_cell(raw: bytes, data_type: DataType) -> Cell:
    """Convert a JSON value to the Python value that Arrow accepts for the type; None for null.

    Raises ValueError, TypeError, ArithmeticError, RecursionError, ArrowException or MsgspecError if
    the value does not fit the type, and CellBudgetError (a ValueError) if it exceeds its cell
    budget.
    """
    return _read(raw, data_type, CellBudget(len(raw)))


def _read(raw: bytes, data_type: DataType, budget: CellBudget) -> Cell:
    if raw == b"null":
        return None
    root = data_type.root
    if root in CHARACTER_ROOTS:
        return string_or_json(raw)
    if root in {"ARRAY", "MAP", "ROW"}:
        return _read_nested(raw, data_type, budget)
    value = _DECODE(raw)
    if root in INTEGER_ROOTS:
        return _integer(value)
    if root in BINARY_ROOTS:
        return binary_of(value)
    reader = _READERS.get(root)
    if reader is None:
        raise TypeError(f"JSON values cannot be read as {data_type}")
    return reader(value, data_type)


def string_or_json(raw: bytes) -> str:
    """Return the content of a JSON string, or the JSON text of any other value, null included."""
    if raw.startswith(b'"'):
        return str(_DECODE(raw))
    return raw.decode()


def _read_nested(raw: bytes, data_type: DataType, budget: CellBudget) -> Cell:
    if data_type.root == "ARRAY" and data_type.element is not None:
        items = _DECODE_ARRAY(raw)
        budget.spend(len(items))
        return [_read(bytes(item), data_type.element, budget) for item in items]
    entries = _DECODE_OBJECT(raw)
    if data_type.value is not None:
        value_type = data_type.value
        budget.spend(2 * len(entries))
        return [(name, _read(bytes(item), value_type, budget)) for name, item in entries.items()]
    null = msgspec.Raw(b"null")
    budget.spend(len(data_type.fields))
    names = {field.name for field in data_type.fields}
    for name, item in entries.items():
        if name not in names and bytes(item) != b"null":
            raise ValueError(f"the column has no field {name!r}; add it to the table's column")
    return {
        field.name: _read(bytes(entries.get(field.name, null)), field.type, budget)
        for field in data_type.fields
    }


def _integer(value: object) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if isinstance(value, Decimal) and _is_integral(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError("not an integer")


def _is_integral(value: Decimal) -> bool:
    """Return whether a number is an integer with at most 40 digits."""
    return value.adjusted() < _LONGEST_INTEGER and value == value.to_integral_value()


def float_of(value: object) -> float:
    """Convert a JSON number, a quoted number, NaN or an infinity to a float.

    Raises ValueError for any other value, and OverflowError if the number is out of range.
    """
    if isinstance(value, str):
        if value in SPECIAL_FLOATS:
            return SPECIAL_FLOATS[value]
        if not _NUMBER.fullmatch(value):
            raise ValueError("not a number")
    elif isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("not a number")
    number = float(value)
    if math.isinf(number) and not isinstance(value, float):
        raise OverflowError("out of range of a double")
    return number


def single_of(value: object) -> float:
    """Convert a JSON number, a quoted number, NaN or an infinity to a float in the range of FLOAT.

    Raises ValueError for any other value, and OverflowError if the number is out of range.
    """
    number = float_of(value)
    with np.errstate(over="ignore"):
        if math.isfinite(number) and math.isinf(np.float32(number)):
            raise OverflowError("out of range of a float")
    return number


def short_single(number: float) -> float:
    """Return the double with the fewest digits that is this number, a FLOAT, when it is rounded.

    In JSON text it is 0.1 and not 0.10000000149011612.
    """
    single = np.float32(number)
    short = float(str(single))
    return short if np.float32(short) == single else number


def json_float(number: float) -> float | str:
    """Return a finite number unchanged, and NaN or an infinity as text.

    JSON has no number for these values.
    """
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _boolean(value: object) -> bool:
    flag = _BOOLEANS.get(str(value).lower())
    if flag is None or isinstance(value, Decimal):
        raise ValueError("not a boolean")
    return flag


def binary_of(value: object) -> bytes:
    """Decode base64. Raises TypeError or ValueError if the value is not base64."""
    if not isinstance(value, str):
        raise TypeError("not base64 text")
    return binascii.a2b_base64(value.encode(), strict_mode=True)


def _decimal(value: object, scale: int) -> Decimal:
    """Convert a number, quoted or not, to a decimal for a column with `scale` fractional digits."""
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            raise ValueError("not a number")
    elif isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("not a number")
    return within_reach(Decimal(value), scale)


def decimal_cell(raw: bytes, scale: int, *, base64: bool) -> Decimal | None:
    """Parse a JSON number or a string as a decimal; None for null.

    A string is a base64 unscaled integer with the scale `scale` if `base64` is set, else a quoted
    number. Raises ValueError, TypeError, ArithmeticError, RecursionError, ArrowException or
    MsgspecError for any other value.
    """
    value = _DECODE(raw)
    if value is None:
        return None
    if base64 and isinstance(value, str):
        return Decimal(plain_number(int.from_bytes(binary_of(value), "big", signed=True), scale))
    return _decimal(value, scale)


def number_text_cell(raw: bytes, scale: int, *, base64: bool) -> str | None:
    """Return a decimal as text, or None for JSON null.

    Objects, which contain their scale, are converted to plain notation. So are strings if `base64`
    is set: they are base64 unscaled integers with the scale `scale`. Numbers, quoted or not, are
    returned unchanged. Raises ValueError, TypeError, ArithmeticError, RecursionError,
    ArrowException or MsgspecError for an invalid value.
    """
    if raw.startswith(b"{"):
        value = _DECODE_VARIABLE(raw)
        return plain_number(int.from_bytes(value.value, "big", signed=True), value.scale)
    if base64 and raw.startswith(b'"'):
        return plain_number(int.from_bytes(binary_of(_DECODE(raw)), "big", signed=True), scale)
    if raw == b"null":
        return None
    text = string_or_json(raw)
    if not _NUMBER.fullmatch(text):
        raise ValueError("not a number")
    return text


def _temporal(value: object, data_type: DataType) -> Cell:
    if isinstance(value, str):
        array = read_texts([value], data_type)
    elif isinstance(value, int) and not isinstance(value, bool):
        array = read_integers([value], data_type)
    else:
        raise TypeError("neither an integer nor ISO text")
    number = pa.int32() if array.type.bit_width == 32 else pa.int64()
    return array.view(number)[0].as_py()


_READERS: Mapping[str, Callable[[object, DataType], Any]] = {
    "BOOLEAN": lambda value, _: _boolean(value),
    "FLOAT": lambda value, _: single_of(value),
    "DOUBLE": lambda value, _: float_of(value),
    "DECIMAL": lambda value, data_type: _decimal(value, data_type.scale or 0),
    **dict.fromkeys(TIMESTAMP_ROOTS | {"DATE", "TIME"}, _temporal),
}
