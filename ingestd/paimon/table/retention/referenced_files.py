"""Find the files that a snapshot refers to, and the snapshots that refer to a file.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot

A file may be deleted only if no snapshot, tag or branch refers to it. All of them are checked, so
that an incomplete deletion leaves orphan files and never a missing file.
"""

import logging
from collections.abc import Iterable, Sequence

from ingestd.paimon.io.local import local_path
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.paths import MAIN_BRANCH
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.files.data_files import live_path
from ingestd.paimon.table.files.deletion_vectors import dv_index_path
from ingestd.paimon.table.files.file_index import index_file_path
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_entries import read_index_entries
from ingestd.paimon.table.metadata.scan import live_files, read_manifest_list
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot, snapshot_ids
from ingestd.paimon.table.metadata.time_travel import (
    branch_names,
    on_branch,
    tag_names,
    tagged_snapshot,
)

_LOG = logging.getLogger(__name__)

Reference = tuple[FileStoreTable, Snapshot]
"""A snapshot, and the table on the branch of this snapshot."""


def referring_snapshots(table: FileStoreTable, *, but_tag: str | None = None) -> list[Reference]:
    """List the snapshots and tags of all branches of a table, except one tag of its own branch."""
    main = on_branch(table, MAIN_BRANCH)
    lines = [main, *(on_branch(main, name) for name in branch_names(main.io, main.paths))]
    references: list[Reference] = []
    for line in lines:
        ids = snapshot_ids(line.io, line.paths)
        there = (find_snapshot(line.io, line.paths, id_) for id_ in ids)
        references += [(line, snapshot) for snapshot in there if snapshot is not None]
        for name in tag_names(line.io, line.paths):
            if name != but_tag or line.branch != table.branch:
                references.append((line, tagged_snapshot(line, name)))
    return references


def files_of(table: FileStoreTable, snapshot: Snapshot) -> set[str]:
    """Return the paths of all files that a reader of a snapshot may open, except its own file."""
    names = [snapshot.base_manifest_list, snapshot.delta_manifest_list]
    paths = {table.paths.manifest(name) for name in names}
    for name in names:
        metas = read_manifest_list(table.io, table.paths, name)
        paths |= {table.paths.manifest(meta.file_name) for meta in metas}
    for entry in live_files(table, snapshot):
        paths |= set(data_paths(table, entry))
    if snapshot.index_manifest is not None:
        path = table.paths.manifest(snapshot.index_manifest)
        by_key, repeated = read_index_entries(table.io, path)
        paths.add(path)
        for index in (*by_key.values(), *repeated):
            paths.add(dv_index_path(table, index))
    if snapshot.statistics is not None:
        paths.add(table.paths.statistics(snapshot.statistics))
    return paths


def data_paths(table: FileStoreTable, entry: ManifestEntry) -> list[str]:
    """Return the paths of a data file and of its extra files."""
    file_key = (table, entry.partition, entry.bucket, entry.file)
    extra = (index_file_path(*file_key, name) for name in entry.file.extra_files)
    return [live_path(*file_key), *extra]


def own_files(table: FileStoreTable, paths: Iterable[str]) -> list[str]:
    """Return the paths that are below the table, or below its `data-file.external-paths`.

    Other files are not deleted, even if manifests contain them; they are logged.
    """
    external = honoured.EXTERNAL_PATHS.of(table.schema.options)
    roots = [_plain(root) for root in (table.path, *external) if root.strip()]
    file_paths: list[str] = []
    for path in paths:
        if any(_is_below(_plain(path), root) for root in roots):
            file_paths.append(path)
        else:
            _LOG.warning(
                "file_outside_of_table_kept", extra={"ctx": {"table": table.name, "path": path}}
            )
    return file_paths


def delete_unless_kept(
    table: FileStoreTable, paths: Iterable[str], others: Sequence[Reference]
) -> list[str]:
    """Delete the files that no given snapshot needs; return their paths, sorted."""
    kept: set[str] = set()
    for line, snapshot in others:
        kept |= files_of(line, snapshot)
    gone = sorted(own_files(table, set(paths) - kept))
    for path in gone:
        table.io.delete_quietly(path)
    return gone


def _plain(path: str) -> str:
    return local_path(path.strip()).rstrip("/")


def _is_below(path: str, root: str) -> bool:
    return path.startswith(f"{root}/") and ".." not in path.split("/")
