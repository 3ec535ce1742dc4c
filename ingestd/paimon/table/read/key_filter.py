"""Filter partitions, buckets, files and rows by a set of primary keys."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.merge.key_order import sort_keys
from ingestd.paimon.spec.arrow import Array, Column, column_values, fold_zeros, to_arrow_type
from ingestd.paimon.spec.binary_row import EMPTY_ROW, serialize_row
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, INTEGER_ROOTS
from ingestd.paimon.spec.index_manifest import HASH_INDEX, IndexManifestEntry
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.predicate import Comparison, IsIn, Predicate, all_of
from ingestd.paimon.table.buckets.bucket_assigner import assign_fixed
from ingestd.paimon.table.buckets.hash_index import PartitionIndex, key_hashes
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

MOST_VALUES = 1000
"""Columns with more distinct values are filtered by their minimum and maximum."""


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """Primary keys to look up, by serialized partition row.

    If the primary key does not contain all partition columns, all keys are in `anywhere` (else
    None), because they may be in any partition.
    """

    by_partition: Mapping[bytes, pa.Table]
    anywhere: pa.Table | None = None

    @classmethod
    def of(cls, table: FileStoreTable, keys: pa.Table) -> "KeyFilter":
        """Return the filter for the keys in `keys`.

        Raises ValueError if the table has no primary key, or `keys` lacks one of its columns.
        """
        schema = table.schema
        missing = set(schema.primary_keys) - set(keys.column_names)
        if missing or not schema.primary_keys:
            raise ValueError(f"a key filter of {table.name} needs its key columns {missing}")
        keys = keys.select(schema.primary_keys)
        inside = [name for name in schema.partition_keys if name in schema.primary_keys]
        if keys.num_rows == 0:
            return cls({})
        if len(inside) < len(schema.partition_keys):
            return cls({}, keys)
        if not inside:
            return cls({EMPTY_ROW: keys})
        return cls(_by_partition(table, keys))

    @property
    def partitions(self) -> frozenset[bytes] | None:
        """The partitions of the keys, or None if the keys may be in any partition."""
        return frozenset(self.by_partition) if self.anywhere is None else None

    def narrow(
        self,
        table: FileStoreTable,
        entries: Iterable[ManifestEntry],
        index_entries: Iterable[IndexManifestEntry],
    ) -> list[ManifestEntry]:
        """Return the entries of data files in the partitions and buckets that may contain a key.

        `index_entries` are the index entries of the snapshot, by which dynamic buckets are found.
        If the keys may be in any partition, all entries are returned. Raises FormatError if a hash
        index is missing or damaged.
        """
        if self.anywhere is not None:
            return list(entries)
        index = list(index_entries)
        wanted = {
            partition: self._buckets(table, partition, keys, index)
            for partition, keys in self.by_partition.items()
        }
        return [entry for entry in entries if _may_contain(table, entry, wanted)]

    def mask(self, partition: bytes, rows: pa.Table, names: Iterable[str]) -> Array:
        """Return a mask of the rows of a partition that have one of the keys; shape (rows,).

        `partition` is the serialized row, `names` are the columns of the trimmed primary key.
        Raises KeyError if `partitions` is not None and lacks the partition.
        """
        return pa.array(among_keys(rows, self.of_partition(partition), names))

    def of_partition(self, partition: bytes) -> pa.Table:
        """Return the keys that may be in a partition, given as a serialized row.

        Raises KeyError if `partitions` is not None and lacks the partition.
        """
        return self.by_partition[partition] if self.anywhere is None else self.anywhere

    def _buckets(
        self,
        table: FileStoreTable,
        partition: bytes,
        keys: pa.Table,
        index: Iterable[IndexManifestEntry],
    ) -> frozenset[int] | None:
        mode = bucket_mode(table.schema)
        if mode is BucketMode.HASH_FIXED:
            return frozenset(assign_fixed(table, keys).tolist())
        if mode is not BucketMode.HASH_DYNAMIC:
            return None
        ours = [e for e in index if e.partition == partition and e.index_type == HASH_INDEX]
        buckets = PartitionIndex.load(table, ours).lookup(key_hashes(table, keys))
        return frozenset(buckets[buckets >= 0].tolist())


def among_keys(rows: pa.Table, keys: pa.Table, names: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows whose key is also in the table `keys`; shape (rows,).

    `names` are the key columns in both tables. 0.0 and -0.0 are the same key.
    """
    row_code = np.zeros(rows.num_rows, np.int64)
    key_code = np.zeros(keys.num_rows, np.int64)
    for name in names:
        known: Any = pc.unique(fold_zeros(keys.column(name)))
        # Codes are renumbered before each column, so that the product cannot overflow.
        both = np.concatenate([key_code, row_code])
        _, dense = np.unique(both, return_inverse=True)
        key_code, row_code = dense[: len(key_code)], dense[len(key_code) :]
        key_code = key_code * (len(known) + 1) + _codes(keys.column(name), known)
        row_code = row_code * (len(known) + 1) + _codes(rows.column(name), known)
    return np.isin(row_code, key_code)


def _by_partition(table: FileStoreTable, keys: pa.Table) -> dict[bytes, pa.Table]:
    names = table.schema.partition_keys
    order = sort_keys(keys, names)
    groups = np.split(order.order, np.flatnonzero(order.first)[1:])
    heads = keys.take([group[0] for group in groups])
    values = zip(*(column_values(heads.column(name)) for name in names), strict=True)
    partitions = (serialize_row(table.partition_types, row) for row in values)
    return {
        partition: keys.take(group) for partition, group in zip(partitions, groups, strict=True)
    }


def _may_contain(
    table: FileStoreTable,
    entry: ManifestEntry,
    wanted: Mapping[bytes, frozenset[int] | None],
) -> bool:
    if entry.partition not in wanted:
        return False
    buckets = wanted[entry.partition]
    rescaled = table.options.bucket > 0 and entry.total_buckets != table.options.bucket
    return buckets is None or rescaled or entry.bucket in buckets


def _codes(column: Column, known: Array) -> npt.NDArray[np.int64]:
    positions: Any = pc.index_in(fold_zeros(column), value_set=known)
    known_positions = pc.fill_null(positions, len(known))
    codes: npt.NDArray[np.int64] = known_positions.to_numpy().astype(np.int64)
    return codes


def keys_predicate(
    table: FileStoreTable, keys: pa.Table, names: Sequence[str] | None = None
) -> Predicate | None:
    """Return a predicate on integer and string key columns that all rows with these keys match.

    `names` are the key columns to use (None: all). Rows with other keys may match as well. Returns
    None without such a column or without keys.
    """
    if not keys.num_rows:
        return None
    parts: list[Predicate] = []
    for field in table.schema.select(table.schema.primary_keys if names is None else names):
        column = keys.column(field.name)
        simple = field.type.root in INTEGER_ROOTS or field.type.root in CHARACTER_ROOTS
        if simple and column.type == to_arrow_type(field.type) and not column.null_count:
            parts += _conditions(field.name, column)
    return all_of(parts)


def _conditions(name: str, column: Any) -> list[Predicate]:  # noqa: ANN401  (of any column type)
    values = pc.unique(column)
    if len(values) <= MOST_VALUES:
        return [IsIn(name, tuple(values.to_pylist()))]
    bounds: Any = pc.min_max(values)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    return [Comparison(name, ">=", low), Comparison(name, "<=", high)]
