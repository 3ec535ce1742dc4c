"""Derive the changes of each snapshot from a committable, and check them for conflicts.

Specification: https://paimon.apache.org/docs/1.4/concepts/concurrency-control/#files-conflict

Appended files and compaction results of one committable become two snapshots, APPEND before
COMPACT, with the same commit identifier.

An append of new files is not checked against the live files: it can only conflict with changes of
the hash index or of the bucket count or, if keys move between partitions, with any other append.
Concurrent appends never conflict with a compaction. Two concurrent compactions of the same bucket
conflict even if no file is replaced by both: newer rows could get below older rows, or deletion
vectors could be lost.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ingestd.errors import CommitConflictError, SchemaConflictError, UnsupportedError
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec.binary_row import comparable_key
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.index_manifest import (
    DELETION_VECTORS_INDEX,
    HASH_INDEX,
    IndexManifestEntry,
)
from ingestd.paimon.spec.manifest import BucketKey, FileIdentifier, FileKind, ManifestEntry
from ingestd.paimon.spec.options import BucketMode, bucket_mode, core_options
from ingestd.paimon.spec.paths import POSTPONE_BUCKET
from ingestd.paimon.spec.schema_rules import bucket_number
from ingestd.paimon.spec.snapshot import CommitKind, Snapshot
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.files.data_file_indexes import index_file_path
from ingestd.paimon.table.files.data_files import live_path
from ingestd.paimon.table.metadata.file_store_scan import (
    PartitionFilter,
    live_entries,
    partition_test,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_entries import IndexEntries, index_key, split_index_entries
from ingestd.paimon.table.metadata.index_paths import index_path
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot
from ingestd.paimon.table.metadata.table_state import TableState, steady_seconds
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from ingestd.wording import counted

LONG_COMMIT_SECONDS = 3 * 3600.0
"""A commit that takes longer than this checks that each of its files still exists."""


@dataclass(frozen=True, slots=True)
class SnapshotChange:
    """The file changes of one snapshot to commit; for an OVERWRITE, only the additions.

    `entries` are the changes of data files, `changelog` the new changelog files, and `index` the
    new index files. `replaced` are the partitions that an OVERWRITE empties (None: all), and
    `rewrites` the exact set of files that it must delete (None: not checked). `statistics` is the
    name of the statistics file of an ANALYZE. `removed_index_files` are the names of index files
    that a COMPACT removes. `expected_files` are, by partition and bucket, the names of the other
    files above level 0, which must be unchanged.
    """

    kind: CommitKind
    entries: tuple[ManifestEntry, ...] = ()
    changelog: tuple[ManifestEntry, ...] = ()
    index: tuple[IndexManifestEntry, ...] = ()
    replaced: PartitionFilter | None = None
    rewrites: frozenset[FileIdentifier] | None = None
    statistics: str | None = None
    removed_index_files: frozenset[str] = frozenset()
    expected_files: Mapping[BucketKey, frozenset[str]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the change has no files; an OVERWRITE or ANALYZE is never empty."""
        never_empty = self.kind in (CommitKind.OVERWRITE, CommitKind.ANALYZE)
        files = self.entries or self.changelog or self.index or self.removed_index_files
        return not (files or never_empty)

    @property
    def relies_on_hash_index(self) -> bool:
        """Whether the change may be based on the hash index, which then must not have changed.

        This is false for an OVERWRITE, and for a COMPACT without new hash indexes.
        """
        if self.kind == CommitKind.COMPACT:
            return any(entry.index_type == HASH_INDEX for entry in self.index)
        return self.kind != CommitKind.OVERWRITE

    @property
    def partitions(self) -> frozenset[bytes]:
        """The partitions with added or deleted data files or added index files, as serialized rows.

        For an OVERWRITE, only partitions with additions are included.
        """
        files = (entry.partition for entry in self.entries)
        return frozenset((*files, *(entry.partition for entry in self.index)))


