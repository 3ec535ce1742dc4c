"""Convert columns from the type of their messages to the type that the configuration declares."""

import base64

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.columns.temporal_columns import (
    TimestampType,
    arrow_timestamp,
    coarser_timestamps,
    read_integers,
    read_texts,
    time_of_day,
)
from ingestd.cdc.columns.wire_column import Meaning, WireColumn
from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.data_types import (
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)

_TEMPORAL_ROOTS = TIMESTAMP_ROOTS | {"DATE", "TIME"}
_PER_MILLI = {Meaning.MICRO_TIME: 1_000, Meaning.NANO_TIME: 1_000_000}
_UNITS = ("ms", "us", "ns")


def recast(array: Array, column: WireColumn) -> Array:
    """Return the column's array in its declared type.

    Timestamps and times are rounded down to the declared precision. Any other loss, and a value out
    of range, raises one of `record_errors.BUILD_ERRORS`.
    """
    declared = column.declared
    if declared is None:
        return array
    target = to_arrow_type(declared)
    if array.type == target:
        return array
    if declared.root in CHARACTER_ROOTS:
        return _bit_texts(array) if column.meaning is Meaning.BITS else _texts(array)
    if declared.root in _TEMPORAL_ROOTS:
        return _temporal(array, column, declared)
    if declared.root == "DECIMAL" and column.data_type.root in INTEGER_ROOTS:
        return pa.array(array.to_pylist(), target)
    return array.cast(target)


def _bit_texts(array: Array) -> Array:
    """Return whole bytes as texts of 0 and 1."""
    if pa.types.is_boolean(array.type):
        return array.cast(pa.int8()).cast(pa.string())
    cells = [None if v is None else "".join(f"{byte:08b}" for byte in v) for v in array.to_pylist()]
    return pa.array(cells, pa.string())


def _texts(array: Array) -> Array:
    if pa.types.is_decimal(array.type):
        return pa.array(
            [None if v is None else format(v, "f") for v in array.to_pylist()], pa.string()
        )
    if pa.types.is_binary(array.type):
        return pa.array(
            [None if v is None else base64.b64encode(v).decode() for v in array.to_pylist()],
            pa.string(),
        )
    return array.cast(pa.string())


def _temporal(array: Array, column: WireColumn, declared: DataType) -> Array:
    if column.data_type.root in CHARACTER_ROOTS:
        return read_texts(array.to_pylist(), declared)
    per_milli = _PER_MILLI.get(column.meaning)
    if declared.root == "TIME" and per_milli is not None:
        return time_of_day(array, per_milli)
    if column.meaning is Meaning.NANO_TIMESTAMP:
        array = array.cast(pa.timestamp("ns"))
    elif column.data_type.root in INTEGER_ROOTS:
        return read_integers(array.to_pylist(), declared)
    if declared.root in TIMESTAMP_ROOTS and pa.types.is_timestamp(array.type):
        return _timestamps(array, arrow_timestamp(declared))
    return array.cast(to_arrow_type(declared))


def _timestamps(array: Array, target: TimestampType) -> Array:
    if _UNITS.index(array.type.unit) > _UNITS.index(target.unit):
        return coarser_timestamps(array, target)
    finer = pc.cast(array, pa.timestamp(target.unit, array.type.tz))
    return finer.cast(pa.int64()).cast(target)
