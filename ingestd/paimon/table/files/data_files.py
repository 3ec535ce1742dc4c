"""Data files of a table: their columns and paths, and how their rows are read.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/datafile/#data-file
"""

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import FormatError, UnsupportedError
from ingestd.paimon.casts.char_padding import without_padding
from ingestd.paimon.casts.evolution import columns_schema, evolve, file_columns
from ingestd.paimon.format.base import (
    BatchSize,
    FilePart,
    GroupFilter,
    RowProbe,
    RowRange,
    StreamPart,
    format_of,
    read_wanted,
    stream_wanted,
)
from ingestd.paimon.format.orc_times import timestamp_problem
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.arrow import Array, Column, column_of, to_arrow_type
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import (
    KEY_FIELD_ID_START,
    KEY_PREFIX,
    VALUE_KIND,
    VALUE_KIND_ID,
    DataField,
    DataType,
    RowKind,
)
from ingestd.paimon.spec.deletion_vector import Positions
from ingestd.paimon.spec.file_options import COMPRESSIONS, refuse_zoned_orc
from ingestd.paimon.spec.options import CoreOptions
from ingestd.paimon.spec.paths import partition_path
from ingestd.paimon.spec.predicate import Predicate, columns_of
from ingestd.paimon.spec.predicate_stats import ColumnStats, may_match, stats_test
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.files.deletion_vectors import DeletionVectors
from ingestd.paimon.table.files.external_paths import external_file
from ingestd.paimon.table.files.row_tracking import (
    SEQUENCE_FIELD,
    fill_row_ids,
    has_row_ids,
    tracked_fields,
)
from ingestd.paimon.table.files.typed_files import TYPED_FORMATS, read_typed
from ingestd.paimon.table.metadata.file_stats import same_comparison
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.wording import counted

SYSTEM_FIELDS = (
    SEQUENCE_FIELD,
    DataField(VALUE_KIND_ID, VALUE_KIND, DataType("TINYINT", nullable=False)),
)


def key_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """Return the `_KEY_` columns of a primary-key table's data files, with their field ids."""
    return tuple(
        DataField(KEY_FIELD_ID_START + field.id, KEY_PREFIX + field.name, field.type.not_null())
        for field in schema.select(schema.trimmed_primary_keys)
    )


def data_file_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """Return all columns of a table's new data files, in the order of the files."""
    if not schema.primary_keys:
        return schema.fields
    copies = () if honoured.THIN_MODE.of(schema.options) else key_fields(schema)
    return (*copies, *SYSTEM_FIELDS, *schema.fields)


def stored_fields(table: FileStoreTable, file: DataFileMeta) -> tuple[DataField, ...]:
    """Return the columns of a data file, without the copies of the key (`_KEY_` columns)."""
    schema = table.schemas(file.schema_id)
    return (*SYSTEM_FIELDS, *schema.fields) if schema.primary_keys else tracked_fields(schema, file)


@dataclass(frozen=True, slots=True)
class NewFile:
    """The path of a new file of a bucket.

    `external` is the same path if the file is outside of the table, for its manifest entry; None if
    the file is in the table.
    """

    path: str
    external: str | None = None


def data_file_path(
    table: FileStoreTable, partition_values: Sequence[object], bucket: int, name: str
) -> str:
    """Return the path of a data file of a bucket in the table directory.

    `partition_values` are in the order of the partition keys.
    """
    directory = partition_path(
        table.schema.partition_keys,
        table.partition_types,
        partition_values,
        table.options.partition_default_name,
        table.options.partition_legacy_name,
    )
    above = honoured.DATA_FILE_DIRECTORY.of(table.schema.options)
    return table.paths.data_file(f"{above}{directory}", bucket, name)


def new_data_file(
    table: FileStoreTable, partition_values: Sequence[object], bucket: int, name: str
) -> NewFile:
    """Return the path of a new data or changelog file; it is the same for the same arguments.

    `partition_values` are in the order of the partition keys. The path is in an external directory
    if the table's options require it. Raises ConfigError or UnsupportedError for external paths
    that cannot be written.
    """
    inside = data_file_path(table, partition_values, bucket, name)
    if honoured.EXTERNAL_PATHS.given(table.schema.options) is None:
        return NewFile(inside)
    directory = inside.removeprefix(f"{table.path}/").rpartition("/")[0]
    outside = external_file(table, directory, name)
    return NewFile(inside) if outside is None else NewFile(outside, outside)


