"""Look up rows by primary key.

A data file is opened only if its partition, bucket, key range and file index allow that it contains
one of the keys; of a Parquet file, only row groups that may contain one are decoded. If the newest
row of a key is the result, files are searched from the newest to the oldest until each key has been
found.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import ConfigError
from ingestd.paimon.format.base import BatchSize
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.arrow import column_values, fold_zeros
from ingestd.paimon.spec.binary_row import Key, comparable_key, comparable_value
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.manifest import ManifestEntry, by_bucket
from ingestd.paimon.spec.options import BucketMode, bucket_mode, refuse_unsupported
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.buckets.bucket_assigner import assign_among
from ingestd.paimon.table.files.data_file_indexes import indexes_may_match, read_file_indexes
from ingestd.paimon.table.files.data_files import SYSTEM_FIELDS, DataFileReader, KeyTest
from ingestd.paimon.table.files.deletion_vectors import DeletionVectors
from ingestd.paimon.table.metadata.file_store_scan import live_entries, snapshot_manifests
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.bucket_read import BucketReader, is_ordered_by_age
from ingestd.paimon.table.read.fallback_branch import FallbackBranch, fallback_branch
from ingestd.paimon.table.read.key_filter import KeyFilter, among_keys, keys_predicate
from ingestd.paimon.table.read.scan_options import BETWEEN, ScanTarget
from ingestd.paimon.table.read.scan_plan import (
    BucketFiles,
    hides_level_0,
)
from ingestd.paimon.table.read.table_read import index_entries, selected_fields

_SIZE = BatchSize(8 << 20)
_HASHED = frozenset({BucketMode.HASH_FIXED, BucketMode.POSTPONE})
"""Bucket modes in which the hash of a key determines its bucket."""


@dataclass(frozen=True, slots=True)
class PointReader:
    """A reader of the rows with the primary keys `keys` in a snapshot (None: no rows).

    `keys` has the primary key columns, in the types of the table; the result has the columns
    `columns` (None: all), and includes rows of `fallback`. Memory holds the keys, the rows of one
    bucket that have these keys, and a part of a file.
    """

    table: FileStoreTable
    snapshot: Snapshot | None
    keys: pa.Table
    columns: Sequence[str] | None = None
    fallback: FallbackBranch | None = None

    @classmethod
    def of(
        cls,
        table: FileStoreTable,
        target: ScanTarget,
        keys: pa.Table,
        columns: Sequence[str] | None = None,
    ) -> "PointReader":
        """Return the reader of the rows with some keys in the snapshot of a scan target.

        Raises ConfigError for a target that selects changes, ArgumentError for an unknown column,
        and the errors of `fallback_branch`.
        """
        if target.between is not None:
            raise ConfigError(
                f"table {table.name}: option '{BETWEEN}' selects changes, and keys are looked up "
                "in a snapshot: specify a snapshot, a tag or a time"
            )
        fallback = fallback_branch(table, target)
        reader = cls(target.at(table), target.snapshot, keys, columns, fallback)
        reader.fields()
        return reader

    def fields(self) -> tuple[DataField, ...]:
        """Return the fields of the result. Raises ArgumentError for an unknown column."""
        return selected_fields(self.table, self.columns)

    def rows(self) -> Iterator[pa.Table]:
        """Yield the merged rows that have one of the keys, in parts.

        Raises UnsupportedError for a table that cannot be read correctly, ArgumentError for an
        unknown column, ValueError if the table has no primary key or `keys` lacks one of its
        columns, FormatError for a file that is missing or damaged.
        """
        refuse_unsupported(self.table.schema, for_write=False)
        if self.snapshot is not None:
            yield from self._snapshot_rows(self.table, self.snapshot, None)
        if self.fallback is not None:
            missing = self.fallback.partitions(self.table, self.snapshot)
            yield from self._snapshot_rows(self.fallback.table, self.fallback.snapshot, missing)

    def _snapshot_rows(
        self, table: FileStoreTable, snapshot: Snapshot, partitions: frozenset[bytes] | None
    ) -> Iterator[pa.Table]:
        """Yield the rows of a snapshot in some partitions (None: all), in parts."""
        fields = selected_fields(table, self.columns)
        index = index_entries(table, snapshot)
        reader = DataFileReader(table, DeletionVectors.of(table, index))
        keys = KeyFilter.of(table, self.keys)
        manifests = snapshot_manifests(table, snapshot)
        entries = live_entries(table, manifests, partition_filter=keys.partitions)
        if partitions is not None:
            entries = [entry for entry in entries if entry.partition in partitions]
        narrowed = keys.narrow(table, entries, index)
        # Rows of postponed buckets are not in a bucket yet.
        for bucket in by_bucket(entry for entry in narrowed if entry.bucket >= 0).values():
            lookup = _BucketLookup(reader, fields, _bucket_keys(table, keys, bucket[0]))
            yield from (rows.select([f.name for f in fields]) for rows in lookup.rows(bucket))


def _bucket_keys(table: FileStoreTable, keys: KeyFilter, entry: ManifestEntry) -> pa.Table:
    """Return the keys that may be in the bucket of a data file."""
    wanted = keys.of_partition(entry.partition)
    if entry.total_buckets <= 0 or bucket_mode(table.schema) not in _HASHED:
        return wanted
    return wanted.filter(assign_among(table, wanted, entry.total_buckets) == entry.bucket)


@dataclass(slots=True)
class _SortedKeys:
    """Distinct trimmed keys in ascending order, and a mask of those to look up in further files."""

    keys: pa.Table
    values: list[Key]
    wanted: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, keys: pa.Table, names: Sequence[str]) -> "_SortedKeys":
        columns = (map(comparable_value, column_values(keys.column(name))) for name in names)
        positions = {key: i for i, key in enumerate(zip(*columns, strict=True))}
        values = sorted(positions)
        order = np.array([positions[key] for key in values], np.int64)
        taken = keys.select(names).take(order)
        return cls(taken, values, np.ones(len(values), np.bool_))

    def between(self, low: Key, high: Key) -> npt.NDArray[np.int64]:
        """Return the positions of the wanted keys from `low` to `high`."""
        start, end = bisect_left(self.values, low), bisect_right(self.values, high)
        return start + np.flatnonzero(self.wanted[start:end])


@dataclass(slots=True)
class _KeyedRows:
    """A `RowSource` of rows that were read before: those with the keys, by data file name."""

    by_file: dict[str, pa.Table] = field(default_factory=dict)

    def read(
        self, partition: bytes, bucket: int, file: DataFileMeta, fields: Sequence[DataField]
    ) -> pa.Table:
        """Return the rows that were read of a file, with the columns `fields`."""
        return self.by_file[file.file_name].select([column.name for column in fields])


class _BucketLookup:
    """The lookup of keys in the files of one bucket."""

    def __init__(
        self, reader: DataFileReader, fields: tuple[DataField, ...], keys: pa.Table
    ) -> None:
        self._reader = reader
        self._table = reader.table
        self._names = self._table.schema.trimmed_primary_keys
        self._types = [column.type for column in self._table.schema.key_fields]
        self._keys = _SortedKeys.of(keys, self._names)
        self._found = _KeyedRows()
        self._merged = BucketReader(self._table, fields, source=self._found)
        self._unmerged = hides_level_0(self._table)

    def rows(self, entries: Sequence[ManifestEntry]) -> Iterator[pa.Table]:
        """Yield the merged rows of the keys in a bucket, in parts."""
        partition, number = entries[0].partition, entries[0].bucket
        files = self._candidates(entry.file for entry in entries)
        newest_wins = self._unmerged or self._newest_wins(files)
        for file in reversed(files):
            rows = self._file_rows(partition, number, file)
            if rows is None:
                continue
            self._found.by_file[file.file_name] = rows
            if newest_wins:
                keys = self._keys
                keys.wanted &= ~np.asarray(among_keys(keys.keys, rows, self._names))
        read = tuple(file for file in files if file.file_name in self._found.by_file)
        groups = [(file,) for file in read] if self._unmerged else [read]
        for group in groups:
            yield from self._merged.read(BucketFiles(partition, number, group))

    def _candidates(self, files: Iterator[DataFileMeta]) -> list[DataFileMeta]:
        """Return the files whose key range contains a key, ordered by largest sequence number."""
        visible = [file for file in files if not (self._unmerged and file.level == 0)]
        spanning = [file for file in visible if len(self._keys_of(file))]
        return sorted(spanning, key=lambda file: file.max_sequence_number)

    def _newest_wins(self, files: Sequence[DataFileMeta]) -> bool:
        """Return whether a row of a later file replaces all rows of its key in earlier files."""
        rules = self._table.merge_rules
        replaces = rules.engine == "deduplicate" and not rules.sequence_fields
        return replaces and not rules.ignore_delete and is_ordered_by_age(files)

    def _keys_of(self, file: DataFileMeta) -> npt.NDArray[np.int64]:
        bounds = (comparable_key(self._types, key) for key in (file.min_key, file.max_key))
        return self._keys.between(*bounds)

    def _file_rows(self, partition: bytes, bucket: int, file: DataFileMeta) -> pa.Table | None:
        """Return the rows of a file that have one of the wanted keys; None without such rows.

        They have the columns that merging requires.
        """
        positions = self._keys_of(file)
        if not len(positions):
            return None
        keys = self._keys.keys.take(positions)
        if not self._index_allows(partition, bucket, file, keys):
            return None
        first = [self._keys.values[i][0] for i in positions]
        test = KeyTest(
            lambda low, high: (
                bisect_left(first, comparable_value(low))
                < bisect_right(first, comparable_value(high))
            ),
            lambda rows: bool(pc.any(self._mask(rows, keys)).as_py()),
        )
        reader = DataFileReader(self._table, self._reader.deletions, keys=test)
        fields = tuple(dict.fromkeys((*self._merged.merge_fields, *SYSTEM_FIELDS)))
        parts: list[pa.Table] = []
        for _, batch in reader.batches(partition, bucket, file, fields, _SIZE):
            rows = batch.filter(self._mask(batch, keys))
            if rows.num_rows:
                parts.append(rows)
            if sum(part.num_rows for part in parts) == keys.num_rows:
                break
        return pa.concat_tables(parts) if parts else None

    def _index_allows(
        self, partition: bytes, bucket: int, file: DataFileMeta, keys: pa.Table
    ) -> bool:
        """Return whether a file may contain one of the keys, by its file indexes."""
        if not honoured.INDEX_READ.of(self._table.schema.options):
            return True
        predicate = keys_predicate(self._table, keys, self._names)
        if predicate is None:
            return True
        indexes = read_file_indexes(self._table, partition, bucket, file)
        return indexes is None or indexes_may_match(self._table, file, indexes, predicate)

    def _mask(self, rows: pa.Table, keys: pa.Table) -> Any:  # noqa: ANN401  (an array of booleans)
        """Return a mask of the rows that have one of the keys."""
        matches = np.ones(rows.num_rows, np.bool_)
        for name in self._names:
            column: Any = fold_zeros(rows.column(name))
            wanted: Any = fold_zeros(keys.column(name).combine_chunks())
            matches &= pc.is_in(column, value_set=wanted).to_numpy()
        if len(self._names) == 1:
            return pa.array(matches)
        positions = np.flatnonzero(matches)
        matches[positions] = among_keys(rows.take(positions), keys, self._names)
        return pa.array(matches)
