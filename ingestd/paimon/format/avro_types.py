"""Map Arrow types to Avro types and back, and convert cells.

Names, unions and logical types are those of other Paimon writers. These swap Avro's two kinds of
timestamp: `timestamp-*` has no time zone, `local-timestamp-*` is an instant. Avro cells are plain
numbers for dates, times and timestamps, and bytes for decimals.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#avro
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.arrow import ArrowField
from ingestd.paimon.spec.avro_blocks import Json
from ingestd.paimon.spec.avro_schemas import NAMESPACE, is_avro_name
from ingestd.paimon.spec.decimal_digits import minimal_bytes, unscaled

ROOT_RECORD = "record"

_Cell = Any
_Convert = Callable[[_Cell], _Cell]

_PLAIN: Mapping[pa.DataType, Json] = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.timestamp("ms"): {"type": "long", "logicalType": "timestamp-millis"},
    pa.timestamp("us"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("ms", tz="UTC"): {"type": "long", "logicalType": "local-timestamp-millis"},
    pa.timestamp("us", tz="UTC"): {"type": "long", "logicalType": "local-timestamp-micros"},
}
_FROM_PRIMITIVE: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_FROM_LOGICAL: Mapping[str, pa.DataType] = {
    str(document["logicalType"]): arrow_type
    for arrow_type, document in _PLAIN.items()
    if isinstance(document, dict)
}


@dataclass(frozen=True, slots=True)
class Codec:
    """A target type, of Avro or Arrow, and the conversion of non-null cells to it.

    `convert` is None if the cells need no conversion.
    """

    type: _Cell
    convert: _Convert | None = None


def record_codec(fields: list[ArrowField], name: str = ROOT_RECORD) -> Codec:
    """Return the Avro record type of Arrow fields, and the conversion of rows (dictionaries) to it.

    Raises UnsupportedError for a column name or a type that Avro cannot store.
    """
    codecs = {field.name: _field_codec(field, f"{name}_{field.name}") for field in fields}
    parts = []
    for field in fields:
        record_field = {"name": _checked_name(field.name), "type": codecs[field.name].type}
        parts.append({**record_field, "default": None} if field.nullable else record_field)
    document: dict[str, Json] = {"type": "record", "name": name, "fields": parts}
    if name == ROOT_RECORD:
        document["namespace"] = NAMESPACE
    steps = {field: codec.convert for field, codec in codecs.items() if codec.convert}
    return Codec(document, _record_step(steps) if steps else None)


def _record_step(steps: Mapping[str, _Convert]) -> _Convert:
    def convert(row: _Cell) -> _Cell:
        changed = {name: step(row[name]) for name, step in steps.items() if row[name] is not None}
        return {**row, **changed}

    return convert


def _checked_name(name: str) -> str:
    if not is_avro_name(name):
        raise UnsupportedError(
            f"column '{name}' cannot be written to Avro: a name there has letters, digits and _ "
            "only; rename the column, or set 'file.format' to 'parquet'"
        )
    return name


def _field_codec(field: ArrowField, name: str) -> Codec:
    codec = _type_codec(field.type, name)
    return Codec(["null", codec.type], codec.convert) if field.nullable else codec


def _type_codec(arrow_type: pa.DataType, name: str) -> Codec:
    nested: Any = arrow_type
    plain = _PLAIN.get(arrow_type)
    if plain is not None:
        return Codec(plain)
    if pa.types.is_decimal128(arrow_type):
        logical = {"logicalType": "decimal", "precision": nested.precision, "scale": nested.scale}
        scale = nested.scale
        return Codec(
            {"type": "bytes", **logical}, lambda value: minimal_bytes(unscaled(value, scale))
        )
    if pa.types.is_struct(arrow_type):
        return record_codec([nested.field(i) for i in range(nested.num_fields)], name)
    if pa.types.is_list(arrow_type):
        items = _field_codec(nested.value_field, name)
        return Codec({"type": "array", "items": items.type}, _each(items.convert))
    if pa.types.is_map(arrow_type):
        return _map_codec(nested, name)
    raise UnsupportedError(f"Arrow type {arrow_type} cannot be written to Avro")


def _map_codec(arrow_type: Any, name: str) -> Codec:  # noqa: ANN401  # a MapType, to the stubs
    """Return the codec of a map: an Avro map if its keys are strings, else an array of entries."""
    if arrow_type.key_type == pa.string():
        values = _field_codec(arrow_type.item_field, name)
        step = values.convert
        if step is None:
            return Codec({"type": "map", "values": values.type}, dict)
        return Codec({"type": "map", "values": values.type}, lambda pairs: _map_of(pairs, step))
    key, value = arrow_type.key_field.with_name("key"), arrow_type.item_field.with_name("value")
    entry = record_codec([key, value], name)
    document = {"type": "array", "items": entry.type, "logicalType": "map"}
    each = _each(entry.convert)

    def entries(pairs: _Cell) -> _Cell:
        rows = [{"key": key, "value": value} for key, value in pairs]
        return rows if each is None else each(rows)

    return Codec(document, entries)


def _map_of(pairs: _Cell, step: _Convert) -> dict[str, _Cell]:
    return {key: None if value is None else step(value) for key, value in pairs}


def _each(step: _Convert | None) -> _Convert | None:
    if step is None:
        return None
    return lambda cells: [None if cell is None else step(cell) for cell in cells]


def arrow_codec(document: Json) -> Codec:
    """Return the Arrow type of an Avro type, and the conversion of its cells.

    Raises ValueError for an Avro type that no Paimon writer uses.
    """
    if isinstance(document, list):
        kinds = [kind for kind in document if kind != "null"]
        if len(kinds) != 1:
            raise ValueError(f"union {document} is not of null and one type")
        return arrow_codec(kinds[0])
    if isinstance(document, str):
        document = {"type": document}
    kind, logical = document["type"], document.get("logicalType")
    if isinstance(kind, dict | list):
        return arrow_codec(kind)
    if logical == "decimal":
        scale = int(document.get("scale", 0))
        return Codec(
            pa.decimal128(int(document["precision"]), scale),
            lambda data: _decimal(data, scale),
        )
    if logical in _FROM_LOGICAL:
        return Codec(_FROM_LOGICAL[logical])
    if kind in _FROM_PRIMITIVE:
        return Codec(_FROM_PRIMITIVE[kind])
    return _nested_from(kind, document)


def _decimal(data: bytes, scale: int) -> Decimal:
    number = int.from_bytes(data, "big", signed=True)
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def _nested_from(kind: str, document: Json) -> Codec:
    if kind == "record":
        return fields_codec(document["fields"])
    if kind == "map":
        values = arrow_codec(document["values"])
        step = values.convert
        pairs = _pairs if step is None else lambda cells: list(_map_of(cells.items(), step).items())
        return Codec(_map(pa.string(), values.type), pairs)
    if kind != "array":
        raise ValueError(f"Avro type {kind} is not used for columns")
    items = arrow_codec(document["items"])
    if document.get("logicalType") != "map":
        return Codec(pa.list_(pa.field("element", items.type)), _each(items.convert))
    each = _each(items.convert)

    def entries(rows: _Cell) -> _Cell:
        return [(row["key"], row["value"]) for row in (each(rows) if each else rows)]

    entry: Any = items.type
    return Codec(_map(entry.field("key").type, entry.field("value").type), entries)


def _pairs(cells: _Cell) -> list[tuple[str, _Cell]]:
    return list(cells.items())


def _map(key: pa.DataType, value: pa.DataType) -> pa.DataType:
    return pa.map_(key, value)


def fields_codec(fields: list[Json]) -> Codec:
    """Return the Arrow struct type of an Avro record's fields, and the conversion of its cells."""
    codecs = {str(field["name"]): arrow_codec(field["type"]) for field in fields}
    steps = {name: codec.convert for name, codec in codecs.items() if codec.convert}
    struct = pa.struct([(name, codec.type) for name, codec in codecs.items()])
    return Codec(struct, _record_step(steps) if steps else None)
