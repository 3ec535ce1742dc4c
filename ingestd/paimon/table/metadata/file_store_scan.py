"""Read manifests: lists, entries, index manifests, and the live data files of a snapshot.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#data-manifest

Manifests are immutable. A process may cache them in `MANIFEST_CACHE`; by default its limit is 0.
Manifests that cannot contain one of a set of partitions or buckets are not opened.
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
"""A set of serialized partition rows, or a predicate on the values of a partition: a tuple of
Python values in the order of the partition keys.
"""


class ManifestCache:
    """A cache of manifests by path, with a limited number of entries.

    The least recently used manifests are evicted. An entry with 1 KiB or more of keys, statistics
    and embedded file indexes counts as several.
    """

    def __init__(self, max_entries: int = 0) -> None:
        self._max_entries = max_entries
        self._count = 0
        self._manifests: OrderedDict[str, tuple[Sequence[ManifestEntry], int]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def entries(self) -> int:
        """The number of cached manifest entries; a large entry counts as several."""
        return self._count

    def limit(self, max_entries: int) -> None:
        """Set the maximum number of entries, and drop manifests until it is not exceeded."""
        with self._lock:
            self._max_entries = max_entries
            self._drop_oldest()

    def get(self, path: str) -> Sequence[ManifestEntry] | None:
        """Return the entries of a manifest in order, or None if they are not cached."""
        with self._lock:
            cached = self._manifests.get(path)
            if cached is None:
                return None
            self._manifests.move_to_end(path)
            return cached[0]

    def put(self, path: str, entries: Sequence[ManifestEntry]) -> None:
        """Cache the entries of a manifest; older manifests are evicted if the limit is exceeded.

        Nothing is cached if the entries exceed the limit by themselves.
        """
        count = sum(map(_entries_counted, entries))
        with self._lock:
            if path in self._manifests or count > self._max_entries:
                return
            self._manifests[path] = (entries, count)
            self._count += count
            self._drop_oldest()

    def retain(self, folder: str, paths: Container[str]) -> None:
        """Drop the manifests in a folder that are not among `paths`.

        Manifests that the newest snapshot no longer lists, because commits have merged them, are
        not read again and would only fill the cache.
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
    """Return the manifests of the manifest list with the file name `name`, in order.

    Raises FormatError if the file is missing, damaged, or shorter than `size` bytes (None: not
    checked).
    """
    path = paths.manifest(name)
    data = read_metadata_file(io, path)
    if size is not None and len(data) < size:
        raise FormatError(f"manifest list {path} has {len(data)} bytes, expected {size}")
    return decode_manifest_list(data, path)


def read_manifest(io: FileIO, paths: TablePaths, name: str) -> list[ManifestEntry]:
    """Return the entries of a manifest, in order, without using the cache.

    Raises FormatError if the manifest is missing or damaged.
    """
    path = paths.manifest(name)
    return decode_manifest(read_metadata_file(io, path), path)


def read_listed_manifest(
    io: FileIO, paths: TablePaths, meta: ManifestFileMeta
) -> Sequence[ManifestEntry]:
    """Return the entries of a listed manifest, in order, from the cache if possible.

    Raises FormatError if the manifest is missing, damaged, or has another number of entries than
    its list states.
    """
    path = paths.manifest(meta.file_name)
    entries = MANIFEST_CACHE.get(path)
    if entries is None:
        entries = decode_manifest(read_metadata_file(io, path), path)
        MANIFEST_CACHE.put(path, entries)
    expected = meta.num_added_files + meta.num_deleted_files
    if len(entries) != expected:
        raise FormatError(f"manifest {path} has {len(entries)} entries, expected {expected}")
    return entries


def forget_unlisted_manifests(paths: TablePaths, metas: Sequence[ManifestFileMeta]) -> None:
    """Drop a table's manifests from the cache, except `metas`, listed by its newest snapshot."""
    listed = {paths.manifest(meta.file_name) for meta in metas}
    MANIFEST_CACHE.retain(paths.manifest_dir, listed)


def read_index_manifest(io: FileIO, paths: TablePaths, name: str) -> list[IndexManifestEntry]:
    """Return the entries of an index manifest. Raises FormatError if it is missing or damaged."""
    path = paths.manifest(name)
    return decode_index_manifest(read_metadata_file(io, path), path)


