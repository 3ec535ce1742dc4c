"""Rows of a data file in the columns of a newer schema. Specification: Schema evolution.

A column is found by its field id: the file knows it by the name it had when the file was
written. What the file does not have is null; what has another type is cast as Paimon casts.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.arrow import Array, arrow_schema, to_arrow_type
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataField,
    DataType,
)
from ingestd.paimon.table.value_text import date_texts, decimal_texts

if TYPE_CHECKING:
    Chunked = pa.ChunkedArray[Any]
else:
    Chunked = pa.ChunkedArray

_UNITS = {"ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}
_WIDTH = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
"""Decimal digits that an integer type may need; also the order of the types."""


@lru_cache(maxsize=1024)
def columns_schema(fields: tuple[DataField, ...]) -> pa.Schema:
    """What `arrow_schema` makes of some fields; a table's many files share a few of them."""
    return arrow_schema(fields)


def file_columns(
    file_fields: Sequence[DataField], fields: Sequence[DataField]
) -> dict[str, DataField]:
    """For each of the wanted fields that a file has: wanted name -> the file's own field."""
    by_id = {field.id: field for field in file_fields}
    return {field.name: by_id[field.id] for field in fields if field.id in by_id}


def evolve(
    rows: pa.Table, file_fields: Sequence[DataField], fields: Sequence[DataField]
) -> pa.Table:
    """Rows read with a file's schema as rows of `fields`, in their order and Arrow types.

    UnsupportedError names the column and the types of a cast that is not implemented.
    """
    sources = file_columns(file_fields, fields)
    schema = columns_schema(tuple(fields))
    columns = []
    for field, arrow_field in zip(fields, schema, strict=True):
        source = sources.get(field.name)
        if source is None or source.name not in rows.column_names:
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


def _as_declared(column: Chunked, declared: pa.DataType) -> Chunked:
    """A column as its file holds it, in the Arrow type of its declared type.

    Digits below the unit of a timestamp are cut: INT96 has nanoseconds, whatever was declared.
    """
    if pa.types.is_timestamp(declared):
        unit: Any = declared
        floor: Any = pc.floor_temporal
        column = floor(column, unit=_UNITS[unit.unit])
    return column.cast(declared)


def _relabelled(column: Chunked, arrow_type: pa.DataType) -> Chunked:
    """The same values in a type that differs by field ids and nullability of inner fields."""
    return column if column.type == arrow_type else column.cast(arrow_type)


def cast_array(array: Array, source: DataType, target: DataType) -> Array:
    """Values of one type as another; UnsupportedError names a cast that is not implemented."""
    arrow_type = to_arrow_type(target)
    if source.as_nullable() == target.as_nullable():
        return array
    if source.root == target.root == "ROW":
        return _cast_row(array, source, target)
    if source.root == target.root and source.root in ("ARRAY", "MAP"):
        return _cast_collection(array, source, target)
    if target.root in CHARACTER_ROOTS:
        return _within_length(_texts(array, source, target), source, target)
    if target.root in BINARY_ROOTS and source.root in BINARY_ROOTS:
        return _within_length(array, source, target)
    if not _is_widening(source, target):
        raise _refused(source, target)
    if source.root in INTEGER_ROOTS and target.root == "DECIMAL":
        # Arrow wants room for every value of the integer type before it looks at the values.
        roomy = pa.decimal128(max(_WIDTH[source.root] + (target.scale or 0), 1), target.scale)
        return array.cast(roomy).cast(arrow_type)
    return pc.cast(array, arrow_type, safe=target.root not in ("FLOAT", "DOUBLE"))


def _is_widening(source: DataType, target: DataType) -> bool:
    if source.root in INTEGER_ROOTS:
        return _integer_widens(source, target)
    if source.root == "DECIMAL" and target.root == "DECIMAL":
        fraction = (target.scale or 0) - (source.scale or 0)
        whole = (target.precision or 0) - (source.precision or 0) - fraction
        return fraction >= 0 and whole >= 0
    if source.root in TIMESTAMP_ROOTS and source.root == target.root:
        return (target.precision or 0) >= (source.precision or 0)
    if source.root == target.root == "TIME":
        return (target.precision or 0) >= (source.precision or 0)
    return source.root == "FLOAT" and target.root == "DOUBLE"


def _integer_widens(source: DataType, target: DataType) -> bool:
    if target.root == "DECIMAL":
        return (target.precision or 0) - (target.scale or 0) >= _WIDTH[source.root]
    if target.root in ("FLOAT", "DOUBLE"):
        return True
    return target.root in INTEGER_ROOTS and _WIDTH[target.root] >= _WIDTH[source.root]


def _within_length(column: Array, source: DataType, target: DataType) -> Array:
    """The column, unless values would have to be cut or padded to fit into the target."""
    if target.length is None:
        return column
    array: Any = column
    lengths = pc.utf8_length(array) if target.root in CHARACTER_ROOTS else pc.binary_length(array)
    if target.root in ("CHAR", "BINARY") or (pc.max(lengths).as_py() or 0) > target.length:
        raise _refused(source, target)
    return column


def _texts(array: Array, source: DataType, target: DataType) -> Array:
    if source.root in CHARACTER_ROOTS:
        return array
    if source.root in INTEGER_ROOTS or source.root == "BOOLEAN":
        return array.cast(pa.string())
    if source.root == "DECIMAL":
        return decimal_texts(array)
    if source.root == "DATE":
        return date_texts(array)
    raise _refused(source, target)


def _cast_row(column: Array, source: DataType, target: DataType) -> Array:
    array: Any = column
    sources: Mapping[int, tuple[int, DataField]] = {
        field.id: (i, field) for i, field in enumerate(source.fields)
    }
    children: list[Array] = []
    for field in target.fields:
        place, inner = sources.get(field.id, (None, field))
        if place is None:
            children.append(_nulls(len(array), field.type))
        else:
            children.append(cast_array(array.field(place), inner.type, field.type))
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
