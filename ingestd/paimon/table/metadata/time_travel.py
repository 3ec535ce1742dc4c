"""Find snapshots by tag or time, and tables by branch.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot
"""

import contextlib
from dataclasses import replace

from ingestd.errors import ArgumentError, FormatError
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.paths import MAIN_BRANCH, TablePaths
from ingestd.paimon.spec.snapshot import Snapshot, parse_snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import latest_schema
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot, snapshot_ids

_TAG = "tag-"
_TAG_SUCCESS_DIRECTORY = "tag-success-file"
_BRANCH = "branch-"


def tag_path(paths: TablePaths, name: str) -> str:
    """Return the path of a tag's file."""
    return f"{paths.tag_dir}/{_TAG}{name}"


def tag_success_path(paths: TablePaths, name: str) -> str:
    """Return the path of the success file of a tag, which signals that the tag was created."""
    return f"{paths.tag_dir}/{_TAG_SUCCESS_DIRECTORY}/{name}_SUCCESS"


def tag_names(io: FileIO, paths: TablePaths) -> list[str]:
    """Return the names of all tags, sorted."""
    names = {name for name in io.list_names(paths.tag_dir) if name.startswith(_TAG)}
    return sorted(name.removeprefix(_TAG) for name in names - {_TAG_SUCCESS_DIRECTORY})


def tag_bytes(io: FileIO, paths: TablePaths, name: str) -> bytes:
    """Return the content of a tag's file.

    Raises ArgumentError, with the existing tags, if the tag does not exist.
    """
    try:
        return io.read_bytes(tag_path(paths, name))
    except FileNotFoundError as error:
        existing = ", ".join(tag_names(io, paths)) or "none"
        raise ArgumentError(f"{paths.root} has no tag '{name}'; its tags: {existing}") from error


def tagged_snapshot(table: FileStoreTable, name: str) -> Snapshot:
    """Return the snapshot of a tag, even if the snapshot has expired.

    Raises ArgumentError if the tag does not exist, FormatError if its file is damaged.
    """
    data = tag_bytes(table.io, table.paths, name)
    return parse_snapshot(data, tag_path(table.paths, name))


def tagged_snapshots(table: FileStoreTable) -> dict[str, Snapshot]:
    """Return the snapshots of all tags by name, sorted; tags deleted meanwhile are left out.

    Raises FormatError if the file of a tag is damaged.
    """
    tagged = {}
    for name in tag_names(table.io, table.paths):
        with contextlib.suppress(ArgumentError):
            tagged[name] = tagged_snapshot(table, name)
    return tagged


def snapshot_as_of(table: FileStoreTable, millis: int) -> Snapshot:
    """Return the newest snapshot committed at or before a time (milliseconds of the epoch).

    Raises ArgumentError if the table had no snapshot at that time or the snapshot has expired, and
    FormatError if a snapshot expires during the search.
    """
    latest: Snapshot | None = None
    ids = snapshot_ids(table.io, table.paths)
    low, high = 0, len(ids) - 1
    while low <= high:
        middle = (low + high) // 2
        snapshot = find_snapshot(table.io, table.paths, ids[middle])
        if snapshot is None:
            raise FormatError(f"snapshot {ids[middle]} of {table.name} vanished; try again")
        if snapshot.time_millis <= millis:
            latest, low = snapshot, middle + 1
        else:
            high = middle - 1
    if latest is None:
        raise ArgumentError(
            f"table {table.name} has no snapshot at or before that time; it did not exist yet, or "
            "the snapshot has expired"
        )
    return latest


def branch_names(io: FileIO, paths: TablePaths) -> list[str]:
    """Return the names of the branches except the main branch, sorted."""
    names = io.list_names(paths.branches_dir)
    return sorted(name.removeprefix(_BRANCH) for name in names if name.startswith(_BRANCH))


def on_branch(table: FileStoreTable, branch: str) -> FileStoreTable:
    """Return the table on a branch, with the newest schema of the branch.

    Raises ArgumentError if the branch does not exist, FormatError if its schema file is invalid.
    """
    paths = TablePaths(table.path, branch)
    schema = latest_schema(table.io, paths)
    if schema is None and branch in branch_names(table.io, paths):
        raise ArgumentError(
            f"branch '{branch}' of table {table.name} has no schema, because its creation or "
            f"deletion was interrupted; delete it with `ingestd branch delete {table.warehouse} "
            f"{table.name} {branch}`"
        )
    if schema is None:
        existing = ", ".join([MAIN_BRANCH, *branch_names(table.io, paths)])
        raise ArgumentError(
            f"table {table.name} has no branch '{branch}'; its branches: {existing}"
        )
    return replace(table, schema=schema, branch=branch)
