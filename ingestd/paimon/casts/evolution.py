"""Convert rows of a data file to the columns of a newer schema.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#update-schema

Columns are matched by field id, because the file has the column names of the time when it was
written. A column that the file lacks is null; a column of another type is cast as Java Paimon does.
Java rounds towards zero in some casts of times, so that times before 1970 are one unit too late; so
does this module. The local time zone is UTC.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import UnsupportedError
from ingestd.paimon.casts.from_text import cast_from_text, cast_text_to_nested
from ingestd.paimon.casts.numbers import cast_number
from ingestd.paimon.casts.shredded_variant import whole_variants
from ingestd.paimon.casts.to_text import TEXT, cast_to_bytes, cast_to_text
from ingestd.paimon.spec.arrow import Array, arrow_schema, timestamp_unit, to_arrow_type
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    NESTED_ROOTS,
    TIMESTAMP_ROOTS,
    DataField,
    DataType,
    walk_types,
)
from ingestd.paimon.spec.type_casts import can_cast

if TYPE_CHECKING:
    Chunked = pa.ChunkedArray[Any]
else:
    Chunked = pa.ChunkedArray

_UNITS = {"ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}


@lru_cache(maxsize=1024)
def columns_schema(fields: tuple[DataField, ...]) -> pa.Schema:
    """Return the Arrow schema of columns with their Paimon types and ids; results are cached."""
    return arrow_schema(fields)


def file_columns(
    file_fields: Sequence[DataField], fields: Sequence[DataField]
) -> dict[str, DataField]:
    """Return the file's field for each requested field, by the name of the requested field.

    Fields are matched by id. Requested fields of which the file has no part are left out.
    """
    by_id = {field.id: field for field in file_fields}
    return {
        field.name: by_id[field.id]
        for field in fields
        if field.id in by_id and _has_common_part(by_id[field.id].type, field.type)
    }


def _has_common_part(source: DataType, target: DataType) -> bool:
    """Return whether a value of `source` has a part of `target`.

    A ROW needs a field in common. Java does not read one without, so that the ROW and the ARRAY or
    MAP around it are null.
    """
    if source == target or source.root != target.root:
        return True
    if target.root == "ROW":
        by_id = {field.id: field.type for field in source.fields}
        return any(
            field.id in by_id and _has_common_part(by_id[field.id], field.type)
            for field in target.fields
        )
    if source.element is not None and target.element is not None:
        return _has_common_part(source.element, target.element)
    if source.value is not None and target.value is not None:
        return _has_common_part(source.value, target.value)
    return True


def evolve(
    rows: pa.Table, file_fields: Sequence[DataField], fields: Sequence[DataField]
) -> pa.Table:
    """Convert rows of a file, whose columns are `file_fields`, to rows with the columns `fields`.

    The result has the order and the Arrow types of `fields`. Columns that the rows lack are null.

    Raises UnsupportedError, naming the column, for a cast that is not implemented and for a value
    that cannot be cast.
    """
    sources = file_columns(file_fields, fields)
    schema = columns_schema(tuple(fields))
    present = set(rows.column_names)
    columns = []
    for field, arrow_field in zip(fields, schema, strict=True):
        source = sources.get(field.name)
        if source is None or source.name not in present:
            columns.append(pa.nulls(rows.num_rows, arrow_field.type))
        else:
            column = rows.column(source.name)
            columns.append(_cast_column(column, source, field, arrow_field.type))
    names = [field.name for field in fields]
    # Types only: a null where the schema forbids one is for `verify` to find, not for readers.
    plain = pa.schema([(name, field.type) for name, field in zip(names, schema, strict=True)])
    return pa.Table.from_arrays(columns, schema=plain)


def _cast_column(
    column: Chunked, source: DataField, field: DataField, arrow_type: pa.DataType
) -> Chunked:
    try:
        column = _with_whole_variants(column, source.type)
        physical = to_arrow_type(source.type)
        if column.type != physical:
            column = _as_declared(column, physical)
        if source.type.as_nullable() == field.type.as_nullable():
            return _relabelled(column, arrow_type)
        chunks = [cast_array(chunk, source.type, field.type) for chunk in column.chunks]
        target: Any = to_arrow_type(field.type)
        return _relabelled(pa.chunked_array(chunks, target), arrow_type)
    except UnsupportedError as error:
        raise UnsupportedError(f"column {field.name}: {error.message}") from error
    except pa.ArrowInvalid as error:
        raise UnsupportedError(
            f"column {field.name}: a value of {source.type} cannot be held as {field.type}: {error}"
        ) from error


def _with_whole_variants(column: Chunked, declared: DataType) -> Chunked:
    """Return a column in which VARIANT values are not shredded into columns.

    Raises UnsupportedError if they are within values of another type.
    """
    inside = any(t.root == "VARIANT" for t in walk_types(declared))
    if not inside or "typed_value" not in str(column.type):
        return column
    if declared.root != "VARIANT":
        raise UnsupportedError(f"{declared} that is shredded into columns is not supported")
    chunks: Any = [whole_variants(chunk) for chunk in column.chunks]
    whole: Chunked = pa.chunked_array(chunks) if chunks else column
    return whole


def _as_declared(column: Chunked, declared: pa.DataType) -> Chunked:
    """Return a column of a file in the Arrow type of its declared type.

    Digits below the declared unit of a timestamp are truncated: INT96 and ORC always store
    nanoseconds.
    """
    if pa.types.is_timestamp(declared):
        unit: Any = declared
        floor: Any = pc.floor_temporal
        column = floor(column, unit=_UNITS[unit.unit])
    if not pa.types.is_nested(declared):
        return column.cast(declared)
    nested: Chunked = cast_nested_chunks(column.chunks, declared)
    return nested


def _relabelled(column: Chunked, arrow_type: pa.DataType) -> Chunked:
    """Return a column in a type that differs only in the ids and nullability of nested fields."""
    if column.type == arrow_type:
        return column
    if not pa.types.is_nested(arrow_type):
        return column.cast(arrow_type)
    nested: Chunked = cast_nested_chunks(column.chunks, arrow_type)
    return nested


def cast_array(array: Array, source: DataType, target: DataType) -> Array:
    """Cast values to another data type; nulls remain null.

    Raises UnsupportedError for a cast that does not exist, for a text that is invalid for the
    target type, and for a value outside the target's range for which Java raises an error.
    """
    if source.as_nullable() == target.as_nullable() or source.root == target.root == "TIME":
        return array
    if source.root == target.root == "ROW":
        return _cast_row(array, source, target)
    if source.root == target.root and source.root in ("ARRAY", "MAP"):
        return _cast_collection(array, source, target)
    if not can_cast(source, target):
        raise _refused(source, target)
    return _cast_plain(array, source, target)


def _cast_plain(array: Array, source: DataType, target: DataType) -> Array:
    if target.root in CHARACTER_ROOTS:
        return cast_to_text(array, source, target)
    if target.root in BINARY_ROOTS:
        return cast_to_bytes(array, target)
    if source.root in CHARACTER_ROOTS:
        return cast_text(array, target)
    if source.root in _TIME_ROOTS or target.root in _TIME_ROOTS:
        return _cast_time(array, source, target)
    return cast_number(array, source, target)


def cast_text(array: Array, target: DataType) -> Array:
    """Cast strings to another type.

    Unlike `cast_array`, this function supports ARRAY, MAP and ROW, because their default values are
    strings. Raises UnsupportedError for a string that is invalid for the type, and for a MULTISET,
    VECTOR, VARIANT or BLOB.
    """
    if target.root in CHARACTER_ROOTS:
        return cast_to_text(array, TEXT, target)
    if target.root in BINARY_ROOTS:
        return cast_to_bytes(array, target)
    if target.root in ("ARRAY", "MAP", "ROW"):
        return cast_text_to_nested(array, target, cast_text)
    if target.root in NESTED_ROOTS or target.root in ("VARIANT", "BLOB"):
        raise _refused(TEXT, target)
    return cast_from_text(array, target)


def _cast_row(column: Array, source: DataType, target: DataType) -> Array:
    array: Any = column
    sources: Mapping[int, tuple[int, DataField]] = {
        field.id: (i, field) for i, field in enumerate(source.fields)
    }
    children: list[Array] = []
    for field in target.fields:
        position, inner = sources.get(field.id, (None, field))
        if position is None or not _has_common_part(inner.type, field.type):
            children.append(_nulls(len(array), field.type))
        else:
            children.append(cast_array(array.field(position), inner.type, field.type))
    mask = array.is_null() if array.null_count else None
    arrow_type: Any = to_arrow_type(target)
    fields = [arrow_type.field(i) for i in range(arrow_type.num_fields)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _nulls(count: int, t: DataType) -> Array:
    arrow: Any = pa
    nulls: Array = arrow.nulls(count, to_arrow_type(t))
    return nulls


def _cast_collection(column: Array, source: DataType, target: DataType) -> Array:
    # A slice keeps the values in front of it; taking the rows makes an array that starts at 0.
    array: Any = column.take(np.arange(len(column)))
    arrow: Any = pa
    mask = array.is_null() if array.null_count else None
    arrow_type = to_arrow_type(target)
    result: Array
    if source.element is not None and target.element is not None:
        values = cast_array(array.values, source.element, target.element)
        result = arrow.ListArray.from_arrays(array.offsets, values, arrow_type, mask=mask)
    elif source.value is not None and target.value is not None and source.key == target.key:
        items = cast_array(array.items, source.value, target.value)
        result = arrow.MapArray.from_arrays(array.offsets, array.keys, items, arrow_type, mask=mask)
    else:
        raise _refused(source, target)
    return result


def _refused(source: DataType, target: DataType) -> UnsupportedError:
    return UnsupportedError(
        f"reading {source} as {target} is not supported; compact the table with another writer, "
        "or change the column's type back"
    )


def cast_nested_chunks(chunks: Sequence[Array], target: pa.DataType) -> Any:  # noqa: ANN401
    """Cast each chunk of a column to an Arrow type with the same nesting; return a ChunkedArray.

    Raises ArrowInvalid if the nesting or the names of fields differ, or a value does not fit.
    """
    parts: Any = [cast_nested(chunk, target) for chunk in chunks]
    kind: Any = target
    return pa.chunked_array(parts, kind)


def cast_nested(array: Array, target: pa.DataType) -> Array:
    """Return the values in another Arrow type with the same nesting.

    A NOT NULL field contains nulls wherever the enclosing ROW is null. Arrow's own cast rejects
    these nulls, because it does not take the enclosing struct into account.

    Raises ArrowInvalid if the nesting or the names of fields differ, or a value does not fit.
    """
    nested: Any = array
    kind: Any = target
    if pa.types.is_struct(target) and pa.types.is_struct(array.type):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        if [f.name for f in fields] != [f.name for f in nested.type]:
            raise pa.ArrowInvalid(f"{array.type} has other fields than {target}")
        children = [
            cast_nested(child, f.type) for child, f in zip(nested.flatten(), fields, strict=True)
        ]
        if not children:
            return array
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    if pa.types.is_map(target) and pa.types.is_map(array.type):
        keys = cast_nested(nested.keys, kind.key_type)
        items = cast_nested(nested.items, kind.item_type)
        make: Any = pa.MapArray.from_arrays
        pairs: Array = make(masked_offsets(nested), keys, items, kind)
        return pairs
    if pa.types.is_list(target) and pa.types.is_list(array.type):
        values = cast_nested(nested.values, kind.value_type)
        make = pa.ListArray.from_arrays
        lists: Array = make(masked_offsets(nested), values, type=kind)
        return lists
    try:
        return array.cast(target)
    except pa.ArrowNotImplementedError as error:
        raise pa.ArrowInvalid(f"{array.type} cannot be cast to {target}") from error


def masked_offsets(nested: Any) -> Array:  # noqa: ANN401  # ListArray or MapArray
    """Return the offsets (n + 1,) of n lists or maps.

    Offset i is where list or map i begins, or null if it is null; the last offset is where the last
    list or map ends.
    """
    offsets: Array = nested.offsets
    nulls = nested.is_null().to_numpy(zero_copy_only=False)
    masked: Array = pa.array(offsets.to_numpy(), mask=np.append(nulls, False))
    return masked


_TIME_ROOTS = TIMESTAMP_ROOTS | {"DATE", "TIME"}

_DAY = 86_400_000
_TICKS = {"ms": 1, "us": 1000, "ns": 1_000_000}
"""Ticks per millisecond of each Arrow unit."""
_Longs = npt.NDArray[np.int64]


def _cast_time(array: Array, source: DataType, target: DataType) -> Array:
    """Cast temporal values to temporal types or to whole seconds, or whole seconds to timestamps.

    Raises UnsupportedError if a timestamp exceeds the range of the target's unit.
    """
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    numbers = _longs(array)
    if source.root in TIMESTAMP_ROOTS and target.root in TIMESTAMP_ROOTS:
        return _timestamps(_rescaled(numbers, source, target), nulls, target)
    if source.root in TIMESTAMP_ROOTS:
        millis = numbers // _TICKS[timestamp_unit(source.precision or 0)]
        zoned = source.root == "TIMESTAMP_LTZ"
        return _typed(_FROM_MILLIS[target.root](millis, zoned), nulls, target)
    millis = _TO_MILLIS[source.root](numbers)
    return _timestamps(_times(millis, _TICKS[timestamp_unit(target.precision or 0)]), nulls, target)


def _longs(array: Array) -> _Longs:
    """Return the integers of a temporal or integer column, 0 for nulls."""
    kind: Any = array.type
    plain: Any = array.view(pa.int32()) if kind in (pa.date32(), pa.time32("ms")) else array
    plain = plain.view(pa.int64()) if pa.types.is_timestamp(kind) else plain
    numbers: _Longs = plain.fill_null(0).to_numpy().astype(np.int64)
    return numbers


def _timestamps(numbers: _Longs, nulls: npt.NDArray[np.bool_], target: DataType) -> Array:
    """Return integers in the unit of a timestamp type as timestamps, null where `nulls` is true."""
    return pa.array(numbers, mask=nulls).cast(to_arrow_type(target))


def _rescaled(numbers: _Longs, source: DataType, target: DataType) -> _Longs:
    old = _TICKS[timestamp_unit(source.precision or 0)]
    new = _TICKS[timestamp_unit(target.precision or 0)]
    moved: _Longs = _times(numbers, new // old) if new >= old else numbers // (old // new)
    precision = target.precision or 0
    if precision >= (source.precision or 0):
        return moved
    if precision <= 3:
        unit = 10 ** (3 - precision)
        cut: _Longs = _towards_zero(moved, unit) * unit
        return cut
    unit = 10 ** ((6 if new == _TICKS["us"] else 9) - precision)
    return np.asarray(moved // unit * unit)


def _times(numbers: _Longs, factor: int) -> _Longs:
    bound = np.iinfo(np.int64).max // factor
    outside = (numbers > bound) | (numbers < -bound)
    if outside.any():
        raise UnsupportedError(f"{int(numbers[outside][0])} is out of the range of the new type")
    return numbers * factor


def _towards_zero(numbers: _Longs, divisor: int) -> _Longs:
    return np.where(numbers < 0, -(-numbers // divisor), numbers // divisor)


def _days(millis: _Longs, zoned: bool) -> _Longs:
    return millis // _DAY if zoned else _towards_zero(millis, _DAY)


def _millis_of_day(millis: _Longs, zoned: bool) -> _Longs:
    return millis % _DAY if zoned else millis - _towards_zero(millis, _DAY) * _DAY


def _seconds(millis: _Longs, zoned: bool) -> _Longs:
    return _towards_zero(millis, 1000)


_FROM_MILLIS: Mapping[str, Callable[[_Longs, bool], _Longs]] = {
    "DATE": _days,
    "TIME": _millis_of_day,
    "BIGINT": _seconds,
    "INT": _seconds,
}
_TO_MILLIS: Mapping[str, Callable[[_Longs], _Longs]] = {
    "DATE": lambda days: days * _DAY,
    "TIME": lambda millis: millis,
    "BIGINT": lambda seconds: _times(seconds, 1000),
    "INT": lambda seconds: seconds * 1000,
}


def _typed(numbers: _Longs, nulls: npt.NDArray[np.bool_], target: DataType) -> Array:
    if target.root == "BIGINT":
        return pa.array(numbers, mask=nulls)
    return pa.array(numbers.astype(np.int32), mask=nulls).cast(to_arrow_type(target))
