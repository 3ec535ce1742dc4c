"""Find the files that snapshots, tags and branches of a table refer to.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot

A file may be deleted only if no snapshot, tag, long-lived changelog or branch refers to it.
`UsedFiles` collects names; because an unneeded name does no harm, files of DELETE entries count as
used. `files_of` returns the exact paths of one snapshot. A file that cannot be read is an error,
unless its snapshot has expired in the meantime.
"""

import contextlib
import logging
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ingestd.errors import FormatError
from ingestd.paimon.io.local import local_path
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.paths import MAIN_BRANCH
from ingestd.paimon.spec.snapshot import Snapshot, parse_snapshot
from ingestd.paimon.table.files.data_file_indexes import index_file_path
from ingestd.paimon.table.files.data_files import live_path
from ingestd.paimon.table.metadata.file_store_scan import (
    live_files,
    read_index_manifest,
    read_manifest,
    read_manifest_list,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_entries import read_index_entries
from ingestd.paimon.table.metadata.index_paths import index_path
from ingestd.paimon.table.metadata.long_lived_changelogs import changelog_ids
from ingestd.paimon.table.metadata.schema_manager import latest_schema
from ingestd.paimon.table.metadata.snapshot_manager import (
    find_changelog,
    find_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.metadata.table_state import is_same_snapshot
from ingestd.paimon.table.metadata.time_travel import (
    branch_names,
    on_branch,
    tagged_snapshots,
)

_LOG = logging.getLogger(__name__)
Reference = tuple[FileStoreTable, Snapshot]
"""A snapshot, and the table on the branch of this snapshot."""
_REFERENCE = re.compile(r"snapshot-\d+|tag-(?!success-file$).*", re.DOTALL)


class Mark(NamedTuple):
    """The file of a snapshot or tag: its branch, path, and modification time (ms of the epoch)."""

    branch: str
    path: str
    modified_ms: int


@dataclass(slots=True)
class UsedFiles:
    """Names of used files, collected snapshot by snapshot; each manifest is read once.

    Only names in `of_interest` are collected (None: all).
    """

    of_interest: frozenset[str] | None = None
    names: set[str] = field(default_factory=set)
    _seen: set[str] = field(default_factory=set)

    def add_table(self, table: FileStoreTable, *, without: FileStoreTable | None = None) -> None:
        """Add the files of all snapshots, tags and long-lived changelogs of a table's branches.

        The branch of `without` is left out (None: all are added). Raises FormatError if a metadata
        file is missing or damaged.
        """
        for branch in all_branches(table):
            if without is None or branch.branch != without.branch:
                self.add_branch(branch)

    def add_branch(self, branch: FileStoreTable) -> None:
        """Add the files of all snapshots, tags and long-lived changelogs of a branch.

        A repeated call adds the files of those created since. Raises FormatError if a metadata file
        is missing or damaged.
        """
        for snapshot in _kept_snapshots(branch):
            self._add_kept(branch, snapshot)
        self.add_changelogs(branch)

    def add_changelogs(self, branch: FileStoreTable) -> None:
        """Add the files to which the long-lived changelogs of a branch refer.

        Raises FormatError if a metadata file is damaged.
        """
        for changelog_id in changelog_ids(branch):
            changelog = find_changelog(branch.io, branch.paths, changelog_id)
            if changelog is not None:
                self._add_changelog(branch, changelog)

    def _add_kept(self, branch: FileStoreTable, snapshot: Snapshot) -> None:
        try:
            self.add_snapshot(branch, snapshot)
        except FormatError:
            if is_kept(branch, snapshot):
                raise

    def add_snapshot(self, branch: FileStoreTable, snapshot: Snapshot) -> None:
        """Add all files to which a snapshot refers.

        Manifests of its changelog may be missing, because they are deleted when the snapshot
        expires, even if a tag keeps the snapshot. Raises FormatError if another metadata file is
        missing, or if one is damaged.
        """
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        self._add_lists(branch, lists)
        self._add_existing_lists(branch, [snapshot.changelog_manifest_list])
        if snapshot.index_manifest is not None and self._is_new(snapshot.index_manifest):
            entries = read_index_manifest(branch.io, branch.paths, snapshot.index_manifest)
            self._use(entry.file_name for entry in entries)
        if snapshot.statistics is not None:
            self._use([snapshot.statistics])

    def _add_changelog(self, branch: FileStoreTable, changelog: Snapshot) -> None:
        """Add all existing files to which a long-lived changelog refers.

        Manifest lists and manifests that do not contain the changelog's own changes may have been
        deleted with its snapshot, so that a missing file is not an error.
        """
        lists = (
            changelog.base_manifest_list,
            changelog.delta_manifest_list,
            changelog.changelog_manifest_list,
        )
        self._add_existing_lists(branch, lists)

    def _add_existing_lists(self, branch: FileStoreTable, lists: Iterable[str | None]) -> None:
        for name in lists:
            if name is not None and branch.io.exists(branch.paths.manifest(name)):
                self._add_lists(branch, [name], missing_ok=True)

    def _add_lists(
        self, branch: FileStoreTable, lists: Iterable[str], *, missing_ok: bool = False
    ) -> None:
        for name in lists:
            if not self._is_new(name):
                continue
            for meta in read_manifest_list(branch.io, branch.paths, name):
                path = branch.paths.manifest(meta.file_name)
                if self._is_new(meta.file_name) and not (missing_ok and not branch.io.exists(path)):
                    self._add_manifest(branch, meta.file_name)

    def _add_manifest(self, branch: FileStoreTable, name: str) -> None:
        for entry in read_manifest(branch.io, branch.paths, name):
            self._use([entry.file.file_name, *entry.file.extra_files])

    def _is_new(self, name: str) -> bool:
        """Record a file that refers to other files; return whether it was not recorded before."""
        self._use([name])
        new = name not in self._seen
        self._seen.add(name)
        return new

    def _use(self, names: Iterable[str]) -> None:
        if self.of_interest is None:
            self.names.update(names)
        else:
            self.names.update(name for name in names if name in self.of_interest)


def all_branches(table: FileStoreTable) -> list[FileStoreTable]:
    """Return the table on its main branch and on each other branch.

    A branch without a schema, whose creation or deletion is in progress or was interrupted, may
    have snapshots as well; it gets the schema of the main branch.
    """
    main = on_branch(table, MAIN_BRANCH)
    branches = [replace(main, branch=name) for name in branch_names(main.io, main.paths)]
    schemas = [latest_schema(branch.io, branch.paths) or main.schema for branch in branches]
    return [main, *map(FileStoreTable.with_schema, branches, schemas)]


def is_kept(branch: FileStoreTable, snapshot: Snapshot, *, but_tag: str | None = None) -> bool:
    """Return whether a snapshot still exists on its branch, as a snapshot or as a tag.

    The tag `but_tag` does not count. Raises FormatError if a file of these is damaged.
    """
    if is_same_snapshot(find_snapshot(branch.io, branch.paths, snapshot.id), snapshot):
        return True
    tagged = tagged_snapshots(branch)
    return any(is_same_snapshot(tagged[name], snapshot) for name in tagged if name != but_tag)


def _kept_snapshots(branch: FileStoreTable) -> Iterator[Snapshot]:
    yield from tagged_snapshots(branch).values()
    for snapshot_id in snapshot_ids(branch.io, branch.paths):
        snapshot = find_snapshot(branch.io, branch.paths, snapshot_id)
        if snapshot is not None:
            yield snapshot


def referring_snapshots(table: FileStoreTable, *, but_tags: Collection[str]) -> list[Reference]:
    """Return the snapshots and tagged snapshots of all branches, each with the table on its branch.

    The tags `but_tags` of the table's own branch are left out. Raises FormatError if a snapshot or
    tag is damaged.
    """
    references: list[Reference] = []
    for branch in all_branches(table):
        ids = snapshot_ids(branch.io, branch.paths)
        snapshots = (find_snapshot(branch.io, branch.paths, id_) for id_ in ids)
        references += [(branch, snapshot) for snapshot in snapshots if snapshot is not None]
        for name, tagged in tagged_snapshots(branch).items():
            if name not in but_tags or branch.branch != table.branch:
                references.append((branch, tagged))
    return references


def reference_marks(
    branches: Iterable[FileStoreTable], *, only_tags: bool = False
) -> frozenset[Mark]:
    """Return a mark of each snapshot and tag of some branches, for `files_of_new_references`.

    With `only_tags`, snapshots are left out.
    """
    return frozenset(
        Mark(branch.branch, f"{directory}/{entry.name}", entry.modified_ms)
        for branch in branches
        for directory in (branch.paths.tag_dir, branch.paths.snapshot_dir)[: 2 - only_tags]
        for entry in branch.io.list_entries(directory)
        if _REFERENCE.fullmatch(entry.name)
    )


def files_of_new_references(
    branches: Iterable[FileStoreTable], known: frozenset[Mark], *, only_tags: bool = False
) -> set[str]:
    """Return the paths of all files of the snapshots and tags of `branches` not among `known`.

    These were created, or moved to another snapshot, since `known` was returned by
    `reference_marks`, called with the same `only_tags`. Raises FormatError if a metadata file is
    missing or damaged.
    """
    by_name = {branch.branch: branch for branch in branches}
    paths: set[str] = set()
    for mark in reference_marks(by_name.values(), only_tags=only_tags) - known:
        branch = by_name[mark.branch]
        with contextlib.suppress(FileNotFoundError):
            snapshot = parse_snapshot(branch.io.read_bytes(mark.path), mark.path)
            paths |= _files_if_kept(branch, snapshot)
    return paths


def _files_if_kept(branch: FileStoreTable, snapshot: Snapshot) -> set[str]:
    """Return the result of `files_of`, or no paths if the snapshot has been deleted meanwhile."""
    try:
        return files_of(branch, snapshot)
    except FormatError:
        if is_kept(branch, snapshot):
            raise
        return set()


def files_of(table: FileStoreTable, snapshot: Snapshot) -> set[str]:
    """Return the paths of all files that a reader of a snapshot may open.

    The snapshot file is not included. Raises FormatError if a metadata file is missing or damaged.
    """
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
            paths.add(index_path(table, index))
    if snapshot.statistics is not None:
        paths.add(table.paths.statistics(snapshot.statistics))
    return paths


def data_paths(table: FileStoreTable, entry: ManifestEntry) -> list[str]:
    """Return the paths of a data file and of its extra files."""
    file_key = (table, entry.partition, entry.bucket, entry.file)
    extra = (index_file_path(*file_key, name) for name in entry.file.extra_files)
    return [live_path(*file_key), *extra]


def own_files(table: FileStoreTable, paths: Iterable[str]) -> list[str]:
    """Return the paths that are below the table directory, or its `data-file.external-paths`.

    They are in the given order. Other files must not be deleted, even if manifests contain them;
    their paths are logged.
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


def unneeded_files(
    table: FileStoreTable, paths: Iterable[str], others: Sequence[Reference]
) -> list[str]:
    """Return the paths, sorted, of the table's own files that no snapshot of `others` needs.

    `others` has pairs of a table on a branch and a snapshot. Raises FormatError if a metadata file
    of such a snapshot is missing or damaged.
    """
    kept: set[str] = set()
    for branch, snapshot in others:
        kept |= _files_if_kept(branch, snapshot)
    return sorted(own_files(table, set(paths) - kept))


def _plain(path: str) -> str:
    return local_path(path.strip()).rstrip("/")


def _is_below(path: str, root: str) -> bool:
    return path.startswith(f"{root}/") and ".." not in path.split("/")
