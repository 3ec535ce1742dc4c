"""Read manifests: lists, entries, index manifests, and the live data files of a snapshot.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#data-manifest

Manifests are immutable. A process may cache them in `MANIFEST_CACHE`; by default its limit is 0.
Manifests that cannot contain a wanted partition or bucket are not opened.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence

from ingestd.errors import FormatError
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.data_file import SimpleStats
from ingestd.paimon.spec.index_manifest import (
    IndexManifestEntry,
    decode_index_manifest,
)
from ingestd.paimon.spec.manifest import (
    FileKind,
    ManifestEntry,
    ManifestFileMeta,
    decode_manifest,
    decode_manifest_list,
    fold_entries,
)
from ingestd.paimon.spec.paths import TablePaths
from ingestd.paimon.spec.predicate import Predicate
from ingestd.paimon.spec.predicate_stats import may_match, stats_test
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_stats import manifest_partition_stats
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

_ENTRY_BYTES = 1024
PartitionFilter = Collection[bytes] | Callable[[tuple[object, ...]], bool]
"""Serialized partition rows to keep, or a predicate on the partition's values (as Python values of
the partition columns, in the order of the partition keys).
"""


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
            cached = self._manifests.get(path)
            if cached is None:
                return None
            self._manifests.move_to_end(path)
            return cached[0]

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
"""Cached manifests of this process, shared by all tables."""


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
    """Return the manifests of a list, in order; FormatError if it is not `size` bytes long."""
    path = paths.manifest(name)
    data = read_metadata_file(io, path)
    if size is not None and len(data) < size:
        raise FormatError(f"manifest list {path} has {len(data)} bytes, {size} are promised")
    return decode_manifest_list(data, path)


def read_manifest(io: FileIO, paths: TablePaths, name: str) -> list[ManifestEntry]:
    """Return the entries of a manifest, in order."""
    path = paths.manifest(name)
    return decode_manifest(read_metadata_file(io, path), path)


def read_listed_manifest(
    io: FileIO, paths: TablePaths, meta: ManifestFileMeta
) -> Sequence[ManifestEntry]:
    """Return the entries of a listed manifest; FormatError if the list states another count."""
    path = paths.manifest(meta.file_name)
    entries = MANIFEST_CACHE.get(path)
    if entries is None:
        entries = decode_manifest(read_metadata_file(io, path), path)
        MANIFEST_CACHE.put(path, entries)
    promised = meta.num_added_files + meta.num_deleted_files
    if len(entries) != promised:
        raise FormatError(f"manifest {path} has {len(entries)} entries, {promised} are promised")
    return entries


def forget_unlisted_manifests(paths: TablePaths, metas: Sequence[ManifestFileMeta]) -> None:
    """Drop the table's manifests from the cache, except those of its newest list."""
    listed = {paths.manifest(meta.file_name) for meta in metas}
    MANIFEST_CACHE.retain(paths.manifest_dir, listed)


def read_index_manifest(io: FileIO, paths: TablePaths, name: str) -> list[IndexManifestEntry]:
    """Return the index files of a snapshot."""
    path = paths.manifest(name)
    return decode_index_manifest(read_metadata_file(io, path), path)


def live_files(
    table: FileStoreTable,
    snapshot: Snapshot | None,
    *,
    partition_filter: PartitionFilter | None = None,
    buckets: Collection[int] | None = None,
) -> list[ManifestEntry]:
    """Return live files (ADD entries) of a snapshot in commit order; [] for a table without one."""
    if snapshot is None:
        return []
    return live_entries(
        table,
        snapshot_manifests(table, snapshot),
        partition_filter=partition_filter,
        buckets=buckets,
    )


def live_entries(
    table: FileStoreTable,
    manifests: Sequence[ManifestFileMeta],
    *,
    partition_filter: PartitionFilter | None = None,
    buckets: Collection[int] | None = None,
) -> list[ManifestEntry]:
    """Return live files of manifests given in order (base before delta)."""
    entries = list(_matching_entries(table, manifests, partition_filter, buckets))
    return [entry for entry in fold_entries(entries) if entry.kind == FileKind.ADD]


def snapshot_manifests(table: FileStoreTable, snapshot: Snapshot) -> list[ManifestFileMeta]:
    """Return all manifests of a snapshot, base before delta."""
    io, paths = table.io, table.paths
    return [
        *read_manifest_list(
            io, paths, snapshot.base_manifest_list, snapshot.base_manifest_list_size
        ),
        *read_manifest_list(
            io, paths, snapshot.delta_manifest_list, snapshot.delta_manifest_list_size
        ),
    ]


