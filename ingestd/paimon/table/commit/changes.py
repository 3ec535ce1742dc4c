"""What a committable means as snapshots: which kind, which manifest entries, which index files.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/

Appended files and compaction results of one committable become two
snapshots, APPEND before COMPACT, under one commit identifier.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.index_manifest import (
    DELETION_VECTORS_INDEX,
    HASH_INDEX,
    IndexManifestEntry,
)
from ingestd.paimon.spec.manifest import FileIdentifier, FileKind, ManifestEntry
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.metadata.scan import PartitionFilter
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable


@dataclass(frozen=True, slots=True)
class SnapshotChange:
    """The content of one snapshot to be made; of an OVERWRITE only what it adds.

    `replaced` says which partitions an OVERWRITE empties (None: all), `rewrites` which files must
    be all that goes then (None: whatever is there), `statistics` which file an
    ANALYZE names, `removed_index` which index files a COMPACT takes away, and `beside` what other
    files above level 0 it relies on, by partition and bucket.
    """

    kind: CommitKind
    entries: tuple[ManifestEntry, ...] = ()
    changelog: tuple[ManifestEntry, ...] = ()
    index: tuple[IndexManifestEntry, ...] = ()
    replaced: PartitionFilter | None = None
    rewrites: frozenset[FileIdentifier] | None = None
    statistics: str | None = None
    removed_index: frozenset[str] = frozenset()
    beside: Mapping[tuple[bytes, int], frozenset[str]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether it would leave the table as it is."""
        speaks_for_itself = self.kind in (CommitKind.OVERWRITE, CommitKind.ANALYZE)
        files = self.entries or self.changelog or self.index or self.removed_index
        return not (files or speaks_for_itself)

    @property
    def relies_on_hash_index(self) -> bool:
        """Whether it was made by the hash index of its partitions as it was."""
        if self.kind == CommitKind.COMPACT:
            return any(entry.index_type == HASH_INDEX for entry in self.index)
        return self.kind != CommitKind.OVERWRITE

    @property
    def partitions(self) -> frozenset[bytes]:
        """Partitions it touches."""
        files = (entry.partition for entry in self.entries)
        return frozenset((*files, *(entry.partition for entry in self.index)))


def plan_changes(committable: ManifestCommittable, *, allow_empty: bool) -> list[SnapshotChange]:
    """The snapshots that a committable asks for, in order; [] if it holds nothing.

    UnsupportedError for index files other than the hash index of dynamic buckets and, in
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
        removed_index=frozenset(name for message in only for name in message.removed_index_files),
        beside={
            (message.partition, message.bucket): message.compact_beside
            for message in only
            if message.compact_beside is not None
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
