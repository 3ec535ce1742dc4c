"""Derive from a committable the changes of each snapshot: kind, manifest entries, index files.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot

Appended files and compaction results of one committable become two snapshots, APPEND before
COMPACT, under one commit identifier.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ingestd.errors import CommitConflictError, UnsupportedError
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.index_manifest import (
    DELETION_VECTORS_INDEX,
    HASH_INDEX,
    IndexManifestEntry,
)
from ingestd.paimon.spec.manifest import FileIdentifier, FileKind, ManifestEntry
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_entries import IndexEntries, index_key, split_index_entries
from ingestd.paimon.table.metadata.scan import PartitionFilter, partition_test
from ingestd.paimon.table.metadata.table_state import TableState
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable


@dataclass(frozen=True, slots=True)
class SnapshotChange:
    """Changes of one snapshot; for an OVERWRITE, only the additions.

    `replaced` are the partitions that an OVERWRITE empties (None: all), `rewrites` the only files
    that it may delete (None: any), `statistics` is the file that an ANALYZE refers to,
    `removed_index_files` are index files that a COMPACT removes, and `expected_files` the other
    files above level 0 that must not have changed, by partition and bucket.
    """

    kind: CommitKind
    entries: tuple[ManifestEntry, ...] = ()
    changelog: tuple[ManifestEntry, ...] = ()
    index: tuple[IndexManifestEntry, ...] = ()
    replaced: PartitionFilter | None = None
    rewrites: frozenset[FileIdentifier] | None = None
    statistics: str | None = None
    removed_index_files: frozenset[str] = frozenset()
    expected_files: Mapping[tuple[bytes, int], frozenset[str]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Return whether the change leaves the table as it is."""
        speaks_for_itself = self.kind in (CommitKind.OVERWRITE, CommitKind.ANALYZE)
        files = self.entries or self.changelog or self.index or self.removed_index_files
        return not (files or speaks_for_itself)

    @property
    def relies_on_hash_index(self) -> bool:
        """Return whether buckets were chosen by the hash index of the partitions."""
        if self.kind == CommitKind.COMPACT:
            return any(entry.index_type == HASH_INDEX for entry in self.index)
        return self.kind != CommitKind.OVERWRITE

    @property
    def partitions(self) -> frozenset[bytes]:
        """Return the partitions that are changed."""
        files = (entry.partition for entry in self.entries)
        return frozenset((*files, *(entry.partition for entry in self.index)))


def plan_changes(committable: ManifestCommittable, *, allow_empty: bool) -> list[SnapshotChange]:
    """Return the changes of a committable, one per snapshot, in order; [] for an empty one.

    Raises UnsupportedError for index files other than the hash index of dynamic buckets and, in
    compactions, deletion vectors.
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
    """Return the index entries after a change of `state`, and the entries with duplicate keys.

    Raises CommitConflictError if an index file that is to be replaced is not the one of `state`.
    """
    if change.kind == CommitKind.OVERWRITE:
        return _index_overwritten(table, change, state)
    if change.removed_index_files:
        return _index_without(table, change, state)
    if not change.index:
        # The same object, so that the next commit detects by identity that nothing changed.
        return state.index_entries, state.repeated_index_entries
    repeated_keys = {index_key(entry) for entry in state.repeated_index_entries}
    for entry in change.index:
        if index_key(entry) in repeated_keys:
            raise CommitConflictError(
                f"table {table.name}: bucket {entry.bucket} has several {entry.index_type} index "
                f"files, so {entry.file_name} cannot take the place of one"
            )
    return state.index_entries.with_changes(change.index), state.repeated_index_entries


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
    going = (committable.replaced, committable.rewrites)
    return SnapshotChange(CommitKind.OVERWRITE, added, changelog, index, *going)


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
    """Return the index files without the removed ones, plus those of the change."""
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
    """Return the index files of partitions that are kept, plus those of the change."""
    goes = partition_test(table, change.replaced)
    before = (*state.index_entries.values(), *state.repeated_index_entries)
    stay = [entry for entry in before if not goes(entry.partition)]
    if len(stay) == len(before) and not change.index:
        return state.index_entries, state.repeated_index_entries
    by_key, repeated = split_index_entries((*stay, *change.index))
    return IndexEntries(by_key), repeated
