"""Written files that a writer passes to the committer, not yet visible."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.index_manifest import IndexManifestEntry
from ingestd.paimon.spec.manifest import FileIdentifier
from ingestd.paimon.table.metadata.file_store_scan import PartitionFilter


@dataclass(frozen=True, slots=True)
class CommitMessage:
    """Changes of one bucket.

    `partition` is the serialized partition row. `new_files`, `changelog_files` and
    `new_index_files` are committed in an APPEND snapshot (or in an OVERWRITE); `compact_before`,
    `compact_after` and `compact_changelog` in a COMPACT snapshot after it (with the index files
    if nothing is appended). A file name that was deleted from a level must not be added there
    again: readers take it for deleted.

    `compact_expected` are the other files of the bucket above level 0, which the compaction relies
    on (None: not checked). `removed_index_files` are index files of deletion vectors that the new
    ones replace where a bucket may have several of them.
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
        """Return whether the message changes nothing."""
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

    `identifier` increases with every commit of a user. `overwrite` empties the partitions in
    `replaced` (None: the whole table) and adds the new files in one OVERWRITE snapshot; with
    `rewrites` only if exactly these files are deleted. `statistics` is a statistics file, which is
    committed in an ANALYZE snapshot of its own. `properties` are written into the snapshot
    unchanged. The commit is refused unless the newest snapshot carries the properties in
    `builds_on` (an empty value: the snapshot must not have the property).
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
