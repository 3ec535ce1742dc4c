"""Rebuild missing or corrupt hash indexes of dynamic buckets from the data files.

Correct indexes are kept. New indexes are committed in one COMPACT snapshot without data changes,
and only if the index of these partitions has not changed. The next commit of a concurrent writer
that relied on a replaced index fails, and the writer plans again.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/tableindex/#dynamic-bucket-index
"""

import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ingestd.errors import ConfigError, FormatError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.index_manifest import HASH_INDEX, IndexManifestEntry
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.options import BucketMode, bucket_mode, refuse_unsupported
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot, carried_properties
from ingestd.paimon.table.buckets.hash_index import (
    Hashes,
    is_among,
    load_hashes,
    write_hash_index,
)
from ingestd.paimon.table.metadata.file_store_scan import (
    PartitionFilter,
    live_entries,
    snapshot_manifests,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_paths import index_path
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import (
    TableState,
    load_state,
    max_sequence_of,
    newest_record,
)
from ingestd.paimon.table.rewrite.bucket_keys import SharedHash, shared_hashes, stored_hashes
from ingestd.paimon.table.rewrite.duplicate_keys import Dropped, drop_older, refuse_undecided
from ingestd.paimon.table.rewrite.rewrite_commit import commit_rewrite, retry_lost, written_messages
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable

_Files = dict[int, list[DataFileMeta]]
_NONE = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class WrongIndex:
    """The correct hashes of a bucket, and what is wrong with its stored index.

    `partition` is the serialized row. `missing` is the number of hashes that the stored index
    lacks, `foreign` the number of its hashes that belong to another bucket. `problem` states why
    the stored index cannot be used (None: it can be used).
    """

    partition: bytes
    bucket: int
    hashes: Hashes = field(repr=False)
    missing: int
    foreign: int
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class IndexRepair:
    """The rebuilt indexes, or in a dry run, the indexes to rebuild.

    `buckets` is the number of checked buckets, `wrong` has the wrong indexes, and `shared` the
    hashes that occur in several buckets, each with its partition. `snapshot` is None if no index
    was rebuilt. `dropped` is the deletion of older rows of keys in several buckets (None: not
    requested, or a dry run). `entries` are the live files that were checked.
    """

    buckets: int
    wrong: tuple[WrongIndex, ...] = ()
    shared: tuple[tuple[bytes, SharedHash], ...] = ()
    snapshot: Snapshot | None = None
    dropped: Dropped | None = None
    entries: tuple[ManifestEntry, ...] = field(default=(), repr=False)


def repair_hash_index(
    table: FileStoreTable,
    *,
    now_ms: int,
    partition_filter: PartitionFilter | None = None,
    dry_run: bool = False,
    drop_doubled: bool = False,
) -> IndexRepair:
    """Rebuild the wrong hash indexes of a table; memory holds one partition at a time.

    Keys in several buckets are only reported: their rows stay, and new rows are written to the
    bucket of the newest row. With `drop_doubled` their older rows are deleted by a second snapshot.
    With `dry_run`, nothing is changed. `partition_filter` selects partitions (None: all). Raises
    ConfigError for a table without a hash index, and with `drop_doubled` also for a table whose
    newest rows do not replace older rows; UnsupportedError for a table that cannot be written;
    FormatError for damaged data files; CommitConflictError if other writers committed first three
    times. The written files are then deleted.
    """
    if bucket_mode(table.schema) is not BucketMode.HASH_DYNAMIC:
        raise ConfigError(
            f"table {table.name} has no hash index: only tables with 'bucket' = '-1' whose primary "
            "key holds the partition keys do"
        )
    refuse_unsupported(table.schema, for_write=not dry_run)
    if drop_doubled:
        refuse_undecided(table)

    def repair() -> IndexRepair:
        state = _state(table, partition_filter)
        plan = _plan(table, state, partition_filter)
        return plan if dry_run else _done(table, state, plan, now_ms, drop_doubled=drop_doubled)

    return retry_lost(table, "index_repair_lost", repair)


def _done(
    table: FileStoreTable, state: TableState, plan: IndexRepair, now_ms: int, *, drop_doubled: bool
) -> IndexRepair:
    """Commit a planned repair; return it with its snapshot and deletions.

    The index is committed first, so that no writer adds a key of several buckets to another bucket.
    """
    if plan.wrong:
        plan = replace(plan, snapshot=_commit(table, state, plan.wrong, now_ms))
    if drop_doubled:
        dropped = drop_older(table, plan.entries, plan.shared, now_ms=now_ms)
        plan = replace(plan, dropped=dropped)
    return plan


def _state(table: FileStoreTable, wanted: PartitionFilter | None) -> TableState:
    """Return the table's state, without index files if the index manifest is missing."""
    try:
        return load_state(table)
    except FormatError:
        snapshot = latest_snapshot(table.io, table.paths)
        name = snapshot.index_manifest if snapshot else None
        if snapshot is None or name is None or table.io.exists(table.paths.manifest(name)):
            raise
        vectors = honoured.DELETION_VECTORS.of(table.schema.options)
        if wanted is not None or vectors:
            # The other index files that it lists would be lost for good.
            raise
        manifests = tuple(snapshot_manifests(table, snapshot))
        largest = max_sequence_of(live_entries(table, manifests))
        record = newest_record(table, snapshot, "")
        carried = carried_properties(record) if record else {}
        return TableState(snapshot, manifests, max_sequence_number=largest, carried=carried)


def _plan(table: FileStoreTable, state: TableState, wanted: PartitionFilter | None) -> IndexRepair:
    files: dict[bytes, _Files] = defaultdict(lambda: defaultdict(list))
    entries = tuple(live_entries(table, state.manifests, partition_filter=wanted))
    for entry in entries:
        files[entry.partition][entry.bucket].append(entry.file)
    wrong: list[WrongIndex] = []
    shared: list[tuple[bytes, SharedHash]] = []
    for partition, by_bucket in files.items():
        stored = {
            bucket: stored_hashes(table, partition, bucket, own)
            for bucket, own in sorted(by_bucket.items())
        }
        keys = shared_hashes(table, partition, by_bucket, stored)
        shared += [(partition, key) for key in keys]
        wrong += _wrong(table, partition, _owned(stored, keys), _entries(state, partition))
    count = sum(map(len, files.values()))
    return IndexRepair(count, tuple(wrong), tuple(shared), entries=entries)


def _entries(state: TableState, partition: bytes) -> dict[int, list[IndexManifestEntry]]:
    """Return the hash index entries of a partition by bucket; a valid bucket has one entry."""
    by_bucket: dict[int, list[IndexManifestEntry]] = defaultdict(list)
    for entry in state.index_of(partition):
        if entry.index_type == HASH_INDEX:
            by_bucket[entry.bucket].append(entry)
    return by_bucket


def _owned(stored: Mapping[int, Hashes], shared: Sequence[SharedHash]) -> dict[int, Hashes]:
    """Return the hashes of each bucket, without hashes that another bucket owns."""
    owned = dict(stored)
    for bucket, hashes in stored.items():
        others = [key.hash for key in shared if bucket in key.buckets and key.owner != bucket]
        if others:
            owned[bucket] = hashes[~np.isin(hashes, np.array(others, np.int32))]
    return owned


def _wrong(
    table: FileStoreTable,
    partition: bytes,
    owned: Mapping[int, Hashes],
    entries: Mapping[int, Sequence[IndexManifestEntry]],
) -> Iterator[WrongIndex]:
    for bucket in sorted({*owned, *entries}):
        right = owned.get(bucket, _NONE)
        indexed, problem = _indexed_hashes(table, entries.get(bucket, ()))
        missing = int(np.count_nonzero(~is_among(right, indexed)))
        elsewhere = indexed[~is_among(indexed, right)]
        others = owned.values() if len(elsewhere) else ()
        foreign = sum(int(np.count_nonzero(is_among(elsewhere, own))) for own in others)
        if missing or foreign or problem is not None:
            yield WrongIndex(partition, bucket, right, missing, foreign, problem)


def _indexed_hashes(
    table: FileStoreTable, entries: Sequence[IndexManifestEntry]
) -> tuple[Hashes, str | None]:
    """Return the hashes in the index of a bucket, and the reason why the index cannot be used.

    The reason is None if it can be used; otherwise no hashes are returned.
    """
    if not entries:
        return _NONE, "does not exist"
    if len(entries) > 1:
        return _NONE, f"has {len(entries)} index files"
    try:
        # The file is checked, not the cache: the file may be missing.
        (entry,) = entries
        size = table.io.size(index_path(table, entry))
        if size != entry.file_size:
            return _NONE, f"has {size} bytes, expected {entry.file_size}"
        hashes = load_hashes(table, entry)
    except (FileNotFoundError, FormatError) as error:
        return _NONE, "is missing" if isinstance(error, FileNotFoundError) else error.message
    if bool((hashes[1:] == hashes[:-1]).any()):
        return _NONE, "holds a hash twice"
    return hashes, None


def _commit(
    table: FileStoreTable, state: TableState, wrong: Sequence[WrongIndex], now_ms: int
) -> Snapshot | None:
    """Write and commit the rebuilt index files; return the snapshot, or None if none was committed.

    On an error the files are deleted, unless the commit may have succeeded.
    """
    messages = written_messages(table, _rebuilt(table, state, wrong))
    committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, messages)
    return commit_rewrite(table, committable, state=state, now_ms=now_ms).snapshot


def _rebuilt(
    table: FileStoreTable, state: TableState, wrong: Sequence[WrongIndex]
) -> Iterator[CommitMessage]:
    stem = uuid.uuid4()
    for number, index in enumerate(wrong):
        name = f"index-{stem}-{number}"
        entry = write_hash_index(table, index.partition, index.bucket, name, index.hashes)
        old = _entries(state, index.partition)[index.bucket]
        removed = tuple(old_entry.file_name for old_entry in old)
        bucket_key = (index.partition, index.bucket, -1)
        yield CommitMessage(*bucket_key, new_index_files=(entry,), removed_index_files=removed)
