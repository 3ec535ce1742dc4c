"""Data files of a table: which columns they have, where they lie, how their rows are read.

Specification: Data files.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ingestd.errors import FormatError
from ingestd.paimon.format.base import format_of, load_format
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
from ingestd.paimon.spec.schema import TableSchema
from ingestd.paimon.table.evolution import evolve, file_columns
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
    try:
        return load_format(format_of(path)).read_file(table.io, path, columns)
    except FileNotFoundError as error:
        raise FormatError(
            f"data file {path} is missing: its snapshot was expired meanwhile, or the table is "
            "damaged"
        ) from error


def read_data_file(
    table: FileStoreTable,
    partition: bytes,
    bucket: int,
    file: DataFileMeta,
    fields: Sequence[DataField],
) -> pa.Table:
    """Rows of a data file as `fields` of the table's schema, or of the system columns.

    Partition columns come from the manifest, as other readers take them. FormatError names a
    file that is missing, damaged, or has another number of rows than promised.
    """
    values = dict(
        zip(
            table.schema.partition_keys,
            deserialize_row(table.partition_types, partition),
            strict=True,
        )
    )
    stored = [field for field in fields if field.name not in values]
    file_fields = (*SYSTEM_FIELDS, *table.schemas(file.schema_id).fields)
    names = [field.name for field in file_columns(file_fields, stored).values()]
    # A file without any of the columns still has to tell its number of rows.
    path = live_path(table, partition, bucket, file)
    rows = stored_rows(table, path, names or None)
    if rows.num_rows != file.row_count:
        raise FormatError(
            f"data file {path} has {rows.num_rows} rows, {file.row_count} are promised"
        )
    evolved = evolve(rows, file_fields, stored)
    if len(stored) == len(fields):
        return evolved
    columns: dict[str, Column] = {name: evolved.column(name) for name in evolved.column_names}
    for field in fields:
        if field.name in values:
            columns[field.name] = _repeated(values[field.name], field.type, rows.num_rows)
    return pa.table({field.name: columns[field.name] for field in fields})


def _repeated(value: object, t: DataType, count: int) -> Array:
    return column_of([value], t).take(np.zeros(count, np.int64))
