"""Read the merged rows of a table as of a snapshot, with the columns of the table's schema.

`scan_plan` selects the files to open, `bucket_read` merges the files of a bucket.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ingestd.errors import ArgumentError
from ingestd.paimon.casts.evolution import evolve
from ingestd.paimon.spec.compaction_options import compaction_options
from ingestd.paimon.spec.data_types import VALUE_KIND, DataField, DataType, RowKind
from ingestd.paimon.spec.index_manifest import IndexManifestEntry
from ingestd.paimon.spec.manifest import ManifestEntry, ManifestFileMeta
from ingestd.paimon.spec.options import refuse_unsupported
from ingestd.paimon.spec.predicate import Predicate, all_of, columns_of, matching, only_on
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.files.data_files import DataFileReader
from ingestd.paimon.table.files.deletion_vectors import DeletionVectors
from ingestd.paimon.table.metadata.file_store_scan import (
    PartitionFilter,
    live_entries,
    prune_manifests,
    read_index_manifest,
    snapshot_manifests,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot, requested_snapshot
from ingestd.paimon.table.read.bucket_read import BucketReader
from ingestd.paimon.table.read.key_filter import KeyFilter, keys_predicate
from ingestd.paimon.table.read.scan_plan import ReadPlan, ReadUnit, plan_read

AUDIT_FIELD = DataField(-1, "rowkind", DataType("STRING", nullable=False))
"""The first column of an audit log."""
SMALL_ROWS = 200_000
"""Reads of fewer rows use no threads, because they take less time than starting a thread."""
PREFETCH_BYTES = 64 * 1024 * 1024
"""Maximum bytes of the data files of the units that are read ahead."""
UnitReader = Callable[[ReadUnit], Iterable[pa.Table]]


@dataclass(frozen=True, slots=True)
class TableReader:
    """A reader of the rows of a table that match `predicate`, in the columns `columns` (None: all).

    Columns refer to the handle's schema; for that of a snapshot see `FileStoreTable.at_schema`.
    `partition_filter` restricts the partitions (None: all). `key_filter` has the primary key
    columns of the rows to read (None: all rows); without one of these columns, or for a table
    without a primary key, ValueError is raised. With `audit` the result includes deletions that are
    still in the files, and its first column, `rowkind`, has the kind of each row (+I, -U, +U, -D).
    With `top_level` only the top level of a primary-key table is read, the result of a full
    compaction, which needs no merging.
    """

    table: FileStoreTable
    columns: Sequence[str] | None = None
    predicate: Predicate | None = None
    partition_filter: PartitionFilter | None = None
    key_filter: pa.Table | None = None
    audit: bool = False
    top_level: bool = False
    _keys: KeyFilter | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        keys = None if self.key_filter is None else KeyFilter.of(self.table, self.key_filter)
        object.__setattr__(self, "_keys", keys)

    def plan(self, snapshot: Snapshot) -> ReadPlan:
        """Plan which files a read of a snapshot opens; only manifests are read.

        Raises UnsupportedError for a table that cannot be read correctly, ArgumentError for an
        unknown column, FormatError for a manifest that is missing or damaged.
        """
        refuse_unsupported(self.table.schema, for_write=False)
        self.fields()
        wanted = self._wanted()
        on_partition = only_on(wanted, frozenset(self.table.schema.partition_keys))
        manifests = snapshot_manifests(self.table, snapshot)
        kept = prune_manifests(self.table, manifests, on_partition)
        entries = self._entries(snapshot, kept)
        if self.top_level and self.table.schema.primary_keys:
            top = compaction_options(self.table.schema).num_levels - 1
            entries = [entry for entry in entries if entry.file.level == top]
        plan = plan_read(self.table, entries, wanted)
        return replace(plan, manifests_skipped=len(manifests) - len(kept))

    def rows(self, snapshot: Snapshot) -> Iterator[pa.Table]:
        """Return an iterator of the rows of a snapshot, in parts of at most one unit of the plan.

        Raises UnsupportedError for a table that cannot be read correctly, ArgumentError for an
        unknown column, FormatError for a damaged manifest. Iteration raises FormatError for a data
        file that is missing or damaged.
        """
        plan = self.plan(snapshot)
        return self.read_units(plan.units, index_entries(self.table, snapshot))

    def read_units(
        self, units: Sequence[ReadUnit], index: Sequence[IndexManifestEntry] = ()
    ) -> Iterator[pa.Table]:
        """Yield the rows of units of a plan, in their order.

        Rows that the deletion vectors in the index files `index` delete are left out. Raises
        FormatError for a data file that is missing or damaged.
        """
        table, fields = self.table, self.fields()
        inner = self._read_fields(fields)
        vectors = DeletionVectors.of(table, index) if index else None
        schema = table.schema
        on_keys = frozenset((*schema.partition_keys, *schema.primary_keys))
        wanted = self._wanted()
        sources = {
            True: DataFileReader(table, vectors, wanted),
            False: DataFileReader(table, vectors, only_on(wanted, on_keys)),
        }
        types = {field.name: field.type for field in schema.fields}
        names = [field.name for field in fields]

        def read(unit: ReadUnit) -> Iterator[pa.Table]:
            reader = BucketReader(table, inner, self._keys, sources[unit.verbatim], self.audit)
            for rows in reader.read(unit.files):
                matches = matching(self.predicate, rows, types)
                if matches.num_rows:
                    yield _with_kinds(matches, names) if self.audit else matches.select(names)

        yield from read_in_order(units, read)

    def fields(self) -> tuple[DataField, ...]:
        """Return the fields of the requested columns.

        Raises ArgumentError, naming the column, if it does not exist.
        """
        return selected_fields(self.table, self.columns)

    def row_fields(self) -> tuple[DataField, ...]:
        """Return the fields of the result: the requested columns, with `audit` after `rowkind`."""
        return (AUDIT_FIELD, *self.fields()) if self.audit else self.fields()

    def empty(self) -> pa.Table:
        """Return an empty table with the columns of the result."""
        return evolve(pa.table({}), (), self.row_fields())

    def _wanted(self) -> Predicate | None:
        """Return a predicate that every row of the result matches, or None without a condition."""
        if self.key_filter is None or not self.table.schema.primary_keys:
            return self.predicate
        parts = (self.predicate, keys_predicate(self.table, self.key_filter))
        return all_of([operand for operand in parts if operand is not None])

    def _read_fields(self, fields: tuple[DataField, ...]) -> tuple[DataField, ...]:
        if self.predicate is None:
            return fields
        names = [field.name for field in fields]
        extra = sorted(columns_of(self.predicate) - set(names))
        return (*fields, *selected_fields(self.table, extra))

    def _entries(
        self, snapshot: Snapshot, manifests: Sequence[ManifestFileMeta]
    ) -> list[ManifestEntry]:
        table, wanted, keys = self.table, self.partition_filter, self._keys
        if keys is None:
            return live_entries(table, manifests, partition_filter=wanted)
        entries = live_entries(table, manifests, partition_filter=keys.partitions)
        if wanted is not None:
            kept = {e.partition for e in live_entries(table, manifests, partition_filter=wanted)}
            entries = [entry for entry in entries if entry.partition in kept]
        return keys.narrow(table, entries, index_entries(table, snapshot))


def _with_kinds(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    if VALUE_KIND in rows.column_names:
        kinds = rows.column(VALUE_KIND).to_numpy()
    else:
        kinds = np.zeros(rows.num_rows, np.int8)
    symbols = pa.array([kind.symbol for kind in RowKind]).take(pa.array(kinds))
    return rows.select(names).add_column(0, AUDIT_FIELD.name, symbols)


def read_table(
    table: FileStoreTable,
    *,
    snapshot_id: int | None = None,
    columns: Sequence[str] | None = None,
    predicate: Predicate | None = None,
    partition_filter: PartitionFilter | None = None,
    key_filter: pa.Table | None = None,
) -> pa.Table:
    """Return the rows of a snapshot (None: the newest), without deleted rows, as one table.

    `columns` are the columns to read, `predicate` and `partition_filter` restrict the rows, and
    `key_filter` has the primary keys of the rows to read (None: no restriction). Raises
    ArgumentError for an unknown snapshot or column, ValueError if the table has no primary key or
    `key_filter` lacks one of its columns, UnsupportedError for a table that cannot be read
    correctly, FormatError for a file that is missing or damaged.
    """
    reader = TableReader(table, columns, predicate, partition_filter, key_filter)
    parts = list(_rows(reader, snapshot_id))
    return pa.concat_tables(parts) if parts else reader.empty()


def iter_buckets(
    table: FileStoreTable,
    *,
    snapshot_id: int | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[pa.Table]:
    """Return an iterator of the rows of a snapshot (None: the newest), each part of one bucket.

    Deleted rows are left out. `columns` are the columns to read (None: all). Iteration raises
    ArgumentError for an unknown snapshot or column, UnsupportedError for a table that cannot be
    read correctly, FormatError for a file that is missing or damaged.
    """
    return _rows(TableReader(table, columns), snapshot_id)


def _rows(reader: TableReader, snapshot_id: int | None) -> Iterator[pa.Table]:
    table = reader.table
    refuse_unsupported(table.schema, for_write=False)
    reader.fields()
    if snapshot_id is None:
        snapshot = latest_snapshot(table.io, table.paths)
    else:
        snapshot = requested_snapshot(table.io, table.paths, snapshot_id)
    if snapshot is not None:
        yield from reader.rows(snapshot)


def selected_fields(table: FileStoreTable, columns: Sequence[str] | None) -> tuple[DataField, ...]:
    """Return the fields of the columns `columns` (None: all), in this order.

    Raises ArgumentError, naming the unknown columns, if any does not exist.
    """
    names = table.schema.field_names if columns is None else tuple(columns)
    unknown = [name for name in names if name not in table.schema.field_names]
    if unknown:
        raise ArgumentError(
            f"table {table.name} has no column {', '.join(unknown)}; its columns are "
            f"{', '.join(table.schema.field_names)}"
        )
    return table.schema.select(names)


def index_entries(table: FileStoreTable, snapshot: Snapshot) -> list[IndexManifestEntry]:
    """Return the entries of the index manifest of a snapshot; [] if it has no index manifest.

    Raises FormatError if the index manifest is missing or damaged.
    """
    if snapshot.index_manifest is None:
        return []
    return read_index_manifest(table.io, table.paths, snapshot.index_manifest)


def read_in_order(
    units: Sequence[ReadUnit], read: UnitReader, *, small_rows: int = SMALL_ROWS
) -> Iterator[pa.Table]:
    """Yield the parts that `read` returns for each unit, in the order of the units.

    Decoding uses all cores by itself, sorting and merging do not: on several cores, up to two units
    are read ahead, within `PREFETCH_BYTES`, unless all units together have fewer rows than
    `small_rows`. An error of `read` is raised when the parts of its unit are due.
    """
    cores = len(os.sched_getaffinity(0))
    if cores < 2 or len(units) < 2 or sum(map(_unit_rows, units)) < small_rows:
        for unit in units:
            yield from read(unit)
        return
    pending: deque[tuple[Future[list[pa.Table]], int]] = deque()
    with ThreadPoolExecutor(2, thread_name_prefix="read") as pool:
        try:
            for unit in units:
                size = _unit_bytes(unit)
                while (
                    pending
                    and sum(ahead_bytes for _, ahead_bytes in pending) + size > PREFETCH_BYTES
                ):
                    yield from pending.popleft()[0].result()
                pending.append((pool.submit(_all_rows, read, unit), size))
                if len(pending) > 2:
                    yield from pending.popleft()[0].result()
            while pending:
                yield from pending.popleft()[0].result()
        finally:
            for future, _ in pending:
                future.cancel()


def _all_rows(read: UnitReader, unit: ReadUnit) -> list[pa.Table]:
    return list(read(unit))


def _unit_rows(unit: ReadUnit) -> int:
    return sum(file.row_count for file in unit.files.files)


def _unit_bytes(unit: ReadUnit) -> int:
    return sum(file.file_size for file in unit.files.files)
