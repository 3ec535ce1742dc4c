"""What a writer hands to the committer: files that exist and wait to become visible."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.index_manifest import IndexManifestEntry
from ingestd.paimon.spec.manifest import FileIdentifier
from ingestd.paimon.table.metadata.scan import PartitionFilter


@dataclass(frozen=True, slots=True)
class CommitMessage:
    """Changes of one bucket.

    `partition` is the serialized partition row. `new_files` and `changelog_files` land in an
    APPEND snapshot (or in an OVERWRITE), together with `new_index_files`; `compact_before`,
    `compact_after` and `compact_changelog` in a COMPACT snapshot after it (with the index files
    if there is nothing to append). A name that was deleted from a level once must not be added
    there again: readers take it for deleted.

    A compaction relies on the rest of the bucket: `compact_beside` names its other files above
    level 0 (None: not looked at). `removed_index_files` names index files of deletion vectors whose
    place the new ones take where a bucket may have several of them.
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
    compact_beside: frozenset[str] | None = None
    removed_index_files: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
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

    `identifier` grows with every commit of a user. `overwrite` empties the partitions that
    `replaced` names (None: the whole table) before the new files, in the same OVERWRITE
    snapshot; with `rewrites` only if these are the files that go. `statistics` names a
    statistics file; an ANALYZE snapshot with nothing else points to it. `properties` go into the
    snapshot as they are. The commit lands only on a table that carries the properties in
    `builds_on` (an empty value: does not carry the name).
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
