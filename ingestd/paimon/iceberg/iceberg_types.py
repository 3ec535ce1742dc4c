"""Convert schemas, types and values of Paimon to the JSON, Avro values and bounds of Iceberg.

Specification: https://iceberg.apache.org/spec/#schemas-and-data-types
"""

import struct
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.arrow import nested_field_id
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    TIMESTAMP_ROOTS,
    DataField,
    DataType,
)
from ingestd.paimon.spec.decimal_digits import minimal_bytes, unscaled
from ingestd.paimon.spec.iceberg_rules import has_iceberg_type
from ingestd.paimon.spec.table_schema import TableSchema

Json = Any

_NAMES = {
    "BOOLEAN": "boolean", "TINYINT": "int", "SMALLINT": "int", "INT": "int", "BIGINT": "long",
    "FLOAT": "float", "DOUBLE": "double", "DATE": "date", "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamptz", **dict.fromkeys(CHARACTER_ROOTS, "string"),
    **dict.fromkeys(BINARY_ROOTS, "binary"),
}  # fmt: skip
_AVRO_NAMES = {"date": {"type": "int", "logicalType": "date"}, "binary": "bytes"}
_PACKED = {
    "boolean": "<?", "int": "<i", "long": "<q", "float": "<f", "double": "<d", "date": "<i",
    "timestamp": "<q", "timestamptz": "<q",
}  # fmt: skip
"""`struct` formats of encoded bounds by Iceberg type; strings, binaries and decimals have none."""
_PROMOTIONS = frozenset({("int", "long"), ("float", "double")})
_MICROS_OF_MILLI = 1000
_MAX_LONG = 2**63 - 1
_MILLI_PRECISION = 3


def schema_document(schema: TableSchema) -> Json:
    """Return a schema in Iceberg's JSON form, with the field ids of the data files.

    Raises UnsupportedError for a type that Iceberg does not have.
    """
    fields = [_field_document(field) for field in schema.fields]
    return {"type": "struct", "schema-id": schema.id, "fields": fields}


def _field_document(field: DataField) -> Json:
    document = {
        "id": field.id,
        "name": field.name,
        "required": not field.type.nullable,
        "type": _type_document(field.type, field.id, 0),
    }
    return document if field.description is None else {**document, "doc": field.description}


def _type_document(t: DataType, field_id: int, depth: int) -> Json:
    depth += 1
    if t.root == "ARRAY" and t.element:
        return {
            "type": "list",
            "element-id": nested_field_id(field_id, depth),
            "element-required": not t.element.nullable,
            "element": _type_document(t.element, field_id, depth),
        }
    if t.root == "MAP" and t.key and t.value:
        return {
            "type": "map",
            "key-id": nested_field_id(field_id, depth, is_key=True),
            "key": _type_document(t.key, field_id, depth),
            "value-id": nested_field_id(field_id, depth),
            "value-required": not t.value.nullable,
            "value": _type_document(t.value, field_id, depth),
        }
    if t.root == "ROW":
        return {"type": "struct", "fields": [_field_document(field) for field in t.fields]}
    return type_name(t)


def type_name(t: DataType) -> str:
    """Return the Iceberg name of a primitive type.

    Raises UnsupportedError if Iceberg does not have the type.
    """
    if t.root == "DECIMAL":
        return f"decimal({t.precision}, {t.scale})"
    if t.root not in _NAMES or not has_iceberg_type(t):
        raise UnsupportedError(f"data type {t} has no type in Iceberg")
    return _NAMES[t.root]


def refuse_unreadable(old: TableSchema, new: TableSchema) -> None:
    """Raise UnsupportedError if Iceberg readers cannot read old files with the new schema.

    The files were written with the schema `old`. The readers can convert only int to long, float to
    double, and decimals to a larger precision.
    """
    before = {field.id: field for field in old.fields}
    for field in new.fields:
        known = before.get(field.id)
        if known is not None and not _reads_as(known.type, field.type):
            raise UnsupportedError(
                f"column '{field.name}': Iceberg readers cannot read files with {known.type} as "
                f"{field.type}; Iceberg metadata follows once a full compaction has rewritten them"
            )


def _reads_as(old: DataType, new: DataType) -> bool:
    if old.root != new.root and {old.root, new.root} & {"ARRAY", "MAP", "ROW"}:
        return False
    if old.root in ("ARRAY", "MAP", "ROW"):
        fields = {field.id: field.type for field in old.fields}
        pairs = [
            *((fields[field.id], field.type) for field in new.fields if field.id in fields),
            *((a, b) for a, b in zip(_children(old), _children(new), strict=True)),
        ]
        return all(_reads_as(a, b) for a, b in pairs)
    if old.root == new.root == "DECIMAL":
        return old.scale == new.scale and (old.precision or 0) <= (new.precision or 0)
    names = type_name(old), type_name(new)
    return names[0] == names[1] or names in _PROMOTIONS


def _children(t: DataType) -> list[DataType]:
    return [inner for inner in (t.element, t.key, t.value) if inner is not None]


def avro_type(t: DataType) -> Json:
    """Return the Avro type of a partition value, as a JSON document.

    Raises UnsupportedError if Iceberg does not have the type.
    """
    if t.root == "DECIMAL":
        return {
            "type": "bytes", "logicalType": "decimal", "precision": t.precision, "scale": t.scale,
        }  # fmt: skip
    name = type_name(t)
    return _AVRO_NAMES.get(name, name)


def avro_value(t: DataType, value: Any) -> Any:  # noqa: ANN401  (a value of any column type)
    """Return a Paimon value as a plain Avro value.

    Decimals become big-endian bytes, timestamps microseconds; other values are unchanged.
    """
    if isinstance(value, Decimal):
        return minimal_bytes(unscaled(value, t.scale or 0))
    if t.root in TIMESTAMP_ROOTS and value is not None and (t.precision or 0) <= _MILLI_PRECISION:
        return value * _MICROS_OF_MILLI
    return value


def bound(t: DataType, value: Any) -> bytes:  # noqa: ANN401  (a value of any column type)
    """Encode a non-null plain Avro value of the type `t` as the bytes of an Iceberg bound."""
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else struct.pack(_PACKED[type_name(t)], value)


def bound_order(t: DataType, data: bytes) -> Any:  # noqa: ANN401  (of any column type)
    """Return a sort key for an encoded lower or upper bound of the type `t`.

    Keys of one type are comparable: strings and binary values are compared as bytes, decimals by
    their unscaled integers.
    """
    if t.root == "DECIMAL":
        return int.from_bytes(data, "big", signed=True)
    form = _PACKED.get(type_name(t))
    return data if form is None else struct.unpack(form, data)[0]


def column_bounds(
    fields: Mapping[str, DataField],
    names: Sequence[str],
    values: Sequence[object],
    known: Collection[str],
) -> dict[int, bytes]:
    """Return the encoded bounds of the columns in `known` by field id.

    `values` are the bounds as Paimon values, in the order of the column names `names`; the bounds
    of columns in `known` are not None. `fields` has the columns by name. A timestamp in
    milliseconds whose microseconds exceed 64 bits has no bound.
    """
    bounds = (
        (fields[name], avro_value(fields[name].type, value))
        for name, value in zip(names, values, strict=True)
        if name in known
    )
    return {
        field.id: bound(field.type, value)
        for field, value in bounds
        if field.type.root not in TIMESTAMP_ROOTS or -_MAX_LONG <= value <= _MAX_LONG
    }
