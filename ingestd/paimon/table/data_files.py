"""Data files of a table: which columns they have, where they lie, how their rows are read.

Specification: Data files.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ingestd.errors import FormatError
from ingestd.paimon.format.base import read_wanted
from ingestd.paimon.format.row_groups import FilePart, GroupFilter
from ingestd.paimon.spec.arrow import Array, Column, column_of
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import (
    KEY_FIELD_ID_START,
    KEY_PREFIX,
    SEQUENCE_NUMBER,
    SEQUENCE_NUMBER_ID,
    VALUE_KIND,
    VALUE_KIND_ID,
    DataField,
    DataType,
    RowKind,
)
from ingestd.paimon.spec.paths import partition_path
from ingestd.paimon.spec.predicate import Predicate
from ingestd.paimon.spec.schema import TableSchema
from ingestd.paimon.table.deletion_vectors import DeletionVectors
from ingestd.paimon.table.evolution import evolve, file_columns
from ingestd.paimon.table.file_stats import group_filter
from ingestd.paimon.table.file_store_table import FileStoreTable

RETRACTS = (int(RowKind.UPDATE_BEFORE), int(RowKind.DELETE))
SYSTEM_FIELDS = (
    DataField(SEQUENCE_NUMBER_ID, SEQUENCE_NUMBER, DataType("BIGINT", nullable=False)),
    DataField(VALUE_KIND_ID, VALUE_KIND, DataType("TINYINT", nullable=False)),
)


def key_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """The `_KEY_` columns of a primary-key table's data files, with their field ids."""
    return tuple(
        DataField(KEY_FIELD_ID_START + field.id, KEY_PREFIX + field.name, field.type.not_null())
        for field in schema.select(schema.trimmed_primary_keys)
    )


def data_file_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """All columns of a table's data files, in their order."""
    if not schema.primary_keys:
        return schema.fields
    return (*key_fields(schema), *SYSTEM_FIELDS, *schema.fields)


def data_file_path(
    table: FileStoreTable, partition_values: Sequence[object], bucket: int, name: str
) -> str:
    """Where a data file of a bucket lies."""
    directory = partition_path(
        table.schema.partition_keys,
        table.partition_types,
        partition_values,
        table.options.partition_default_name,
        table.options.partition_legacy_name,
    )
    return table.paths.data_file(directory, bucket, name)


def live_path(table: FileStoreTable, partition: bytes, bucket: int, file: DataFileMeta) -> str:
    """Where the data file of a manifest entry lies."""
    if file.external_path is not None:
        return file.external_path
    values = deserialize_row(table.partition_types, partition)
    return data_file_path(table, values, bucket, file.file_name)


def stored_rows(table: FileStoreTable, path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Rows of a data file with those of `columns` (None: all) that the file itself has.

    FormatError names a file that is missing or damaged.
    """
    return _part(table, path, columns, None).rows


@dataclass(frozen=True, slots=True)
class DataFileReader:
    """Reads data files of a table without the rows that deletion vectors delete.

    `wanted` lets parts of a file be left out that certainly hold no row for which it is true;
    other rows for which it is not may stay.
    """

    table: FileStoreTable
    deletions: DeletionVectors | None = None
    wanted: Predicate | None = None

    def read(
        self, partition: bytes, bucket: int, file: DataFileMeta, fields: Sequence[DataField]
    ) -> pa.Table:
        """Rows of a data file as `fields` of the table's schema, or of the system columns.

        Partition columns come from the manifest, as other readers take them. FormatError names
        a file that is missing, damaged, or has another number of rows than promised.
        """
        table = self.table
        keys = table.schema.partition_keys
        stored = [field for field in fields if field.name not in keys]
        file_schema = table.schemas(file.schema_id)
        file_fields = (*SYSTEM_FIELDS, *file_schema.fields)
        names = [field.name for field in file_columns(file_fields, stored).values()]
        path = live_path(table, partition, bucket, file)
        # A file without any of the columns still has to tell its number of rows.
        part = _part(table, path, names or None, group_filter(table, file_schema, self.wanted))
        if part.row_count != file.row_count:
            raise FormatError(
                f"data file {path} has {part.row_count} rows, {file.row_count} are promised"
            )
        rows = self._undeleted(part, partition, bucket, file)
        evolved = evolve(rows, file_fields, stored)
        if len(stored) == len(fields):
            return evolved
        cells = deserialize_row(table.partition_types, partition)
        values = dict(zip(keys, cells, strict=True))
        columns: dict[str, Column] = {name: evolved.column(name) for name in evolved.column_names}
        for field in fields:
            if field.name in values:
                columns[field.name] = _repeated(values[field.name], field.type, rows.num_rows)
        return pa.table({field.name: columns[field.name] for field in fields})

    def _undeleted(
        self, part: FilePart, partition: bytes, bucket: int, file: DataFileMeta
    ) -> pa.Table:
        if self.deletions is None:
            return part.rows
        deleted = self.deletions.deleted_rows(partition, bucket, file.file_name)
        if not len(deleted):
            return part.rows
        if int(deleted[-1]) >= part.row_count:
            raise FormatError(
                f"data file {file.file_name} has {part.row_count} rows, its deletion vector "
                f"deletes row {int(deleted[-1])}"
            )
        kept = np.ones(part.row_count, bool)
        kept[deleted] = False
        masks = [kept[start : start + count] for start, count in part.ranges]
        return part.rows.filter(pa.array(np.concatenate(masks) if masks else kept[:0]))


def read_data_file(
    table: FileStoreTable,
    partition: bytes,
    bucket: int,
    file: DataFileMeta,
    fields: Sequence[DataField],
) -> pa.Table:
    """All rows of a data file, deleted ones too, as `DataFileReader.read` gives them."""
    return DataFileReader(table).read(partition, bucket, file, fields)


def _part(
    table: FileStoreTable, path: str, columns: Sequence[str] | None, wanted: GroupFilter | None
) -> FilePart:
    try:
        return read_wanted(table.io, path, columns, wanted)
    except FileNotFoundError as error:
        raise _missing(path) from error


def _missing(path: str) -> FormatError:
    return FormatError(
        f"data file {path} is missing: its snapshot was expired meanwhile, or the table is damaged"
    )


def _repeated(value: object, t: DataType, count: int) -> Array:
    return column_of([value], t).take(np.zeros(count, np.int64))
