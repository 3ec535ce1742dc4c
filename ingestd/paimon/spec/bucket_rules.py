"""What the buckets of a table may not be together with, if ingestd is to write it.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/
"""

from collections.abc import Sequence

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.bucket import takes_bucket_keys
from ingestd.paimon.spec.option_values import bool_option
from ingestd.paimon.spec.table_schema import TableSchema

_IGNORING_DELETIONS = ("ignore-delete", "deduplicate.ignore-delete")
_NEEDED = {
    "mod": "one INT or BIGINT bucket key",
    "hive": "bucket keys that are numbers, texts, bytes, dates or times",
}


def refuse_bucket_keys(schema: TableSchema, function: str, keys: Sequence[str]) -> None:
    """UnsupportedError if the bucket function has no bucket for keys of these types."""
    columns = schema.select(keys)
    if not takes_bucket_keys(function, [column.type for column in columns]):
        named = ", ".join(f"{column.name} {column.type}" for column in columns)
        raise UnsupportedError(
            f"option 'bucket-function.type' = '{function}' needs "
            f"{_NEEDED.get(function, 'another name')}, not {named}"
        )


def refuse_across_partitions(schema: TableSchema) -> None:
    """UnsupportedError for options under which a key that moves would leave its old row behind."""
    if schema.options.get("rowkind.field"):
        raise _across(schema, "rowkind.field")
    engine = schema.options.get("merge-engine", "deduplicate").strip().lower()
    for name in _IGNORING_DELETIONS:
        if engine == "deduplicate" and bool_option(schema.options, name, False):
            raise _across(schema, name)


def refuse_postponed(schema: TableSchema) -> None:
    """UnsupportedError for options that ask more of postponed rows than to wait."""
    producer = schema.options.get("changelog-producer", "none").strip().lower()
    if producer == "input":
        raise UnsupportedError(
            "option 'changelog-producer' = 'input' is not supported with 'bucket' = '-2': rows "
            "that wait for their bucket have no changelog yet; set 'lookup', or a number of buckets"
        )


def _across(schema: TableSchema, name: str) -> UnsupportedError:
    missing = sorted(set(schema.partition_keys) - set(schema.primary_keys))
    return UnsupportedError(
        f"option '{name}' = '{schema.options[name]}' is not supported where keys move between "
        f"partitions ('bucket' = '-1', primary key without partition keys {missing}): the row "
        "that moved could not be deleted; add them to the primary key or remove the option"
    )
