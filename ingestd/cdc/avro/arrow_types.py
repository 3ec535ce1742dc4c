"""Arrow types of Avro nodes, determined by physical types, and values as JSON text."""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec
import pyarrow as pa

from ingestd.cdc.avro.nodes import AvroNode
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
    """Return the Arrow type of the values of a node.

    A record has only the requested fields, or all fields if `wanted` is None.
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
    """Return each value as JSON text, or None for null. Bytes are base64, as in Connect."""
    if node.kind == "union":
        return [None if value is None else str(value) for value in values.to_pylist()]
    cells = values.to_pylist()
    if _holds_maps(node):
        cells = [with_objects(cell, node) for cell in cells]
    encode = msgspec.json.encode
    return [None if cell is None else encode(cell).decode() for cell in cells]


def _holds_maps(node: AvroNode) -> bool:
    return node.kind == "map" or any(_holds_maps(child) for child in node.children)


def with_objects(cell: Any, node: AvroNode) -> Any:  # noqa: ANN401  (any value)
    """Return a value with its maps, which Arrow returns as lists of pairs, as dictionaries."""
    node = node.present
    if cell is None or node.kind == "union":
        return cell
    if node.kind == "map":
        return {key: with_objects(value, node.children[0]) for key, value in cell}
    if node.kind == "array":
        return [with_objects(item, node.children[0]) for item in cell]
    if node.kind == "record":
        fields = zip(node.names, node.children, strict=True)
        return {name: with_objects(cell[name], child) for name, child in fields}
    return cell