def path_beside(
    table: FileStoreTable,
    partition_values: Sequence[object],
    bucket: int,
    file: DataFileMeta,
    name: str,
) -> str:
    """Return the path of a file named `name` in the directory of the data file `file`.

    The directory may be outside of the table. `partition_values` are in the order of the partition
    keys.
    """
    if file.external_path is not None:
        return f"{file.external_path.rpartition('/')[0]}/{name}"
    return data_file_path(table, partition_values, bucket, name)


def live_path(table: FileStoreTable, partition: bytes, bucket: int, file: DataFileMeta) -> str:
    """Return the path of a data file by its manifest entry; it may be outside of the table.

    `partition` is the serialized row.
    """
    if file.external_path is not None:
        return file.external_path
    values = deserialize_row(table.partition_types, partition)
    return data_file_path(table, values, bucket, file.file_name)


def stored_rows(table: FileStoreTable, path: str, file: DataFileMeta) -> pa.Table:
    """Return all rows of the data file `file`, which is at `path`, with all columns, as stored.

    Raises FormatError for a missing or damaged file.
    """
    return _part(table, path, file, None, None).rows


@dataclass(frozen=True, slots=True)
class KeyTest:
    """Two tests for the keys that a reader needs, by which it skips parts of files.

    `between` returns whether a needed key may be between two values (inclusive) of the first key
    column; `among`, whether a sorted table of key columns may contain a needed key.
    """

    between: Callable[[object, object], bool]
    among: Callable[[pa.Table], bool]


