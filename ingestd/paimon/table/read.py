"""Reading a table: its rows as of a snapshot, merged, in the columns of the handle's schema.

Specification: Read path. What a bucket's files make up together lives in `bucket_read`.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from ingestd.errors import ConfigError
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.index_manifest import IndexManifestEntry
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.options import refuse_unsupported
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.bucket_read import BucketReader, group_by_bucket
from ingestd.paimon.table.evolution import evolve
from ingestd.paimon.table.file_store_table import FileStoreTable
from ingestd.paimon.table.key_filter import KeyFilter
from ingestd.paimon.table.manifest_store import read_index_manifest
from ingestd.paimon.table.scan import PartitionFilter, live_files
from ingestd.paimon.table.snapshot_manager import latest_snapshot, read_snapshot


def read_table(
    table: FileStoreTable,
    *,
    snapshot_id: int | None = None,
    columns: Sequence[str] | None = None,
    partition_filter: PartitionFilter | None = None,
    key_filter: pa.Table | None = None,
) -> pa.Table:
    """All rows that `iter_buckets` gives, as one table."""
    parts = list(
        iter_buckets(
            table,
            snapshot_id=snapshot_id,
            columns=columns,
            partition_filter=partition_filter,
            key_filter=key_filter,
        )
    )
    if not parts:
        return evolve(pa.table({}), (), selected_fields(table, columns))
    return pa.concat_tables(parts)


def iter_buckets(
    table: FileStoreTable,
    *,
    snapshot_id: int | None = None,
    columns: Sequence[str] | None = None,
    partition_filter: PartitionFilter | None = None,
    key_filter: pa.Table | None = None,
) -> Iterator[pa.Table]:
    """The rows of a snapshot (None: the newest) in parts of at most one bucket each.

    Deleted rows are left out. `columns` (None: all) are of the handle's schema, whatever the
    snapshot's was; for the columns of the snapshot's time see `at_snapshot`. `key_filter` has
    the primary key columns of the only rows wanted.

    Raises UnsupportedError for a table that cannot be read right, ConfigError for an unknown
    column, FormatError for a snapshot or a file that is missing or damaged.
    """
    refuse_unsupported(table.schema, for_write=False)
    fields = selected_fields(table, columns)
    snapshot = _snapshot(table, snapshot_id)
    if snapshot is None:
        return
    keys = None if key_filter is None else KeyFilter.of(table, key_filter)
    entries = _entries(table, snapshot, partition_filter, keys)
    reader = BucketReader(table, fields, keys)
    for bucket in group_by_bucket(entries):
        yield from reader.read(bucket)


def at_snapshot(table: FileStoreTable, snapshot_id: int) -> FileStoreTable:
    """The table with the schema that it had at a snapshot."""
    snapshot = read_snapshot(table.io, table.paths, snapshot_id)
    return table.with_schema(table.schemas(snapshot.schema_id))


def selected_fields(table: FileStoreTable, columns: Sequence[str] | None) -> tuple[DataField, ...]:
    """The fields of some columns (None: all); ConfigError names a column that isn't there."""
    names = table.schema.field_names if columns is None else tuple(columns)
    unknown = [name for name in names if name not in table.schema.field_names]
    if unknown:
        raise ConfigError(
            f"table {table.name} has no column {', '.join(unknown)}; its columns are "
            f"{', '.join(table.schema.field_names)}"
        )
    return table.schema.select(names)


def _snapshot(table: FileStoreTable, snapshot_id: int | None) -> Snapshot | None:
    if snapshot_id is None:
        return latest_snapshot(table.io, table.paths)
    return read_snapshot(table.io, table.paths, snapshot_id)


def _entries(
    table: FileStoreTable,
    snapshot: Snapshot,
    partition_filter: PartitionFilter | None,
    keys: KeyFilter | None,
) -> list[ManifestEntry]:
    if keys is None:
        return live_files(table, snapshot, partition_filter=partition_filter)
    partitions = frozenset(keys.by_partition)
    entries = live_files(table, snapshot, partition_filter=partitions)
    if partition_filter is not None:
        wanted = live_files(table, snapshot, partition_filter=partition_filter)
        kept = {entry.partition for entry in wanted}
        entries = [entry for entry in entries if entry.partition in kept]
    return keys.narrow(table, entries, _index_entries(table, snapshot))


def _index_entries(table: FileStoreTable, snapshot: Snapshot) -> list[IndexManifestEntry]:
    if snapshot.index_manifest is None:
        return []
    return read_index_manifest(table.io, table.paths, snapshot.index_manifest)