def plan_changes(committable: ManifestCommittable, *, allow_empty: bool) -> list[SnapshotChange]:
    """Return the changes of a committable, one per snapshot, in order.

    For an empty committable, returns [], or with `allow_empty` one empty APPEND. Raises
    UnsupportedError for index files other than the hash index of dynamic buckets and, in
    compactions, deletion vectors. Raises ValueError for an overwrite with compaction results, and
    for statistics together with files.
    """
    messages = committable.messages
    for message in messages:
        _check_index_types(message)
    if committable.overwrite:
        return [_overwrite(committable)]
    if committable.statistics is not None:
        return [_analyze(committable)]
    compact = _compact(messages)
    append_index = tuple(e for m in messages if _appends(m) for e in m.new_index_files)
    append = SnapshotChange(
        CommitKind.APPEND,
        tuple(e for m in messages for e in _entries(m, FileKind.ADD, m.new_files)),
        tuple(e for m in messages for e in _entries(m, FileKind.ADD, m.changelog_files)),
        append_index,
    )
    changes = [change for change in (append, compact) if not change.is_empty]
    return changes or ([append] if allow_empty else [])


def index_after(
    table: FileStoreTable, change: SnapshotChange, state: TableState
) -> tuple[IndexEntries, tuple[IndexManifestEntry, ...]]:
    """Return the index entries after a change of `state`: the first of each key, and all others.

    A key consists of partition, bucket and index type. Raises CommitConflictError if an index file
    to be removed is not in `state`, or if an index file to be replaced is one of several with its
    key.
    """
    if change.kind == CommitKind.OVERWRITE:
        return _index_overwritten(table, change, state)
    if change.removed_index_files:
        return _index_without(table, change, state)
    if not change.index:
        # The same object, so that the next commit detects by identity that the index is unchanged.
        return state.index_entries, state.repeated_index_entries
    repeated_keys = {index_key(entry) for entry in state.repeated_index_entries}
    for entry in change.index:
        if index_key(entry) in repeated_keys:
            raise CommitConflictError(
                f"table {table.name}: bucket {entry.bucket} has several {entry.index_type} index "
                f"files, so {entry.file_name} cannot take the place of one"
            )
    return state.index_entries.with_changes(change.index), state.repeated_index_entries


def check_own_files(table: FileStoreTable, change: SnapshotChange, planned_at: float) -> None:
    """Raise CommitConflictError if a file that the change adds does not exist.

    The removal of orphan files may delete old uncommitted files, and files on a local disk may be
    on the disk of another machine. Files on a local disk, and files of all changes but an APPEND,
    are always checked. Other files are checked only if the commit takes longer than
    `LONG_COMMIT_SECONDS`, because each check is a request. `planned_at` is the time in seconds, by
    `steady_seconds`, before which no file of the change was written.
    """
    cheap = isinstance(table.io, LocalFileIO) or change.kind != CommitKind.APPEND
    if not cheap and steady_seconds() - planned_at < LONG_COMMIT_SECONDS:
        return
    for path in _new_paths(table, change):
        if not table.io.exists(path):
            raise CommitConflictError(
                f"table {table.name}: {path} was written for this commit and does not exist: it "
                "was removed (by `ingestd remove-orphans` with a small --older-than), or written "
                "to the disk of another machine; nothing of this commit is visible, write again"
            )


def _new_paths(table: FileStoreTable, change: SnapshotChange) -> Iterator[str]:
    for entry in (*change.entries, *change.changelog):
        if entry.kind == FileKind.ADD:
            bucket = (table, entry.partition, entry.bucket, entry.file)
            yield live_path(*bucket)
            yield from (index_file_path(*bucket, name) for name in entry.file.extra_files)
    for index in change.index:
        yield index_path(table, index)
    if change.statistics is not None:
        yield table.paths.statistics(change.statistics)