def prune_manifests(
    table: FileStoreTable, manifests: Sequence[ManifestFileMeta], on_partition: Predicate | None
) -> list[ManifestFileMeta]:
    """Return the manifests that may contain files of partitions matching a predicate.

    `on_partition` refers to partition columns only.
    """
    if on_partition is None:
        return list(manifests)
    return [
        meta
        for meta in manifests
        if may_match(
            on_partition, stats_test(manifest_partition_stats(table, meta.partition_stats))
        )
    ]


def partition_test(
    table: FileStoreTable, wanted: PartitionFilter | None
) -> Callable[[bytes], bool]:
    """Return a test whether a serialized partition matches a filter; None: all match."""
    return _PartitionTest(table, wanted)


def delta_entries(table: FileStoreTable, snapshot: Snapshot) -> list[ManifestEntry]:
    """Return the entries that a snapshot added and deleted, in order, not folded."""
    return _list_entries(table, snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)


def changelog_entries(table: FileStoreTable, snapshot: Snapshot) -> list[ManifestEntry]:
    """Return the changelog files of a snapshot, in order; [] if it has none."""
    name = snapshot.changelog_manifest_list
    size = snapshot.changelog_manifest_list_size
    return [] if name is None else _list_entries(table, name, size)


def _list_entries(table: FileStoreTable, name: str, size: int | None) -> list[ManifestEntry]:
    metas = read_manifest_list(table.io, table.paths, name, size)
    return list(_matching_entries(table, metas, None, None))


def _matching_entries(
    table: FileStoreTable,
    manifests: Iterable[ManifestFileMeta],
    partition_filter: PartitionFilter | None,
    buckets: Collection[int] | None,
) -> Iterator[ManifestEntry]:
    wanted = _PartitionTest(table, partition_filter)
    for meta in manifests:
        if not (wanted.may_be_in(meta) and _bucket_may_be_in(meta, buckets)):
            continue
        for entry in read_listed_manifest(table.io, table.paths, meta):
            if (buckets is None or entry.bucket in buckets) and wanted(entry.partition):
                yield entry


def _bucket_may_be_in(meta: ManifestFileMeta, buckets: Collection[int] | None) -> bool:
    if buckets is None or meta.min_bucket is None or meta.max_bucket is None:
        return True
    return any(meta.min_bucket <= bucket <= meta.max_bucket for bucket in buckets)


class PartitionBounds:
    """A set of serialized partitions, to be compared with the bounds of manifests."""

    def __init__(self, table: FileStoreTable, partitions: Collection[bytes]) -> None:
        self._types = table.partition_types
        self._values = [deserialize_row(self._types, partition) for partition in partitions]

    def may_be_in(self, meta: ManifestFileMeta) -> bool:
        """Return False only if the bounds exclude every partition of the set."""
        if not self._types:
            return bool(self._values)
        low = deserialize_row(self._types, meta.partition_stats.min_values)
        high = deserialize_row(self._types, meta.partition_stats.max_values)
        return any(all(map(_may_contain, values, low, high)) for values in self._values)


class _PartitionTest:
    """A partition filter with cached results, because partitions repeat in every manifest."""

    def __init__(self, table: FileStoreTable, wanted: PartitionFilter | None) -> None:
        self._types = table.partition_types
        self._predicate = wanted if callable(wanted) else None
        self._known: dict[bytes, bool] = {}
        self._partitions: frozenset[bytes] | None = None
        self._bounds: PartitionBounds | None = None
        if wanted is not None and not callable(wanted):
            self._partitions = frozenset(wanted)
            self._bounds = PartitionBounds(table, self._partitions)

    def __call__(self, partition: bytes) -> bool:
        if self._partitions is not None:
            return partition in self._partitions
        if self._predicate is None:
            return True
        if partition not in self._known:
            self._known[partition] = self._predicate(deserialize_row(self._types, partition))
        return self._known[partition]

    def may_be_in(self, meta: ManifestFileMeta) -> bool:
        return self._bounds is None or self._bounds.may_be_in(meta)


def _may_contain(value: object, low: object, high: object) -> bool:
    if value is None or low is None or high is None:
        return True
    return bool(low <= value <= high)  # type: ignore[operator]  # values of one column


def read_metadata_file(io: FileIO, path: str) -> bytes:
    """Return the bytes of a manifest or manifest list; FormatError if it does not exist."""
    try:
        return io.read_bytes(path)
    except FileNotFoundError as error:
        message = f"{path} is missing: its snapshot was expired meanwhile, or the table is damaged"
        raise FormatError(message) from error
