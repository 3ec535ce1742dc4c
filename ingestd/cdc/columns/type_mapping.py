"""The names of Paimon's `type_mapping`, and which data formats can honour them."""

from collections.abc import Iterable

from ingestd.errors import ConfigError

TINYINT1_NOT_BOOL = "tinyint1-not-bool"
TO_NULLABLE = "to-nullable"
TO_STRING = "to-string"
CHAR_TO_STRING = "char-to-string"
LONGTEXT_TO_BYTES = "longtext-to-bytes"
DECIMAL_NO_CHANGE = "decimal-no-change"
BIGINT_UNSIGNED_TO_BIGINT = "bigint-unsigned-to-bigint"
ALLOW_NON_STRING_TO_STRING = "allow-non-string-to-string"

_ALWAYS = frozenset({TO_NULLABLE, ALLOW_NON_STRING_TO_STRING})
"""What they ask for is what happens anyway: columns take nulls, and may become text."""
_OF_JSON = frozenset({TO_STRING, DECIMAL_NO_CHANGE})
_OF_MYSQL = frozenset(
    {TINYINT1_NOT_BOOL, CHAR_TO_STRING, LONGTEXT_TO_BYTES, BIGINT_UNSIGNED_TO_BIGINT}
)
"""They speak of column types of MySQL, which only some messages name."""
NAMES = _ALWAYS | _OF_JSON | _OF_MYSQL

_JSON_FORMATS = frozenset(
    {
        "debezium-json",
        "debezium-flat-json",
        "canal-json",
        "maxwell-json",
        "ogg-json",
        "aws-dms-json",
        "aliyun-json",
        "json",
    }
)


def read_type_mapping(names: Iterable[str], data_format: str) -> frozenset[str]:
    """The names in their usual spelling; ConfigError for one that the data format cannot honour."""
    found = frozenset(name.strip().lower().replace("_", "-") for name in names)
    for name in sorted(found - NAMES):
        raise ConfigError(
            f"there is no type mapping {name!r}; choose among {', '.join(sorted(NAMES))}"
        )
    for name in sorted(found - honoured_by(data_format)):
        raise ConfigError(
            f"type mapping {name!r} means nothing to {data_format}, whose messages name no such "
            "types; declare the types in schema.column-types of the tables"
        )
    return found


def honoured_by(data_format: str) -> frozenset[str]:
    """The names that a data format honours."""
    if data_format == "canal-json":
        return NAMES
    return _ALWAYS | _OF_JSON if data_format in _JSON_FORMATS else _ALWAYS