def checked_entries(
    table: FileStoreTable, change: SnapshotChange, state: TableState
) -> tuple[ManifestEntry, ...]:
    """Check a change against the live files of `state`; return the manifest entries to commit.

    The entries of an OVERWRITE begin with the deletion of every live file of the partitions that it
    replaces. An APPEND is checked only if the bucket count was ever changed; otherwise no manifest
    is read. An ANALYZE is never checked.

    Raises CommitConflictError if the change conflicts with another commit, and SchemaConflictError
    if the option `bucket` was altered without a rescale.
    """
    if change.kind == CommitKind.ANALYZE:
        return change.entries
    if change.kind == CommitKind.APPEND and not was_rescaled(table):
        return change.entries
    if change.kind == CommitKind.OVERWRITE:
        live = live_entries(table, state.manifests, partition_filter=change.replaced)
        check_rewrites(table, live, change)
        entries = (*(replace(entry, kind=FileKind.DELETE) for entry in live), *change.entries)
        check_files(table, live, entries, same_buckets=False)
        return entries
    live = live_entries(table, state.manifests, partition_filter=change.partitions)
    check_files(table, live, change.entries)
    check_expected_files(table, live, change)
    return change.entries


def check_files(
    table: FileStoreTable,
    live: Iterable[ManifestEntry],
    delta: Sequence[ManifestEntry],
    *,
    same_buckets: bool = True,
) -> None:
    """Check the entries `delta` of a change against the live files of the changed partitions.

    A file must not be added twice, nor deleted if it is not live. With `same_buckets`, all files of
    a partition must have the same bucket count. In the changed buckets of a table with a primary
    key, key ranges of files of a level above 0 must not overlap. Raises SchemaConflictError if the
    option `bucket` was altered and the rows were not rescaled, and CommitConflictError for any
    other violation, after which the change can be planned again.
    """
    _check_delta(table, delta)
    merged = {entry.identifier: entry for entry in live}
    for entry in delta:
        if entry.kind == FileKind.DELETE:
            if merged.pop(entry.identifier, None) is None:
                raise _conflict(table, entry, "was removed by another commit")
        elif entry.identifier in merged:
            raise _conflict(table, entry, "is in the table already")
        else:
            merged[entry.identifier] = entry
    if same_buckets:
        _check_bucket_counts(table, merged.values())
    if table.schema.primary_keys:
        _check_key_ranges(table, merged.values(), {(e.partition, e.bucket) for e in delta})


def check_hash_index(
    table: FileStoreTable, planned: TableState, current: TableState, partitions: Collection[bytes]
) -> None:
    """Raise CommitConflictError if another writer changed the hash index of these partitions.

    `planned` is the state with which the change was planned, `current` the newest one. The change
    took its buckets from the index of `planned`, so a key could get into two buckets.
    """
    if planned.index_entries is current.index_entries:
        return
    before, after = _hash_files(planned), _hash_files(current)
    if any(before.get(partition) != after.get(partition) for partition in partitions):
        raise CommitConflictError(
            f"table {table.name}: another writer has changed the hash index of a partition of this "
            "commit; load the state again and write again (a dynamic-bucket table takes one writer)"
        )


def check_key_places(table: FileStoreTable, planned: TableState, current: TableState) -> None:
    """Raise CommitConflictError if another writer may have moved keys between partitions.

    `planned` is the state with which the change was planned, `current` the newest one. The change
    took the partitions of keys from `planned`, so a key could get rows in two partitions.
    """
    if bucket_mode(table.schema) is not BucketMode.KEY_DYNAMIC or current.snapshot is None:
        return
    first = planned.snapshot.id if planned.snapshot else 0
    for snapshot_id in range(first + 1, current.snapshot.id + 1):
        snapshot = find_snapshot(table.io, table.paths, snapshot_id)
        if snapshot is None or snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE):
            raise CommitConflictError(
                f"table {table.name}: another writer has written rows since this commit was "
                "planned, and keys may have moved between partitions; load the state again and "
                "write again (a table whose keys move between partitions takes one writer)"
            )


def check_bucket_option(table: FileStoreTable, latest: TableSchema) -> None:
    """Raise CommitConflictError if the option `bucket` differs between `table` and `latest`.

    `latest` is the newest schema; the files to commit were written with the schema of `table`.
    """
    ours, theirs = table.options.bucket, core_options(latest).bucket
    if ours != theirs:
        raise CommitConflictError(
            f"table {table.name}: option 'bucket' was changed from {ours} to {theirs} meanwhile; "
            "open the table again and write again"
        )


