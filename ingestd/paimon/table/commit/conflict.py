"""Check a change against the commits that others made since it was planned.

Specification: https://paimon.apache.org/docs/1.4/concepts/concurrency-control/#files-conflict

A plain append of new files needs none of the file checks: it can only conflict with a change of
the hash index or of the bucket count. Appends of others never conflict with a compaction; another
compaction of the same bucket does, even where no file is replaced by both: rows would get below
older ones, or deletion vectors would be lost.
"""

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ingestd.errors import CommitConflictError, SchemaConflictError
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.index_manifest import DELETION_VECTORS_INDEX, HASH_INDEX
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry
from ingestd.paimon.spec.options import BucketMode, bucket_mode, core_options
from ingestd.paimon.spec.schema import TableSchema
from ingestd.paimon.spec.schema_rules import bucket_number
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.commit.changes import SnapshotChange
from ingestd.paimon.table.files.data_files import live_path
from ingestd.paimon.table.files.file_index import index_file_path
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_paths import index_path
from ingestd.paimon.table.metadata.scan import live_entries
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot
from ingestd.paimon.table.metadata.table_state import TableState, steady_seconds

_Bucket = tuple[bytes, int]
LONG_COMMIT_SECONDS = 3 * 3600.0
"""A commit whose files may be older checks that each of them exists."""


def check_own_files(table: FileStoreTable, change: SnapshotChange, planned_at: float) -> None:
    """Raise CommitConflictError if a file that the change adds does not exist.

    A removal of orphan files deletes old files that no snapshot names, and a slow commit has such
    files; files on a disk may be on the disk of another machine. Files that are appended to an
    object store are only looked up if they may be old: none was written before `planned_at`, a
    time of `steady_seconds`. Local files cost nothing to look up, and those of a compaction little
    compared with it, whose process may also have lost the lead of the pipeline unnoticed.
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
    """Return the entries of a change on top of `state`, checked against its live files.

    An OVERWRITE first deletes every live file of the partitions that it replaces. A plain append
    is not checked, so it reads no manifest, unless the bucket count was changed once.

    Raises what `check_files`, `check_rewrites` and `check_expected_files` raise.
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
    """Check the entries of a change against the live files of the partitions that it touches.

    A file must not be added twice, nor deleted if it is not live. All files of a partition must
    have the same number of buckets. Files of a level above 0 must not overlap in key. Raises
    CommitConflictError, which planning again may resolve, and SchemaConflictError if the option
    `bucket` was altered and the rows were not rescaled.
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
    """Raise CommitConflictError if another writer changed a hash index of these partitions.

    The buckets of the change were chosen by the old index: a key could end up in two buckets.
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

    Rows were placed by the old partitions of their keys: a key could end up in two partitions.
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
    """Raise CommitConflictError if the bucket count has changed since buckets were chosen."""
    ours, theirs = table.options.bucket, core_options(latest).bucket
    if ours != theirs:
        raise CommitConflictError(
            f"table {table.name}: option 'bucket' was changed from {ours} to {theirs} meanwhile; "
            "open the table again and write again"
        )


def was_rescaled(table: FileStoreTable) -> bool:
    """Return whether partitions may have another number of buckets than the table has now."""
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
            problem = f"has {entry.total_buckets} buckets where its partition has {known}"
            raise _conflict(table, entry, problem)


def _not_rescaled(table: FileStoreTable, buckets: int) -> SchemaConflictError:
    number, warehouse = table.options.bucket, table.path.rsplit("/", 2)[0]
    return SchemaConflictError(
        f"table {table.name}: option 'bucket' was altered to {number}, and rows still are in "
        f"{buckets} buckets, so nothing can be written there; rewrite them with `ingestd rescale "
        f"{warehouse} {table.name} --buckets {number}`, or set the option back to {buckets}"
    )


def _check_key_ranges(
    table: FileStoreTable,
    entries: Iterable[ManifestEntry],
    changed: Collection[tuple[bytes, int]],
) -> None:
    types = [table.schema.field(name).type for name in table.schema.trimmed_primary_keys]
    runs: dict[tuple[bytes, int, int], list[ManifestEntry]] = defaultdict(list)
    for entry in entries:
        if entry.file.level >= 1 and (entry.partition, entry.bucket) in changed:
            runs[entry.partition, entry.bucket, entry.file.level].append(entry)
    for run in runs.values():
        ranges = sorted(
            (
                (deserialize_row(types, e.file.min_key), deserialize_row(types, e.file.max_key), e)
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
    """Raise CommitConflictError if a compacted bucket was changed above level 0."""
    if not change.expected_files:
        return
    replaced = {entry.identifier for entry in change.entries if entry.kind == FileKind.DELETE}
    found: dict[_Bucket, set[str]] = defaultdict(set)
    for entry in live:
        if entry.file.level > 0 and entry.identifier not in replaced:
            found[entry.partition, entry.bucket].add(entry.file.file_name)
    for (partition, bucket), names in change.expected_files.items():
        if found[partition, bucket] != names:
            raise CommitConflictError(
                f"table {table.name}: bucket {bucket} was compacted by another commit; plan this "
                "compaction again on the newest snapshot"
            )


def check_rewrites(
    table: FileStoreTable, live: Iterable[ManifestEntry], change: SnapshotChange
) -> None:
    """Raise CommitConflictError if files other than the expected ones would be overwritten."""
    if change.rewrites is None:
        return
    found = {entry.identifier for entry in live}
    if found != change.rewrites:
        raise CommitConflictError(
            f"table {table.name}: another commit has changed {len(found ^ change.rewrites)} files "
            "of what was rewritten; nothing was changed by this commit: stop writing to it, and "
            "call again"
        )


def check_deletion_vectors(
    table: FileStoreTable, planned: TableState, current: TableState, change: SnapshotChange
) -> None:
    """Raise CommitConflictError if deletion vectors of the changed buckets were replaced."""
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


def _vector_files(state: TableState, buckets: set[_Bucket]) -> Mapping[_Bucket, frozenset[str]]:
    files: dict[_Bucket, set[str]] = defaultdict(set)
    for entry in (*state.index_entries.values(), *state.repeated_index_entries):
        bucket = (entry.partition, entry.bucket)
        if entry.index_type == DELETION_VECTORS_INDEX and bucket in buckets:
            files[bucket].add(entry.file_name)
    return {bucket: frozenset(names) for bucket, names in files.items()}
