"""Data files that no one sees yet: the columns they get, and how they are taken back.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/datafile/
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from ingestd.paimon.casts.evolution import columns_schema
from ingestd.paimon.format.orc_times import timestamp_problem
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import KEY_PREFIX
from ingestd.paimon.spec.file_options import COMPRESSIONS
from ingestd.paimon.spec.options import CoreOptions
from ingestd.paimon.spec.schema import TableSchema
from ingestd.paimon.table.files.data_files import data_file_fields, data_file_path
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable


def file_rows(schema: TableSchema, rows: pa.Table) -> pa.Table:
    """Rows with the columns of a table, and the system columns, in the columns of a data file."""
    fields = data_file_fields(schema)
    columns = [rows.column(field.name.removeprefix(KEY_PREFIX)) for field in fields]
    return pa.Table.from_arrays(columns, schema=columns_schema(fields))


def options_for_rows(options: CoreOptions, rows: pa.Table) -> CoreOptions:
    """The options for a file that is to hold the rows: Parquet if ORC cannot hold a timestamp.

    Readers take a file's format from its name, and each row group or stripe is asked once, so that
    neither a batch nor a compaction stops at a value that the table's type allows.
    """
    if options.file_format != "orc" or timestamp_problem(rows) is None:
        return options
    known = COMPRESSIONS["parquet"]
    compression = options.file_compression if options.file_compression in known else "zstd"
    return replace(options, file_format="parquet", file_compression=compression)


def name_for_options(name: str, planned: CoreOptions, options: CoreOptions) -> str:
    """A name that was made for files of `planned` options, with the extension of other ones."""
    return name.removesuffix(planned.file_extension) + options.file_extension


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