@dataclass(frozen=True, slots=True)
class DataFileReader:
    """A reader of data files of a table, without the rows that deletion vectors delete.

    `deletions` are these vectors (None: no row is deleted). `read` skips parts of a file that
    cannot contain a row that matches `wanted` (None: no part is skipped); it may return other rows
    as well. `batches` skips parts by the tests of `keys` (None: no part is skipped), which are
    called when a part of the file is reached.
    """

    table: FileStoreTable
    deletions: DeletionVectors | None = None
    wanted: Predicate | None = None
    keys: KeyTest | None = None

    def read(
        self, partition: bytes, bucket: int, file: DataFileMeta, fields: Sequence[DataField]
    ) -> pa.Table:
        """Return the rows of a data file with the columns and types of `fields`.

        `fields` are columns of the table's schema, or system columns. Partition columns are taken
        from the manifest, as in other readers: `partition` is the serialized row. Raises
        FormatError for a file that is missing, damaged, or has another row count than its manifest
        entry; UnsupportedError if a column cannot be cast from its type in the file.
        """
        table = self.table
        names = self._stored_names(file, fields)
        path = live_path(table, partition, bucket, file)
        # If no column is requested, one is read to count the rows.
        least = [VALUE_KIND] if table.schema.primary_keys else None
        groups = group_filter(table, table.schemas(file.schema_id), self.wanted)
        file_part = _part(table, path, file, names or least, groups)
        _check_count(path, file_part.row_count, file)
        check_columns(path, file_part.rows, file, names)
        if file_part.rows.num_rows == file.row_count:
            check_nulls(path, file_part.rows, file, table.schemas(file.schema_id))
        rows, at = file_part.rows, np.empty(0, np.int64)
        if table.options.row_tracking and has_row_ids(fields):
            at = _positions(file_part.ranges)
        kept = self._kept(partition, bucket, file)
        if kept is not None:
            masks = [kept[start : start + count] for start, count in file_part.ranges]
            mask = np.concatenate(masks) if masks else kept[:0]
            rows, at = rows.filter(pa.array(mask)), at[mask] if len(at) else at
        with _evolving(path, same=file.schema_id == table.schema.id):
            return self._as_declared(rows, at, partition, file, fields)

    def batches(
        self,
        partition: bytes,
        bucket: int,
        file: DataFileMeta,
        fields: Sequence[DataField],
        size: BatchSize,
    ) -> Generator[tuple[Positions, pa.Table]]:
        """Yield the rows in batches, each with the positions of its rows in the file.

        Positions are numbers from 0, shape (rows,). `partition` is the serialized row. The rows
        have the columns and types of `fields`; `size` limits a batch, which may be empty. Parts of
        the file are skipped only by `keys`. Raises FormatError for a file that is missing or
        damaged, UnsupportedError if a column cannot be cast from its type in the file.
        """
        path = live_path(self.table, partition, bucket, file)
        names = self._stored_names(file, fields)
        kept = self._kept(partition, bucket, file)
        schema = self.table.schemas(file.schema_id)
        groups = None if self.keys is None else key_group_filter(self.table, schema, self.keys)
        start = 0
        try:
            for count, batch in _stream(self.table, path, file, names or None, size, groups):
                at = np.arange(start, start + count)
                start += count
                if batch is None:
                    continue
                if kept is not None and start <= file.row_count:
                    batch, at = batch.filter(pa.array(kept[at])), at[kept[at]]
                check_columns(path, batch, file, names)
                with _evolving(path, same=file.schema_id == self.table.schema.id):
                    declared = self._as_declared(batch, at, partition, file, fields)
                yield at, declared
                # Release the memory before the next batch is read.
                del batch, declared
        except FileNotFoundError as error:
            raise _missing(path) from error
        _check_count(path, start, file)

    def _stored_names(self, file: DataFileMeta, fields: Sequence[DataField]) -> list[str]:
        stored = [f for f in fields if f.name not in self.table.schema.partition_keys]
        file_fields = stored_fields(self.table, file)
        refuse_zoned_orc(format_of(file.file_name), stored, self.table.schema.options)
        return [field.name for field in file_columns(file_fields, stored).values()]

    def _as_declared(
        self,
        rows: pa.Table,
        at: Positions,
        partition: bytes,
        file: DataFileMeta,
        fields: Sequence[DataField],
    ) -> pa.Table:
        """Return rows of a file as `fields`, with the partition columns from the manifest.

        `at` has the positions of the rows in the file; it is used for row ids only.
        """
        table, keys = self.table, self.table.schema.partition_keys
        stored = [field for field in fields if field.name not in keys]
        evolved = evolve(rows, stored_fields(table, file), stored)
        if table.options.row_tracking and has_row_ids(fields):
            evolved = fill_row_ids(evolved, at, file)
        if len(stored) == len(fields):
            return evolved
        cells = deserialize_row(table.partition_types, partition)
        values = dict(zip(keys, cells, strict=True))
        columns: dict[str, Column] = {name: evolved.column(name) for name in evolved.column_names}
        for field in fields:
            if field.name in values:
                columns[field.name] = _repeated(values[field.name], field.type, rows.num_rows)
        return pa.table({field.name: columns[field.name] for field in fields})

    def _kept(
        self, partition: bytes, bucket: int, file: DataFileMeta
    ) -> npt.NDArray[np.bool_] | None:
        """Return a mask of the rows that no deletion vector deletes; None if that is all rows."""
        if self.deletions is None:
            return None
        deleted = self.deletions.deleted_rows(partition, bucket, file.file_name)
        if not len(deleted):
            return None
        if int(deleted[-1]) >= file.row_count:
            raise FormatError(
                f"data file {file.file_name} has {counted(file.row_count, 'row')}, its "
                f"deletion vector "
                f"deletes row {int(deleted[-1])}"
            )
        kept = np.ones(file.row_count, np.bool_)
        kept[deleted] = False
        return kept


def read_data_file(
    table: FileStoreTable,
    partition: bytes,
    bucket: int,
    file: DataFileMeta,
    fields: Sequence[DataField],
) -> pa.Table:
    """Return all rows of a data file, including those that deletion vectors delete.

    `partition` is the serialized row. The result has the columns and types of `fields`. Raises
    FormatError for a file that is missing or damaged, UnsupportedError if a column cannot be cast
    from its type in the file.
    """
    return DataFileReader(table).read(partition, bucket, file, fields)


def _part(
    table: FileStoreTable,
    path: str,
    file: DataFileMeta,
    columns: Sequence[str] | None,
    groups: GroupFilter | None,
) -> FilePart:
    try:
        if format_of(path) in TYPED_FORMATS:
            rows = _typed_rows(table, path, file)
            return FilePart(rows, ((0, rows.num_rows),), rows.num_rows)
        part = read_wanted(table.io, path, columns, groups)
        return replace(part, rows=_unpadded(table, path, file, part.rows))
    except FileNotFoundError as error:
        raise _missing(path) from error


