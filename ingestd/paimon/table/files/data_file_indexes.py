"""Write the file indexes of data files, and use them to skip data files.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-file

An index is embedded in the manifest entry or stored in a file next to the data file. Indexes of
types and layouts that are not known, and those of single keys of a MAP, exclude no file.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import FormatError
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.file_index import FileIndexes, decode_file_index, encode_file_index
from ingestd.paimon.spec.file_index_cells import DecodedIndex, has_nanos
from ingestd.paimon.spec.file_index_kinds import INDEX_KINDS, ColumnIndex
from ingestd.paimon.spec.file_index_options import column_indexes, manifest_threshold
from ingestd.paimon.spec.predicate import Comparison, IsIn, IsNull, Leaf, Predicate, Value
from ingestd.paimon.spec.predicate_stats import CONTRARY, may_match
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.files.data_files import path_beside
from ingestd.paimon.table.metadata.file_stats import loses_blanks, same_comparison
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

INDEX_SUFFIX = ".index"


def read_file_indexes(
    table: FileStoreTable, partition: bytes, bucket: int, file: DataFileMeta
) -> FileIndexes | None:
    """Return the indexes of a data file, embedded or in an index file; None if it has no indexes.

    `partition` is the serialized row. Raises FormatError if the index file is missing or the
    indexes are damaged.
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
    """Return the path of the index file `name`, which is next to a data file.

    `partition` is the serialized row.
    """
    return path_beside(table, table.partition_values(partition), bucket, file, name)


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
        if new.name in table.schema.partition_keys:
            # The cells that an aggregation has set to null are those of the partition.
            continue
        old = old_fields.get(new.id)
        if old is None or loses_blanks(file.file_name, old.type):
            continue
        # Hashes are computed with the file's own type.
        if old.name in indexes and same_comparison(old.type, new.type):
            columns[new.name] = _ColumnIndexes(old, indexes[old.name], file.file_name)

    def test(leaf: Leaf, negated: bool) -> bool:
        column_index = columns.get(leaf.column)
        return column_index is None or column_index.may_match(leaf, negated)

    return may_match(predicate, test)


@dataclass(frozen=True)
class _ColumnIndexes:
    """The indexes of one column of one file; `kinds` has their bytes by index type."""

    field: DataField
    kinds: Mapping[str, bytes | None]
    file_name: str

    def may_match(self, leaf: Leaf, negated: bool) -> bool:
        if isinstance(leaf, IsNull):
            if negated:
                return all(index.may_hold_value for index in self._indexes)
            return all(index.may_hold_null for index in self._indexes)
        if isinstance(leaf, Comparison):
            operator = CONTRARY[leaf.operator] if negated else leaf.operator
            return self._may_hold(operator, (leaf.value,))
        if isinstance(leaf, IsIn) and not negated:
            return self._may_hold("=", leaf.values)
        return True

    def _may_hold(self, operator: str, values: Iterable[Value]) -> bool:
        if operator != "=" and has_nanos(self.field.type):
            return True
        candidates = [equal_value for value in values for equal_value in _equal_values(value)]
        return all(index.may_hold(operator, candidates) for index in self._indexes)

    @cached_property
    def _indexes(self) -> list[DecodedIndex]:
        source = f"column {self.field.name} of {self.file_name}"
        decoded = (
            INDEX_KINDS[kind].decode(data, self.field.type, source)
            for kind, data in self.kinds.items()
            if data is not None and kind in INDEX_KINDS
        )
        return [index for index in decoded if index is not None]


def _equal_values(value: Value) -> tuple[Value, ...]:
    """Return all values that are equal to a value: 0.0 and -0.0 for a zero of either sign."""
    return (0.0, -0.0) if isinstance(value, float) and value == 0 else (value,)


def with_file_index(
    table: FileStoreTable, path: str, rows: pa.Table, meta: DataFileMeta
) -> DataFileMeta:
    """Write the file indexes that the table's options require for the data file at `path`.

    `rows` are the rows of the file, `meta` is its manifest entry. Returns the entry with the
    embedded index or the name of the index file, or `meta` itself if no index is required. If the
    index file cannot be written, the data file is deleted, and the error is raised.
    """
    data = encode_indexes(table.schema, rows)
    if data is None:
        return meta
    try:
        return with_index_data(table, path, meta, data)
    except BaseException:
        table.io.delete_quietly(path)
        raise


def with_index_data(
    table: FileStoreTable, path: str, meta: DataFileMeta, data: bytes, suffix: str = INDEX_SUFFIX
) -> DataFileMeta:
    """Return the manifest entry `meta` of a data file with the encoded file indexes `data`.

    `path` is the path of the data file. Indexes that are too large to be embedded are written to a
    file, whose name is the name of the data file followed by `suffix`. Raises StorageError if this
    file cannot be written.
    """
    if len(data) <= manifest_threshold(table.schema):
        return replace(meta, embedded_index=data)
    table.io.write_new(path + suffix, data)
    return replace(meta, extra_files=(*meta.extra_files, meta.file_name + suffix))


def encode_indexes(
    schema: TableSchema, rows: pa.Table, indexes: Sequence[ColumnIndex] | None = None
) -> bytes | None:
    """Return the encoded file indexes of rows, or None if there are no indexes to encode.

    `indexes` are the indexes to encode (None: the indexes that the options of `schema` require).
    """
    indexes = column_indexes(schema) if indexes is None else indexes
    if not indexes:
        return None
    columns: dict[str, dict[str, bytes | None]] = {}
    for index in indexes:
        data = _encode(schema, index, rows)
        if data is not None:
            columns.setdefault(index.name, {})[index.kind] = data
    return encode_file_index(columns)


def _encode(schema: TableSchema, index: ColumnIndex, rows: pa.Table) -> bytes | None:
    """Return an index of rows; None if it cannot contain their values."""
    column: Any = rows.column(index.column)
    t = schema.field(index.column).type
    if index.key is not None and t.value is not None:
        column, t = pc.map_lookup(column, pa.scalar(index.key), "first"), t.value
    return INDEX_KINDS[index.kind].encode(column, t, index)
