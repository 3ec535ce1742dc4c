"""Soft deletes (`on-delete: keep`): a delete of the source becomes an update that sets a column.

The column contains the time of the delete, and is NULL in all other rows, so that a later insert or
update of the key removes the time. `soft_delete_refusal` names the table options with which the
column or the other values would be wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ingestd.paimon.spec.changelog_checks import writes_input
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.merge_rules import LAST_VALUE, MergeRules, merge_rules
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.table_schema import TableSchema

OnDelete = Literal["delete", "keep"]
DELETED_AT = "deleted_at"
DELETED_AT_TYPE = DataType("TIMESTAMP_LTZ", precision=3)


@dataclass(frozen=True, slots=True)
class SoftDeletes:
    """The column with the time of deletes, and all columns for which a delete has its own values.

    `own` are `column`, the metadata columns and the route columns. In other columns outside the
    primary key, a kept delete leaves the values of the row unchanged.
    """

    column: str
    own: frozenset[str]


def soft_delete_refusal(schema: TableSchema, soft: SoftDeletes) -> str | None:
    """Return why a table cannot keep deleted rows and what to change, or None if it can.

    Raises ConfigError if options of the table are invalid.
    """
    reason = next(_refusals(schema, soft), None)
    return None if reason is None else f"on-delete 'keep' {reason}"


def _refusals(schema: TableSchema, soft: SoftDeletes) -> Iterator[str]:
    column = soft.column
    if not schema.primary_keys:
        yield (
            "is for tables with a primary key: name its columns in primary-keys (and move a table "
            "that exists without it away), or set on-delete to 'delete' and keep deletes as rows "
            "by keyless-table-mode 'audit'"
        )
    rules = merge_rules(schema)
    if rules.rowkind_field is not None:
        yield (
            "cannot be combined with 'rowkind.field', whose column gives the kind of each row; "
            "remove one of them"
        )
    if writes_input(schema):
        yield (
            "cannot be combined with 'changelog-producer' = 'input', whose changelog is that of "
            "the source; set 'changelog-producer' to 'lookup' or 'full-compaction'"
        )
    if bucket_mode(schema) is BucketMode.POSTPONE:
        yield (
            "looks up the last values of a deleted row, which is not possible with 'bucket' = "
            "'-2'; set a number of buckets, or '-1', when the table is created"
        )
    yield from _column_refusals(schema, column)
    yield from _merge_refusals(rules, soft)
    for field in schema.fields:
        is_value = field.name not in schema.primary_keys
        if is_value and not field.type.nullable and rules.keeps_older(field.name):
            yield (
                f"needs a NULL in column '{field.name}', which is NOT NULL and merged by "
                f"'merge-engine' = '{rules.engine}'; make it nullable"
            )


def _column_refusals(schema: TableSchema, column: str) -> Iterator[str]:
    if column in (*schema.primary_keys, *schema.partition_keys):
        yield (
            f"writes '{column}', which is a key column of the table; set deleted-at to another name"
        )
    if column in schema.field_names:
        data_type = schema.field(column).type
        if data_type.root != DELETED_AT_TYPE.root or not data_type.nullable:
            yield (
                f"writes {DELETED_AT_TYPE} to column '{column}', which is {data_type}; set "
                "deleted-at to another name"
            )


def _merge_refusals(rules: MergeRules, soft: SoftDeletes) -> Iterator[str]:
    """Yield why the merge engine would keep an old time, or apply a delete in a wrong order."""
    column = soft.column
    if rules.engine == "first-row":
        yield "is not possible with 'merge-engine' = 'first-row', which applies no later change"
    function = rules.functions.get(column)
    if function is not None and function.name != LAST_VALUE:
        yield (
            f"needs the last value of '{column}', NULL included, and its aggregate function is "
            f"'{function.name}'; set 'fields.{column}.aggregate-function' = '{LAST_VALUE}' when "
            "the table is created"
        )
    groups = [group for group in rules.groups if column in group.columns]
    if rules.engine == "partial-update" and not groups:
        yield (
            f"needs the last value of '{column}', NULL included, which 'merge-engine' = "
            "'partial-update' keeps only in a sequence group: add 'source_position' or another "
            f"metadata column, and set 'fields.source_position.sequence-group' = '{column}'"
        )
    orders = [*rules.sequence_fields, *(name for group in groups for name in group.sequence)]
    for name in orders:
        if name not in soft.own or name == column:
            yield (
                f"is not possible if column '{name}' orders rows, because deletes have no value "
                "for it; order rows by a metadata column such as source_position or op_ts"
            )
