"""Validate new and changed schemas.

Restrictions of ingestd beyond the specification are checked in `options`.
"""

from collections.abc import Mapping, Sequence

from ingestd.errors import ConfigError, SchemaConflictError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.column_names import table_name_problem
from ingestd.paimon.spec.data_types import NESTED_ROOTS, DataField


def check_schema(
    fields: Sequence[DataField],
    primary_keys: Sequence[str],
    partition_keys: Sequence[str],
    options: Mapping[str, str],
) -> None:
    """Check whether a table can have these columns, keys and options.

    Raises SchemaConflictError for invalid columns or keys, and ConfigError for options of buckets,
    row tracking or clustering that do not fit them.

    Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#schema
    """
    _check_names(fields)
    for kind, keys in (("primary key", primary_keys), ("partition key", partition_keys)):
        _check_keys(kind, keys, fields)
    if primary_keys and set(primary_keys) <= set(partition_keys):
        raise SchemaConflictError(
            f"primary key {list(primary_keys)} holds partition keys only: a partition would have "
            "one row; add a column that tells rows of a partition apart"
        )
    _check_buckets(fields, primary_keys, partition_keys, options)
    if honoured.ROW_TRACKING.of(options) and (primary_keys or bucket_number(options) != -1):
        raise ConfigError(
            "option 'row-tracking.enabled' = 'true' needs a table without primary key and with "
            "'bucket' = '-1'; remove the option"
        )
    is_ordered = bucket_number(options) > 0 and options.get("bucket-append-ordered") != "false"
    if honoured.INCREMENTAL_CLUSTERING.of(options) and (primary_keys or is_ordered):
        raise ConfigError(
            "option 'clustering.incremental' = 'true' needs a table without primary key and, with "
            "buckets, 'bucket-append-ordered' = 'false'; remove the option"
        )


def _check_names(fields: Sequence[DataField]) -> None:
    if not fields:
        raise SchemaConflictError("a table needs at least one column")
    seen: set[str] = set()
    for column in fields:
        problem = table_name_problem(column.name)
        if problem is not None:
            raise SchemaConflictError(f"column '{column.name}' {problem}; rename the column")
        if column.name in seen:
            raise SchemaConflictError(f"column '{column.name}' appears twice")
        seen.add(column.name)


def _check_keys(kind: str, keys: Sequence[str], fields: Sequence[DataField]) -> None:
    by_name = {column.name: column for column in fields}
    if len(set(keys)) != len(keys):
        raise SchemaConflictError(f"{kind} {list(keys)} names a column twice")
    for key in keys:
        if key not in by_name:
            raise SchemaConflictError(
                f"{kind} column '{key}' is not a column; there are {sorted(by_name)}"
            )
        if by_name[key].type.root in NESTED_ROOTS:
            raise SchemaConflictError(
                f"{kind} column '{key}' has type {by_name[key].type}, which cannot be a key"
            )


def bucket_number(options: Mapping[str, str]) -> int:
    """Return the option `bucket`: a count, -1 (the default) or -2 (postponed buckets).

    -1 means dynamic buckets, or no buckets in a table without a primary key. Raises ConfigError for
    any other number.
    """
    number = honoured.BUCKET.of(options)
    if number < 1 and number not in (-1, -2):
        raise ConfigError(f"option 'bucket' = '{number}': use a number above 0, or -1 for dynamic")
    return number


def _check_buckets(
    fields: Sequence[DataField],
    primary_keys: Sequence[str],
    partition_keys: Sequence[str],
    options: Mapping[str, str],
) -> None:
    number, keys = bucket_number(options), honoured.BUCKET_KEY.of(options)
    if number == -1 and keys:
        raise ConfigError(
            f"option 'bucket-key' = '{','.join(keys)}' needs a fixed number of buckets; "
            "set 'bucket' above 0 or remove 'bucket-key'"
        )
    if number == -2 and not primary_keys:
        raise ConfigError("option 'bucket' = '-2' needs a primary key")
    if number > 0 and not primary_keys and not keys:
        raise ConfigError(f"option 'bucket' = '{number}' of a table without key needs 'bucket-key'")
    _check_keys("bucket key", keys, fields)
    if primary_keys and not set(keys) <= set(primary_keys):
        raise SchemaConflictError(
            f"bucket key {list(keys)} must be part of the primary key {list(primary_keys)}"
        )
    if set(keys) & set(partition_keys):
        raise SchemaConflictError(
            f"bucket key {list(keys)} must not hold partition keys {list(partition_keys)}"
        )
