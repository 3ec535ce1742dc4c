"""Find the files to delete with expired snapshots and long-lived changelogs.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-snapshots/#expire-snapshots

Candidates are the files that the deltas of the expired range deleted. A candidate is kept if it is
in the snapshot of the nearest older tag. Files that other branches need, and files of changelogs
with a longer retention time, are kept, too.
"""

import bisect
import logging
from collections.abc import Callable, Iterable, Sequence

from ingestd.errors import FormatError
from ingestd.paimon.spec.index_manifest import IndexManifestEntry
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_scan import (
    live_files,
    read_index_manifest,
    read_manifest,
    read_manifest_list,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_paths import index_path
from ingestd.paimon.table.retention.referenced_files import data_paths

_LOG = logging.getLogger(__name__)

Keep = Callable[[ManifestEntry], bool]
"""Returns whether a data file must be kept."""


class TagNeeds:
    """The data files that tags need although later snapshots deleted them.

    `tagged` are the snapshots of the tags.
    """

    def __init__(self, table: FileStoreTable, tagged: Iterable[Snapshot]) -> None:
        self._table = table
        self.snapshots = sorted(
            {snapshot.id: snapshot for snapshot in tagged}.values(), key=lambda unique: unique.id
        )
        self._ids = [snapshot.id for snapshot in self.snapshots]
        self._known: dict[int, frozenset[tuple[bytes, int, str]]] = {}

    def before(self, snapshot_id: int) -> frozenset[tuple[bytes, int, str]]:
        """Return the live files of the newest tagged snapshot before the id `snapshot_id`.

        Each file is a triple (serialized partition, bucket, file name). The result is empty if no
        earlier snapshot is tagged. Raises FormatError if a manifest of the tag is missing or
        damaged.
        """
        position = bisect.bisect_left(self._ids, snapshot_id) - 1
        if position < 0:
            return frozenset()
        tagged = self.snapshots[position]
        if tagged.id not in self._known:
            live = live_files(self._table, tagged)
            # Snapshots are visited in order, so it is enough to remember one tag.
            self._known = {tagged.id: frozenset(map(file_key, live))}
        return self._known[tagged.id]

    def within(self, begin: int, end: int) -> list[Snapshot]:
        """Return the tagged snapshots from the id `begin` up to, but not including, the id `end`.

        If `begin` is not tagged, the nearest earlier tagged snapshot is included.
        """
        low = max(bisect.bisect_right(self._ids, begin) - 1, 0)
        return self.snapshots[low : bisect.bisect_left(self._ids, end)]


def deleted_data(table: FileStoreTable, snapshot: Snapshot, keep: Keep) -> list[str]:
    """Return the paths of the data files, with extra files, that the delta of a snapshot deleted.

    Left out are files for which `keep`, called with the manifest entry, returns True, and files
    that the delta added again in another level. Returns [], and logs a warning, if a manifest is
    damaged or, as after an interrupted expiry, missing.
    """
    deleted: dict[str, ManifestEntry] = {}
    try:
        for entry in _entries(table, snapshot.delta_manifest_list):
            path = data_paths(table, entry)[0]
            if entry.kind == FileKind.ADD:
                deleted.pop(path, None)
            else:
                deleted[path] = entry
    except FormatError as error:
        _skipped(snapshot, error)
        return []
    return [path for e in deleted.values() if not keep(e) for path in data_paths(table, e)]


def changelog_data(table: FileStoreTable, snapshot: Snapshot) -> list[str]:
    """Return the paths of the changelog files of a snapshot; [] if it has none.

    If a manifest is damaged or, as after an interrupted expiry, missing, a warning is logged and
    only the files of the manifests before it are returned.
    """
    name = snapshot.changelog_manifest_list
    if name is None:
        return []
    paths: list[str] = []
    try:
        for entry in _entries(table, name):
            if entry.kind == FileKind.ADD:
                paths += data_paths(table, entry)
    except FormatError as error:
        _skipped(snapshot, error)
    return paths


def manifests_of(table: FileStoreTable, lists: Iterable[str | None]) -> list[str]:
    """Return the names of manifest lists, each after the names of its manifests.

    Items of `lists` that are None are ignored; of a list that is missing or damaged, only its own
    name is returned.
    """
    names: list[str] = []
    for name in lists:
        if name is None:
            continue
        try:
            metas = read_manifest_list(table.io, table.paths, name)
        except FormatError:
            metas = []
        names += [*(meta.file_name for meta in metas), name]
    return names


def indexes_of(table: FileStoreTable, snapshot: Snapshot) -> list[IndexManifestEntry]:
    """Return the index files of a snapshot.

    Returns [] if it has no index manifest, or one that is missing or damaged.
    """
    if snapshot.index_manifest is None:
        return []
    try:
        return read_index_manifest(table.io, table.paths, snapshot.index_manifest)
    except FormatError:
        return []


def metadata_names(table: FileStoreTable, snapshots: Iterable[Snapshot]) -> set[str]:
    """Return the names of manifests, lists, index and statistics files that snapshots need.

    Raises FormatError if a manifest list or index manifest is missing or damaged.
    """
    names: set[str] = set()
    for snapshot in snapshots:
        for manifest_list in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
            names.add(manifest_list)
            names |= {m.file_name for m in read_manifest_list(table.io, table.paths, manifest_list)}
        if snapshot.index_manifest is not None:
            index_files = read_index_manifest(table.io, table.paths, snapshot.index_manifest)
            names |= {snapshot.index_manifest, *(entry.file_name for entry in index_files)}
        if snapshot.statistics is not None:
            names.add(snapshot.statistics)
    return names


def index_and_statistics(
    table: FileStoreTable, snapshots: Sequence[Snapshot], kept: set[str]
) -> list[str]:
    """Return the paths of index files, index manifests and statistics of snapshots.

    Files with a name in `kept` are left out.
    """
    paths: dict[str, None] = {}
    read: set[str] = set()
    for snapshot in snapshots:
        name = snapshot.index_manifest
        if name is not None and name not in read:
            read.add(name)
            expired_indexes = [e for e in indexes_of(table, snapshot) if e.file_name not in kept]
            paths.update((index_path(table, entry), None) for entry in expired_indexes)
            if name not in kept:
                paths[table.paths.manifest(name)] = None
        if snapshot.statistics is not None and snapshot.statistics not in kept:
            paths[table.paths.statistics(snapshot.statistics)] = None
    return list(paths)


def file_key(entry: ManifestEntry) -> tuple[bytes, int, str]:
    """Return partition, bucket and name of a data file, which identify it in every level."""
    return entry.partition, entry.bucket, entry.file.file_name


def _entries(table: FileStoreTable, list_name: str) -> Iterable[ManifestEntry]:
    for meta in read_manifest_list(table.io, table.paths, list_name):
        yield from read_manifest(table.io, table.paths, meta.file_name)


def _skipped(snapshot: Snapshot, error: FormatError) -> None:
    context = {"snapshot": snapshot.id, "error": error.message}
    _LOG.warning("expired_manifest_is_gone", extra={"ctx": context})
