"""Casts between numbers, booleans and decimals, as in Java.

Integers wrap around on overflow. Floats cast to integers are clamped to the range of BIGINT or INT;
for SMALLINT and TINYINT, the clamped INT wraps around. A decimal that does not fit becomes null.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#update-schema
"""

from collections.abc import Callable, Mapping
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.data_types import INTEGER_ROOTS, DataType
from ingestd.paimon.spec.float_text import java_double

NUMBER_ROOTS = INTEGER_ROOTS | {"FLOAT", "DOUBLE", "DECIMAL"}

_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)
_COMPACT_PRECISION = 18
_DTYPES: Mapping[str, type[np.number[Any]]] = {
    "TINYINT": np.int8,
    "SMALLINT": np.int16,
    "INT": np.int32,
    "BIGINT": np.int64,
    "FLOAT": np.float32,
    "DOUBLE": np.float64,
}


def cast_number(array: Array, source: DataType, target: DataType) -> Array:
    """Cast numbers and booleans to numbers or booleans, as Java does; nulls remain null.

    Integers wrap around on overflow, floats are clamped to the range of BIGINT or INT, and a
    decimal that does not fit becomes null. Raises UnsupportedError for NaN or an infinity that is
    cast to DECIMAL.
    """
    if target.root == "DECIMAL":
        return decimals(array.to_pylist(), _to_decimal(source), target)
    if source.root == "DECIMAL":
        return _from_decimal(array, source, target)
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    filled: Any = array.fill_null(False if source.root == "BOOLEAN" else 0)
    numbers = filled.to_numpy(zero_copy_only=False)
    if target.root == "BOOLEAN":
        truth: Array = pa.array(numbers != 0, mask=nulls)
        return truth
    converted: Array = pa.array(_converted(numbers, target.root), mask=nulls)
    return converted


def _converted(numbers: npt.NDArray[Any], root: str) -> npt.NDArray[Any]:
    dtype = _DTYPES[root]
    if numbers.dtype.kind != "f" or root not in INTEGER_ROOTS:
        with np.errstate(over="ignore"):
            return numbers.astype(dtype)
    wide: type[np.signedinteger[Any]] = np.int64 if root == "BIGINT" else np.int32
    limits = np.iinfo(wide)
    values = np.nan_to_num(numbers.astype(np.float64), nan=0.0)
    low, high = values <= limits.min, values >= limits.max
    inside = np.where(low | high, 0.0, values).astype(wide)
    return np.where(high, limits.max, np.where(low, limits.min, inside)).astype(dtype)


def _to_decimal(source: DataType) -> Callable[[Any], Decimal]:
    if source.root in ("FLOAT", "DOUBLE"):
        return lambda value: Decimal(java_double(value))
    return Decimal


def decimals(values: list[Any], convert: Callable[[Any], Decimal], target: DataType) -> Array:
    """Cast values to a decimal type, rounded half up; a value that does not fit becomes null.

    `convert` returns the exact decimal of a value that is not None; its errors are raised. Raises
    UnsupportedError for a value that is not finite.
    """
    scale, limit = target.scale or 0, (target.precision or 0) - (target.scale or 0)
    unit = Decimal(1).scaleb(-scale)

    def fitted(value: object) -> Decimal | None:
        number = convert(value)
        if not number.is_finite():
            raise UnsupportedError(f"{value!r} cannot be read as {target}")
        if number.adjusted() > 2 * limit + 40:
            return None
        rounded = number.quantize(unit, context=_EXACT)
        return rounded if rounded.adjusted() < limit or not rounded else None

    cells = [None if value is None else fitted(value) for value in values]
    return pa.array(cells, to_arrow_type(target))


def _from_decimal(array: Array, source: DataType, target: DataType) -> Array:
    cells = array.to_pylist()
    if target.root in ("FLOAT", "DOUBLE"):
        doubles = [None if cell is None else _double(cell, source) for cell in cells]
        with np.errstate(over="ignore"):
            return pa.array(doubles, pa.float64()).cast(to_arrow_type(target), safe=False)
    bits = np.dtype(_DTYPES[target.root]).itemsize * 8
    numbers = [None if cell is None else _wrapped(cell, bits) for cell in cells]
    return pa.array(numbers, to_arrow_type(target))


def _double(value: Decimal, source: DataType) -> float:
    scale = source.scale or 0
    if (source.precision or 0) <= _COMPACT_PRECISION:
        return float(int(value.scaleb(scale, context=_EXACT))) / float(10**scale)
    return float(value)


def _wrapped(value: Decimal, bits: int) -> int:
    whole = int(value.to_integral_value(ROUND_DOWN, context=_EXACT))
    half: int = 1 << (bits - 1)
    return (whole + half) % (2 * half) - half
