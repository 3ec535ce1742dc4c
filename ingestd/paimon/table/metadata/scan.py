"""List the live data files of a snapshot, and the files that a snapshot added.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#data-manifest

Manifests that cannot hold a wanted partition or bucket are
not opened.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry, ManifestFileMeta, fold_entries
from ingestd.paimon.spec.predicate import Predicate
from ingestd.paimon.spec.predicate_stats import may_match, stats_test
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_stats import manifest_partition_stats
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.manifest_store import read_listed_manifest, read_manifest_list

PartitionFilter = Collection[bytes] | Callable[[tuple[object, ...]], bool]
"""Serialized partition rows to keep, or a predicate on the partition's values (as Python
values of the partition columns, in the order of the partition keys)."""


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
    entries = _matching_entries(table, manifests, partition_filter, buckets)
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
    """Return the manifests that may hold files of partitions for which a predicate is true.

    `on_partition` looks at partition columns only.
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
    """Return whether a filter keeps a serialized partition; without a filter all are kept."""
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
    """A set of serialized partitions, to compare with the bounds in a manifest's metadata."""

    def __init__(self, table: FileStoreTable, partitions: Collection[bytes]) -> None:
        self._types = table.partition_types
        self._values = [deserialize_row(self._types, partition) for partition in partitions]

    def may_be_in(self, meta: ManifestFileMeta) -> bool:
        """Return False only if the bounds exclude every partition of the set."""
        if not self._types:
            return bool(self._values)
        low = deserialize_row(self._types, meta.partition_stats.min_values)
        high = deserialize_row(self._types, meta.partition_stats.max_values)
        return any(all(map(_may_hold, values, low, high)) for values in self._values)


class _PartitionTest:
    """A partition filter with cached results: partitions repeat in every manifest."""

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


def _may_hold(value: object, low: object, high: object) -> bool:
    if value is None or low is None or high is None:
        return True
    return bool(low <= value <= high)  # type: ignore[operator]  # values of one column
