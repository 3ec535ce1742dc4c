"""Write rows to the postponed bucket (`bucket` = -2).

Its rows are neither ordered nor merged; a later compaction moves them to buckets (see
`postpone_move`). Until then, only streaming readers read them.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#postpone-bucket
"""

from dataclasses import replace

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.file_options import data_file_styles, refuse_style
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

WRITER = 0
"""The writer number in file names.

Compaction jobs read the files of one writer in order, but files of several writers in no particular
order. All rows of a key must therefore have the same writer number, however many tasks write.
"""


def postponed_table(table: FileStoreTable, commit_user: str) -> FileStoreTable:
    """Return a handle of the table with the options by which rows are written to bucket -2.

    The files are Avro files without statistics, or if Avro does not support the type of a column,
    files as in the other buckets. Their names contain the commit user.
    """
    prefix = f"{table.options.data_file_prefix}-u-{commit_user}-s-{WRITER}-w-"
    options = {**table.schema.options, honoured.DATA_FILE_PREFIX.name: prefix}
    plain = {
        **options,
        honoured.FILE_FORMAT.name: "avro",
        honoured.STATS_MODE.name: "none",
    }
    avro = table.with_schema(replace(table.schema, options=plain))
    if _can_hold(avro, table.schema.fields):
        return avro
    return table.with_schema(replace(table.schema, options=options))


def _can_hold(table: FileStoreTable, fields: tuple[DataField, ...]) -> bool:
    try:
        refuse_style(data_file_styles(table.schema)[None], fields)
    except UnsupportedError:
        return False
    return True
