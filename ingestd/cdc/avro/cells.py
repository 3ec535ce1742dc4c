"""Convert arrays of Avro nodes to table columns, and find values that Debezium omitted."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.avro.arrow_types import json_texts
from ingestd.cdc.avro.nodes import AvroNode
from ingestd.cdc.avro.record_columns import record_columns
from ingestd.cdc.columns import unavailable
from ingestd.cdc.columns.arrow_calls import (
    byte_lengths,
    entries,
    equal,
    flattened,
    if_else,
    list_lengths,
    make_list,
    make_map,
    make_struct,
    marks_of,
    offsets_of,
    take,
)
from ingestd.cdc.columns.decimal_columns import from_unscaled, plain_number, unscaled_text
from ingestd.cdc.columns.json_columns import choose_reader
from ingestd.cdc.columns.json_inference import kinds_of
from ingestd.cdc.columns.temporal_columns import read_texts, time_of_day
from ingestd.cdc.columns.wire_column import Meaning, WireColumn, recast
from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.data_types import TIMESTAMP_ROOTS
from ingestd.paimon.spec.row_selection import Mask

_MOST_DIGITS = 100_000
"""Maximum absolute scale of a decimal whose value contains its scale."""
_LONGEST_UNSCALED = 16

_texts_left_out = pa.array([unavailable.TEXT, unavailable.BASE64])


def build_column(array: Array, column: WireColumn, node: AvroNode) -> Array:
    """Convert the values of an Avro node to the table type of a column.

    Raises one of `record_errors.BUILD_ERRORS` if a value does not fit the type.
    """
    return recast(_build(array, column, node.present), column)


def find_left_out(array: Array) -> Mask | None:
    """Return a mask (n,) of placeholders for omitted values, or None if no value is one."""
    if pa.types.is_string(array.type):
        return _marks(pc.is_in(array, _texts_left_out))
    if pa.types.is_binary(array.type):
        return _marks(equal(array, pa.scalar(unavailable.BYTES)))
    if pa.types.is_map(array.type):
        return _among(array, unavailable.find_entry, dict)
    if pa.types.is_list(array.type):
        return _among(array, unavailable.find_array, list)
    return None


def without(array: Array, left_out: Mask | None) -> Array:
    """Return the array with omitted values replaced by null."""
    if left_out is None:
        return array
    return if_else(pa.array(left_out), pa.scalar(None, array.type), array)


def _marks(booleans: Any) -> Mask | None:  # noqa: ANN401  (an Arrow array of booleans)
    marks = marks_of(booleans)
    return marks if marks.any() else None


def _among(array: Array, find: unavailable.Find, convert: Callable[[Any], Any]) -> Mask | None:
    """Return a mask (n,) of placeholders in an array of lists or maps, or None if no value is one.

    Only values with the length of a placeholder are examined.
    """
    lengths = list_lengths(array)
    candidates = np.flatnonzero((lengths == 1) | (lengths == len(unavailable.CODES)))
    values = take(array, pa.array(candidates)).to_pylist()
    placeholders = find([convert(value) for value in values])
    if not placeholders:
        return None
    marks = np.zeros(len(array), np.bool_)
    marks[candidates[placeholders]] = True
    return marks


def _build(array: Array, column: WireColumn, node: AvroNode) -> Array:
    build = _BY_MEANING.get(column.meaning, _through_json)
    return build(array, column, node)


def _plain(array: Array, column: WireColumn, node: AvroNode) -> Array:
    build = _BY_ROOT.get(column.data_type.root)
    if build is not None:
        return build(array, column, node)
    target = to_arrow_type(column.data_type)
    return array if array.type == target else array.cast(target)


def _json(array: Array, column: WireColumn, node: AvroNode) -> Array:
    return pa.array(json_texts(array, node), pa.string())


def _unscaled(array: Array, column: WireColumn, node: AvroNode) -> Array:
    if column.data_type.root != "DECIMAL":
        return pa.array(unscaled_text(array.to_pylist(), column.scale), pa.string())
    longest = pc.max(byte_lengths(array)).as_py() or 0
    values: Any = array
    if column.scale < 0 or longest > _LONGEST_UNSCALED or array.offset:
        values = array.to_pylist()
    return from_unscaled(values, column.scale, to_arrow_type(column.data_type))


def _variable_decimal(array: Array, column: WireColumn, node: AvroNode) -> Array:
    texts: list[str | None] = []
    for cell in array.to_pylist():
        if cell is not None and abs(cell["scale"]) > _MOST_DIGITS:
            raise ValueError(f"out of range of a decimal's scale: {cell['scale']}")
        texts.append(
            None
            if cell is None
            else plain_number(int.from_bytes(cell["value"], "big", signed=True), cell["scale"])
        )
    return pa.array(texts, pa.string())


def _integers(array: Array, column: WireColumn, node: AvroNode) -> Array:
    return array.cast(pa.int64())


def _temporal(array: Array, column: WireColumn, node: AvroNode) -> Array:
    data_type = column.data_type
    target = to_arrow_type(data_type)
    if pa.types.is_string(array.type):
        try:
            return array.cast(target)
        except pa.ArrowInvalid:
            return read_texts(array.to_pylist(), data_type)
    if data_type.root == "TIME":
        return time_of_day(array.cast(pa.int64()), 1)
    if data_type.root in TIMESTAMP_ROOTS:
        return array.cast(pa.int64()).cast(target)
    return array.cast(target)


def _array(array: Array, column: WireColumn, node: AvroNode) -> Array:
    element = _element(column)
    items = _build(flattened(array), element, node.children[0].present)
    target: Any = to_arrow_type(column.data_type)
    return make_list(offsets_of(list_lengths(array)), items, type=target, mask=array.is_null())


def _map(array: Array, column: WireColumn, node: AvroNode) -> Array:
    keys, values = entries(array)
    items = _build(values, _element(column), node.children[0].present)
    target: Any = to_arrow_type(column.data_type)
    return make_map(offsets_of(list_lengths(array)), keys, items, type=target, mask=array.is_null())


def _element(column: WireColumn) -> WireColumn:
    if column.element is not None:
        return column.element
    inner = column.data_type.element or column.data_type.value
    if inner is None:
        raise ValueError(f"column {column.name} has no elements")
    return WireColumn("element", inner)


def _row(array: Array, column: WireColumn, node: AvroNode) -> Array:
    target: Any = to_arrow_type(column.data_type)
    columns = zip(record_columns(node), node.children, flattened(array), strict=True)
    arrays = [_build(values, inner, child.present) for inner, child, values in columns]
    return make_struct(arrays, fields=list(target), mask=array.is_null())


def _through_json(array: Array, column: WireColumn, node: AvroNode) -> Array:
    """Build a column of any other meaning by converting values to JSON and reading that JSON."""
    texts = [
        None if json_text is None else json_text.encode() for json_text in json_texts(array, node)
    ]
    kinds = frozenset(kind for text in texts if text is not None for kind in kinds_of(text))
    reader = choose_reader(column, kinds)
    return reader.read(_decoded(texts, reader.wire))[0]


def _decoded(texts: Sequence[bytes | None], wire: Any) -> list[Any]:  # noqa: ANN401
    decode = msgspec.json.Decoder(wire).decode
    return [None if text is None else decode(text) for text in texts]


_Build = Callable[[Array, WireColumn, AvroNode], Array]
_BY_MEANING: Mapping[Meaning, _Build] = {
    Meaning.PLAIN: _plain,
    Meaning.JSON: _json,
    Meaning.UNSCALED: _unscaled,
    Meaning.VARIABLE_DECIMAL: _variable_decimal,
    Meaning.MICRO_TIME: _integers,
    Meaning.NANO_TIME: _integers,
    Meaning.NANO_TIMESTAMP: _integers,
}
_BY_ROOT: Mapping[str, _Build] = {
    **dict.fromkeys(TIMESTAMP_ROOTS | {"DATE", "TIME"}, _temporal),
    "ARRAY": _array,
    "MAP": _map,
    "ROW": _row,
}
