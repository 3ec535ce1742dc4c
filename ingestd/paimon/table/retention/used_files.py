"""Collect the files that any snapshot, tag or branch of a table may need.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot

Unneeded names do no harm: a file that only a DELETE entry contains counts as used. A file that
cannot be read is an error, unless its snapshot has expired at the same time.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ingestd.errors import FormatError
from ingestd.paimon.spec.paths import MAIN_BRANCH
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.long_lived_changelogs import changelog_ids
from ingestd.paimon.table.metadata.scan import (
    read_index_manifest,
    read_manifest,
    read_manifest_list,
)
from ingestd.paimon.table.metadata.snapshot_manager import (
    find_changelog,
    find_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.metadata.time_travel import (
    branch_names,
    on_branch,
    tag_names,
    tagged_snapshot,
)

ReadAgain = Callable[[], Snapshot | None]
"""Returns whether a snapshot, tag or changelog still exists."""


@dataclass(slots=True)
class UsedFiles:
    """Names of used files, collected snapshot by snapshot; each manifest is read once.

    Only names in `of_interest` are collected (None: all).
    """

    of_interest: frozenset[str] | None = None
    names: set[str] = field(default_factory=set)
    _seen: set[str] = field(default_factory=set)

    def add_table(self, table: FileStoreTable, *, without: FileStoreTable | None = None) -> None:
        """Add all snapshots, tags and long-lived changelogs of all branches except one.

        Raises FormatError if a file of one of them is missing or damaged.
        """
        for line in all_lines(table):
            if without is None or line.branch != without.branch:
                self.add_line(line)

    def add_line(self, line: FileStoreTable) -> None:
        """Add all snapshots, tags and long-lived changelogs of a branch; a repeated call adds new
        ones.
        """
        for snapshot, read_again in _kept_snapshots(line):
            self._add_kept(line, snapshot, read_again)
        self.add_changelogs(line)

    def add_changelogs(self, line: FileStoreTable) -> None:
        """Add all long-lived changelogs of a branch."""
        for changelog_id in changelog_ids(line):
            changelog = find_changelog(line.io, line.paths, changelog_id)
            if changelog is not None:
                self._add_changelog(line, changelog)

    def _add_kept(self, line: FileStoreTable, snapshot: Snapshot, read_again: ReadAgain) -> None:
        try:
            self.add_snapshot(line, snapshot)
        except FormatError:
            if read_again() is not None:
                raise

    def add_snapshot(self, line: FileStoreTable, snapshot: Snapshot) -> None:
        """Add all files that a snapshot refers to."""
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        self._add_lists(line, lists)
        if snapshot.changelog_manifest_list is not None:
            self._add_lists(line, [snapshot.changelog_manifest_list])
        if snapshot.index_manifest is not None and self._is_new(snapshot.index_manifest):
            entries = read_index_manifest(line.io, line.paths, snapshot.index_manifest)
            self._use(entry.file_name for entry in entries)
        if snapshot.statistics is not None:
            self._use([snapshot.statistics])

    def _add_changelog(self, line: FileStoreTable, changelog: Snapshot) -> None:
        """Add the existing manifest lists of a long-lived changelog.

        Lists without its changes may have been deleted, so a missing one is not an error.
        """
        lists = (
            changelog.base_manifest_list,
            changelog.delta_manifest_list,
            changelog.changelog_manifest_list,
        )
        for name in lists:
            if name is not None and line.io.exists(line.paths.manifest(name)):
                self._add_lists(line, [name], missing_ok=True)

    def _add_lists(
        self, line: FileStoreTable, lists: Iterable[str], *, missing_ok: bool = False
    ) -> None:
        for name in lists:
            if not self._is_new(name):
                continue
            for meta in read_manifest_list(line.io, line.paths, name):
                path = line.paths.manifest(meta.file_name)
                if self._is_new(meta.file_name) and not (missing_ok and not line.io.exists(path)):
                    self._add_manifest(line, meta.file_name)

    def _add_manifest(self, line: FileStoreTable, name: str) -> None:
        for entry in read_manifest(line.io, line.paths, name):
            self._use([entry.file.file_name, *entry.file.extra_files])

    def _is_new(self, name: str) -> bool:
        """Record a file that refers to others; return whether it was new."""
        self._use([name])
        new = name not in self._seen
        self._seen.add(name)
        return new

    def _use(self, names: Iterable[str]) -> None:
        if self.of_interest is None:
            self.names.update(names)
        else:
            self.names.update(name for name in names if name in self.of_interest)


def all_lines(table: FileStoreTable) -> list[FileStoreTable]:
    """Return the table on its main branch and on each other branch.

    Raises ConfigError if a branch has no schema.
    """
    main = on_branch(table, MAIN_BRANCH)
    return [main, *(on_branch(main, name) for name in branch_names(main.io, main.paths))]


def _kept_snapshots(line: FileStoreTable) -> Iterator[tuple[Snapshot, ReadAgain]]:
    io, paths = line.io, line.paths
    for name in tag_names(io, paths):
        yield tagged_snapshot(line, name), _tag_reader(line, name)
    for snapshot_id in snapshot_ids(io, paths):
        snapshot = find_snapshot(io, paths, snapshot_id)
        if snapshot is not None:
            yield snapshot, _snapshot_reader(line, snapshot_id)


def _snapshot_reader(line: FileStoreTable, snapshot_id: int) -> ReadAgain:
    return lambda: find_snapshot(line.io, line.paths, snapshot_id)


def _tag_reader(line: FileStoreTable, name: str) -> ReadAgain:
    return lambda: tagged_snapshot(line, name) if name in tag_names(line.io, line.paths) else None