def _typed_rows(table: FileStoreTable, path: str, file: DataFileMeta) -> pa.Table:
    schema = table.schemas(file.schema_id)
    fields = data_file_fields(schema) if schema.primary_keys else tracked_fields(schema, file)
    return read_typed(table.io, path, fields, table.schema.options)


def _stream(
    table: FileStoreTable,
    path: str,
    file: DataFileMeta,
    columns: Sequence[str] | None,
    size: BatchSize,
    groups: GroupFilter | None,
) -> Iterator[StreamPart]:
    if format_of(path) in TYPED_FORMATS:
        rows = _typed_rows(table, path, file)
        yield rows.num_rows, rows
    else:
        for count, batch in stream_wanted(table.io, path, columns, size, groups):
            yield count, None if batch is None else _unpadded(table, path, file, batch)


def _unpadded(table: FileStoreTable, path: str, file: DataFileMeta, rows: pa.Table) -> pa.Table:
    if format_of(path) != "orc":
        return rows
    keys = key_fields(table.schemas(file.schema_id))
    return without_padding(rows, [*stored_fields(table, file), *keys])


def group_filter(
    table: FileStoreTable, file_schema: TableSchema, predicate: Predicate | None
) -> GroupFilter | None:
    """Return a filter that skips row groups of a file by a predicate.

    `file_schema` is the schema of the file; columns that were renamed have their older names in it.
    Returns None if no row group can be skipped.
    """
    if predicate is None:
        return None
    by_id = {field.id: field for field in file_schema.fields}
    names: dict[str, DataField] = {}
    for field in table.schema.fields:
        old = by_id.get(field.id)
        comparable = old is not None and same_comparison(old.type, field.type)
        if old is not None and comparable and field.name not in table.schema.partition_keys:
            names[field.name] = old
    if not columns_of(predicate) & names.keys():
        return None

    def test(stats: Mapping[str, ColumnStats]) -> bool:
        known = {name: stats[old.name] for name, old in names.items() if old.name in stats}
        return may_match(predicate, stats_test(known))

    return GroupFilter(test, {old.name: to_arrow_type(old.type) for old in names.values()})


def key_group_filter(
    table: FileStoreTable, file_schema: TableSchema, keys: KeyTest
) -> GroupFilter | None:
    """Return a filter that skips row groups of a primary-key table's file by their keys.

    `file_schema` is the schema of the file. Returns None if the file has no usable statistics of
    the first key column.
    """
    by_id = {field.id: field for field in file_schema.fields}
    field = table.schema.key_fields[0]
    old = by_id.get(field.id)
    # Bounds of floating-point columns do not include NaN.
    if (
        old is None
        or old.type.root in ("FLOAT", "DOUBLE")
        or not same_comparison(old.type, field.type)
    ):
        return None
    name = old.name

    def test(stats: Mapping[str, ColumnStats]) -> bool:
        column_stats = stats.get(name)
        if column_stats is None or column_stats.low is None or column_stats.high is None:
            return True
        return keys.between(column_stats.low, column_stats.high)

    stored = [by_id.get(key_field.id) for key_field in table.schema.key_fields]
    columns = tuple(key_field.name for key_field in stored if key_field is not None)
    probe = RowProbe(columns, _key_probe(table, keys)) if len(columns) == len(stored) else None
    return GroupFilter(test, {name: to_arrow_type(old.type)}, probe)


def _key_probe(table: FileStoreTable, keys: KeyTest) -> Callable[[pa.Table], bool]:
    fields = table.schema.key_fields
    names = [field.name for field in fields]
    types = [to_arrow_type(field.type) for field in fields]

    def test(rows: pa.Table) -> bool:
        # Keys stored in another type are compared after the conversion to their own type.
        return rows.schema.types != types or keys.among(rows.rename_columns(names))

    return test


def _positions(ranges: Sequence[RowRange]) -> Positions:
    parts = [np.arange(start, start + count) for start, count in ranges]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _check_count(path: str, row_count: int, file: DataFileMeta) -> None:
    if row_count != file.row_count:
        raise FormatError(
            f"data file {path} has {counted(row_count, 'row')}, expected {file.row_count}"
        )


