"""Rows of one bucket become data files of level 0.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/datafile/

Primary-key tables: rows are merged per key and sorted by it before they are written. Append
tables, and tables whose rows wait for their bucket (`bucket` = -2): rows are written as they come.
Nothing written here is visible until it is committed.
"""

import uuid
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from ingestd.paimon.casts.default_values import with_defaults
from ingestd.paimon.casts.evolution import columns_schema
from ingestd.paimon.merge.merging import merge_rows
from ingestd.paimon.merge.row_kinds import rows_to_write
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND
from ingestd.paimon.spec.paths import POSTPONE_BUCKET
from ingestd.paimon.spec.schema import TableSchema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.write.bucket_files import WrittenBucketFiles
from ingestd.paimon.table.write.changelog_write import (
    changelog_files,
    input_and_merged,
    writes_input,
)
from ingestd.paimon.table.write.commit_message import CommitMessage
from ingestd.paimon.table.write.figures import retract_count

UNKNOWN_SEQUENCE = -1
"""The sequence number of rows that wait for their bucket."""


def data_file_names(table: FileStoreTable) -> Callable[[], str]:
    """Return a source of names for new data files: one UUID, then a counter."""
    options = table.options.at_level(0)
    stem, count = f"{options.data_file_prefix}{uuid.uuid4()}", iter(range(1 << 31))
    return lambda: f"{stem}-{next(count)}.{options.file_extension}"


def write_bucket(
    table: FileStoreTable,
    partition: bytes,
    partition_values: tuple[object, ...],
    bucket: int,
    rows: pa.Table,
    *,
    new_name: Callable[[], str],
) -> CommitMessage:
    """Write rows of one bucket, given in arrival order, to new files of level 0.

    `rows` has the table's columns in its Arrow types; for a primary-key table also
    `_SEQUENCE_NUMBER` (int64) and `_VALUE_KIND` (int8). For an append table both are optional:
    without sequence numbers its rows count from 0. `partition` is the serialized row of
    `partition_values`. Files roll at `target-file-size`. With the changelog producer `input` all
    rows also go to changelog files, as they are before they are merged.

    Raises ValueError for rows that are not the table's: a column missing or of another type, a null
    in a NOT NULL column, a retraction in an append table.
    """
    data = WrittenBucketFiles(table, partition_values, bucket, table.options.at_level(0), new_name)
    total = table.options.bucket
    checked = _prepare(table, rows)
    if not writes_input(table):
        merged = _merged(table, checked)
        return CommitMessage(partition, bucket, total, new_files=data.write(merged))
    changelog, merged = input_and_merged(table, checked)
    changes = changelog_files(table, partition_values, bucket)
    told = changes.write(changelog)
    try:
        written = data.write(merged)
    except BaseException:
        changes.delete(told)
        raise
    return CommitMessage(partition, bucket, total, new_files=written, changelog_files=told)


def _prepare(table: FileStoreTable, rows: pa.Table) -> pa.Table:
    """Return the rows that are written, with exactly the columns that are the table's."""
    checked = _checked(rows, table.schema)
    if VALUE_KIND in checked.column_names:
        checked = rows_to_write(checked, table.merge_rules)
    return checked if table.schema.primary_keys else _checked_append(checked)


def _merged(table: FileStoreTable, rows: pa.Table) -> pa.Table:
    """Return one row of each key in key order, where rows are merged."""
    if not table.schema.primary_keys:
        return rows
    if table.options.bucket == POSTPONE_BUCKET:
        return _waiting(rows)
    return merge_rows(rows, table.schema.trimmed_primary_keys, table.merge_rules)


def _checked(rows: pa.Table, schema: TableSchema) -> pa.Table:
    wanted = columns_schema(schema.fields)
    extra = [n for n in (SEQUENCE_NUMBER, VALUE_KIND) if n in rows.column_names]
    if schema.primary_keys and len(extra) < 2:
        raise ValueError(f"rows of a primary-key table need {SEQUENCE_NUMBER} and {VALUE_KIND}")
    rows = with_defaults(rows, schema.fields)
    found = dict(zip(rows.column_names, rows.columns, strict=True))
    for field in wanted:
        column = found.get(field.name)
        if column is None or column.type != field.type:
            there = "missing" if column is None else f"{column.type}"
            raise ValueError(f"column {field.name} is {there} instead of {field.type}")
        if not field.nullable and column.null_count:
            raise ValueError(f"column {field.name} is NOT NULL and has {column.null_count} nulls")
    return rows.select([*extra, *wanted.names]).combine_chunks()


def _waiting(rows: pa.Table) -> pa.Table:
    """Rows as they came: they get their numbers, and meet the others of their key, in a bucket."""
    at = rows.column_names.index(SEQUENCE_NUMBER)
    unknown = pa.array(np.full(rows.num_rows, UNKNOWN_SEQUENCE))
    return rows.set_column(at, SEQUENCE_NUMBER, unknown)


def _checked_append(rows: pa.Table) -> pa.Table:
    if VALUE_KIND in rows.column_names and retract_count(rows):
        raise ValueError("an append table takes no retractions")
    return rows
