"""Avro schemas of manifest lists, manifests and index manifests.

Record names are part of the format: other readers resolve them by name.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#data-manifest
"""

import re
from collections.abc import Sequence
from typing import Any

NAMESPACE = "org.apache.paimon.avro.generated"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_Schema = dict[str, Any]
_AvroType = str | _Schema | Sequence[str | _Schema]


def is_avro_name(name: str) -> bool:
    """Return whether an Avro field can have this name; other writers reject invalid names."""
    return _NAME.fullmatch(name) is not None


def _field(name: str, avro_type: _AvroType) -> _Schema:
    return {"name": name, "type": avro_type}


def _optional(name: str, avro_type: _AvroType) -> _Schema:
    return {"name": name, "type": ["null", avro_type], "default": None}


def _array(items: _AvroType) -> _Schema:
    return {"type": "array", "items": items}


def _record(name: str, fields: list[_Schema]) -> _Schema:
    return {"type": "record", "name": name, "fields": fields}


def _document(fields: list[_Schema]) -> _Schema:
    return {
        "type": "record",
        "name": "record",
        "namespace": NAMESPACE,
        "fields": [_field("_VERSION", "int"), *fields],
    }


def _stats(parent: str, name: str) -> _Schema:
    fields = [
        _field("_MIN_VALUES", "bytes"),
        _field("_MAX_VALUES", "bytes"),
        _optional("_NULL_COUNTS", _array(["null", "long"])),
    ]
    return _field(name, _record(f"{parent}_{name}", fields))


MANIFEST_LIST_SCHEMA = _document(
    [
        _field("_FILE_NAME", "string"),
        _field("_FILE_SIZE", "long"),
        _field("_NUM_ADDED_FILES", "long"),
        _field("_NUM_DELETED_FILES", "long"),
        _stats("record", "_PARTITION_STATS"),
        _field("_SCHEMA_ID", "long"),
        _optional("_MIN_BUCKET", "int"),
        _optional("_MAX_BUCKET", "int"),
        _optional("_MIN_LEVEL", "int"),
        _optional("_MAX_LEVEL", "int"),
        _optional("_MIN_ROW_ID", "long"),
        _optional("_MAX_ROW_ID", "long"),
    ]
)

_DATA_FILE = [
    _field("_FILE_NAME", "string"),
    _field("_FILE_SIZE", "long"),
    _field("_ROW_COUNT", "long"),
    _field("_MIN_KEY", "bytes"),
    _field("_MAX_KEY", "bytes"),
    _stats("record__FILE", "_KEY_STATS"),
    _stats("record__FILE", "_VALUE_STATS"),
    _field("_MIN_SEQUENCE_NUMBER", "long"),
    _field("_MAX_SEQUENCE_NUMBER", "long"),
    _field("_SCHEMA_ID", "long"),
    _field("_LEVEL", "int"),
    _field("_EXTRA_FILES", _array("string")),
    _optional("_CREATION_TIME", {"type": "long", "logicalType": "timestamp-millis"}),
    _optional("_DELETE_ROW_COUNT", "long"),
    _optional("_EMBEDDED_FILE_INDEX", "bytes"),
    _optional("_FILE_SOURCE", "int"),
    _optional("_VALUE_STATS_COLS", _array("string")),
    _optional("_EXTERNAL_PATH", "string"),
    _optional("_FIRST_ROW_ID", "long"),
    _optional("_WRITE_COLS", _array("string")),
]

MANIFEST_SCHEMA = _document(
    [
        _field("_KIND", "int"),
        _field("_PARTITION", "bytes"),
        _field("_BUCKET", "int"),
        _field("_TOTAL_BUCKETS", "int"),
        _field("_FILE", _record("record__FILE", _DATA_FILE)),
    ]
)

_DELETION_VECTOR_RANGE = [
    _field("f0", "string"),
    _field("f1", "int"),
    _field("f2", "int"),
    _optional("_CARDINALITY", "long"),
]

_GLOBAL_INDEX = [
    _field("_ROW_RANGE_START", "long"),
    _field("_ROW_RANGE_END", "long"),
    _field("_INDEX_FIELD_ID", "int"),
    _optional("_EXTRA_FIELD_IDS", _array("int")),
    _optional("_INDEX_META", "bytes"),
]

INDEX_MANIFEST_SCHEMA = _document(
    [
        _field("_KIND", "int"),
        _field("_PARTITION", "bytes"),
        _field("_BUCKET", "int"),
        _field("_INDEX_TYPE", "string"),
        _field("_FILE_NAME", "string"),
        _field("_FILE_SIZE", "long"),
        _field("_ROW_COUNT", "long"),
        _optional(
            "_DELETIONS_VECTORS_RANGES",
            _array(["null", _record("record__DELETIONS_VECTORS_RANGES", _DELETION_VECTOR_RANGE)]),
        ),
        _optional("_EXTERNAL_PATH", "string"),
        _optional("_GLOBAL_INDEX", _record("record__GLOBAL_INDEX", _GLOBAL_INDEX)),
    ]
)
