"""Derive the manifests of the next Iceberg snapshot from the last one and the changed files.

Specification: https://iceberg.apache.org/spec/#manifests
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ingestd.paimon.iceberg.iceberg_types import Json
from ingestd.paimon.iceberg.manifest_format import (
    DATA,
    DELETES,
    EntryStatus,
    IcebergEntry,
    IcebergManifest,
    describe_manifest,
    encode_list,
    encode_manifest,
    may_have_partition,
)
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.iceberg_rules import IcebergSettings

ReadManifest = Callable[[IcebergManifest], list[IcebergEntry]]
_SMALL = 2 / 3
"""Share of the target size below which a manifest may be merged with others."""
_HEAVY = 200
"""Number of files up to which a manifest is merged whatever the size of the others."""
_OUTWEIGHS = 2
_CONTENTS = {DATA: "data", DELETES: "deletes"}


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The data files that a snapshot adds and removes, by file name.

    `added` has the manifest records of the added files, `removed` the partitions of the removed
    files, and `partitions` the partitions of all these files. A partition is a tuple of plain Avro
    values. `only_adds` is False if the snapshot deletes any file, even one that the Iceberg
    metadata does not list.
    """

    added: Mapping[str, Mapping[str, Json]]
    removed: Mapping[str, tuple[Json, ...]]
    partitions: frozenset[tuple[Json, ...]]
    only_adds: bool


