"""Write the file indexes of data files, and use them to skip data files.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-file

An index is embedded in the manifest entry or stored in a file next to the data file. Bloom filters
and bitmaps are used; indexes of other types (bsi, range-bitmap), and bitmaps in another layout,
exclude no file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from ingestd.errors import FormatError
from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.file_index import (
    BITMAP,
    BLOOM_FILTER,
    FileIndexes,
    decode_file_index,
    encode_bloom_filter,
    encode_file_index,
    may_contain,
)
from ingestd.paimon.spec.file_index_bitmap import (
    BitmapIndex,
    decode_bitmap_index,
    encode_bitmap_index,
)
from ingestd.paimon.spec.file_index_options import ColumnIndex, column_indexes, manifest_threshold
from ingestd.paimon.spec.hash64 import hash_values, is_hashable
from ingestd.paimon.spec.predicate import Comparison, IsIn, IsNull, Leaf, Predicate, Value
from ingestd.paimon.spec.predicate_stats import may_match
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.files.data_files import beside
from ingestd.paimon.table.metadata.file_stats import same_comparison
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

INDEX_SUFFIX = ".index"


def read_file_indexes(
    table: FileStoreTable, partition: bytes, bucket: int, file: DataFileMeta
) -> FileIndexes | None:
    """Return the indexes of a data file, embedded or in an index file; None if it has no indexes.

    Raises FormatError if the index file is missing or the indexes are damaged.
    """
    if file.embedded_index is not None:
        return decode_file_index(file.embedded_index, f"of {file.file_name}")
    names = [name for name in file.extra_files if name.endswith(INDEX_SUFFIX)]
    if not names:
        return None
    path = index_file_path(table, partition, bucket, file, names[0])
    try:
        return decode_file_index(table.io.read_bytes(path), path)
    except FileNotFoundError as error:
        raise FormatError(f"file index {path} is missing") from error


def index_file_path(
    table: FileStoreTable, partition: bytes, bucket: int, file: DataFileMeta, name: str
) -> str:
    """Return the path of the index file `name`, which is next to a data file."""
    return beside(table, deserialize_row(table.partition_types, partition), bucket, file, name)


def indexes_may_match(
    table: FileStoreTable, file: DataFileMeta, indexes: FileIndexes, predicate: Predicate
) -> bool:
    """Return whether a data file may contain rows that match a predicate, by its indexes.

    Raises FormatError if an index is damaged.
    """
    old_schema = table.schemas(file.schema_id)
    old_fields = {field.id: field for field in old_schema.fields}
    columns: dict[str, _ColumnIndexes] = {}
    for new in table.schema.fields:
        old = old_fields.get(new.id)
        # Hashes are computed with the file's own type.
        if old is not None and old.name in indexes and same_comparison(old.type, new.type):
            columns[new.name] = _ColumnIndexes(old, indexes[old.name], file.file_name)

    def test(leaf: Leaf, negated: bool) -> bool:
        column_index = columns.get(leaf.column)
        return column_index is None or column_index.may_match(leaf, negated)

    return may_match(predicate, test)


@dataclass(frozen=True)
class _ColumnIndexes:
    """The indexes of one column of one file."""

    field: DataField
    kinds: Mapping[str, bytes | None]
    file_name: str

    def may_match(self, leaf: Leaf, negated: bool) -> bool:
        if isinstance(leaf, IsNull):
            bitmap = self._bitmap
            if bitmap is None:
                return True
            return bitmap.value_count > 0 if negated else bitmap.contains(None)
        if isinstance(leaf, Comparison) and leaf.operator == ("!=" if negated else "="):
            return self._may_contain_any((leaf.value,))
        if isinstance(leaf, IsIn) and not negated:
            return self._may_contain_any(leaf.values)
        return True

    def _may_contain_any(self, values: Iterable[Value]) -> bool:
        candidates = [equal_value for value in values for equal_value in _equal_values(value)]
        bitmap = self._bitmap
        if bitmap is not None and not any(self._fits(v) and bitmap.contains(v) for v in candidates):
            return False
        bloom = self.kinds.get(BLOOM_FILTER)
        if bloom is None or not is_hashable(self.field.type):
            return True
        fitting = [value for value in candidates if self._fits(value)]
        hashes = hash_values(column_of(fitting, self.field.type), self.field.type)
        return bool(np.any(may_contain(bloom, hashes, self.file_name)))

    @cached_property
    def _bitmap(self) -> BitmapIndex | None:
        data = self.kinds.get(BITMAP)
        where = f"column {self.field.name} of {self.file_name}"
        return None if data is None else decode_bitmap_index(data, self.field.type, where)

    def _fits(self, value: Value) -> bool:
        """Return whether a value is in the range of the column's type in the file."""
        bits = _BITS.get(self.field.type.root)
        return bits is None or -(1 << (bits - 1)) <= value < 1 << (bits - 1)


_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


def _equal_values(value: Value) -> tuple[Value, ...]:
    """Return all values that are equal to a value: 0.0 and -0.0 for a zero of either sign."""
    return (0.0, -0.0) if isinstance(value, float) and value == 0 else (value,)


def with_file_index(
    table: FileStoreTable, path: str, rows: pa.Table, meta: DataFileMeta
) -> DataFileMeta:
    """Write the file indexes that the table's options require for the data file at `path`.

    `rows` are the rows of the file, `meta` is its manifest entry. Returns the entry with the
    embedded index or the name of the index file. If the index file cannot be written, the data file
    is deleted, too.
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
    """Return the encoded file indexes of rows, or None if the table has no file indexes."""
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
