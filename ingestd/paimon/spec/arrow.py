"""Convert between Paimon data types and Arrow types.

Timestamps have the unit of their declared precision: readers take the unit of a data file from the
declared type and not from the file.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/datafile/#data-file
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    DataField,
    DataType,
)

if TYPE_CHECKING:
    # Generic to the type checker only.
    Array = pa.Array[Any]
    Column = pa.Array[Any] | pa.ChunkedArray[Any]
    ArrowField = pa.Field[Any]
else:
    Array = pa.Array
    Column = pa.Array | pa.ChunkedArray
    ArrowField = pa.Field
Values: TypeAlias = Any
"""An Arrow array or chunked array; the stubs have no common type that supports computation."""

FIELD_ID_KEY = b"PARQUET:field_id"
NESTED_FIELD_ID_BASE = 536870911
"""The ids of list elements and map values count up from this number, those of map keys down."""
_NESTED_FIELD_ID_STEP = 1024

_FIXED: Mapping[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIME": pa.time32("ms"),
    **dict.fromkeys(CHARACTER_ROOTS, pa.string()),
    **dict.fromkeys(BINARY_ROOTS, pa.binary()),
    "BLOB": pa.binary(),
}
_FROM_ARROW: Mapping[pa.DataType, DataType] = {
    pa.bool_(): DataType("BOOLEAN"),
    pa.int8(): DataType("TINYINT"),
    pa.int16(): DataType("SMALLINT"),
    pa.int32(): DataType("INT"),
    pa.int64(): DataType("BIGINT"),
    pa.float32(): DataType("FLOAT"),
    pa.float64(): DataType("DOUBLE"),
    pa.date32(): DataType("DATE"),
    pa.time32("s"): DataType("TIME", precision=0),
    pa.time32("ms"): DataType("TIME", precision=3),
    pa.string(): DataType("STRING"),
    pa.large_string(): DataType("STRING"),
    pa.binary(): DataType("BYTES"),
    pa.large_binary(): DataType("BYTES"),
}
_WIDE = 76
"""The number of digits of a decimal256."""
_EXACT = Context(prec=38, traps=[InvalidOperation, Inexact])
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
VARIANT_PARTS = (
    DataField(0, "value", DataType("BYTES", nullable=False)),
    DataField(1, "metadata", DataType("BYTES", nullable=False)),
)
"""A VARIANT is stored as a struct of these fields.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/datafile/#data-file
"""
MULTISET_COUNT = DataType("INT", nullable=False)
"""The type of the counts in a MULTISET, which is stored as a map from elements to their counts."""
_PRECISION_OF_UNIT = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_DAY_TICKS = {unit: 86_400 * 10**digits for unit, digits in _PRECISION_OF_UNIT.items()}

# The stubs know these constructors only with literal units and without field names.
_timestamp: Callable[..., pa.DataType] = pa.timestamp
_map: Callable[..., pa.DataType] = pa.map_

_Identify = Callable[[int, bool], dict[bytes, bytes] | None]
"""Returns the field metadata of a nested value, given its depth and whether it is a map key."""


def timestamp_unit(precision: int) -> str:
    """Return the Arrow unit of TIMESTAMP(precision): ms up to 3 digits, us up to 6, ns above."""
    if precision <= 3:
        return "ms"
    return "us" if precision <= 6 else "ns"


def to_arrow_type(t: DataType) -> pa.DataType:
    """Return the Arrow type of a data type.

    Raises UnsupportedError if it has no equivalent.
    """
    return _convert(t, _unidentified, 0)


def _unidentified(depth: int, is_key: bool) -> None:
    return None


def _convert(t: DataType, identify: _Identify, depth: int) -> pa.DataType:
    """Return the Arrow type of `t`.

    `depth` counts the lists and maps that enclose it in its column; `identify` returns the metadata
    of the fields in it.
    """
    if t.root in _FIXED:
        return _FIXED[t.root]
    if t.root == "DECIMAL":
        return pa.decimal128(t.precision or 0, t.scale or 0)
    if t.root == "TIMESTAMP":
        return _timestamp(timestamp_unit(t.precision or 0))
    if t.root == "TIMESTAMP_LTZ":
        return _timestamp(timestamp_unit(t.precision or 0), tz="UTC")
    with_ids = identify is not _unidentified
    if t.root == "ROW":
        return pa.struct([_field(field, with_ids=with_ids) for field in t.fields])
    if t.root == "VARIANT":
        return pa.struct(
            [_field(variant_field, with_ids=with_ids) for variant_field in VARIANT_PARTS]
        )
    return _convert_collection(t, identify, depth + 1)


def _convert_collection(t: DataType, identify: _Identify, depth: int) -> pa.DataType:
    def child(name: str, inner: DataType) -> ArrowField:
        is_key = name == "key"
        return pa.field(
            name,
            _convert(inner, identify, depth),
            nullable=inner.nullable and not is_key,
            metadata=identify(depth, is_key),
        )

    if t.root == "ARRAY" and t.element is not None:
        return pa.list_(child("element", t.element))
    if t.root == "MAP" and t.key is not None and t.value is not None:
        return _map(child("key", t.key), child("value", t.value))
    if t.root == "MULTISET" and t.element is not None:
        return _map(child("key", t.element), child("value", MULTISET_COUNT))
    raise UnsupportedError(f"data type {t} is not supported: it has no Arrow form here")


def nested_field_id(field_id: int, depth: int, *, is_key: bool = False) -> int:
    """Return the field id, in data files, of a list element, a map value or (`is_key`) a map key.

    `field_id` is the id of the enclosing column or struct field; `depth` counts the lists and maps
    that enclose the element, key or value, 1 for the outermost.
    """
    distance = field_id * _NESTED_FIELD_ID_STEP + depth
    return NESTED_FIELD_ID_BASE + (-distance if is_key else distance)


def _field(field: DataField, *, with_ids: bool) -> ArrowField:
    def identify(depth: int, is_key: bool) -> dict[bytes, bytes]:
        return {FIELD_ID_KEY: str(nested_field_id(field.id, depth, is_key=is_key)).encode()}

    arrow_type = _convert(field.type, identify if with_ids else _unidentified, 0)
    metadata = {FIELD_ID_KEY: str(field.id).encode()} if with_ids else None
    return pa.field(field.name, arrow_type, nullable=field.type.nullable, metadata=metadata)


def arrow_schema(fields: Sequence[DataField]) -> pa.Schema:
    """Return the Arrow schema of columns; every field has its id as Parquet metadata.

    Raises UnsupportedError for a type without an Arrow equivalent.

    Specification: https://paimon.apache.org/docs/1.4/concepts/spec/datafile/#data-file
    """
    return pa.schema([_field(field, with_ids=True) for field in fields])


def from_arrow_type(arrow_type: pa.DataType) -> DataType:
    """Return the nullable Paimon type that holds the values of an Arrow type.

    Fields of structs get ids from 0 by position. Raises UnsupportedError if the type has no
    equivalent.
    """
    known = _FROM_ARROW.get(arrow_type)
    if known is not None:
        return known
    if pa.types.is_decimal128(arrow_type) and arrow_type.scale >= 0:
        return DataType("DECIMAL", precision=arrow_type.precision, scale=arrow_type.scale)
    if pa.types.is_timestamp(arrow_type):
        root = "TIMESTAMP" if arrow_type.tz is None else "TIMESTAMP_LTZ"
        return DataType(root, precision=_PRECISION_OF_UNIT[arrow_type.unit])
    if pa.types.is_list(arrow_type):
        return DataType("ARRAY", element=_from_arrow_field(arrow_type.value_field))
    if pa.types.is_map(arrow_type):
        key = _from_arrow_field(arrow_type.key_field)
        return DataType("MAP", key=key, value=_from_arrow_field(arrow_type.item_field))
    if pa.types.is_struct(arrow_type):
        fields = (arrow_type.field(i) for i in range(arrow_type.num_fields))
        typed = enumerate((field.name, _from_arrow_field(field)) for field in fields)
        return DataType("ROW", fields=tuple(DataField(i, name, t) for i, (name, t) in typed))
    raise UnsupportedError(f"Arrow type {arrow_type} has no Paimon type here")


def column_values(column: Column) -> list[object]:
    """Return the values of a column as Python values; dates, times and timestamps are integers.

    They are not converted to `datetime`, which supports only the years 1 to 9999.
    """
    physical: Any = column.cast(_physical(column.type))
    return list(physical.to_pylist())


def fold_zeros(column: Column) -> Column:
    """Return the column with 0.0 in place of -0.0, for sets of values.

    Both are equal, also as keys in Java, but Arrow's functions on sets distinguish them.
    """
    if not pa.types.is_floating(column.type):
        return column
    zero: Any = pa.scalar(0, column.type)
    folded: Any = pc.add(column, zero)
    return cast("Column", folded)


def new_infinities(values: Array, floats: Array) -> bool:
    """Return whether a cast of `values` to `floats` has made a finite value infinite.

    Arrow casts numbers that are out of range of a floating-point type to infinity.
    """
    arrow: Any = pc
    infinite = arrow.is_inf(floats)
    if not arrow.any(infinite).as_py():
        return False
    if pa.types.is_floating(values.type):
        infinite = arrow.and_not(infinite, arrow.is_inf(values))
    elif pa.types.is_string(values.type):
        named = arrow.match_substring_regex(values, r"^[+-]?inf(inity)?$", ignore_case=True)
        infinite = arrow.and_not(infinite, named)
    return bool(arrow.any(infinite).as_py())


def has_hexadecimals(texts: Array) -> bool:
    """Return whether any string contains an x, as an integer such as 0x10 does.

    Arrow casts such a string to 16, so the caller must not let Arrow cast these strings to
    integers.
    """
    arrow: Any = pc
    return bool(arrow.any(arrow.match_substring(texts, "x", ignore_case=True)).as_py())


def cast_exactly(values: Array, target: pa.DataType) -> Array:
    """Cast numbers or strings as Arrow does, except where it would return other numbers.

    Arrow casts strings and decimals to a decimal with more fractional digits without noticing that
    they overflow, accepts -2^127 for every precision, rounds the last digit of decimals that it
    casts to floats and of floats that it casts to decimals, casts no integer to a decimal without
    room for all integers of the type, and lets the days of distant timestamps overflow. Raises
    ArrowInvalid if a value does not fit.
    """
    arrow: Any = values
    if pa.types.is_floating(target) and pa.types.is_decimal(values.type):
        return cast("Array", arrow.cast(pa.string()).cast(target))
    if pa.types.is_floating(values.type) and pa.types.is_decimal(target):
        # The digits of a FLOAT are those of 32 bits.
        numbers = [None if cell is None else str(cell) for cell in _numbers(values)]
        return cast_exactly(pa.array(numbers, pa.string()), target)
    if pa.types.is_timestamp(values.type) and pa.types.is_date32(target):
        _check_days(values)
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    is_integer, is_decimal = pa.types.is_integer(values.type), pa.types.is_decimal(values.type)
    if not pa.types.is_decimal(target) or not (is_text or is_integer or is_decimal):
        return cast("Array", arrow.cast(target))
    decimal: Any = target
    scale: int = decimal.scale
    digits = scale + (_longest_number(values) if is_text else _most_digits(values))
    if digits <= _EXACT.prec and not is_integer:
        return cast("Array", arrow.cast(target))
    if digits <= _WIDE:
        return cast("Array", arrow.cast(pa.decimal256(_WIDE, scale)).cast(target))
    exact = [None if cell is None else _exact(str(cell), scale) for cell in values.to_pylist()]
    return pa.array(exact, target)


def _numbers(floats: Array) -> list[Any]:
    """Return the values of a column of floats as numbers with its number of bits."""
    nulls = floats.is_null().to_numpy(zero_copy_only=False)
    numbers = floats.to_numpy(zero_copy_only=False)
    return [None if is_null else number for is_null, number in zip(nulls, numbers, strict=True)]


def _check_days(timestamps: Array) -> None:
    """Raise ArrowInvalid if the day of a timestamp has no DATE."""
    arrow, kind = cast("Any", pc), cast("Any", timestamps.type)
    per_day = _DAY_TICKS[kind.unit]
    bounds = arrow.min_max(timestamps.cast(pa.int64())).as_py()
    first, last = bounds["min"], bounds["max"]
    if first is not None and not -(2**31) <= first // per_day <= last // per_day < 2**31:
        raise pa.ArrowInvalid("a timestamp is out of the range of a date")


def _longest_number(texts: Array) -> int:
    """Return the length of the longest string, or more than all lengths if any has an exponent."""
    arrow: Any = pc
    if arrow.any(arrow.match_substring(texts, "e", ignore_case=True)).as_py():
        return sys.maxsize
    return int(arrow.max(arrow.binary_length(texts)).as_py() or 0)


def _most_digits(numbers: Array) -> int:
    """Return the largest number of digits before the decimal point, less than 0 for small ones."""
    arrow: Any = pc
    bounds = arrow.min_max(numbers).as_py().values()
    return max((Decimal(bound).adjusted() + 1 for bound in bounds if bound), default=0)


def _exact(text: str, scale: int) -> Decimal:
    if _NUMBER.fullmatch(text) is None:
        raise pa.ArrowInvalid(f"{text[:40]!r} is not a number")
    try:
        return Decimal(text).quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    except ArithmeticError as error:
        raise pa.ArrowInvalid(f"{text[:40]!r} does not fit a decimal of scale {scale}") from error


def column_of(values: Sequence[object], t: DataType) -> Array:
    """Return an Arrow column of type `t` from Python values; None becomes null.

    Dates, times and timestamps are integers, as `column_values` returns them.
    """
    return array_of(values, to_arrow_type(t))


def array_of(values: Sequence[object], arrow_type: pa.DataType) -> Array:
    """Return an Arrow array of the type `arrow_type` from Python values; None becomes null.

    Dates, times and timestamps are integers, as `column_values` returns them.
    """
    return pa.array(values, _physical(arrow_type)).cast(arrow_type)


def _physical(arrow_type: pa.DataType) -> pa.DataType:
    return with_leaves(arrow_type, _physical_leaf)


def _physical_leaf(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(arrow_type):
        return pa.int64()
    if pa.types.is_date32(arrow_type) or pa.types.is_time32(arrow_type):
        return pa.int32()
    return arrow_type


def with_leaves(arrow_type: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a type with its innermost types replaced; `leaf` returns the new type of each."""

    def changed(field: ArrowField) -> ArrowField:
        return field.with_type(with_leaves(field.type, leaf))

    if pa.types.is_list(arrow_type):
        return pa.list_(changed(arrow_type.value_field))
    if pa.types.is_map(arrow_type):
        return _map(changed(arrow_type.key_field), changed(arrow_type.item_field))
    if pa.types.is_struct(arrow_type):
        return pa.struct([changed(arrow_type.field(i)) for i in range(arrow_type.num_fields)])
    return leaf(arrow_type)


def list_offsets(lengths: npt.ArrayLike) -> Array:
    """Return the Arrow list offsets (n + 1,) of n lists with these lengths."""
    counts = np.asarray(lengths, np.int64)
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.array(offsets)


def _from_arrow_field(field: ArrowField) -> DataType:
    inner = from_arrow_type(field.type)
    return inner if field.nullable else inner.not_null()
