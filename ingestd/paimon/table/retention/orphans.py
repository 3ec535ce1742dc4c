"""Find and delete orphan files: files of a table that no snapshot, tag or branch refers to.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-snapshots/#remove-orphan-files

Writers and readers may run at the same time: only files older than a limit, by default a day, are
considered, and a commit that takes longer checks that its files still exist. Ages are measured by
the clock of the store. Candidates are listed before the files in use, so that concurrent commits
count. Links are not followed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ingestd.paimon.io.file_io import DirectoryEntry
from ingestd.paimon.io.local import local_path
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.table.commit.snapshot_changes import LONG_COMMIT_SECONDS
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.retention.expire_snapshots import delete_empty_directories
from ingestd.paimon.table.retention.referenced_files import UsedFiles, all_branches

ORPHAN_AGE_FLOOR_MS = 2 * LONG_COMMIT_SECONDS * 1000
"""Minimum age of orphan files in milliseconds: younger files may belong to a commit in progress."""

_BUCKET = "bucket-"
_SNAPSHOT = re.compile(r"snapshot-\d+|LATEST|EARLIEST")
_CHANGELOG = re.compile(r"changelog-\d+|LATEST|EARLIEST")


@dataclass(frozen=True, slots=True)
class Orphan:
    """A file without references; `size` is in bytes, `modified_ms` in milliseconds of the epoch."""

    path: str
    size: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Orphans:
    """Unreferenced files, and the paths of empty bucket directories; both are sorted by path."""

    files: tuple[Orphan, ...]
    directories: tuple[str, ...]


def find_orphans(table: FileStoreTable, older_than_ms: int, *, external: bool = False) -> Orphans:
    """Return unreferenced files, and empty directories of buckets, that are older than a time.

    Files and directories count if they were last modified before `older_than_ms`, in milliseconds
    of the epoch by the store's clock (`store_now_ms`). With `external`, the directories of
    `data-file.external-paths` are searched, too; they must have no files of other tables. Raises
    FormatError or ArgumentError if a snapshot, tag or branch is damaged, because the files to which
    it refers are then unknown.
    """
    unlisted: list[Orphan] = []
    for branch in all_branches(table):
        unlisted += _unlisted_files(branch, branch.paths.snapshot_dir, _SNAPSHOT, older_than_ms)
        unlisted += _unlisted_files(branch, branch.paths.changelog_dir, _CHANGELOG, older_than_ms)
    candidates: list[Orphan] = []
    empty: list[str] = []
    for directory, entries in _listings(table, external=external):
        candidates += _old_files(directory, entries, older_than_ms)
        if not entries and _is_bucket(directory):
            empty.append(directory)
    used = UsedFiles(frozenset(_name(candidate.path) for candidate in candidates))
    if candidates:
        used.add_table(table)
        # Again, for snapshots committed during the first pass.
        used.add_table(table)
    unused = [candidate for candidate in candidates if _name(candidate.path) not in used.names]
    old = [folder for folder in empty if _is_old(table, folder, older_than_ms)]
    files = sorted([*unlisted, *unused], key=lambda entry: entry.path)
    return Orphans(tuple(files), tuple(sorted(old)))


def remove_orphans(table: FileStoreTable, orphans: Orphans) -> None:
    """Delete orphan files, and the directories of buckets and partitions that are empty then."""
    for file in orphans.files:
        table.io.delete_quietly(file.path)
    buckets = {entry.path.rpartition("/")[0]: None for entry in orphans.files}
    for directory in (*orphans.directories, *filter(_is_bucket, buckets)):
        delete_empty_directories(table, directory)


def _unlisted_files(
    branch: FileStoreTable, directory: str, known: re.Pattern[str], older_than_ms: int
) -> list[Orphan]:
    """Return the old files of a snapshot or changelog directory that do not match `known`."""
    if not _is_inside(branch, directory):
        return []
    entries = [e for e in branch.io.list_entries(directory) if not known.fullmatch(e.name)]
    return _old_files(directory, entries, older_than_ms)


def _old_files(directory: str, entries: list[DirectoryEntry], older_than_ms: int) -> list[Orphan]:
    return [
        Orphan(f"{directory}/{entry.name}", entry.size, entry.modified_ms)
        for entry in entries
        if not entry.is_directory and entry.modified_ms < older_than_ms
    ]


def _file_directories(table: FileStoreTable) -> Iterator[str]:
    """Yield the directories of the table that have referenced files: of metadata, and buckets."""
    paths = table.paths
    metadata = (paths.manifest_dir, paths.index_dir, f"{paths.root}/statistics")
    yield from (directory for directory in metadata if _is_inside(table, directory))
    data = f"{paths.root}/{honoured.DATA_FILE_DIRECTORY.of(table.schema.options)}".rstrip("/")
    if data == paths.root or _is_inside(table, data):
        yield from _buckets(table, data, len(table.schema.partition_keys))


def _listings(
    table: FileStoreTable, *, external: bool
) -> Iterator[tuple[str, list[DirectoryEntry]]]:
    """Yield the directories that have referenced files, each with its entries.

    With `external`, these include buckets in external paths, and the directories that entropy adds
    below them.
    """
    for directory in _file_directories(table):
        yield directory, table.io.list_entries(directory)
    for bucket in _external_buckets(table) if external else ():
        yield from _tree(table, bucket)


def _external_buckets(table: FileStoreTable) -> Iterator[str]:
    options = table.schema.options
    above = honoured.DATA_FILE_DIRECTORY.of(options)
    for root in dict.fromkeys(filter(None, map(str.strip, honoured.EXTERNAL_PATHS.of(options)))):
        data = f"{local_path(root).rstrip('/')}/{above}".rstrip("/")
        yield from _buckets(table, data, len(table.schema.partition_keys))


def _tree(table: FileStoreTable, directory: str) -> Iterator[tuple[str, list[DirectoryEntry]]]:
    entries = table.io.list_entries(directory)
    yield directory, entries
    for entry in entries:
        if entry.is_directory:
            yield from _tree(table, f"{directory}/{entry.name}")


def _buckets(table: FileStoreTable, directory: str, depth: int) -> Iterator[str]:
    for entry in table.io.list_entries(directory):
        path = f"{directory}/{entry.name}"
        if not entry.is_directory:
            continue
        if depth and "=" in entry.name:
            yield from _buckets(table, path, depth - 1)
        elif not depth and entry.name.startswith(_BUCKET):
            yield path


def _is_inside(table: FileStoreTable, directory: str) -> bool:
    """Return whether a directory of the table exists and its path contains no link."""
    parent = table.path
    for name in directory.removeprefix(f"{parent}/").split("/"):
        if not any(e.is_directory for e in table.io.list_entries(parent) if e.name == name):
            return False
        parent = f"{parent}/{name}"
    return True


def _is_bucket(directory: str) -> bool:
    return _name(directory).startswith(_BUCKET)


def _is_old(table: FileStoreTable, directory: str, older_than_ms: int) -> bool:
    """Return whether a directory was last modified before a time, so that no writer uses it.

    The time is in milliseconds of the epoch by the store's clock.
    """
    parent, _, name = directory.rpartition("/")
    entries = table.io.list_entries(parent)
    return any(entry.name == name and entry.modified_ms < older_than_ms for entry in entries)


def _name(path: str) -> str:
    return path.rpartition("/")[2]
