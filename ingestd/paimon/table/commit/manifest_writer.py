"""Write manifests and manifest lists, and merge manifests to keep the base list short.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#manifest-list

All files are immutable and named by a UUID. Merging limits the number of manifests that readers
open. A minor merge joins small manifests when there are enough of them, or when they reach the
target size together. A full merge folds all manifests with deletions or below the target size when
their total size is large. A manifest more than twice as large as all later ones together is left
out of a minor merge until they have grown: otherwise each minor merge of a large table would
rewrite nearly all of its manifests.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ingestd.crash_points import CrashPoint, reach
from ingestd.paimon.spec.binary_row import deserialize_row, serialize_row
from ingestd.paimon.spec.data_file import EMPTY_STATS, SimpleStats
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.index_manifest import (
    IndexManifestEntry,
    encode_index_records,
    pack_index_records,
)
from ingestd.paimon.spec.manifest import (
    FileKind,
    ManifestEntry,
    ManifestFileMeta,
    encode_manifest,
    encode_manifest_list,
    fold_entries,
    join_manifests,
)
from ingestd.paimon.table.metadata.file_store_scan import (
    PartitionBounds,
    read_manifest,
    read_metadata_file,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_entries import IndexEntries

# Readers do not prune by bounds of these types, so the bounds stay unknown.
_NO_BOUNDS = frozenset({"BINARY", "VARBINARY", "BYTES", "FLOAT", "DOUBLE"})
_OUTWEIGHS = 2
_OVERSIZE = 1.5


@dataclass(frozen=True, slots=True)
class MergedManifests:
    """The manifests of the new base list, in order; `written` are the new ones among them."""

    manifests: tuple[ManifestFileMeta, ...]
    written: tuple[ManifestFileMeta, ...] = ()


def write_manifest_list(
    table: FileStoreTable, metas: Sequence[ManifestFileMeta]
) -> tuple[str, int]:
    """Write a manifest list, which may be empty; return its name and size in bytes."""
    name = f"manifest-list-{uuid.uuid4()}-0"
    data = encode_manifest_list(metas)
    table.io.write_new(table.paths.manifest(name), data)
    return name, len(data)


def write_manifests(
    table: FileStoreTable, entries: Sequence[ManifestEntry]
) -> tuple[ManifestFileMeta, ...]:
    """Write entries to manifests of about `manifest.target-file-size`; return their metadata.

    Without entries no manifest is written.
    """
    if not entries:
        return ()
    target = table.options.manifest_target_file_size
    return tuple(_write_manifest(table, group, data) for group, data in _rolled(entries, target))


def write_index_manifest(
    table: FileStoreTable,
    entries: IndexEntries,
    repeated: Sequence[IndexManifestEntry],
) -> str:
    """Write an index manifest with all index files of a snapshot; return its name.

    `entries` has at most one index file for each partition, bucket and index type; `repeated` are
    the others.
    """
    name = f"index-manifest-{uuid.uuid4()}-0"
    records = [*entries.records(), *encode_index_records(repeated)]
    table.io.write_new(table.paths.manifest(name), pack_index_records(records))
    return name


def merge_manifests(
    table: FileStoreTable, manifests: Sequence[ManifestFileMeta]
) -> MergedManifests:
    """Merge the manifests of the newest snapshot for the base list of the next one.

    `manifests` are the manifests of the base list, then of the delta list. New manifests are
    written, and none is deleted. Raises FormatError if a manifest to merge is missing or damaged.
    """
    full = _full_merge(table, manifests)
    return full if full is not None else _minor_merge(table, manifests)


def _full_merge(
    table: FileStoreTable, manifests: Sequence[ManifestFileMeta]
) -> MergedManifests | None:
    """Rewrite all manifests that are small, have deletions, or list deleted files.

    Returns None, and writes nothing, if fewer than two manifests are small or have deletions, or if
    their total size is below `manifest.full-compaction-threshold-size`. The other manifests are
    listed first, so that a deletion never precedes the addition of its file.
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
        manifest_entries = entries.get(meta.file_name)
        if manifest_entries is None and deleted and bounds.may_be_in(meta):
            manifest_entries = read_manifest(table.io, table.paths, meta.file_name)
            if not any(entry.identifier in identifiers for entry in manifest_entries):
                manifest_entries = None
        if manifest_entries is None:
            kept.append(meta)
        else:
            folded.extend(manifest_entries)
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
    """Merge a group of manifests; without deletions, a small group is joined without decoding."""
    if _size(group) <= table.options.manifest_target_file_size * _OVERSIZE:
        joined = join_added(table, group)
        if joined is not None:
            return (joined,)
    return write_manifests(table, fold_entries(_entries(table, group)))


