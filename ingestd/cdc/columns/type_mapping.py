"""The options of Paimon's `type_mapping`.

The descriptor of a data format lists the options that the format supports.
"""

from collections.abc import Iterable

from ingestd.cdc.base import DATA_FORMATS, describe_format
from ingestd.errors import ConfigError

TINYINT1_NOT_BOOL = "tinyint1-not-bool"
TO_NULLABLE = "to-nullable"
TO_STRING = "to-string"
CHAR_TO_STRING = "char-to-string"
LONGTEXT_TO_BYTES = "longtext-to-bytes"
DECIMAL_NO_CHANGE = "decimal-no-change"
BIGINT_UNSIGNED_TO_BIGINT = "bigint-unsigned-to-bigint"
ALLOW_NON_STRING_TO_STRING = "allow-non-string-to-string"

ALWAYS_HONOURED = frozenset({TO_NULLABLE, ALLOW_NON_STRING_TO_STRING})
"""Options that every data format supports: columns accept nulls and may become STRING."""
JSON_TYPE_MAPPINGS = frozenset({TO_STRING, DECIMAL_NO_CHANGE})
"""Options of JSON formats that infer types from values."""
MYSQL_TYPE_MAPPINGS = frozenset(
    {TINYINT1_NOT_BOOL, CHAR_TO_STRING, LONGTEXT_TO_BYTES, BIGINT_UNSIGNED_TO_BIGINT}
)
"""Options for MySQL column types, in formats whose messages contain these types."""
NAMES = ALWAYS_HONOURED | JSON_TYPE_MAPPINGS | MYSQL_TYPE_MAPPINGS


def read_type_mapping(names: Iterable[str], data_format: str) -> frozenset[str]:
    """Return the `type_mapping` options with these names, in kebab-case.

    Upper case and underscores are accepted in names. Raises ConfigError if an option is unknown, or
    the data format does not support it.
    """
    mappings = frozenset(name.strip().lower().replace("_", "-") for name in names)
    for name in sorted(mappings - NAMES):
        raise ConfigError(
            f"there is no type mapping {name!r}; choose among {', '.join(sorted(NAMES))}"
        )
    for name in sorted(mappings - honoured_by(data_format)):
        raise ConfigError(
            f"type mapping {name!r} has no effect on {data_format}, whose messages contain no such "
            "types; declare the types in schema.column-types of the tables"
        )
    return mappings


def honoured_by(data_format: str) -> frozenset[str]:
    """Return the `type_mapping` options that a data format supports, in kebab-case.

    For an unknown format, these are the options that all formats support.
    """
    if data_format not in DATA_FORMATS:
        return ALWAYS_HONOURED
    return ALWAYS_HONOURED | describe_format(data_format).type_mapping
