"""Rows of one bucket become data files of level 0. Specification: Data files; Write path.

Primary-key tables: rows are merged per key and sorted by it before they are written. Append
tables: rows are written as they come. Nothing written here is visible until it is committed.
"""

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ingestd.paimon.format.base import format_of, load_format
from ingestd.paimon.merge.merging import merge_rows
from ingestd.paimon.merge.row_kinds import rows_to_write
from ingestd.paimon.spec.arrow import column_values
from ingestd.paimon.spec.binary_row import EMPTY_ROW, serialize_row
from ingestd.paimon.spec.data_file import EMPTY_STATS, DataFileMeta, FileSource
from ingestd.paimon.spec.data_types import KEY_PREFIX, SEQUENCE_NUMBER, VALUE_KIND
from ingestd.paimon.spec.schema import TableSchema
from ingestd.paimon.spec.stats import collect_stats
from ingestd.paimon.table.commit_message import CommitMessage
from ingestd.paimon.table.data_files import RETRACTS, data_file_fields, data_file_path
from ingestd.paimon.table.default_values import with_defaults
from ingestd.paimon.table.evolution import columns_schema
from ingestd.paimon.table.file_index_write import with_file_index
from ingestd.paimon.table.file_store_table import FileStoreTable

KEY_STATS_MODE = "truncate(128)"

_SAMPLE_ROWS = 16384


def data_file_names(table: FileStoreTable) -> Callable[[], str]:
    """A source of names for new data files: one UUID, then a counter."""
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
    `partition_values`. Files roll at `target-file-size`.

    ValueError for rows that are not the table's: a column missing or of another type, a null
    in a NOT NULL column, a retraction in an append table.
    """
    bucket_rows = _BucketRows(table, partition_values, bucket, new_name)
    written: list[DataFileMeta] = []
    try:
        merged = _prepare(table, rows)
        for part in _rolled(table, merged):
            written.append(bucket_rows.write(part))
    except BaseException:
        for meta in written:
            for name in (meta.file_name, *meta.extra_files):
                table.io.delete_quietly(bucket_rows.path(name))
        raise
    total = table.options.bucket if table.options.bucket > 0 else -1
    return CommitMessage(partition, bucket, total, new_files=tuple(written))


def _prepare(table: FileStoreTable, rows: pa.Table) -> pa.Table:
    """One row of each key in key order, with exactly the columns that are the table's."""
    schema = table.schema
    checked = _checked(rows, schema)
    if VALUE_KIND in checked.column_names:
        checked = rows_to_write(checked, table.merge_rules)
    if not schema.primary_keys:
        return _checked_append(checked)
    return merge_rows(checked, schema.trimmed_primary_keys, table.merge_rules)


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


def _checked_append(rows: pa.Table) -> pa.Table:
    if VALUE_KIND in rows.column_names and _retracts(rows):
        raise ValueError("an append table takes no retractions")
    return rows


def _retracts(rows: pa.Table) -> int:
    kinds = rows.column(VALUE_KIND).to_numpy()
    return int(np.isin(kinds, RETRACTS).sum())


def _rolled(table: FileStoreTable, rows: pa.Table) -> Iterator[pa.Table]:
    """Consecutive parts of about the target file size; none for no rows.

    Encoded rows are smaller than Arrow rows, so only what is larger than one file in Arrow
    needs a sample that tells how large it will be.
    """
    per_file = max(rows.num_rows, 1)
    target = table.options.target_file_size
    if rows.nbytes > target:
        sample = rows.slice(rows.num_rows // 2, _SAMPLE_ROWS)
        options = table.options.at_level(0)
        size = load_format(options.file_format).encoded_size(sample, options)
        per_file = min(per_file, max(1, target * sample.num_rows // max(size, 1)))
    for start in range(0, rows.num_rows, per_file):
        yield rows.slice(start, per_file)


@dataclass(frozen=True, slots=True)
class _BucketRows:
    """Where the files of the bucket go, and what the manifest will say about them."""

    table: FileStoreTable
    partition_values: tuple[object, ...]
    bucket: int
    new_name: Callable[[], str]

    def path(self, name: str) -> str:
        return data_file_path(self.table, self.partition_values, self.bucket, name)

    def write(self, rows: pa.Table) -> DataFileMeta:
        table, name = self.table, self.new_name()
        fields = data_file_fields(table.schema)
        columns = [rows.column(field.name.removeprefix(KEY_PREFIX)) for field in fields]
        file_rows = pa.Table.from_arrays(columns, schema=columns_schema(fields))
        file_format = load_format(format_of(name))
        size = file_format.write_file(
            table.io, self.path(name), file_rows, table.options.at_level(0)
        )
        meta = _append_meta(table, rows, name, size)
        meta = with_file_index(table, self.path(name), rows, meta)
        return _with_keys(table.schema, rows, meta) if table.schema.primary_keys else meta


def _append_meta(table: FileStoreTable, rows: pa.Table, name: str, size: int) -> DataFileMeta:
    values = rows.select(table.schema.field_names)
    options = table.options.at_level(0)
    stats, stats_columns = collect_stats(
        values, table.schema.fields, options.stats_mode, dense=options.stats_dense_store
    )
    first, last = _sequence_range(rows)
    return DataFileMeta(
        file_name=name,
        file_size=size,
        row_count=rows.num_rows,
        min_key=EMPTY_ROW,
        max_key=EMPTY_ROW,
        key_stats=EMPTY_STATS,
        value_stats=stats,
        min_sequence_number=first,
        max_sequence_number=last,
        schema_id=table.schema.id,
        level=0,
        creation_time_ms=time.time_ns() // 1_000_000,
        delete_row_count=0,
        file_source=FileSource.APPEND,
        value_stats_cols=stats_columns,
    )


def _sequence_range(rows: pa.Table) -> tuple[int, int]:
    if SEQUENCE_NUMBER not in rows.column_names:
        return 0, rows.num_rows - 1
    numbers = rows.column(SEQUENCE_NUMBER).to_numpy()
    return int(numbers.min()), int(numbers.max())


def _with_keys(schema: TableSchema, rows: pa.Table, meta: DataFileMeta) -> DataFileMeta:
    fields = schema.key_fields
    keys = rows.select(schema.trimmed_primary_keys)
    types = [field.type for field in fields]
    ends = keys.take(pa.array([0, keys.num_rows - 1]))
    first, last = zip(*(column_values(column) for column in ends.columns), strict=True)
    key_stats, _ = collect_stats(keys, fields, lambda _: KEY_STATS_MODE)
    return replace(
        meta,
        min_key=serialize_row(types, first),
        max_key=serialize_row(types, last),
        key_stats=key_stats,
        delete_row_count=_retracts(rows),
    )
