"""Indexes of a data file that is being written: in its manifest entry, or in a file beside it.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.file_index import BLOOM_FILTER, encode_file_index
from ingestd.paimon.spec.file_index_bitmap import encode_bitmap_index
from ingestd.paimon.spec.file_index_bloom import encode_bloom_filter
from ingestd.paimon.spec.file_index_options import (
    ColumnIndex,
    column_indexes,
    manifest_threshold,
)
from ingestd.paimon.spec.hash64 import hash_values
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.files.file_index_read import INDEX_SUFFIX
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable


def with_file_index(
    table: FileStoreTable, path: str, rows: pa.Table, meta: DataFileMeta
) -> DataFileMeta:
    """Index the rows of the data file at `path`, as the table's options ask for.

    The answer is what the manifest says of the data file then. If the index cannot be written,
    the data file is deleted, too.
    """
    data = encode_indexes(table.schema, rows)
    if data is None:
        return meta
    if len(data) <= manifest_threshold(table.schema):
        return replace(meta, embedded_index=data)
    try:
        table.io.write_new(path + INDEX_SUFFIX, data)
    except BaseException:
        table.io.delete_quietly(path)
        raise
    return replace(meta, extra_files=(*meta.extra_files, meta.file_name + INDEX_SUFFIX))


def encode_indexes(schema: TableSchema, rows: pa.Table) -> bytes | None:
    """Return the container of all indexes of some rows; None if the table has none."""
    indexes = column_indexes(schema)
    if not indexes:
        return None
    columns: dict[str, dict[str, bytes | None]] = {}
    for index in indexes:
        columns.setdefault(index.column, {})[index.kind] = _encode(schema, index, rows)
    return encode_file_index(columns)


def _encode(schema: TableSchema, index: ColumnIndex, rows: pa.Table) -> bytes:
    column, t = rows.column(index.column), schema.field(index.column).type
    if index.kind == BLOOM_FILTER:
        hashes = np.unique(hash_values(column, t))
        return encode_bloom_filter(hashes, index.items or max(len(hashes), 1), index.fpp)
    return encode_bitmap_index(column, t, index.block_size)
