"""Data files that nobody sees yet: the columns they get, and how they are taken back.

Specification: Data files.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from ingestd.paimon.casts.evolution import columns_schema
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import KEY_PREFIX
from ingestd.paimon.spec.schema import TableSchema
from ingestd.paimon.table.files.data_files import data_file_fields, data_file_path
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable


def file_rows(schema: TableSchema, rows: pa.Table) -> pa.Table:
    """Rows with the columns of a table, and the system columns, in the columns of a data file."""
    fields = data_file_fields(schema)
    columns = [rows.column(field.name.removeprefix(KEY_PREFIX)) for field in fields]
    return pa.Table.from_arrays(columns, schema=columns_schema(fields))


def delete_files(
    table: FileStoreTable,
    partition_values: Sequence[object],
    bucket: int,
    files: Iterable[DataFileMeta],
) -> None:
    """Delete files of a bucket that no snapshot has, and what belongs to them; never raises."""
    for file in files:
        for name in (file.file_name, *file.extra_files):
            table.io.delete_quietly(data_file_path(table, partition_values, bucket, name))