def was_rescaled(table: FileStoreTable) -> bool:
    """Return whether partitions may have another bucket count than the option `bucket` of `table`.

    They may if an older schema has another value of the option. Returns False for tables without a
    fixed number of buckets.
    """
    number = table.options.bucket
    older = (table.schemas(schema_id) for schema_id in range(table.schema.id))
    return number > 0 and any(bucket_number(schema.options) != number for schema in older)


def _check_delta(table: FileStoreTable, delta: Sequence[ManifestEntry]) -> None:
    added = {entry.identifier for entry in delta if entry.kind == FileKind.ADD}
    for entry in delta:
        if entry.kind == FileKind.DELETE and entry.identifier in added:
            raise _conflict(table, entry, "is both added and deleted by the commit")


def _check_bucket_counts(table: FileStoreTable, entries: Iterable[ManifestEntry]) -> None:
    counts: dict[bytes, int] = {}
    for entry in entries:
        if entry.total_buckets <= 0:
            continue
        known = counts.setdefault(entry.partition, entry.total_buckets)
        if known != entry.total_buckets:
            if entry.total_buckets == table.options.bucket:
                raise _not_rescaled(table, known)
            problem = (
                f"has {counted(entry.total_buckets, 'bucket')} where its partition has {known}"
            )
            raise _conflict(table, entry, problem)


def _not_rescaled(table: FileStoreTable, buckets: int) -> SchemaConflictError:
    number, warehouse = table.options.bucket, table.warehouse
    return SchemaConflictError(
        f"table {table.name}: option 'bucket' was altered to {number}, and rows still are in "
        f"{counted(buckets, 'bucket')}, so nothing can be written there; rewrite them with "
        f"`ingestd rescale "
        f"{warehouse} {table.name} --buckets {number}`, or set the option back to {buckets}"
    )


def _check_key_ranges(
    table: FileStoreTable,
    entries: Iterable[ManifestEntry],
    changed: Collection[BucketKey],
) -> None:
    types = [table.schema.field(name).type for name in table.schema.trimmed_primary_keys]
    runs: dict[tuple[bytes, int, int], list[ManifestEntry]] = defaultdict(list)
    for entry in entries:
        if entry.file.level >= 1 and (entry.partition, entry.bucket) in changed:
            runs[entry.partition, entry.bucket, entry.file.level].append(entry)
    for run in runs.values():
        ranges = sorted(
            (
                (comparable_key(types, e.file.min_key), comparable_key(types, e.file.max_key), e)
                for e in run
            ),
            key=lambda item: item[0],
        )
        for (_, high, _), (low, _, entry) in itertools.pairwise(ranges):
            if not high < low:
                raise _conflict(table, entry, "overlaps in key with a file of its level")


def _hash_files(state: TableState) -> Mapping[bytes, frozenset[str]]:
    files: dict[bytes, set[str]] = defaultdict(set)
    for (partition, _, index_type), entry in state.index_entries.items():
        if index_type == HASH_INDEX:
            files[partition].add(entry.file_name)
    return {partition: frozenset(names) for partition, names in files.items()}


def _conflict(table: FileStoreTable, entry: ManifestEntry, problem: str) -> CommitConflictError:
    return CommitConflictError(
        f"table {table.name}: file {entry.file.file_name} (bucket {entry.bucket}, level "
        f"{entry.file.level}) {problem}; plan this change again on the newest snapshot"
    )


def check_expected_files(
    table: FileStoreTable, live: Iterable[ManifestEntry], change: SnapshotChange
) -> None:
    """Raise CommitConflictError if another commit changed a compacted bucket above level 0.

    `live` are the live files of the changed partitions, which are compared with
    `change.expected_files`.
    """
    if not change.expected_files:
        return
    replaced = {entry.identifier for entry in change.entries if entry.kind == FileKind.DELETE}
    upper_files: dict[BucketKey, set[str]] = defaultdict(set)
    for entry in live:
        if entry.file.level > 0 and entry.identifier not in replaced:
            upper_files[entry.partition, entry.bucket].add(entry.file.file_name)
    for (partition, bucket), names in change.expected_files.items():
        if upper_files[partition, bucket] != names:
            raise CommitConflictError(
                f"table {table.name}: bucket {bucket} was compacted by another commit; plan this "
                "compaction again on the newest snapshot"
            )


