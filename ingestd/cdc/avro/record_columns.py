"""Map the fields of an Avro record to columns, by the rules of `connect_schema`.

The Connect name of a type takes precedence, then Avro's logical type, then the physical type. An
Avro schema is converted to the Connect schema that the JSON converter would have sent, so that a
table has the same columns in both data formats.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ingestd.cdc.avro.nodes import AvroNode, AvroSchemaError
from ingestd.cdc.columns.connect_schema import (
    AVRO_MICROS,
    AVRO_MILLIS,
    ConnectSchemaError,
    struct_columns,
)
from ingestd.cdc.columns.wire_column import STRING, Meaning, WireColumn

Document = dict[str, Any]
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_KINDS: Mapping[str, str] = {
    "boolean": "boolean",
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "bytes": "bytes",
    "fixed": "bytes",
    "string": "string",
    "enum": "string",
    "null": "string",
    "union": "string",
}
_NARROW = frozenset({"int8", "int16"})
_LOGICAL: Mapping[tuple[str, str], str] = {
    ("int", "date"): "io.debezium.time.Date",
    ("int", "time-millis"): "io.debezium.time.Time",
    ("long", "time-micros"): "io.debezium.time.MicroTime",
    ("long", "timestamp-millis"): AVRO_MILLIS,
    ("long", "timestamp-micros"): AVRO_MICROS,
    ("long", "local-timestamp-millis"): "io.debezium.time.Timestamp",
    ("long", "local-timestamp-micros"): "io.debezium.time.MicroTimestamp",
    ("long", "local-timestamp-nanos"): "io.debezium.time.NanoTimestamp",
}
"""The types that are equivalent to logical types of Avro, by (type, logical type).

Connect's timestamps also have a name, and are mapped by it.
"""


def record_columns(record: AvroNode) -> tuple[WireColumn, ...]:
    """Return the columns of the fields of a record, in order.

    Raises AvroSchemaError if a type cannot be mapped.
    """
    try:
        return tuple(
            _column(name, child) for name, child in zip(record.names, record.children, strict=True)
        )
    except (ConnectSchemaError, ValueError, TypeError) as error:
        raise AvroSchemaError(f"the Avro schema has no columns: {error}") from error


def _column(name: str, node: AvroNode) -> WireColumn:
    inner = node.present
    if inner.kind in ("union", "null"):
        return WireColumn(name, STRING, Meaning.JSON if inner.kind == "union" else Meaning.PLAIN)
    return struct_columns({"fields": [{"field": name, **_document(node)}]})[0]


def _document(node: AvroNode) -> Document:
    """Convert an Avro type to a Connect schema."""
    inner = node.present
    shape = _SHAPES.get(inner.kind)
    document: Document = shape(inner) if shape else {"type": _kind(inner)}
    document["optional"] = node is not inner
    properties = inner.properties
    name = properties.get("connect.name")
    if name is not None:
        document["name"] = name
        document["parameters"] = properties.get("connect.parameters") or {}
    if name == _DECIMAL or (name is None and properties.get("logicalType") == "decimal"):
        return _decimal(document, inner)
    if name is None:
        meaning = _LOGICAL.get((inner.kind, str(properties.get("logicalType"))))
        if meaning is not None:
            document["name"] = meaning
    return document


def _kind(node: AvroNode) -> str:
    kind = node.properties.get("connect.type")
    return kind if node.kind == "int" and kind in _NARROW else _KINDS[node.kind]


def _decimal(document: Document, node: AvroNode) -> Document:
    """Return the Connect schema of a decimal, with the parameters of Avro if Connect has none."""
    if node.kind not in ("bytes", "fixed"):
        return document
    properties = node.properties
    parameters = {
        "scale": properties.get("scale", 0),
        "connect.decimal.precision": properties.get("precision"),
    }
    given = document.get("parameters") or {}
    if "scale" in given:
        # Without a precision in Connect, the converter writes a precision that has no meaning.
        parameters = {"scale": given["scale"]}
        parameters["connect.decimal.precision"] = given.get("connect.decimal.precision")
    known = {name: value for name, value in parameters.items() if value is not None}
    return {**document, "name": _DECIMAL, "parameters": known}


def _array(node: AvroNode) -> Document:
    return {"type": "array", "items": _document(node.children[0])}


def _map(node: AvroNode) -> Document:
    return {"type": "map", "keys": {"type": "string"}, "values": _document(node.children[0])}


def _record(node: AvroNode) -> Document:
    fields = [
        {"field": name, **_document(child)}
        for name, child in zip(node.names, node.children, strict=True)
    ]
    return {"type": "struct", "fields": fields}


_SHAPES: Mapping[str, Callable[[AvroNode], Document]] = {
    "array": _array,
    "map": _map,
    "record": _record,
}
