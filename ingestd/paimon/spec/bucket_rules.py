"""Refuse bucket options that are unsupported or conflict with other options.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#fixed-bucket
"""

from collections.abc import Sequence

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.bucket import takes_bucket_keys
from ingestd.paimon.spec.option_types import TableOption
from ingestd.paimon.spec.table_schema import TableSchema

_NEEDED = {
    "mod": "one INT or BIGINT bucket key",
    "hive": "bucket keys that are numbers, texts, bytes, dates or times",
}


def refuse_bucket_keys(schema: TableSchema, function: str, keys: Sequence[str]) -> None:
    """Raise UnsupportedError if the bucket function does not support the key types."""
    columns = schema.select(keys)
    if not takes_bucket_keys(function, [column.type for column in columns]):
        named = ", ".join(f"{column.name} {column.type}" for column in columns)
        raise UnsupportedError(
            f"option 'bucket-function.type' = '{function}' needs "
            f"{_NEEDED.get(function, 'another name')}, not {named}"
        )


def refuse_across_partitions(schema: TableSchema) -> None:
    """Raise UnsupportedError for options that would leave the old row of a key that moves."""
    options = schema.options
    if honoured.ROWKIND_FIELD.of(options):
        raise _across(schema, honoured.ROWKIND_FIELD)
    if honoured.MERGE_ENGINE.of(options) == "deduplicate" and honoured.IGNORE_DELETE.of(options):
        raise _across(schema, honoured.IGNORE_DELETE)


def refuse_postponed(schema: TableSchema) -> None:
    """Raise UnsupportedError for options that are not supported with postponed buckets."""
    producer = honoured.CHANGELOG_PRODUCER.of(schema.options)
    if producer == "input":
        raise UnsupportedError(
            "option 'changelog-producer' = 'input' is not supported with 'bucket' = '-2': rows "
            "that wait for their bucket have no changelog yet; set 'lookup', or a number of buckets"
        )


def _across(schema: TableSchema, option: TableOption[object]) -> UnsupportedError:
    name = option.given(schema.options) or option.name
    missing = sorted(set(schema.partition_keys) - set(schema.primary_keys))
    return UnsupportedError(
        f"option '{name}' = '{schema.options[name]}' is not supported where keys move between "
        f"partitions ('bucket' = '-1', primary key without partition keys {missing}): the row "
        "that moved could not be deleted; add them to the primary key or remove the option"
    )
