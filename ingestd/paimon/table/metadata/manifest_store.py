"""Read and write manifest lists, manifests and index manifests.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#manifest

All of these files are immutable and named by a UUID. A process may cache the manifests that it
has read (`MANIFEST_CACHE`); nothing is cached unless it sets a limit.
"""

import threading
import uuid
from collections import OrderedDict
from collections.abc import Container, Iterable, Iterator, Sequence

from ingestd.crash_points import Point, reach
from ingestd.errors import FormatError
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.binary_row import deserialize_row, serialize_row
from ingestd.paimon.spec.data_file import EMPTY_STATS, SimpleStats
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.index_manifest import (
    IndexManifestEntry,
    decode_index_manifest,
    encode_index_records,
    pack_index_records,
)
from ingestd.paimon.spec.manifest import (
    FileKind,
    ManifestEntry,
    ManifestFileMeta,
    decode_manifest,
    decode_manifest_list,
    encode_manifest,
    encode_manifest_list,
    join_manifests,
)
from ingestd.paimon.spec.paths import TablePaths
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_entries import IndexEntries

# Readers do not prune by minima and maxima of these types, so they stay unknown.
_NO_BOUNDS = frozenset({"BINARY", "VARBINARY", "BYTES", "FLOAT", "DOUBLE"})
_ENTRY_BYTES = 1024


