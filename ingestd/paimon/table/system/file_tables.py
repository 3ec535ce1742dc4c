"""System tables about the files of a snapshot: files, manifests, partitions, buckets, indexes.

Columns are those of Java's system tables, version 1.4.

Specification: https://paimon.apache.org/docs/1.4/concepts/system-tables/#files-table
"""

from ingestd.paimon.format.base import format_of
from ingestd.paimon.spec.data_file import FileSource
from ingestd.paimon.spec.data_types import DataField, DataType
from ingestd.paimon.spec.index_manifest import IndexManifestEntry
from ingestd.paimon.spec.manifest import (
    ManifestEntry,
    ManifestFileMeta,
    by_bucket,
    by_partition,
    file_totals,
)
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.files.data_files import live_path
from ingestd.paimon.table.metadata.file_stats import value_stats
from ingestd.paimon.table.metadata.file_store_scan import (
    live_files,
    read_manifest,
    read_manifest_list,
    snapshot_manifests,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.metadata_text import (
    bounds_text,
    counts_text,
    key_text,
    partition_name,
    partition_text,
)
from ingestd.paimon.table.read.table_read import index_entries
from ingestd.paimon.table.system.history_tables import Cells, columns

FILES = columns(
    ("partition", "STRING"), ("bucket", "INT NOT NULL"), ("file_path", "STRING NOT NULL"),
    ("file_format", "STRING NOT NULL"), ("schema_id", "BIGINT NOT NULL"),
    ("level", "INT NOT NULL"), ("record_count", "BIGINT NOT NULL"),
    ("file_size_in_bytes", "BIGINT NOT NULL"), ("min_key", "STRING"), ("max_key", "STRING"),
    ("null_value_counts", "STRING NOT NULL"), ("min_value_stats", "STRING NOT NULL"),
    ("max_value_stats", "STRING NOT NULL"), ("min_sequence_number", "BIGINT"),
    ("max_sequence_number", "BIGINT"), ("creation_time", "TIMESTAMP"),
    ("deleteRowCount", "BIGINT"), ("file_source", "STRING"), ("first_row_id", "BIGINT"),
    ("write_cols", "ARRAY"),
)  # fmt: skip
FILE_KEY_RANGES = columns(
    ("partition", "STRING"), ("bucket", "INT NOT NULL"), ("file_path", "STRING NOT NULL"),
    ("file_format", "STRING NOT NULL"), ("schema_id", "BIGINT NOT NULL"),
    ("level", "INT NOT NULL"), ("record_count", "BIGINT NOT NULL"),
    ("file_size_in_bytes", "BIGINT NOT NULL"), ("min_key", "STRING"), ("max_key", "STRING"),
    ("first_row_id", "BIGINT"),
)  # fmt: skip
MANIFESTS = columns(
    ("file_name", "STRING NOT NULL"), ("file_size", "BIGINT NOT NULL"),
    ("num_added_files", "BIGINT NOT NULL"), ("num_deleted_files", "BIGINT NOT NULL"),
    ("schema_id", "BIGINT NOT NULL"), ("min_partition_stats", "STRING"),
    ("max_partition_stats", "STRING"), ("min_row_id", "BIGINT"), ("max_row_id", "BIGINT"),
)  # fmt: skip
_TOTALS = (
    ("record_count", "BIGINT NOT NULL"), ("file_size_in_bytes", "BIGINT NOT NULL"),
    ("file_count", "BIGINT NOT NULL"), ("last_update_time", "TIMESTAMP"),
)  # fmt: skip
PARTITIONS = columns(
    ("partition", "STRING"), *_TOTALS, ("created_at", "TIMESTAMP"), ("created_by", "STRING"),
    ("updated_by", "STRING"), ("options", "STRING"),
)  # fmt: skip
BUCKETS = columns(("partition", "STRING"), ("bucket", "INT NOT NULL"), *_TOTALS)
TABLE_INDEXES = (
    *columns(
        ("partition", "STRING"), ("bucket", "INT NOT NULL"), ("index_type", "STRING NOT NULL"),
        ("file_name", "STRING NOT NULL"), ("file_size", "BIGINT NOT NULL"),
        ("row_count", "BIGINT NOT NULL"),
    ),
    DataField(6, "dv_ranges", DataType("ARRAY", element=DataType("ROW", nullable=False, fields=(
        DataField(7, "f0", DataType("STRING", nullable=False)),
        DataField(8, "f1", DataType("INT", nullable=False)),
        DataField(9, "f2", DataType("INT", nullable=False)),
        DataField(10, "_CARDINALITY", DataType("BIGINT")),
    )))),
)  # fmt: skip


def file_rows(table: FileStoreTable, snapshot: Snapshot | None) -> list[Cells]:
    """Return the rows of `files`: the live data files of a snapshot, without postponed files.

    Returns [] if `snapshot` is None. Raises FormatError if a manifest is missing or damaged.
    """
    return [_file(table, entry) for entry in live_files(table, snapshot) if entry.bucket >= 0]


def _file(table: FileStoreTable, entry: ManifestEntry) -> Cells:
    file = entry.file
    stats = value_stats(table, file)
    types = {field.name: field.type for field in table.schema.fields}
    source = None if file.file_source is None else FileSource(file.file_source).name
    names = types.keys()
    known = {name: stats[name] for name in names if name in stats}
    return (
        *_file_cells(table, entry),
        counts_text({n: known[n].null_count if n in known else None for n in names}),
        bounds_text(types, {n: known[n].low if n in known else None for n in names}),
        bounds_text(types, {n: known[n].high if n in known else None for n in names}),
        file.min_sequence_number, file.max_sequence_number, file.creation_time_ms,
        file.delete_row_count, source, file.first_row_id,
        None if file.write_cols is None else list(file.write_cols),
    )  # fmt: skip


def file_key_range_rows(table: FileStoreTable, snapshot: Snapshot | None) -> list[Cells]:
    """Return the rows of `file_key_ranges`: the same files as in `files`, without statistics.

    Returns [] if `snapshot` is None. Raises FormatError if a manifest is missing or damaged.
    """
    entries = [entry for entry in live_files(table, snapshot) if entry.bucket >= 0]
    return [(*_file_cells(table, entry), entry.file.first_row_id) for entry in entries]


def _file_cells(table: FileStoreTable, entry: ManifestEntry) -> Cells:
    """Return the cells of the columns from `partition` to `max_key`."""
    file = entry.file
    key_types = [field.type for field in table.schema.key_fields]
    return (
        partition_text(table, entry.partition), entry.bucket,
        live_path(table, entry.partition, entry.bucket, file), format_of(file.file_name),
        file.schema_id, file.level, file.row_count, file.file_size,
        key_text(key_types, file.min_key), key_text(key_types, file.max_key),
    )  # fmt: skip


def manifest_rows(table: FileStoreTable, snapshot: Snapshot | None) -> list[Cells]:
    """Return the rows of `manifests`: base, then delta, then changelog manifests of a snapshot.

    Returns [] if `snapshot` is None. Raises FormatError if a manifest list is missing or damaged.
    """
    return [] if snapshot is None else [_manifest(table, m) for m in _manifests(table, snapshot)]


def _manifests(table: FileStoreTable, snapshot: Snapshot) -> list[ManifestFileMeta]:
    manifests = snapshot_manifests(table, snapshot)
    if snapshot.changelog_manifest_list is None:
        return manifests
    return manifests + read_manifest_list(table.io, table.paths, snapshot.changelog_manifest_list)


def _manifest(table: FileStoreTable, meta: ManifestFileMeta) -> Cells:
    return (
        meta.file_name, meta.file_size, meta.num_added_files, meta.num_deleted_files,
        meta.schema_id, partition_text(table, meta.partition_stats.min_values),
        partition_text(table, meta.partition_stats.max_values), meta.min_row_id, meta.max_row_id,
    )  # fmt: skip


def _entries(table: FileStoreTable, snapshot: Snapshot | None) -> list[ManifestEntry]:
    """Return all manifest entries of a snapshot, except those of postponed files.

    The entries of deleted files are included, because their times count as times of the last
    change.
    """
    metas = [] if snapshot is None else snapshot_manifests(table, snapshot)
    entries = (e for m in metas for e in read_manifest(table.io, table.paths, m.file_name))
    return [entry for entry in entries if entry.bucket >= 0]


def partition_rows(table: FileStoreTable, snapshot: Snapshot | None) -> list[Cells]:
    """Return the rows of `partitions`, ordered by name, without postponed files.

    Records are counted before merging. Returns [] if `snapshot` is None. Raises FormatError if a
    manifest is missing or damaged.
    """
    return [(*cells, None, None, None, None) for cells in partition_totals(table, snapshot)]


def partition_totals(table: FileStoreTable, snapshot: Snapshot | None) -> list[Cells]:
    """Return name, records, bytes, files and time of the last change of each partition.

    The result is ordered by name; postponed files do not count. The time is in milliseconds of the
    epoch; records are counted before merging. Returns [] if `snapshot` is None. Raises FormatError
    if a manifest is missing or damaged.
    """
    named = [
        (partition_name(table, partition), *totals)
        for partition, entries in by_partition(_entries(table, snapshot)).items()
        if (totals := file_totals(entries)).files > 0
    ]
    return sorted(named, key=lambda cells: str(cells[0]))


def bucket_rows(table: FileStoreTable, snapshot: Snapshot | None) -> list[Cells]:
    """Return the rows of `buckets`, ordered by partition and number.

    Postponed rows are in the bucket -2; records are counted before merging. Returns [] if
    `snapshot` is None. Raises FormatError if a manifest is missing or damaged.
    """
    rows = [
        (partition_text(table, partition), bucket, *file_totals(entries))
        for (partition, bucket), entries in by_bucket(live_files(table, snapshot)).items()
    ]
    return sorted(rows, key=lambda row: (row[0], row[1]))


def index_rows(table: FileStoreTable, snapshot: Snapshot | None) -> list[Cells]:
    """Return the rows of `table_indexes`: hash indexes and deletion vectors of a snapshot.

    Returns [] if `snapshot` is None. Raises FormatError if the index manifest is missing or
    damaged.
    """
    entries = [] if snapshot is None else index_entries(table, snapshot)
    return [_index(table, entry) for entry in entries]


def _index(table: FileStoreTable, entry: IndexManifestEntry) -> Cells:
    ranges = entry.dv_ranges
    return (
        partition_text(table, entry.partition), entry.bucket, entry.index_type, entry.file_name,
        entry.file_size, entry.row_count,
        None if ranges is None
        else [(r.data_file_name, r.offset, r.length, r.cardinality) for r in ranges],
    )  # fmt: skip
