"""Reading and writing of manifest lists, manifests and index manifests through a FileIO.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/

All of these files are immutable and named by a UUID.
"""

import uuid
from collections.abc import Iterator, Sequence

from ingestd.crash_points import Point, reach
from ingestd.errors import FormatError
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.index_manifest import (
    IndexManifestEntry,
    decode_index_manifest,
    encode_index_records,
    pack_index_records,
)
from ingestd.paimon.spec.manifest import (
    FileKind,
    ManifestEntry,
    ManifestFileMeta,
    decode_manifest,
    decode_manifest_list,
    encode_manifest,
    encode_manifest_list,
    join_manifests,
)
from ingestd.paimon.spec.paths import TablePaths
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_entries import IndexEntries
from ingestd.paimon.table.metadata.manifest_bounds import joined_meta, partition_stats
from ingestd.paimon.table.metadata.manifest_cache import KEPT


def read_manifest_list(
    io: FileIO, paths: TablePaths, name: str, size: int | None = None
) -> list[ManifestFileMeta]:
    """Manifests that a manifest list names, in order; FormatError if it is shorter than `size`."""
    path = paths.manifest(name)
    data = _read(io, path)
    if size is not None and len(data) < size:
        raise FormatError(f"manifest list {path} has {len(data)} bytes, {size} are promised")
    return decode_manifest_list(data, path)


def write_manifest_list(
    table: FileStoreTable, metas: Sequence[ManifestFileMeta]
) -> tuple[str, int]:
    """Write a manifest list, possibly an empty one; its name and size in bytes."""
    name = f"manifest-list-{uuid.uuid4()}-0"
    data = encode_manifest_list(metas)
    table.io.write_new(table.paths.manifest(name), data)
    return name, len(data)


def read_manifest(io: FileIO, paths: TablePaths, name: str) -> list[ManifestEntry]:
    """Entries of a manifest, in order."""
    path = paths.manifest(name)
    return decode_manifest(_read(io, path), path)


def read_listed_manifest(
    io: FileIO, paths: TablePaths, meta: ManifestFileMeta
) -> Sequence[ManifestEntry]:
    """Entries of a manifest of a list; FormatError if there are not as many as the list says."""
    path = paths.manifest(meta.file_name)
    entries = KEPT.get(path)
    if entries is None:
        entries = decode_manifest(_read(io, path), path)
        KEPT.put(path, entries)
    promised = meta.num_added_files + meta.num_deleted_files
    if len(entries) != promised:
        raise FormatError(f"manifest {path} has {len(entries)} entries, {promised} are promised")
    return entries


def forget_unlisted_manifests(paths: TablePaths, metas: Sequence[ManifestFileMeta]) -> None:
    """Drop what this process keeps of the table's manifests, but for those of its newest list."""
    listed = {paths.manifest(meta.file_name) for meta in metas}
    KEPT.retain(paths.manifest_dir, listed)


def write_manifests(
    table: FileStoreTable, entries: Sequence[ManifestEntry]
) -> tuple[ManifestFileMeta, ...]:
    """Write entries to manifests of about `manifest.target-file-size`; none for no entries."""
    if not entries:
        return ()
    target = table.options.manifest_target_file_size
    return tuple(_write_manifest(table, part, data) for part, data in _rolled(entries, target))


def read_index_manifest(io: FileIO, paths: TablePaths, name: str) -> list[IndexManifestEntry]:
    """All index files of a snapshot."""
    path = paths.manifest(name)
    return decode_index_manifest(_read(io, path), path)


def write_index_manifest(
    table: FileStoreTable,
    entries: IndexEntries,
    repeated: Sequence[IndexManifestEntry] = (),
) -> str:
    """Write the complete list of index files; its name."""
    name = f"index-manifest-{uuid.uuid4()}-0"
    records = [*entries.records(), *encode_index_records(repeated)]
    table.io.write_new(table.paths.manifest(name), pack_index_records(records))
    return name


def join_added(table: FileStoreTable, metas: Sequence[ManifestFileMeta]) -> ManifestFileMeta | None:
    """One manifest of the entries of several that delete nothing, in a fraction of the time.

    None, and nothing is written, if they have to be decoded after all.
    """
    if any(meta.num_deleted_files for meta in metas):
        return None
    paths = (table.paths.manifest(meta.file_name) for meta in metas)
    joined = join_manifests(_read(table.io, path) for path in paths)
    if joined is None or joined[0] != sum(meta.num_added_files for meta in metas):
        return None
    name = f"manifest-{uuid.uuid4()}-0"
    table.io.write_new(table.paths.manifest(name), joined[1])
    return joined_meta(table.partition_types, metas, name, len(joined[1]))


def _rolled(
    entries: Sequence[ManifestEntry], target: int
) -> Iterator[tuple[Sequence[ManifestEntry], bytes]]:
    """Neighbours whose bytes reach the target size, then the rest.

    Only the last may stay below the target: smaller ones would be merged again and again.
    """
    data = encode_manifest(entries)
    if len(data) <= target + target // 2:
        yield entries, data
        return
    count = -(-len(entries) * target * 11 // (10 * len(data)))
    start = 0
    while start < len(entries):
        part = entries[start : start + count]
        data = encode_manifest(part)
        if len(data) < target and start + count < len(entries):
            count += count // 5 + 1
            continue
        yield part, data
        start += count


def _write_manifest(
    table: FileStoreTable, entries: Sequence[ManifestEntry], data: bytes
) -> ManifestFileMeta:
    name = f"manifest-{uuid.uuid4()}-0"
    table.io.write_new(table.paths.manifest(name), data)
    reach(Point.MANIFEST_WRITTEN)
    deleted = sum(1 for entry in entries if entry.kind == FileKind.DELETE)
    buckets = [entry.bucket for entry in entries]
    levels = [entry.file.level for entry in entries]
    return ManifestFileMeta(
        file_name=name,
        file_size=len(data),
        num_added_files=len(entries) - deleted,
        num_deleted_files=deleted,
        partition_stats=partition_stats(table.partition_types, (e.partition for e in entries)),
        schema_id=max(entry.file.schema_id for entry in entries),
        min_bucket=min(buckets),
        max_bucket=max(buckets),
        min_level=min(levels),
        max_level=max(levels),
        min_row_id=None,
        max_row_id=None,
    )


def _read(io: FileIO, path: str) -> bytes:
    try:
        return io.read_bytes(path)
    except FileNotFoundError as error:
        message = f"{path} is missing: its snapshot was expired meanwhile, or the table is damaged"
        raise FormatError(message) from error