class ManifestCache:
    """Least recently used manifests by path, limited by their number of entries.

    An entry with more than 1 KiB of keys and statistics counts as several.
    """

    def __init__(self, max_entries: int = 0) -> None:
        self._max_entries = max_entries
        self._count = 0
        self._manifests: OrderedDict[str, tuple[Sequence[ManifestEntry], int]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def entries(self) -> int:
        """Return the number of cached entries."""
        return self._count

    def limit(self, max_entries: int) -> None:
        """Set the limit, and drop manifests above it."""
        with self._lock:
            self._max_entries = max_entries
            self._drop_oldest()

    def get(self, path: str) -> Sequence[ManifestEntry] | None:
        """Return the entries of a manifest in order, None if it is not cached."""
        with self._lock:
            found = self._manifests.get(path)
            if found is None:
                return None
            self._manifests.move_to_end(path)
            return found[0]

    def put(self, path: str, entries: Sequence[ManifestEntry]) -> None:
        """Cache the entries of a manifest, unless it exceeds the limit by itself."""
        count = sum(map(_entries_counted, entries))
        with self._lock:
            if path in self._manifests or count > self._max_entries:
                return
            self._manifests[path] = (entries, count)
            self._count += count
            self._drop_oldest()

    def retain(self, folder: str, paths: Container[str]) -> None:
        """Drop the manifests of a folder that are not among `paths`.

        Commits merge manifests: those that the newest snapshot no longer lists are not read again,
        and would use up the limit.
        """
        with self._lock:
            gone = [
                path
                for path in self._manifests
                if path.startswith(f"{folder}/") and path not in paths
            ]
            for path in gone:
                self._count -= self._manifests.pop(path)[1]

    def _drop_oldest(self) -> None:
        while self._count > self._max_entries:
            self._count -= self._manifests.popitem(last=False)[1][1]


MANIFEST_CACHE = ManifestCache()
"""Manifests that this process has read, shared by all tables."""


def _entries_counted(entry: ManifestEntry) -> int:
    file = entry.file
    size = len(file.min_key) + len(file.max_key) + len(file.embedded_index or b"")
    size += _stats_bytes(file.key_stats) + _stats_bytes(file.value_stats)
    return 1 + size // _ENTRY_BYTES


def _stats_bytes(stats: SimpleStats) -> int:
    return len(stats.min_values) + len(stats.max_values) + 8 * len(stats.null_counts)


def read_manifest_list(
    io: FileIO, paths: TablePaths, name: str, size: int | None = None
) -> list[ManifestFileMeta]:
    """Return the manifests of a list, in order; FormatError if it is shorter than `size` bytes."""
    path = paths.manifest(name)
    data = _read(io, path)
    if size is not None and len(data) < size:
        raise FormatError(f"manifest list {path} has {len(data)} bytes, {size} are promised")
    return decode_manifest_list(data, path)


def write_manifest_list(
    table: FileStoreTable, metas: Sequence[ManifestFileMeta]
) -> tuple[str, int]:
    """Write a manifest list, possibly an empty one; return its name and size in bytes."""
    name = f"manifest-list-{uuid.uuid4()}-0"
    data = encode_manifest_list(metas)
    table.io.write_new(table.paths.manifest(name), data)
    return name, len(data)


def read_manifest(io: FileIO, paths: TablePaths, name: str) -> list[ManifestEntry]:
    """Return the entries of a manifest, in order."""
    path = paths.manifest(name)
    return decode_manifest(_read(io, path), path)


def read_listed_manifest(
    io: FileIO, paths: TablePaths, meta: ManifestFileMeta
) -> Sequence[ManifestEntry]:
    """Return the entries of a listed manifest; FormatError if the list states another number."""
    path = paths.manifest(meta.file_name)
    entries = MANIFEST_CACHE.get(path)
    if entries is None:
        entries = decode_manifest(_read(io, path), path)
        MANIFEST_CACHE.put(path, entries)
    promised = meta.num_added_files + meta.num_deleted_files
    if len(entries) != promised:
        raise FormatError(f"manifest {path} has {len(entries)} entries, {promised} are promised")
    return entries


def forget_unlisted_manifests(paths: TablePaths, metas: Sequence[ManifestFileMeta]) -> None:
    """Drop the table's manifests from the cache, except those of its newest list."""
    listed = {paths.manifest(meta.file_name) for meta in metas}
    MANIFEST_CACHE.retain(paths.manifest_dir, listed)


def write_manifests(
    table: FileStoreTable, entries: Sequence[ManifestEntry]
) -> tuple[ManifestFileMeta, ...]:
    """Write entries to manifests of about `manifest.target-file-size`; none for no entries."""
    if not entries:
        return ()
    target = table.options.manifest_target_file_size
    return tuple(_write_manifest(table, part, data) for part, data in _rolled(entries, target))


def read_index_manifest(io: FileIO, paths: TablePaths, name: str) -> list[IndexManifestEntry]:
    """Return the index files of a snapshot."""
    path = paths.manifest(name)
    return decode_index_manifest(_read(io, path), path)


def write_index_manifest(
    table: FileStoreTable,
    entries: IndexEntries,
    repeated: Sequence[IndexManifestEntry] = (),
) -> str:
    """Write the complete list of index files; return the name of the index manifest."""
    name = f"index-manifest-{uuid.uuid4()}-0"
    records = [*entries.records(), *encode_index_records(repeated)]
    table.io.write_new(table.paths.manifest(name), pack_index_records(records))
    return name


def join_added(table: FileStoreTable, metas: Sequence[ManifestFileMeta]) -> ManifestFileMeta | None:
    """Join manifests without deletions into one by copying their blocks; return its metadata.

    Returns None, and writes nothing, if the entries have to be decoded.
    """
    if any(meta.num_deleted_files for meta in metas):
        return None
    paths = (table.paths.manifest(meta.file_name) for meta in metas)
    joined = join_manifests(_read(table.io, path) for path in paths)
    if joined is None or joined[0] != sum(meta.num_added_files for meta in metas):
        return None
    name = f"manifest-{uuid.uuid4()}-0"
    table.io.write_new(table.paths.manifest(name), joined[1])
    return joined_meta(table.partition_types, metas, name, len(joined[1]))


def _rolled(
    entries: Sequence[ManifestEntry], target: int
) -> Iterator[tuple[Sequence[ManifestEntry], bytes]]:
    """Yield consecutive entries whose bytes reach the target size, then the rest.

    Only the last may stay below the target: smaller ones would be merged again and again.
    """
    data = encode_manifest(entries)
    if len(data) <= target + target // 2:
        yield entries, data
        return
    count = -(-len(entries) * target * 11 // (10 * len(data)))
    start = 0
    while start < len(entries):
        part = entries[start : start + count]
        data = encode_manifest(part)
        if len(data) < target and start + count < len(entries):
            count += count // 5 + 1
            continue
        yield part, data
        start += count


def _write_manifest(
    table: FileStoreTable, entries: Sequence[ManifestEntry], data: bytes
) -> ManifestFileMeta:
    name = f"manifest-{uuid.uuid4()}-0"
    table.io.write_new(table.paths.manifest(name), data)
    reach(Point.MANIFEST_WRITTEN)
    deleted = sum(1 for entry in entries if entry.kind == FileKind.DELETE)
    buckets = [entry.bucket for entry in entries]
    levels = [entry.file.level for entry in entries]
    return ManifestFileMeta(
        file_name=name,
        file_size=len(data),
        num_added_files=len(entries) - deleted,
        num_deleted_files=deleted,
        partition_stats=partition_stats(table.partition_types, (e.partition for e in entries)),
        schema_id=max(entry.file.schema_id for entry in entries),
        min_bucket=min(buckets),
        max_bucket=max(buckets),
        min_level=min(levels),
        max_level=max(levels),
        min_row_id=None,
        max_row_id=None,
    )


def _read(io: FileIO, path: str) -> bytes:
    try:
        return io.read_bytes(path)
    except FileNotFoundError as error:
        message = f"{path} is missing: its snapshot was expired meanwhile, or the table is damaged"
        raise FormatError(message) from error


def partition_stats(types: Sequence[DataType], partitions: Iterable[bytes]) -> SimpleStats:
    """Return full (not truncated) bounds and null counts of serialized partition rows."""
    if not types:
        return EMPTY_STATS
    counts: dict[bytes, int] = {}
    for partition in partitions:
        counts[partition] = counts.get(partition, 0) + 1
    rows = [(deserialize_row(types, partition), count) for partition, count in counts.items()]
    minima: list[object] = []
    maxima: list[object] = []
    nulls: list[int | None] = []
    for column, data_type in enumerate(types):
        low, high = _bounds([row[column] for row, _ in rows], data_type)
        minima.append(low)
        maxima.append(high)
        nulls.append(sum(count for row, count in rows if row[column] is None))
    return SimpleStats(serialize_row(types, minima), serialize_row(types, maxima), tuple(nulls))


def joined_meta(
    types: Sequence[DataType], metas: Sequence[ManifestFileMeta], name: str, size: int
) -> ManifestFileMeta:
    """Return the metadata of a manifest joined from several; `types` of the partition.

    Unknown bounds stay unknown: bounds that are too narrow would hide files.
    """
    return ManifestFileMeta(
        file_name=name,
        file_size=size,
        num_added_files=sum(meta.num_added_files for meta in metas),
        num_deleted_files=sum(meta.num_deleted_files for meta in metas),
        partition_stats=_joined_stats(types, metas),
        schema_id=max(meta.schema_id for meta in metas),
        min_bucket=_least([meta.min_bucket for meta in metas]),
        max_bucket=_largest([meta.max_bucket for meta in metas]),
        min_level=_least([meta.min_level for meta in metas]),
        max_level=_largest([meta.max_level for meta in metas]),
        min_row_id=_least([meta.min_row_id for meta in metas]),
        max_row_id=_largest([meta.max_row_id for meta in metas]),
    )


def _joined_stats(types: Sequence[DataType], metas: Sequence[ManifestFileMeta]) -> SimpleStats:
    if not types:
        return EMPTY_STATS
    stats = [meta.partition_stats for meta in metas]
    entries = [meta.num_added_files + meta.num_deleted_files for meta in metas]
    lows = [deserialize_row(types, statistics.min_values) for statistics in stats]
    highs = [deserialize_row(types, statistics.max_values) for statistics in stats]
    minima: list[object] = []
    maxima: list[object] = []
    nulls: list[int | None] = []
    for column, data_type in enumerate(types):
        counts = [statistics.null_counts[column] for statistics in stats]
        low, high = [row[column] for row in lows], [row[column] for row in highs]
        # A manifest with values but without bounds makes the joined bounds unknown.
        bounds = zip(low, high, counts, entries, strict=True)
        unknown = any(None in (least, most) and n != all_ for least, most, n, all_ in bounds)
        minima.append(None if unknown else _bounds(low, data_type)[0])
        maxima.append(None if unknown else _bounds(high, data_type)[1])
        known = [count for count in counts if count is not None]
        nulls.append(sum(known) if len(known) == len(counts) else None)
    return SimpleStats(serialize_row(types, minima), serialize_row(types, maxima), tuple(nulls))


def _bounds(values: Iterable[object], data_type: DataType) -> tuple[object, object]:
    known = [value for value in values if value is not None]
    if not known or data_type.root in _NO_BOUNDS:
        return None, None
    return min(known), max(known)  # type: ignore[type-var]  # one column, one comparable type


def _least(bounds: Sequence[int | None]) -> int | None:
    known = [bound for bound in bounds if bound is not None]
    return min(known) if len(known) == len(bounds) else None


def _largest(bounds: Sequence[int | None]) -> int | None:
    known = [bound for bound in bounds if bound is not None]
    return max(known) if len(known) == len(bounds) else None
