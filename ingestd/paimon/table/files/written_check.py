"""Reads back a file that a compaction has written, before its rows take the place of others.

A library that stores a value wrong would otherwise replace right rows, and no checksum of the file
would tell.
"""

from ingestd.errors import FormatError
from ingestd.paimon.casts.evolution import evolve
from ingestd.paimon.format.base import read_batches
from ingestd.paimon.format.batch_size import BatchSize
from ingestd.paimon.spec.data_types import NESTED_ROOTS
from ingestd.paimon.spec.options import CoreOptions
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.files.column_checksums import ColumnChecksums
from ingestd.paimon.table.files.data_files import data_file_fields
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

CHECKS_EVERY_FILE = False
"""The tests set it. Otherwise only what libraries have stored wrong before is read back."""
_BATCH = BatchSize(8 << 20)


def is_checked(schema: TableSchema, options: CoreOptions) -> bool:
    """Whether files of a table are read back: those of ORC, and with nested columns."""
    nested = any(field.type.root in NESTED_ROOTS for field in schema.fields)
    return CHECKS_EVERY_FILE or nested or options.file_format == "orc"


def check_written(table: FileStoreTable, path: str, written: ColumnChecksums) -> None:
    """FormatError, naming the columns, unless a new data file has the rows that were written."""
    fields, found = data_file_fields(table.schema), ColumnChecksums()
    for part in read_batches(table.io, path, None, _BATCH):
        found.add(evolve(part, fields, fields))
    differing = written.differing(found)
    if differing:
        raise FormatError(
            f"data file {path} does not read back as it was written, in {', '.join(differing)}; "
            "the file was not used: set 'file.format' to another format, and report it"
        )