def check_rewrites(
    table: FileStoreTable, live: Iterable[ManifestEntry], change: SnapshotChange
) -> None:
    """Raise CommitConflictError if the files that an overwrite deletes are not `change.rewrites`.

    `live` are the files that the overwrite deletes. If `change.rewrites` is None, nothing is
    checked.
    """
    if change.rewrites is None:
        return
    live_identifiers = {entry.identifier for entry in live}
    changed = live_identifiers ^ change.rewrites
    if changed:
        raise CommitConflictError(
            f"table {table.name}: another commit has changed {counted(len(changed), 'file')} "
            "of what was rewritten; this commit changed nothing: stop writing to the table, and "
            "try again"
        )


def check_deletion_vectors(
    table: FileStoreTable, planned: TableState, current: TableState, change: SnapshotChange
) -> None:
    """Raise CommitConflictError if another commit replaced deletion vectors of changed buckets.

    The changed buckets are those of `change`, which was planned on the state `planned`; `current`
    is the newest state.
    """
    if planned.index_entries is current.index_entries:
        return
    buckets = {(entry.partition, entry.bucket) for entry in change.entries}
    buckets |= {(partition, bucket) for partition, bucket, *_ in change.rewrites or ()}
    before, after = _vector_files(planned, buckets), _vector_files(current, buckets)
    if before != after:
        raise CommitConflictError(
            f"table {table.name}: another commit has changed deletion vectors of a bucket of this "
            "compaction; plan it again on the newest snapshot"
        )


def _vector_files(state: TableState, buckets: set[BucketKey]) -> Mapping[BucketKey, frozenset[str]]:
    files: dict[BucketKey, set[str]] = defaultdict(set)
    for entry in (*state.index_entries.values(), *state.repeated_index_entries):
        bucket = (entry.partition, entry.bucket)
        if entry.index_type == DELETION_VECTORS_INDEX and bucket in buckets:
            files[bucket].add(entry.file_name)
    return {bucket: frozenset(names) for bucket, names in files.items()}


def _appends(message: CommitMessage) -> bool:
    return bool(message.new_files or message.changelog_files) or not _compacts(message)


def _compacts(message: CommitMessage) -> bool:
    files = message.compact_before or message.compact_after or message.compact_changelog
    return bool(files or message.removed_index_files)


def _compact(messages: Sequence[CommitMessage]) -> SnapshotChange:
    deleted = (e for m in messages for e in _entries(m, FileKind.DELETE, m.compact_before))
    added = (e for m in messages for e in _entries(m, FileKind.ADD, m.compact_after))
    changelog = (e for m in messages for e in _entries(m, FileKind.ADD, m.compact_changelog))
    only = [message for message in messages if not _appends(message)]
    return SnapshotChange(
        CommitKind.COMPACT,
        (*deleted, *added),
        tuple(changelog),
        tuple(entry for message in only for entry in message.new_index_files),
        removed_index_files=frozenset(
            name for message in only for name in message.removed_index_files
        ),
        expected_files={
            (message.partition, message.bucket): message.compact_expected
            for message in only
            if message.compact_expected is not None
        },
    )


def _analyze(committable: ManifestCommittable) -> SnapshotChange:
    if committable.messages:
        raise ValueError("statistics are committed by themselves, without files")
    return SnapshotChange(CommitKind.ANALYZE, statistics=committable.statistics)


def _overwrite(committable: ManifestCommittable) -> SnapshotChange:
    messages = committable.messages
    if any(_compacts(message) for message in messages):
        raise ValueError("an overwrite cannot carry compaction results")
    added = tuple(e for m in messages for e in _entries(m, FileKind.ADD, m.new_files))
    changelog = tuple(e for m in messages for e in _entries(m, FileKind.ADD, m.changelog_files))
    index = tuple(e for m in messages for e in m.new_index_files)
    return SnapshotChange(
        CommitKind.OVERWRITE, added, changelog, index, committable.replaced, committable.rewrites
    )


