"""Arrow types of Avro nodes, determined by physical types, and values as JSON text."""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec
import pyarrow as pa

from ingestd.cdc.avro.nodes import AvroNode
from ingestd.cdc.columns.decimal_columns import plain_number
from ingestd.cdc.columns.raw_cells import json_float, short_single
from ingestd.paimon.spec.arrow import Array

_PRIMITIVE: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "union": pa.string(),
}


def storage_type(node: AvroNode, wanted: Collection[str] | None = None) -> pa.DataType:
    """Return the Arrow type in which values of an Avro type are stored.

    For a record, `wanted` are the names of the fields to store (None: all).
    """
    if node.kind in _PRIMITIVE:
        return _PRIMITIVE[node.kind]
    if node.kind == "nullable":
        return storage_type(node.present, wanted)
    inner = [storage_type(child) for child in node.children]
    if node.kind == "array":
        return pa.list_(inner[0])
    if node.kind == "map":
        return pa.map_(pa.string(), inner[0])
    fields = zip(node.names, inner, strict=True)
    return pa.struct([(name, kind) for name, kind in fields if wanted is None or name in wanted])


def json_texts(values: Array, node: AvroNode) -> list[str | None]:
    """Return the JSON text of each value of the Avro type `node`, or None for null.

    Decimals are numbers, and bytes are base64, as in Connect.
    """
    if node.kind == "union":
        return [None if value is None else str(value) for value in values.to_pylist()]
    cells = values.to_pylist()
    if _needs_conversion(node):
        cells = [json_value(cell, node) for cell in cells]
    encode = msgspec.json.encode
    return [None if cell is None else encode(cell).decode() for cell in cells]


def _needs_conversion(node: AvroNode) -> bool:
    converted = node.kind in ("map", "float", "double") or _is_decimal(node)
    return converted or any(_needs_conversion(child) for child in node.children)


def _is_decimal(node: AvroNode) -> bool:
    return node.kind in ("bytes", "fixed") and node.properties.get("logicalType") == "decimal"


def json_value(cell: Any, node: AvroNode) -> Any:  # noqa: ANN401  (any value)
    """Convert a Python value of an Arrow array to a value that msgspec can encode as JSON.

    `cell` is the value, and `node` its Avro type. Arrow returns maps as lists of pairs, and
    decimals as the bytes of an unscaled integer: these become dictionaries and numbers. Values of
    unions are returned unchanged.
    """
    node = node.present
    if cell is None or node.kind == "union":
        return cell
    if node.kind == "map":
        return {key: json_value(value, node.children[0]) for key, value in cell}
    if node.kind == "array":
        return [json_value(item, node.children[0]) for item in cell]
    if node.kind == "record":
        fields = zip(node.names, node.children, strict=True)
        return {name: json_value(cell[name], child) for name, child in fields}
    if _is_decimal(node):
        unscaled = int.from_bytes(cell, "big", signed=True)
        return msgspec.Raw(plain_number(unscaled, node.properties.get("scale", 0)).encode())
    if not isinstance(cell, float):
        return cell
    return json_float(short_single(cell) if node.kind == "float" else cell)