@contextlib.contextmanager
def _evolving(path: str, *, same: bool) -> Iterator[None]:
    """Convert errors of casts in a block to FormatError: the file has other types than its schema.

    If the file does not have the `same` schema as the table, an unsupported cast does not mean a
    damaged file, and its UnsupportedError is raised unchanged.
    """
    wrong = f"data file {path} has columns of other types than its schema"
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise FormatError(f"{wrong}: {error}") from error
    except UnsupportedError as error:
        if same:
            raise FormatError(f"{wrong}: {error}") from error
        raise


def _missing(path: str) -> FormatError:
    return FormatError(
        f"data file {path} is missing: its snapshot has expired meanwhile, or the table is damaged"
    )


def _repeated(value: object, t: DataType, count: int) -> Array:
    return column_of([value], t).take(np.zeros(count, np.int64))


def check_columns(path: str, rows: pa.Table, file: DataFileMeta, names: Sequence[str]) -> None:
    """Raise FormatError if the columns `names` are missing in the rows or row kinds are invalid.

    `path` is the path of the file with these rows, for the message. Columns may be missing from a
    file whose manifest entry states which columns were written.
    """
    present = set(rows.column_names)
    missing = [name for name in names if name not in present]
    if missing and file.write_cols is None:
        raise FormatError(
            f"data file {path} has no column {', '.join(missing)}, which its schema "
            f"{file.schema_id} has"
        )
    if VALUE_KIND in present:
        _check_kinds(path, rows.column(VALUE_KIND))


def _check_kinds(path: str, kinds: Column) -> None:
    bounds: Any = pc.min_max(kinds)
    low, high = (bounds[which].as_py() for which in ("min", "max"))
    if low is not None and not 0 <= low <= high < len(RowKind):
        raise FormatError(f"data file {path} has row kinds from {low} to {high}")


def check_nulls(path: str, rows: pa.Table, file: DataFileMeta, schema: TableSchema) -> None:
    """Raise FormatError if null counts of columns differ from the counts in the manifest entry.

    `rows` are all rows of the file at `path`, `schema` is its schema. Nested columns are not
    checked, nor files that have other columns than their schema.
    """
    if file.write_cols is not None:
        return
    names = schema.field_names if file.value_stats_cols is None else file.value_stats_cols
    counts = file.value_stats.null_counts
    if len(counts) != len(names):
        return
    present = set(rows.column_names)
    for name, expected in zip(names, counts, strict=True):
        if expected is None or name not in present:
            continue
        column = rows.column(name)
        if not pa.types.is_nested(column.type) and column.null_count != expected:
            raise FormatError(
                f"data file {path} has {column.null_count} nulls in column {name}, expected "
                f"{expected}"
            )


def to_data_file_rows(schema: TableSchema, rows: pa.Table) -> pa.Table:
    """Convert rows to the columns of the table's data files.

    `rows` has the table's columns; for a table with a primary key, also the system columns.
    """
    fields = data_file_fields(schema)
    columns = [rows.column(field.name.removeprefix(KEY_PREFIX)) for field in fields]
    return pa.Table.from_arrays(columns, schema=columns_schema(fields))


def options_for_rows(options: CoreOptions, rows: pa.Table) -> CoreOptions:
    """Return the options for a file with these rows: Parquet if ORC cannot store a timestamp.

    A batch or compaction must not fail because of a valid value. Readers determine the format of a
    file by its name.
    """
    if options.file_format != "orc" or timestamp_problem(rows) is None:
        return options
    known = COMPRESSIONS["parquet"]
    compression = options.file_compression if options.file_compression in known else "zstd"
    return replace(options, file_format="parquet", file_compression=compression)


def name_for_options(name: str, planned: CoreOptions, options: CoreOptions) -> str:
    """Return a file name with the extension for `options` in place of that for `planned`.

    The extensions contain the file format, and with `file.suffix.include.compression` the
    compression.
    """
    return name.removesuffix(planned.file_extension) + options.file_extension


def delete_uncommitted_files(
    table: FileStoreTable,
    partition_values: Sequence[object],
    bucket: int,
    files: Iterable[DataFileMeta],
) -> None:
    """Delete uncommitted files of a bucket, with their index files; failures are logged.

    `partition_values` are in the order of the partition keys.
    """
    for file in files:
        for name in (file.file_name, *file.extra_files):
            table.io.delete_quietly(path_beside(table, partition_values, bucket, file, name))