def live_files(
    table: FileStoreTable,
    snapshot: Snapshot | None,
    *,
    partition_filter: PartitionFilter | None = None,
) -> list[ManifestEntry]:
    """Return the live files (ADD entries) of a snapshot in commit order; [] if `snapshot` is None.

    `partition_filter` (serialized partitions, or a test of partition values) restricts the result
    (None: no restriction). Raises FormatError if a manifest is missing or damaged.
    """
    if snapshot is None:
        return []
    manifests = snapshot_manifests(table, snapshot)
    return live_entries(table, manifests, partition_filter=partition_filter)


def live_entries(
    table: FileStoreTable,
    manifests: Sequence[ManifestFileMeta],
    *,
    partition_filter: PartitionFilter | None = None,
    buckets: Collection[int] | None = None,
) -> list[ManifestEntry]:
    """Return the live files (ADD entries) of manifests, in order.

    `manifests` are the manifests of the base list, then of the delta list. `partition_filter` and
    `buckets` restrict the result (None: no restriction). Raises FormatError if a manifest is
    missing or damaged.
    """
    entries = list(_matching_entries(table, manifests, partition_filter, buckets))
    return [entry for entry in fold_entries(entries) if entry.kind == FileKind.ADD]


def snapshot_manifests(table: FileStoreTable, snapshot: Snapshot) -> list[ManifestFileMeta]:
    """Return all manifests of a snapshot, first of its base list, then of its delta list.

    Raises FormatError if a list is missing or damaged.
    """
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
    """Return the manifests that may list files of partitions that match a predicate.

    `on_partition` refers to partition columns only (None: all manifests are returned).
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
    table: FileStoreTable, partition_filter: PartitionFilter | None
) -> Callable[[bytes], bool]:
    """Return a function that tests if a serialized partition matches a filter (None: all match).

    A filter is a collection of serialized partitions, or a test of partition values.
    """
    return _PartitionTest(table, partition_filter)


def delta_entries(table: FileStoreTable, snapshot: Snapshot) -> list[ManifestEntry]:
    """Return the ADD and DELETE entries that a snapshot itself adds, in order, not folded.

    Raises FormatError if a manifest is missing or damaged.
    """
    return _list_entries(table, snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)


def changelog_entries(table: FileStoreTable, snapshot: Snapshot) -> list[ManifestEntry]:
    """Return the entries of the changelog files of a snapshot, in order; [] if it has no changelog.

    Raises FormatError if a manifest is missing or damaged.
    """
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
    test = _PartitionTest(table, partition_filter)
    for meta in manifests:
        if not (test.may_be_in(meta) and _bucket_may_be_in(meta, buckets)):
            continue
        for entry in read_listed_manifest(table.io, table.paths, meta):
            if (buckets is None or entry.bucket in buckets) and test(entry.partition):
                yield entry


def _bucket_may_be_in(meta: ManifestFileMeta, buckets: Collection[int] | None) -> bool:
    if buckets is None or meta.min_bucket is None or meta.max_bucket is None:
        return True
    return any(meta.min_bucket <= bucket <= meta.max_bucket for bucket in buckets)


class PartitionBounds:
    """Tests by its partition bounds whether a manifest may contain files of some partitions.

    `partitions` are serialized rows.
    """

    def __init__(self, table: FileStoreTable, partitions: Collection[bytes]) -> None:
        self._types = table.partition_types
        self._values = [deserialize_row(self._types, partition) for partition in partitions]

    def may_be_in(self, meta: ManifestFileMeta) -> bool:
        """Return whether a manifest may contain files of one of the partitions."""
        if not self._types:
            return bool(self._values)
        low = deserialize_row(self._types, meta.partition_stats.min_values)
        high = deserialize_row(self._types, meta.partition_stats.max_values)
        return any(all(map(_may_contain, values, low, high)) for values in self._values)


class _PartitionTest:
    """A partition filter with cached results, because partitions repeat in every manifest."""

    def __init__(self, table: FileStoreTable, partition_filter: PartitionFilter | None) -> None:
        self._types = table.partition_types
        self._predicate = partition_filter if callable(partition_filter) else None
        self._known: dict[bytes, bool] = {}
        self._partitions: frozenset[bytes] | None = None
        self._bounds: PartitionBounds | None = None
        if partition_filter is not None and not callable(partition_filter):
            self._partitions = frozenset(partition_filter)
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
    # Negated, so that NaN, which Java orders after all other numbers, excludes nothing.
    return not (value < low or value > high)  # type: ignore[operator]  # values of one column


def read_metadata_file(io: FileIO, path: str) -> bytes:
    """Return the bytes of a manifest or manifest list. Raises FormatError if it does not exist."""
    try:
        return io.read_bytes(path)
    except FileNotFoundError as error:
        message = f"{path} is missing: its snapshot has expired meanwhile, or the table is damaged"
        raise FormatError(message) from error
