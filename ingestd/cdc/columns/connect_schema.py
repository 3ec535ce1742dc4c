"""Map Kafka Connect schemas, as the JSON converter sends them, to columns.

Semantic type names of Debezium and Connect take precedence over the physical type. If Paimon has no
exact type (times finer than a millisecond, timestamps finer than a microsecond, decimals with more
than 38 digits), values remain integers or strings, so that nothing is lost.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ingestd.cdc.base import Comments
from ingestd.cdc.columns.wire_column import BIGINT, STRING, Meaning, WireColumn
from ingestd.paimon.spec.data_types import DataType

Schema = Mapping[str, Any]
MAX_PRECISION = 38
AVRO_MILLIS, AVRO_MICROS = "avro.timestamp-millis", "avro.timestamp-micros"
"""Semantic names for Avro's logical types of instants, which have no counterpart in Connect."""
_MAX_PADDED_BITS = 8192
"""Maximum declared length, in bits, to which bit strings are padded."""

_PHYSICAL: Mapping[str, DataType] = {
    "boolean": DataType("BOOLEAN"),
    "int8": DataType("TINYINT"),
    "int16": DataType("SMALLINT"),
    "int32": DataType("INT"),
    "int64": BIGINT,
    "float": DataType("FLOAT"),
    "float32": DataType("FLOAT"),
    "double": DataType("DOUBLE"),
    "float64": DataType("DOUBLE"),
    "string": STRING,
    "bytes": DataType("BYTES"),
}
_DATE = DataType("DATE")
_TIME = DataType("TIME", precision=3)
_MILLIS = DataType("TIMESTAMP", precision=3)
_MICROS = DataType("TIMESTAMP", precision=6)


class ConnectSchemaError(ValueError):
    """The schema is not a valid Connect schema."""


def is_connect_schema(document: object) -> bool:
    """Return whether a decoded JSON value is the schema of a Connect struct."""
    return (
        isinstance(document, dict)
        and document.get("type") == "struct"
        and isinstance(document.get("fields"), list)
    )


def row_schema(envelope: Schema) -> Schema | None:
    """Return the schema of the rows in a Debezium envelope: the schema of its field `after`.

    `envelope` is the schema of the envelope, for which `is_connect_schema` is true. Returns None if
    it has no field `after`, or if this field is not a struct.
    """
    for field in envelope["fields"]:
        if isinstance(field, dict) and field.get("field") == "after" and is_connect_schema(field):
            return field
    return None


def struct_columns(schema: Schema) -> tuple[WireColumn, ...]:
    """Return the columns of the fields of a struct, in order.

    Raises ConnectSchemaError if the schema is invalid.
    """
    try:
        return tuple(_column(_name(field), field) for field in schema["fields"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConnectSchemaError(f"the schema of the message cannot be read: {error!r}") from error


def struct_comments(schema: Schema) -> Comments:
    """Return the `doc` of a struct, as the comment of a table, and of its fields."""
    fields = ((field["field"], field.get("doc")) for field in schema["fields"])
    return Comments.of(schema.get("doc"), fields)


def _name(field: Schema) -> str:
    name = field["field"]
    if not isinstance(name, str):
        raise ConnectSchemaError(f"{name!r} is not a field name")
    return name


def _column(name: str, schema: Schema) -> WireColumn:
    semantic = _SEMANTIC.get(schema.get("name") or "")
    column = semantic(name, schema) if semantic else _physical(name, schema)
    default = schema.get("default")
    return column if default is None else replace(column, default=json.dumps(default).encode())


def _physical(name: str, schema: Schema) -> WireColumn:
    kind = schema["type"]
    data_type = _PHYSICAL.get(kind)
    if data_type is not None:
        return WireColumn(name, data_type)
    if kind == "array" and "items" in schema:
        element = _column("element", schema["items"])
        if element.meaning is not Meaning.JSON and element.element is None:
            return WireColumn(name, DataType("ARRAY", element=element.data_type), element=element)
    elif kind == "map" and schema.get("keys", {}).get("type") == "string" and "values" in schema:
        element = _column("value", schema["values"])
        if element.meaning is not Meaning.JSON and element.element is None:
            key = STRING.not_null()
            data_type = DataType("MAP", key=key, value=element.data_type)
            return WireColumn(name, data_type, element=element)
    elif kind not in {"struct", "map", "array"}:
        raise ConnectSchemaError(f"field {name} has the unknown type {kind!r}")
    return WireColumn(name, STRING, Meaning.JSON)


def _fixed(
    data_type: DataType, meaning: Meaning = Meaning.PLAIN, *, text: bool = False
) -> Callable[[str, Schema], WireColumn]:
    def column(name: str, schema: Schema) -> WireColumn:
        return WireColumn(name, data_type, meaning, text=text)

    return column


def _decimal(name: str, schema: Schema) -> WireColumn:
    parameters = schema.get("parameters") or {}
    scale = int(parameters.get("scale", 0))
    precision = int(parameters.get("connect.decimal.precision", MAX_PRECISION))
    # numeric(3,-2) has five digits before the decimal point, numeric(2,5) five after it.
    digits = precision - scale if scale < 0 else max(precision, scale)
    if digits > MAX_PRECISION or precision < 1:
        return WireColumn(name, STRING, Meaning.UNSCALED, scale)
    data_type = DataType("DECIMAL", precision=digits, scale=max(scale, 0))
    return WireColumn(name, data_type, Meaning.UNSCALED, scale)


def _bits(name: str, schema: Schema) -> WireColumn:
    length = int((schema.get("parameters") or {}).get("length", 0))
    if length == 1:
        return WireColumn(name, DataType("BOOLEAN"), Meaning.BITS)
    width = (length + 7) // 8 if length <= _MAX_PADDED_BITS else 0
    return WireColumn(name, DataType("BYTES"), Meaning.BITS, width=width)


_SEMANTIC: Mapping[str, Callable[[str, Schema], WireColumn]] = {
    "io.debezium.time.Date": _fixed(_DATE),
    "io.debezium.time.Time": _fixed(_TIME),
    "io.debezium.time.MicroTime": _fixed(BIGINT, Meaning.MICRO_TIME),
    "io.debezium.time.NanoTime": _fixed(BIGINT, Meaning.NANO_TIME),
    "io.debezium.time.Timestamp": _fixed(_MILLIS),
    "io.debezium.time.MicroTimestamp": _fixed(_MICROS),
    "io.debezium.time.NanoTimestamp": _fixed(BIGINT, Meaning.NANO_TIMESTAMP),
    "io.debezium.time.ZonedTimestamp": _fixed(DataType("TIMESTAMP_LTZ", precision=6), text=True),
    "io.debezium.time.IsoDate": _fixed(_DATE, text=True),
    "io.debezium.time.IsoTime": _fixed(STRING),
    "io.debezium.time.IsoTimestamp": _fixed(_MICROS, text=True),
    "org.apache.kafka.connect.data.Date": _fixed(_DATE),
    "org.apache.kafka.connect.data.Time": _fixed(_TIME),
    "org.apache.kafka.connect.data.Timestamp": _fixed(_MILLIS),
    "org.apache.kafka.connect.data.Decimal": _decimal,
    "io.debezium.data.VariableScaleDecimal": _fixed(STRING, Meaning.VARIABLE_DECIMAL),
    "io.debezium.data.Bits": _bits,
    AVRO_MILLIS: _fixed(DataType("TIMESTAMP_LTZ", precision=3)),
    AVRO_MICROS: _fixed(DataType("TIMESTAMP_LTZ", precision=6)),
}
