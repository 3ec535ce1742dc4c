"""Merge manifests of the base manifest list, to keep it short.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#manifest-list

It bounds the number of manifests that readers open. A minor merge joins small manifests when there
are enough of them. A full merge folds all manifests with deletions or below the target size when
together they are large. A manifest larger than all younger ones together is left out until they
have grown: otherwise each minor merge of a large table would rewrite nearly all of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ingestd.paimon.spec.manifest import FileKind, ManifestEntry, ManifestFileMeta, fold_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.manifest_store import join_added, read_manifest, write_manifests
from ingestd.paimon.table.metadata.scan import PartitionBounds

_OUTWEIGHS = 2
_OVERSIZE = 1.5


@dataclass(frozen=True, slots=True)
class MergedManifests:
    """Manifests of the new base list in order, and those newly written."""

    manifests: tuple[ManifestFileMeta, ...]
    written: tuple[ManifestFileMeta, ...] = ()


def merge_manifests(
    table: FileStoreTable, manifests: Sequence[ManifestFileMeta]
) -> MergedManifests:
    """Return the base list of a snapshot after `manifests` (previous base, then previous delta)."""
    full = _full_merge(table, manifests)
    return full if full is not None else _minor_merge(table, manifests)


def _full_merge(
    table: FileStoreTable, manifests: Sequence[ManifestFileMeta]
) -> MergedManifests | None:
    """Rewrite manifests that are small, or have deletions or deleted files.

    Return None if it is not due. Other manifests come first: a deletion never precedes its file.
    """
    due = [meta for meta in manifests if _must_change(table, meta)]
    if len(due) < 2 or _size(due) < table.options.manifest_full_compaction_threshold:
        return None
    entries = {meta.file_name: read_manifest(table.io, table.paths, meta.file_name) for meta in due}
    deleted = [
        entry for group in entries.values() for entry in group if entry.kind == FileKind.DELETE
    ]
    bounds = PartitionBounds(table, {entry.partition for entry in deleted})
    identifiers = {entry.identifier for entry in deleted}
    kept: list[ManifestFileMeta] = []
    folded: list[ManifestEntry] = []
    for meta in manifests:
        part = entries.get(meta.file_name)
        if part is None and deleted and bounds.may_be_in(meta):
            part = read_manifest(table.io, table.paths, meta.file_name)
            if not any(entry.identifier in identifiers for entry in part):
                part = None
        if part is None:
            kept.append(meta)
        else:
            folded.extend(part)
    written = write_manifests(table, fold_entries(folded))
    return MergedManifests((*kept, *written), written)


def _must_change(table: FileStoreTable, meta: ManifestFileMeta) -> bool:
    return meta.num_deleted_files > 0 or meta.file_size < table.options.manifest_target_file_size


def _minor_merge(table: FileStoreTable, manifests: Sequence[ManifestFileMeta]) -> MergedManifests:
    target = table.options.manifest_target_file_size
    result: list[ManifestFileMeta] = []
    written: list[ManifestFileMeta] = []
    for group in _groups(manifests, target):
        heavy = 0 if _size(group) >= target else _outweighing(group)
        due = _size(group) >= target or len(group) - heavy >= table.options.manifest_merge_min_count
        if not due or len(group) - heavy < 2:
            result.extend(group)
            continue
        merged = _merged(table, group[heavy:])
        result.extend((*group[:heavy], *merged))
        written.extend(merged)
    return MergedManifests(tuple(result), tuple(written))


def _merged(table: FileStoreTable, group: Sequence[ManifestFileMeta]) -> Sequence[ManifestFileMeta]:
    """Merge a group into few manifests; groups without deletions are joined without decoding."""
    if _size(group) <= table.options.manifest_target_file_size * _OVERSIZE:
        joined = join_added(table, group)
        if joined is not None:
            return (joined,)
    return write_manifests(table, fold_entries(_entries(table, group)))


def _outweighing(group: Sequence[ManifestFileMeta]) -> int:
    """Count the manifests at the front that are more than twice as large as all after them."""
    rest = _size(group)
    for position, meta in enumerate(group):
        rest -= meta.file_size
        if meta.file_size <= _OUTWEIGHS * rest:
            return position
    return len(group)


def _size(manifests: Iterable[ManifestFileMeta]) -> int:
    return sum(meta.file_size for meta in manifests)


def _groups(
    manifests: Iterable[ManifestFileMeta], target: int
) -> Iterable[Sequence[ManifestFileMeta]]:
    """Yield consecutive manifests that together reach the target size, then the rest."""
    group: list[ManifestFileMeta] = []
    size = 0
    for meta in manifests:
        group.append(meta)
        size += meta.file_size
        if size >= target:
            yield group
            group, size = [], 0
    if group:
        yield group


def _entries(
    table: FileStoreTable, manifests: Iterable[ManifestFileMeta]
) -> Iterable[ManifestEntry]:
    for meta in manifests:
        yield from read_manifest(table.io, table.paths, meta.file_name)
