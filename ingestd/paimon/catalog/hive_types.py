"""Hive's names of data types."""

from collections.abc import Mapping

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.data_types import DataType

_NAMES: Mapping[str, str] = {
    "BOOLEAN": "boolean",
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INT": "int",
    "BIGINT": "bigint",
    "FLOAT": "float",
    "DOUBLE": "double",
    "STRING": "string",
    "BINARY": "binary",
    "VARBINARY": "binary",
    "BYTES": "binary",
    "BLOB": "binary",
    "DATE": "date",
    "TIME": "string",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp with local time zone",
    "VARIANT": "struct<value:binary,metadata:binary>",
}
_MAX_LENGTHS: Mapping[str, int] = {"CHAR": 255, "VARCHAR": 65535}
"""Longer types are `string` in Hive."""


def hive_type(t: DataType) -> str:
    """Return Hive's name of a type. Raises UnsupportedError for a type that Hive does not have."""
    if t.root in _NAMES:
        return _NAMES[t.root]
    if t.root == "DECIMAL":
        return f"decimal({t.precision},{t.scale})"
    if t.root in _MAX_LENGTHS:
        length = t.length or 0
        return f"{t.root.lower()}({length})" if length <= _MAX_LENGTHS[t.root] else "string"
    if t.root == "ARRAY" and t.element:
        return f"array<{hive_type(t.element)}>"
    if t.root == "MULTISET" and t.element:
        return f"map<{hive_type(t.element)},int>"
    if t.root == "MAP" and t.key and t.value:
        return f"map<{hive_type(t.key)},{hive_type(t.value)}>"
    if t.root == "ROW":
        fields = (f"{field.name}:{hive_type(field.type)}" for field in t.fields)
        return f"struct<{','.join(fields)}>"
    raise UnsupportedError(f"type {t} does not exist in Hive")