def _outweighing(group: Sequence[ManifestFileMeta]) -> int:
    """Return the number of leading manifests that are each too large to merge with the later ones.

    A manifest is too large if it has more than twice the size of all later manifests together.
    """
    later_bytes = _size(group)
    for position, meta in enumerate(group):
        later_bytes -= meta.file_size
        if meta.file_size <= _OUTWEIGHS * later_bytes:
            return position
    return len(group)


def _size(manifests: Iterable[ManifestFileMeta]) -> int:
    return sum(meta.file_size for meta in manifests)


def _groups(
    manifests: Iterable[ManifestFileMeta], target: int
) -> Iterable[Sequence[ManifestFileMeta]]:
    """Yield groups of consecutive manifests that reach the target size in bytes, then the rest."""
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


def join_added(table: FileStoreTable, metas: Sequence[ManifestFileMeta]) -> ManifestFileMeta | None:
    """Join manifests without deletions by copying their blocks; return the new manifest's metadata.

    Returns None, and writes nothing, if there are deletions or the blocks cannot be copied. Raises
    FormatError if a manifest is missing.
    """
    if any(meta.num_deleted_files for meta in metas):
        return None
    paths = (table.paths.manifest(meta.file_name) for meta in metas)
    joined = join_manifests(read_metadata_file(table.io, path) for path in paths)
    if joined is None or joined[0] != sum(meta.num_added_files for meta in metas):
        return None
    name = f"manifest-{uuid.uuid4()}-0"
    table.io.write_new(table.paths.manifest(name), joined[1])
    return joined_meta(table.partition_types, metas, name, len(joined[1]))