@dataclass(slots=True)
class NewManifests:
    """Encodes the new manifests of one snapshot, and its manifest list.

    `files` has their bytes by path in the directory `folder`; the names of new files contain the
    unique `stem`. Entries that would make a manifest of more than `target_size` bytes are
    distributed to several manifests. `partition_fields` are the partition columns of the table,
    `header` has additional entries of the Avro headers.
    """

    folder: str
    snapshot_id: int
    partition_fields: Sequence[DataField]
    settings: IcebergSettings
    target_size: int
    header: Mapping[str, str]
    files: dict[str, bytes] = field(default_factory=dict)
    stem: str = field(default_factory=lambda: str(uuid.uuid4()))
    _entries: dict[str, Sequence[IcebergEntry]] = field(default_factory=dict)

    def add(self, entries: Sequence[IcebergEntry], content: int = DATA) -> list[IcebergManifest]:
        """Encode entries as new manifests in `files`; return these, or [] without entries.

        `content` is DATA, or DELETES for entries of deletion vectors.
        """
        if not entries:
            return []
        data = self._encode(entries, content)
        parts = min(-(-len(data) // self.target_size), len(entries))
        if parts > 1:
            size = -(-len(entries) // parts)
            pieces = [entries[at : at + size] for at in range(0, len(entries), size)]
            return [self._put(piece, self._encode(piece, content), content) for piece in pieces]
        return [self._put(entries, data, content)]

    def _encode(self, entries: Sequence[IcebergEntry], content: int) -> bytes:
        header = {**self.header, "content": _CONTENTS[content]}
        return encode_manifest(entries, self.partition_fields, self.settings.codec, header)

    def _put(self, entries: Sequence[IcebergEntry], data: bytes, content: int) -> IcebergManifest:
        path = f"{self.folder}/{self.stem}-m{len(self._entries) + 1}.avro"
        self.files[path], self._entries[path] = data, entries
        return describe_manifest(
            path, len(data), entries, self.partition_fields, self.snapshot_id, content
        )

    def take(self, manifest: IcebergManifest) -> Sequence[IcebergEntry] | None:
        """Remove a new manifest, so that it is not written, and return its entries.

        Returns None for a manifest of an earlier snapshot, which is not in `files`.
        """
        self.files.pop(manifest.manifest_path, None)
        return self._entries.get(manifest.manifest_path)

    def add_list(self, manifests: Sequence[IcebergManifest]) -> str:
        """Encode the list of these manifests, add it to `files`, and return its path."""
        path = f"{self.folder}/snap-1-{self.stem}.avro"
        settings = self.settings
        version = str(settings.format_version)
        header = {"snapshot-id": str(self.snapshot_id), "format-version": version}
        self.files[path] = encode_list(
            manifests, settings.codec, header, legacy=settings.legacy_names
        )
        return path


def added_entries(files: Iterable[Mapping[str, Json]], snapshot_id: int) -> list[IcebergEntry]:
    """Return the manifest entries, of status ADDED, of files that a snapshot adds.

    `files` are the records of the files; the sequence numbers are `snapshot_id`.
    """
    return [
        IcebergEntry(EntryStatus.ADDED, snapshot_id, snapshot_id, snapshot_id, file)
        for file in files
    ]


def next_manifests(
    base: Sequence[IcebergManifest], changes: FileChanges, new: NewManifests, read: ReadManifest
) -> tuple[list[IcebergManifest], bool]:
    """Return the manifests of the next snapshot, and whether that snapshot removes files.

    `base` are the manifests of the last snapshot. Manifests that this function creates are added to
    `new`. `read` returns the entries of a manifest. Manifests that cannot contain files of the
    changed partitions are read only to be merged.
    """
    added, kept, removes = dict(changes.added), [], False
    for manifest in base:
        if changes.only_adds or not _concerns(manifest, changes, new.partition_fields):
            kept.append(manifest)
            continue
        entries = [entry for entry in read(manifest) if entry.is_live]
        for entry in entries:
            # A compaction that only changes the level of a file deletes it and adds it again.
            added.pop(entry.name, None)
        if not any(entry.name in changes.removed for entry in entries):
            kept.append(manifest)
            continue
        removes = True
        kept += new.add([_after(entry, changes, new.snapshot_id) for entry in entries])
    kept += new.add(added_entries(added.values(), new.snapshot_id))
    return _merged(kept, new, read), removes


def _concerns(
    manifest: IcebergManifest, changes: FileChanges, partition_fields: Sequence[DataField]
) -> bool:
    return any(
        may_have_partition(manifest, partition_fields, partition)
        for partition in changes.partitions
    )


def _after(entry: IcebergEntry, changes: FileChanges, snapshot_id: int) -> IcebergEntry:
    if entry.name in changes.removed:
        return replace(entry, status=EntryStatus.DELETED, snapshot_id=snapshot_id)
    return replace(entry, status=EntryStatus.EXISTING)


def _merged(
    manifests: list[IcebergManifest], new: NewManifests, read: ReadManifest
) -> list[IcebergManifest]:
    """Return the manifests, with the small ones merged if there are enough of them.

    They are at least `compact_min`, and `compact_max` or `target_size` bytes in total.
    """
    settings, target = new.settings, new.target_size
    small = [manifest for manifest in manifests if manifest.manifest_length < target * _SMALL]
    small = _without_heavy(small)
    if len(small) < settings.compact_min:
        return manifests
    total = sum(manifest.manifest_length for manifest in small)
    if len(small) < settings.compact_max and total < target:
        return manifests
    entries: list[IcebergEntry] = []
    for manifest in small:
        own = new.take(manifest)
        entries += (
            _existing(read(manifest), new.snapshot_id)
            if own is None
            else _existing(own, new.snapshot_id)
        )
    return [*(manifest for manifest in manifests if manifest not in small), *new.add(entries)]


def _without_heavy(manifests: list[IcebergManifest]) -> list[IcebergManifest]:
    """Return the manifests without the largest, if it has more than twice the files of all others.

    This is repeated. Otherwise each merge of a large table would write nearly all of its entries
    again.
    """
    smaller, heavy = sum(map(_files, manifests)), set()
    for manifest in sorted(manifests, key=_files, reverse=True):
        smaller -= _files(manifest)
        if _files(manifest) <= max(_OUTWEIGHS * smaller, _HEAVY):
            break
        heavy.add(manifest.manifest_path)
    return [manifest for manifest in manifests if manifest.manifest_path not in heavy]


def _files(manifest: IcebergManifest) -> int:
    return manifest.added_files_count + manifest.existing_files_count


def with_row_ids(
    manifests: Sequence[IcebergManifest], first: int
) -> tuple[list[IcebergManifest], int]:
    """Assign row ids, from `first` on, to the data manifests without row ids.

    Returns the manifests, and the next free row id. As in Iceberg, a manifest reserves an id for
    each of its live rows, even if some rows have ids of their own.
    """
    numbered = []
    for manifest in manifests:
        if manifest.content == DATA and manifest.first_row_id is None:
            numbered.append(replace(manifest, first_row_id=first))
            first += manifest.added_rows_count + manifest.existing_rows_count
        else:
            numbered.append(manifest)
    return numbered, first


def _existing(entries: Iterable[IcebergEntry], snapshot_id: int) -> list[IcebergEntry]:
    """Return entries for a merged manifest of a snapshot.

    Files that earlier snapshots added become existing files, and deleted files are left out.
    """
    kept = []
    for entry in entries:
        if entry.file_sequence_number == snapshot_id or entry.status == EntryStatus.EXISTING:
            kept.append(entry)
        elif entry.status == EntryStatus.ADDED:
            kept.append(replace(entry, status=EntryStatus.EXISTING))
    return kept
