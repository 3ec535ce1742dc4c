"""Write the rows of a bucket to data files of level 0, and to changelog files.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/datafile/#table-with-primary-key-data-file
https://paimon.apache.org/docs/1.4/primary-key-table/changelog-producer/#input

Rows of primary-key tables are merged per key and sorted by key. Rows of append tables, and of
postponed buckets (`bucket` = -2), are written in arrival order. With the changelog producer `input`
all rows are also written, before merging, to changelog files beside the data files: in key order,
rows of one key from the oldest to the newest, each with its row kind. Files are not visible before
they are committed.
"""

import contextlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise

import numpy as np
import pyarrow as pa

from ingestd.crash_points import CrashPoint, reach
from ingestd.paimon.casts.default_values import with_defaults
from ingestd.paimon.casts.evolution import columns_schema
from ingestd.paimon.format.base import format_of, load_format
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.merge.base import merge_rows, merge_sorted, ordered_rows
from ingestd.paimon.merge.key_order import SortedKeys
from ingestd.paimon.merge.row_kinds import rows_to_write
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.changelog_checks import writes_input
from ingestd.paimon.spec.data_file import DataFileMeta, FileSource
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND
from ingestd.paimon.spec.file_index_options import column_indexes
from ingestd.paimon.spec.grouping import pair_order
from ingestd.paimon.spec.options import CoreOptions
from ingestd.paimon.spec.paths import POSTPONE_BUCKET
from ingestd.paimon.spec.row_selection import Indices, take_rows
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.files.data_file_indexes import with_file_index
from ingestd.paimon.table.files.data_files import (
    delete_uncommitted_files,
    name_for_options,
    new_data_file,
    options_for_rows,
    to_data_file_rows,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.write.commit_message import CommitMessage
from ingestd.paimon.table.write.file_metadata import (
    KEY_STATS_MODE,
    FileOrigin,
    FileStatsCollector,
    retract_count,
)

UNKNOWN_SEQUENCE = -1
"""Sequence number of rows in postponed buckets."""
_SAMPLE_ROWS = 16384


@dataclass(frozen=True, slots=True)
class WrittenBucketFiles:
    """A writer of the data files or the changelog files of one bucket.

    `partition_values` are in the order of the partition keys, `options` are those of the kind of
    file. `new_name` returns a new file name at each call. With `indexed`, the files have the file
    indexes of the table; changelog files have none.
    """

    table: FileStoreTable
    partition_values: tuple[object, ...]
    bucket: int
    options: CoreOptions
    new_name: Callable[[], str]
    indexed: bool = True

    def write(self, rows: pa.Table) -> tuple[DataFileMeta, ...]:
        """Write rows, in order, to files of about the target size; return their manifest entries.

        Without rows, no file is written. If a file cannot be written, the files written before it
        are deleted. Raises StorageError if the storage fails.
        """
        written: list[DataFileMeta] = []
        try:
            for batch in self._rolled(rows):
                written.append(self._write_file(batch))
        except BaseException:
            self.delete(written)
            raise
        return tuple(written)

    def delete(self, files: list[DataFileMeta] | tuple[DataFileMeta, ...]) -> None:
        """Delete files that will not be committed, with their index files; never raises."""
        delete_uncommitted_files(self.table, self.partition_values, self.bucket, files)

    def _rolled(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Yield consecutive parts of the rows, each for a file of about the target size.

        Encoded rows are smaller than Arrow rows: only rows that exceed the target size in Arrow are
        measured, by encoding a sample.
        """
        per_file = max(rows.num_rows, 1)
        target = self.options.target_file_size
        if rows.nbytes > target:
            sample = rows.slice(rows.num_rows // 2, _SAMPLE_ROWS)
            options = options_for_rows(self.options, sample)
            size = encoded_size(sample, options)
            per_file = min(per_file, max(1, target * sample.num_rows // max(size, 1)))
        for start in range(0, rows.num_rows, per_file):
            yield rows.slice(start, per_file)

    def _write_file(self, rows: pa.Table) -> DataFileMeta:
        table, options = self.table, options_for_rows(self.options, rows)
        name = name_for_options(self.new_name(), self.options, options)
        file = new_data_file(table, self.partition_values, self.bucket, name)
        stored = to_data_file_rows(table.schema, rows)
        size = write_file(table.io, file.path, stored, options)
        reach(CrashPoint.DATA_WRITTEN if self.indexed else CrashPoint.CHANGELOG_WRITTEN)
        # Rows of postponed buckets are not looked up by key.
        key_stats = "none" if self.options.bucket == POSTPONE_BUCKET else KEY_STATS_MODE
        origin = FileOrigin(table, self.options, 0, FileSource.APPEND, key_stats)
        figures = FileStatsCollector(origin, 0)
        figures.add(rows)
        meta = replace(figures.meta(name, size), external_path=file.external)
        has_indexes = self.indexed and bool(column_indexes(table.schema))
        return with_file_index(table, file.path, rows, meta) if has_indexes else meta


def write_file(io: FileIO, path: str, table: pa.Table, options: CoreOptions) -> int:
    """Write a new data file and return its size in bytes.

    Fields have the nullability and, unless it is an Avro file, the ids of the Arrow schema. Raises
    UnsupportedError for an option, a column or a value that the format does not support, and
    StorageError if the file exists or the store fails.
    """
    with io.open_output(path) as stream:
        return _write_to(stream, table, options, path)


def encoded_size(table: pa.Table, options: CoreOptions) -> int:
    """Return the size in bytes of a file of these rows in the format `options.file_format`.

    Raises UnsupportedError like `write_file`.
    """
    return _write_to(pa.BufferOutputStream(), table, options, options.file_format)


def _write_to(stream: pa.NativeFile, table: pa.Table, options: CoreOptions, name: str) -> int:
    """Write a file to a stream; return its size in bytes. `name` ends with its format."""
    module = load_format(format_of(name))
    with contextlib.closing(module.open_sink(stream, table, options)) as sink:
        sink.write(table)
    return int(stream.tell())


def data_file_names(table: FileStoreTable) -> Callable[[], str]:
    """Return a function that returns a new data file name at each call: a UUID and a counter."""
    options = table.options.at_level(0)
    return _numbered_names(options.data_file_prefix, options.file_extension)


def _numbered_names(prefix: str, extension: str) -> Callable[[], str]:
    stem, numbers = f"{prefix}{uuid.uuid4()}", count()
    return lambda: f"{stem}-{next(numbers)}.{extension}"


@dataclass(frozen=True, slots=True)
class AssignedRows:
    """Rows and their targets: row i is written to `partitions[codes[i]]` and bucket `buckets[i]`.

    The partition columns of the rows have the values of the target.
    """

    rows: pa.Table
    codes: Indices
    partitions: Sequence[bytes]
    buckets: Indices


def write_assigned(
    table: FileStoreTable, assigned: AssignedRows, new_name: Callable[[], str]
) -> Iterator[CommitMessage]:
    """Write rows, in arrival order, to their buckets, and yield the commit message of each bucket.

    Raises the errors of `write_bucket`, which describes rows and names.
    """
    if not assigned.rows.num_rows:
        return
    order = pair_order(assigned.codes, assigned.buckets)
    in_order = not bool((np.diff(order) < 0).any())
    ordered = assigned.rows if in_order else take_rows(assigned.rows, order)
    codes, buckets = assigned.codes[order], assigned.buckets[order]
    borders = np.flatnonzero((np.diff(codes) != 0) | (np.diff(buckets) != 0)) + 1
    for start, end in pairwise([0, *borders.tolist(), len(order)]):
        partition, bucket = assigned.partitions[int(codes[start])], int(buckets[start])
        rows = ordered.slice(start, end - start)
        yield write_bucket(table, partition, bucket, rows, new_name=new_name)


def write_bucket(
    table: FileStoreTable,
    partition: bytes,
    bucket: int,
    rows: pa.Table,
    *,
    new_name: Callable[[], str],
) -> CommitMessage:
    """Write rows of one bucket, given in arrival order, to new files of level 0.

    `rows` has the table's columns in its Arrow types; for a primary-key table also
    `_SEQUENCE_NUMBER` (int64) and `_VALUE_KIND` (int8). For an append table both are optional:
    without sequence numbers, its rows are numbered from 0. `partition` is the serialized row of the
    partition values. `new_name` returns a new file name at each call; a new file is begun at
    `target-file-size`. With the changelog producer `input` all rows are also written to changelog
    files, before they are merged.

    Raises ValueError if the rows do not fit the table: a column is missing or has another type, a
    NOT NULL column without a default has a null, or an append table gets a retraction. Raises
    UnsupportedError for a row kind that the merge engine does not support, and StorageError if the
    storage fails; no file remains then.
    """
    values = deserialize_row(table.partition_types, partition)
    data = WrittenBucketFiles(table, values, bucket, table.options.at_level(0), new_name)
    total = table.options.bucket
    checked = _prepare(table, rows)
    if not writes_input(table.schema):
        merged = _merged(table, checked)
        return CommitMessage(partition, bucket, total, new_files=data.write(merged))
    changelog, merged = input_and_merged(table, checked)
    changes = changelog_files(table, values, bucket)
    changelog_metas = changes.write(changelog)
    try:
        written = data.write(merged)
    except BaseException:
        changes.delete(changelog_metas)
        raise
    return CommitMessage(
        partition, bucket, total, new_files=written, changelog_files=changelog_metas
    )


def _prepare(table: FileStoreTable, rows: pa.Table) -> pa.Table:
    """Return the rows to write, with the columns of the table and with default values.

    Raises ValueError if the rows do not fit the table, and UnsupportedError for a row kind that the
    merge engine does not support.
    """
    checked = _checked(rows, table.schema)
    if VALUE_KIND in checked.column_names:
        checked = rows_to_write(checked, table.merge_rules)
    return checked if table.schema.primary_keys else _checked_append(checked)


def _merged(table: FileStoreTable, rows: pa.Table) -> pa.Table:
    """Return one row per key in key order; append tables and postponed buckets keep all rows."""
    if not table.schema.primary_keys:
        return rows
    if table.options.bucket == POSTPONE_BUCKET:
        return _postponed(rows)
    return merge_rows(rows, table.schema.trimmed_primary_keys, table.merge_rules)


def _checked(rows: pa.Table, schema: TableSchema) -> pa.Table:
    wanted = columns_schema(schema.fields)
    extra = [n for n in (SEQUENCE_NUMBER, VALUE_KIND) if n in rows.column_names]
    if schema.primary_keys and len(extra) < 2:
        raise ValueError(f"rows of a primary-key table need {SEQUENCE_NUMBER} and {VALUE_KIND}")
    if any(field.default_value is not None for field in schema.fields):
        rows = with_defaults(rows, schema.fields)
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    for field in wanted:
        column = columns.get(field.name)
        if column is None or column.type != field.type:
            actual = "missing" if column is None else f"{column.type}"
            raise ValueError(f"column {field.name} is {actual} instead of {field.type}")
        if not field.nullable and column.null_count:
            raise ValueError(f"column {field.name} is NOT NULL and has {column.null_count} nulls")
    return rows.select([*extra, *wanted.names]).combine_chunks()


def _postponed(rows: pa.Table) -> pa.Table:
    """Return rows with unknown sequence numbers: they are numbered when they get a bucket."""
    at = rows.column_names.index(SEQUENCE_NUMBER)
    unknown = pa.array(np.full(rows.num_rows, UNKNOWN_SEQUENCE))
    return rows.set_column(at, SEQUENCE_NUMBER, unknown)


def _checked_append(rows: pa.Table) -> pa.Table:
    if VALUE_KIND in rows.column_names and retract_count(rows):
        raise ValueError("an append table takes no retractions")
    return rows


def changelog_file_names(table: FileStoreTable) -> Callable[[], str]:
    """Return a function that returns a new changelog file name at each call: UUID and counter."""
    prefix = honoured.CHANGELOG_PREFIX.of(table.schema.options)
    return _numbered_names(prefix, table.options.for_changelog().file_extension)


def changelog_files(
    table: FileStoreTable, partition_values: tuple[object, ...], bucket: int
) -> WrittenBucketFiles:
    """Return a writer of changelog files of a bucket.

    `partition_values` are in the order of the partition keys.
    """
    return WrittenBucketFiles(
        table,
        partition_values,
        bucket,
        table.options.for_changelog(),
        changelog_file_names(table),
        indexed=False,
    )


def input_and_merged(table: FileStoreTable, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return all rows of a bucket in changelog order, and the merged rows ordered by key.

    `rows` are in arrival order and have the system columns. Changelog order is by key, and from the
    oldest to the newest row of a key.
    """
    if not rows.num_rows:
        return rows, rows
    keys, rules = table.schema.trimmed_primary_keys, table.merge_rules
    order = ordered_rows(rows, keys, rules)
    ordered = rows.take(order.order)
    in_place = SortedKeys(np.arange(rows.num_rows), order.first)
    return ordered, merge_sorted(ordered, in_place, rules)