def _rolled(
    entries: Sequence[ManifestEntry], target: int
) -> Iterator[tuple[Sequence[ManifestEntry], bytes]]:
    """Yield groups of consecutive entries, each with its encoded manifest.

    Only the last manifest may be below the target size in bytes, because smaller manifests would be
    merged repeatedly.
    """
    data = encode_manifest(entries)
    if len(data) <= target + target // 2:
        yield entries, data
        return
    count = -(-len(entries) * target * 11 // (10 * len(data)))
    start = 0
    while start < len(entries):
        group = entries[start : start + count]
        data = encode_manifest(group)
        if len(data) < target and start + count < len(entries):
            count += count // 5 + 1
            continue
        yield group, data
        start += count


def _write_manifest(
    table: FileStoreTable, entries: Sequence[ManifestEntry], data: bytes
) -> ManifestFileMeta:
    name = f"manifest-{uuid.uuid4()}-0"
    table.io.write_new(table.paths.manifest(name), data)
    reach(CrashPoint.MANIFEST_WRITTEN)
    deleted = sum(1 for entry in entries if entry.kind == FileKind.DELETE)
    buckets = [entry.bucket for entry in entries]
    levels = [entry.file.level for entry in entries]
    least, largest = _row_ids(entries)
    return ManifestFileMeta(
        file_name=name,
        file_size=len(data),
        num_added_files=len(entries) - deleted,
        num_deleted_files=deleted,
        partition_stats=partition_bounds(table.partition_types, (e.partition for e in entries)),
        schema_id=max(entry.file.schema_id for entry in entries),
        min_bucket=min(buckets),
        max_bucket=max(buckets),
        min_level=min(levels),
        max_level=max(levels),
        min_row_id=least,
        max_row_id=largest,
    )


def _row_ids(entries: Sequence[ManifestEntry]) -> tuple[int | None, int | None]:
    """Return the least and the largest row id of files; None if they are unknown for any file."""
    firsts = [entry.file.first_row_id for entry in entries]
    ends = [
        None if first is None else first + entry.file.row_count - 1
        for first, entry in zip(firsts, entries, strict=True)
    ]
    return _least(firsts), _largest(ends)


def partition_bounds(types: Sequence[DataType], partitions: Iterable[bytes]) -> SimpleStats:
    """Return full (not truncated) bounds and null counts of serialized partition rows.

    `types` are the types of the partition columns. Bounds of binary and floating-point columns are
    unknown (null).
    """
    if not types:
        return EMPTY_STATS
    counts: dict[bytes, int] = {}
    for partition in partitions:
        counts[partition] = counts.get(partition, 0) + 1
    rows = [(deserialize_row(types, partition), count) for partition, count in counts.items()]
    minima: list[object] = []
    maxima: list[object] = []
    nulls: list[int | None] = []
    for column, data_type in enumerate(types):
        low, high = _bounds([row[column] for row, _ in rows], data_type)
        minima.append(low)
        maxima.append(high)
        nulls.append(sum(count for row, count in rows if row[column] is None))
    return SimpleStats(serialize_row(types, minima), serialize_row(types, maxima), tuple(nulls))


def joined_meta(
    types: Sequence[DataType], metas: Sequence[ManifestFileMeta], name: str, size: int
) -> ManifestFileMeta:
    """Return the metadata of a manifest that contains all entries of the manifests `metas`.

    `types` are the types of the partition columns; `name` and `size` are the name of the new
    manifest and its size in bytes. A bound that is unknown in one of the manifests is unknown in
    the result, because bounds that are too narrow would hide files.
    """
    return ManifestFileMeta(
        file_name=name,
        file_size=size,
        num_added_files=sum(meta.num_added_files for meta in metas),
        num_deleted_files=sum(meta.num_deleted_files for meta in metas),
        partition_stats=_joined_stats(types, metas),
        schema_id=max(meta.schema_id for meta in metas),
        min_bucket=_least([meta.min_bucket for meta in metas]),
        max_bucket=_largest([meta.max_bucket for meta in metas]),
        min_level=_least([meta.min_level for meta in metas]),
        max_level=_largest([meta.max_level for meta in metas]),
        min_row_id=_least([meta.min_row_id for meta in metas]),
        max_row_id=_largest([meta.max_row_id for meta in metas]),
    )


def _joined_stats(types: Sequence[DataType], metas: Sequence[ManifestFileMeta]) -> SimpleStats:
    if not types:
        return EMPTY_STATS
    stats = [meta.partition_stats for meta in metas]
    entries = [meta.num_added_files + meta.num_deleted_files for meta in metas]
    lows = [deserialize_row(types, statistics.min_values) for statistics in stats]
    highs = [deserialize_row(types, statistics.max_values) for statistics in stats]
    minima: list[object] = []
    maxima: list[object] = []
    nulls: list[int | None] = []
    for column, data_type in enumerate(types):
        counts = [statistics.null_counts[column] for statistics in stats]
        low, high = [row[column] for row in lows], [row[column] for row in highs]
        # A manifest with values but without bounds makes the joined bounds unknown.
        bounds = zip(low, high, counts, entries, strict=True)
        unknown = any(None in (least, most) and n != all_ for least, most, n, all_ in bounds)
        minima.append(None if unknown else _bounds(low, data_type)[0])
        maxima.append(None if unknown else _bounds(high, data_type)[1])
        known = [count for count in counts if count is not None]
        nulls.append(sum(known) if len(known) == len(counts) else None)
    return SimpleStats(serialize_row(types, minima), serialize_row(types, maxima), tuple(nulls))


def _bounds(values: Iterable[object], data_type: DataType) -> tuple[object, object]:
    known = [value for value in values if value is not None]
    if not known or data_type.root in _NO_BOUNDS:
        return None, None
    return min(known), max(known)  # type: ignore[type-var]  # one column, one comparable type


def _least(bounds: Sequence[int | None]) -> int | None:
    known = [bound for bound in bounds if bound is not None]
    return min(known) if len(known) == len(bounds) else None


def _largest(bounds: Sequence[int | None]) -> int | None:
    known = [bound for bound in bounds if bound is not None]
    return max(known) if len(known) == len(bounds) else None