def _entries(
    message: CommitMessage, kind: FileKind, files: Sequence[DataFileMeta]
) -> list[ManifestEntry]:
    return [
        ManifestEntry(kind, message.partition, message.bucket, message.total_buckets, file)
        for file in files
    ]


def _check_index_types(message: CommitMessage) -> None:
    for entry in message.new_index_files:
        vectors = entry.index_type == DELETION_VECTORS_INDEX and not _appends(message)
        if entry.index_type != HASH_INDEX and not vectors:
            raise UnsupportedError(
                f"index file {entry.file_name} of bucket {message.bucket}: committing index type "
                f"{entry.index_type} is not supported"
            )


def _index_without(
    table: FileStoreTable, change: SnapshotChange, state: TableState
) -> tuple[IndexEntries, tuple[IndexManifestEntry, ...]]:
    """Return the index entries of `state` without the removed files, plus those of the change.

    The first entry of each key and all others are returned separately. Raises CommitConflictError
    if a removed file is not in `state`.
    """
    before = (*state.index_entries.values(), *state.repeated_index_entries)
    missing = change.removed_index_files - {entry.file_name for entry in before}
    if missing:
        raise CommitConflictError(
            f"table {table.name}: index file {min(missing)} was replaced by another commit; plan "
            "this change again on the newest snapshot"
        )
    stay = [entry for entry in before if entry.file_name not in change.removed_index_files]
    by_key, repeated = split_index_entries((*stay, *change.index))
    return IndexEntries(by_key), repeated


def _index_overwritten(
    table: FileStoreTable, change: SnapshotChange, state: TableState
) -> tuple[IndexEntries, tuple[IndexManifestEntry, ...]]:
    """Return the index entries of partitions that are not replaced, plus those of the change.

    The first entry of each key and all others are returned separately.
    """
    is_replaced = partition_test(table, change.replaced)
    before = (*state.index_entries.values(), *state.repeated_index_entries)
    stay = [entry for entry in before if not is_replaced(entry.partition)]
    if len(stay) == len(before) and not change.index:
        return state.index_entries, state.repeated_index_entries
    by_key, repeated = split_index_entries((*stay, *change.index))
    return IndexEntries(by_key), repeated


def in_commit_order(
    entries: tuple[ManifestEntry, ...], previous: Snapshot | None, now_ms: int
) -> tuple[ManifestEntry, ...]:
    """Return the entries of a commit; those of new postponed files get increasing creation times.

    Compaction jobs read postponed files in the order of their creation times. A clock that was set
    back, or the clock of another machine, must not put newer rows before older ones, so the times
    are after the snapshot `previous` (None: the commit is the first). `now_ms` is the time of the
    commit in milliseconds since the epoch.
    """
    first = max(now_ms, previous.time_millis + 1 if previous else 0)
    files: Counter[bytes] = Counter()

    def timed(entry: ManifestEntry) -> ManifestEntry:
        if not _is_postponed(entry):
            return entry
        files[entry.partition] += 1
        created_ms = first + files[entry.partition] - 1
        return replace(entry, file=replace(entry.file, creation_time_ms=created_ms))

    return tuple(map(timed, entries))


def snapshot_time(entries: Iterable[ManifestEntry], previous: Snapshot | None, now_ms: int) -> int:
    """Return the time of the snapshot with these entries, in milliseconds since the epoch.

    The time is `now_ms`, the time of the commit, but not before `previous`, because readers find
    snapshots by time with a binary search. It is not before the postponed files in `entries`
    either, so that those of the next commit are newer.
    """
    times = [entry.file.creation_time_ms or 0 for entry in entries if _is_postponed(entry)]
    return max(now_ms, previous.time_millis if previous else 0, *times)


def _is_postponed(entry: ManifestEntry) -> bool:
    """Return whether an entry adds a file of a postponed bucket."""
    return entry.bucket == POSTPONE_BUCKET and entry.kind == FileKind.ADD
