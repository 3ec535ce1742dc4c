"""Map fields of Protobuf messages to columns, and convert their values to Arrow arrays."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec

from ingestd.cdc.columns.arrow_calls import to_array
from ingestd.cdc.columns.decimal_columns import plain_number
from ingestd.cdc.columns.raw_cells import json_float
from ingestd.cdc.columns.wire_column import BIGINT, STRING, WireColumn
from ingestd.cdc.protobuf.proto_schema import SCALARS, ProtoField, ProtoTypes
from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.data_types import DataType

Convert = Callable[[Any], Any]
_INT, _BYTES = DataType("INT"), DataType("BYTES")
_BIG = DataType("DECIMAL", precision=20, scale=0)
_TYPES: Mapping[str, DataType] = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), _INT),
    **dict.fromkeys(("uint32", "fixed32", "int64", "sint64", "sfixed64"), BIGINT),
    **dict.fromkeys(("uint64", "fixed64"), _BIG),
    "double": DataType("DOUBLE"),
    "float": DataType("FLOAT"),
    "bool": DataType("BOOLEAN"),
    "string": STRING,
    "bytes": _BYTES,
}
_MOST_DIGITS = 100_000
_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class ProtoColumn:
    """The column of a Protobuf field, and the conversion of its values.

    `convert` converts values that are not null; it is None if they are used unchanged.
    """

    column: WireColumn
    convert: Convert | None

    def build(self, values: Sequence[Any]) -> Array:
        """Convert the values of a field to an Arrow array.

        Raises ValueError, TypeError, ArithmeticError, RecursionError or ArrowException if a value
        does not fit the column.
        """
        convert = self.convert
        if convert is not None:
            values = [None if value is None else convert(value) for value in values]
        return to_array(values, to_arrow_type(self.column.data_type))


def proto_column(field: ProtoField, types: ProtoTypes) -> ProtoColumn:
    """Return the column of a field.

    Scalars, enums (by name) and well-known types, and lists and maps of them, become equivalent
    types. All other messages, and lists and maps of these, become JSON text.
    """
    inner = _simple(field.type_name, types)
    if inner is None:
        return ProtoColumn(WireColumn(field.name, STRING), _json)
    data_type, convert = inner
    if field.key_type is not None:
        key = _TYPES[field.key_type].not_null()
        column = WireColumn(field.name, DataType("MAP", key=key, value=data_type))
        return ProtoColumn(column, _entries(convert))
    if field.repeated:
        column = WireColumn(field.name, DataType("ARRAY", element=data_type))
        return ProtoColumn(column, _items(convert))
    return ProtoColumn(WireColumn(field.name, data_type), convert)


def _simple(name: str, types: ProtoTypes) -> tuple[DataType, Convert | None] | None:
    """Return the type of a value and its conversion, or None if the value is another message."""
    if name in SCALARS:
        return _TYPES[name], Decimal if _TYPES[name] is _BIG else None
    if name in types.enums:
        return STRING, None
    if name in _KNOWN:
        return _KNOWN[name]
    wrapped = _WRAPPED.get(name)
    return None if wrapped is None else (_TYPES[wrapped], _unwrap(wrapped))


def _unwrap(kind: str) -> Convert:
    if _TYPES[kind] is _BIG:
        return lambda value: Decimal(value["value"])
    return lambda value: value["value"]


def _items(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda values: [convert(value) for value in values]


def _entries(convert: Convert | None) -> Convert:
    if convert is None:
        return lambda entries: list(entries.items())
    return lambda entries: [(key, convert(value)) for key, value in entries.items()]


def _json(value: Any) -> str:  # noqa: ANN401  (a message or several)
    return msgspec.json.encode(_with_json_floats(value)).decode()


def _with_json_floats(value: Any) -> Any:  # noqa: ANN401  (a value of a message)
    if isinstance(value, dict):
        return {name: _with_json_floats(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_json_floats(inner) for inner in value]
    return json_float(value) if isinstance(value, float) else value


def _micros(value: Mapping[str, int]) -> int:
    return value["seconds"] * 1_000_000 + value["nanos"] // 1000


def _duration(value: Mapping[str, int]) -> int:
    return value["seconds"] * 1_000_000_000 + value["nanos"]


def _days(value: Mapping[str, int]) -> int:
    return date(value["year"], value["month"], value["day"]).toordinal() - _EPOCH


def _decimal(value: Mapping[str, Any]) -> str:
    if abs(value["scale"]) > _MOST_DIGITS:
        raise ValueError(f"out of range of a decimal's scale: {value['scale']}")
    return plain_number(int.from_bytes(value["value"], "big", signed=True), value["scale"])


_KNOWN: Mapping[str, tuple[DataType, Convert]] = {
    "google.protobuf.Timestamp": (DataType("TIMESTAMP_LTZ", precision=6), _micros),
    "google.protobuf.Duration": (BIGINT, _duration),
    "google.type.Date": (DataType("DATE"), _days),
    "confluent.type.Decimal": (STRING, _decimal),
}
_WRAPPED: Mapping[str, str] = {
    "google.protobuf.DoubleValue": "double",
    "google.protobuf.FloatValue": "float",
    "google.protobuf.Int64Value": "int64",
    "google.protobuf.UInt64Value": "uint64",
    "google.protobuf.Int32Value": "int32",
    "google.protobuf.UInt32Value": "uint32",
    "google.protobuf.BoolValue": "bool",
    "google.protobuf.StringValue": "string",
    "google.protobuf.BytesValue": "bytes",
}
