"""The messages by which writers pass written files, which are not visible yet, to the committer."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.index_manifest import IndexManifestEntry
from ingestd.paimon.spec.manifest import FileIdentifier
from ingestd.paimon.table.metadata.file_store_scan import PartitionFilter


@dataclass(frozen=True, slots=True)
class CommitMessage:
    """The file changes of one bucket.

    `partition` is the serialized partition row, `total_buckets` the bucket count of the partition
    (below 1: not fixed). `new_files`, `changelog_files` and `new_index_files` are committed in an
    APPEND snapshot (or in an OVERWRITE). The files that a compaction removes (`compact_before`),
    adds (`compact_after`) and writes as changelog (`compact_changelog`) are committed in a COMPACT
    snapshot after it, with `new_index_files` if the message has no other files for an APPEND. A
    file name that was deleted from a level must not be added there again: readers would treat the
    file as deleted.

    `compact_expected` are the names of the other files of the bucket above level 0, on which the
    compaction relies (None: not checked). `removed_index_files` are the names of index files that
    the compaction removes: those of deletion vectors if a bucket may have several, and hash indexes
    that are rebuilt.
    """

    partition: bytes
    bucket: int
    total_buckets: int
    new_files: tuple[DataFileMeta, ...] = ()
    changelog_files: tuple[DataFileMeta, ...] = ()
    compact_before: tuple[DataFileMeta, ...] = ()
    compact_after: tuple[DataFileMeta, ...] = ()
    new_index_files: tuple[IndexManifestEntry, ...] = ()
    compact_changelog: tuple[DataFileMeta, ...] = ()
    compact_expected: frozenset[str] | None = None
    removed_index_files: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the message changes nothing."""
        return not (
            self.new_files
            or self.changelog_files
            or self.compact_before
            or self.compact_after
            or self.new_index_files
            or self.compact_changelog
            or self.removed_index_files
        )


@dataclass(frozen=True, slots=True)
class ManifestCommittable:
    """All changes of one commit.

    `identifier` increases with every streaming commit of a user, and is `BATCH_COMMIT_IDENTIFIER`
    for batch commits. With `overwrite`, the partitions in `replaced` (None: the whole table) are
    emptied and the new files added in one OVERWRITE snapshot; with `rewrites`, only if exactly
    these files are deleted. `statistics` is the name of a statistics file, which is committed in an
    ANALYZE snapshot of its own. `watermark` is in milliseconds of the epoch. `properties` are
    written into the snapshot; an empty value removes a property. The commit is refused unless the
    newest snapshot carries the properties in `builds_on` (an empty value: the snapshot must not
    have the property).
    """

    identifier: int
    messages: tuple[CommitMessage, ...]
    watermark: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    overwrite: bool = False
    replaced: PartitionFilter | None = None
    rewrites: frozenset[FileIdentifier] | None = None
    statistics: str | None = None
    builds_on: Mapping[str, str] = field(default_factory=dict)
