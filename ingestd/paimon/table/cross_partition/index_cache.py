"""Key indexes cached between the batches of a pipeline, by table and subset of keys.

An index belongs to a snapshot. The changes of a batch produce a pending successor, which becomes
valid when a snapshot contains the files of the batch: a batch that failed or was repeated has no
effect on the cache.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#cross-partitions-upsert
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field

from ingestd.paimon.spec.key_fingerprints import KeyFingerprints
from ingestd.paimon.spec.snapshot import CommitKind, Snapshot
from ingestd.paimon.table.cross_partition.key_index import KeyIndex
from ingestd.paimon.table.cross_partition.load_key_index import KeyShare, advanced_index, load_index
from ingestd.paimon.table.metadata.file_store_scan import delta_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot, read_snapshot
from ingestd.paimon.table.metadata.table_state import is_same_snapshot

INDEX_CACHE_BYTES = 64 << 20
"""Default limit in bytes of the cached indexes."""

_MAX_STEPS = 32
"""A cached index that is more snapshots older than this is not advanced, but loaded again."""
_MAX_PENDING = 4

_Key = tuple[str, str, tuple[str, ...], KeyShare]


@dataclass(slots=True)
class _CachedIndex:
    """The index as of a snapshot (None: before the first one), and its pending successors.

    `pending` pairs the names of a batch's data files with the index after this batch.
    """

    snapshot: Snapshot | None
    index: KeyIndex
    pending: list[tuple[frozenset[str], KeyIndex]] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        return max(
            key_index.nbytes for key_index in (self.index, *(index for _, index in self.pending))
        )


class IndexCache:
    """A cache of key indexes by table and subset of keys; evicts the least recently used index.

    It holds at most `max_bytes` bytes of indexes. `lookups` counts the calls of `open` for a
    snapshot, by "hit" and "miss".
    """

    def __init__(self, max_bytes: int) -> None:
        self.lookups: Counter[str] = Counter()
        self._max_bytes = max_bytes
        self._kept: OrderedDict[_Key, _CachedIndex] = OrderedDict()
        self._lock = threading.Lock()

    def limit(self, max_bytes: int) -> None:
        """Set the limit in bytes, and evict indexes above it."""
        with self._lock:
            self._max_bytes = max_bytes
            self._evict()

    def open(
        self,
        table: FileStoreTable,
        snapshot_id: int | None,
        share: KeyShare,
        needed: KeyFingerprints,
    ) -> KeyIndex:
        """Return the index of the subset `share` of a table's keys as of a snapshot.

        If `snapshot_id` is None, returns the index of the empty table. If all keys of the subset
        exceed the limit in bytes, the index contains only keys that may be among `needed`, and is
        not cached. Raises FormatError for damaged files of the table.
        """
        if snapshot_id is None:
            return self._keep(table, share, _CachedIndex(None, KeyIndex()))
        with self._lock:
            kept = self._kept.get(_key(table, share))
        carried = kept and _carried(table, kept, snapshot_id, share)
        self.lookups["hit" if carried else "miss"] += 1
        if carried:
            return self._keep(table, share, carried)
        snapshot = read_snapshot(table.io, table.paths, snapshot_id)
        index, whole = load_index(table, snapshot, share, self._max_bytes, needed)
        if whole:
            return self._keep(table, share, _CachedIndex(snapshot, index))
        with self._lock:
            self._kept.pop(_key(table, share), None)
        return index

    def note(
        self, table: FileStoreTable, share: KeyShare, files: Collection[str], index: KeyIndex
    ) -> None:
        """Cache an index that becomes valid as soon as a snapshot contains the data files `files`.

        `files` are file names. Nothing is cached unless the cache already has an index of the
        subset `share` of the table's keys.
        """
        with self._lock:
            kept = self._kept.get(_key(table, share))
            if kept is not None:
                kept.pending = [*kept.pending, (frozenset(files), index)][-_MAX_PENDING:]

    @property
    def nbytes(self) -> int:
        """The size of the cached indexes in bytes."""
        return sum(kept.nbytes for kept in self._kept.values())

    def _keep(self, table: FileStoreTable, share: KeyShare, kept: _CachedIndex) -> KeyIndex:
        with self._lock:
            self._kept[_key(table, share)] = kept
            self._kept.move_to_end(_key(table, share))
            self._evict()
        return kept.index

    def _evict(self) -> None:
        while self._kept and self.nbytes > self._max_bytes:
            self._kept.popitem(last=False)


INDEX_CACHE = IndexCache(INDEX_CACHE_BYTES)


def _key(table: FileStoreTable, share: KeyShare) -> _Key:
    # Keys of another type have other fingerprints.
    types = tuple(str(field.type) for field in table.schema.select(table.schema.primary_keys))
    return table.path, table.branch, types, share


def _carried(
    table: FileStoreTable, kept: _CachedIndex, snapshot_id: int, share: KeyShare
) -> _CachedIndex | None:
    """Return the cached index advanced to a later snapshot, or None if it must be loaded again."""
    first = kept.snapshot.id if kept.snapshot else 0
    if not 0 <= snapshot_id - first <= _MAX_STEPS:
        return None
    if kept.snapshot is not None:
        stored = find_snapshot(table.io, table.paths, first)
        if stored is None or not is_same_snapshot(stored, kept.snapshot):
            return None
    for step in range(first + 1, snapshot_id + 1):
        snapshot = find_snapshot(table.io, table.paths, step)
        if snapshot is None or snapshot.commit_kind == CommitKind.OVERWRITE:
            return None
        if snapshot.commit_kind == CommitKind.APPEND:
            kept = _CachedIndex(snapshot, _after(table, kept, snapshot, share))
        else:
            kept = _CachedIndex(snapshot, kept.index, kept.pending)
    return kept


def _after(
    table: FileStoreTable, kept: _CachedIndex, snapshot: Snapshot, share: KeyShare
) -> KeyIndex:
    added = {entry.file.file_name for entry in delta_entries(table, snapshot)}
    for files, index in kept.pending:
        if not files.isdisjoint(added):
            return index
    return advanced_index(table, snapshot, share, kept.index)
