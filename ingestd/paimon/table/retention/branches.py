"""Branches: separate histories of snapshots over the files of one table.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-branches/#manage-branches

A branch has its own schemas, snapshots, tags and consumers below `branch/branch-<name>`; data
files, manifests and indexes are in the directories of the main branch.
"""

from ingestd.errors import ConfigError, FormatError
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.paths import MAIN_BRANCH, TablePaths
from ingestd.paimon.spec.snapshot import BASE_PROPERTY, Snapshot, encode_snapshot
from ingestd.paimon.table.metadata.file_store_scan import (
    live_entries,
    live_files,
    read_manifest_list,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.long_lived_changelogs import (
    cut_changelogs,
    without_deleted_changelog,
)
from ingestd.paimon.table.metadata.schema_manager import schema_ids
from ingestd.paimon.table.metadata.snapshot_manager import (
    earliest_snapshot_id,
    find_changelog,
    find_snapshot,
    read_snapshot,
    snapshot_ids,
    write_hints,
)
from ingestd.paimon.table.metadata.table_state import is_same_snapshot
from ingestd.paimon.table.metadata.time_travel import (
    branch_names,
    on_branch,
    tag_bytes,
    tag_names,
    tag_path,
    tagged_snapshot,
    tagged_snapshots,
)
from ingestd.paimon.table.retention.tags import check_name

_FORWARDED = "fast-forward-"
_BRANCH_OPTIONS = (honoured.SCAN_FALLBACK.name, "scan.primary-branch")


def create_branch(table: FileStoreTable, name: str, tag: str | None = None) -> FileStoreTable:
    """Create a branch from a tag, or an empty branch with the schemas of the table.

    A branch from a tag begins with the snapshot of the tag, and has the schemas up to that of the
    snapshot. The tag should exist as long as the branch: it keeps the shared files when snapshots
    of the main branch expire. Returns the table on the branch. Raises ConfigError if the branch
    exists, its name is invalid, or the tag does not exist; FormatError if files of an interrupted
    call differ.
    """
    check_new_branch(table, name)
    branch = TablePaths(table.path, name)
    snapshot = None if tag is None else tagged_snapshot(table, tag)
    newest = table.schema.id if snapshot is None else snapshot.schema_id
    if snapshot is not None and tag is not None:
        _write(table.io, tag_bytes(table.io, table.paths, tag), tag_path(branch, tag))
        try:
            data = table.io.read_bytes(table.paths.snapshot(snapshot.id))
        except FileNotFoundError:  # it has expired
            data = encode_snapshot(without_deleted_changelog(table, snapshot))
        _write(table.io, data, branch.snapshot(snapshot.id))
    # Schemas last: a branch without a schema does not exist.
    for schema_id in schema_ids(table.io, table.paths):
        if schema_id <= newest:
            _copy(table.io, table.paths.schema(schema_id), branch.schema(schema_id))
    # A deletion of the tag looks for new branches after it has deleted the tag.
    if tag is not None and tag not in tag_names(table.io, table.paths):
        table.io.delete_tree(branch.branch_root)
        raise ConfigError(f"tag '{tag}' of table {table.name} was deleted meanwhile")
    return on_branch(table, name)


def drop_branch(table: FileStoreTable, name: str) -> None:
    """Delete a branch. Files to which only the branch referred become orphan files.

    Raises ConfigError if the branch does not exist, or if an option of the table names it.
    """
    check_unused_branch(table, name)
    table.io.delete_tree(TablePaths(table.path, name).branch_root)


def check_unused_branch(table: FileStoreTable, name: str) -> None:
    """Raise ConfigError if a branch does not exist, or if an option of the table names it."""
    _check_exists(table, name)
    for option in _BRANCH_OPTIONS:
        if table.schema.options.get(option) == name:
            raise ConfigError(f"table {table.name}: option '{option}' names branch '{name}'")


def fast_forward(table: FileStoreTable, name: str) -> list[int]:
    """Replace snapshots of the table by those of a branch; return the ids of the replaced ones.

    Replaced are the snapshots from the id of the branch's first snapshot on, or all snapshots (see
    `replaced_snapshots`), and the schemas and tags that belong to them. Long-lived changelogs that
    the branch does not continue are deleted, because their expiry deletes the files that they have
    removed. No writer may run at the same time: its commit would fail, and its expiry could delete
    files. After an interrupted call, the table has its older snapshots, or the first ones of the
    branch; another call finishes it.
    Raises ConfigError if the branch is the table's own, does not exist or has no snapshot.
    """
    replaced = replaced_snapshots(table, name)
    io, paths, branch_paths = table.io, table.paths, on_branch(table, name).paths
    ids = snapshot_ids(io, branch_paths)
    first = ids[0]
    begin = read_snapshot(io, branch_paths, first)
    first_schema = begin.schema_id
    continues = _continues(table, begin)
    cut_changelogs(table, first - 1 if continues else 0)
    _delete_from(table, first, min([first, *replaced]), max(schema_ids(io, branch_paths)))
    for schema_id in schema_ids(io, branch_paths):
        if schema_id >= first_schema:
            io.overwrite(paths.schema(schema_id), io.read_bytes(branch_paths.schema(schema_id)))
    branch_tags = tag_names(io, branch_paths)
    for tag in branch_tags:
        io.overwrite(tag_path(paths, tag), io.read_bytes(tag_path(branch_paths, tag)))
    if not continues:
        _tag_begin(table, begin, branch_tags)
    for snapshot_id in ids:
        _copy(io, branch_paths.snapshot(snapshot_id), paths.snapshot(snapshot_id))
    write_hints(io, paths, ids[-1])
    return replaced


def _continues(table: FileStoreTable, begin: Snapshot) -> bool:
    """Return whether the table's history before a snapshot of a branch is also the branch's.

    It certainly is if the table has the snapshot `begin`, or the one on which it was committed.
    """
    io, paths = table.io, table.paths
    own = find_snapshot(io, paths, begin.id) or find_changelog(io, paths, begin.id)
    if is_same_snapshot(own, begin):
        return True
    below = find_snapshot(io, paths, begin.id - 1)
    if below is not None:
        return _is_base(table, below, begin)
    kept = find_changelog(io, paths, begin.id - 1)
    return kept is not None and begin.properties.get(BASE_PROPERTY) == kept.delta_manifest_list


def _tag_begin(table: FileStoreTable, begin: Snapshot, branch_tags: list[str]) -> None:
    """Tag the first snapshot of a branch that does not continue the history of the table.

    Expiry keeps a file that the nearest older tag has, and a tag of the other history may not have
    a file that an older tag shares with the branch. Nothing is done if there are no such two tags.
    The tag of an earlier fast-forward is not needed any more.
    """
    names = set(tag_names(table.io, table.paths))
    former = {name for name in names if name.startswith(_FORWARDED)}
    for name in former:
        table.io.delete_quietly(tag_path(table.paths, name))
    names -= former
    if len(names) > 1 and not names <= set(branch_tags):
        path = tag_path(table.paths, f"{_FORWARDED}{begin.id}")
        table.io.overwrite(path, encode_snapshot(begin))


def replaced_snapshots(table: FileStoreTable, name: str) -> list[int]:
    """Return the ids of the snapshots of the table that `fast_forward` replaces.

    These are the snapshots from the first id of the branch on. All snapshots are replaced, unless
    the snapshot before that id is the one on which the first snapshot of the branch was committed.
    Raises ConfigError if the branch is the table's own, does not exist or has no snapshot, and
    FormatError if a manifest is missing or damaged.
    """
    if table.branch == name:
        raise ConfigError(f"branch '{name}' of table {table.name} cannot be forwarded to itself")
    _check_exists(table, name)
    source = on_branch(table, name)
    first = earliest_snapshot_id(source.io, source.paths)
    if first is None:
        raise ConfigError(f"branch '{name}' of table {table.name} has no snapshot to forward to")
    ids = snapshot_ids(table.io, table.paths)
    below = find_snapshot(table.io, table.paths, first - 1)
    begin = read_snapshot(source.io, source.paths, first)
    continues = below is not None and _is_base(table, below, begin)
    return [id_ for id_ in ids if id_ >= first] if continues else ids


def _is_base(table: FileStoreTable, below: Snapshot, begin: Snapshot) -> bool:
    """Return whether `begin`, of a branch, was committed on the table's snapshot `below`.

    Many snapshots do not name their base, such as those of compactions and of other programs. Then
    the files of `below` must be those of the base list of `begin`: an expiry of snapshots deletes
    the files that are not in the next one.
    """
    named = begin.properties.get(BASE_PROPERTY)
    if named is not None:
        return named == below.delta_manifest_list
    manifests = read_manifest_list(table.io, table.paths, begin.base_manifest_list)
    base, live = live_entries(table, manifests), live_files(table, below)
    return {entry.identifier for entry in base} == {entry.identifier for entry in live}


def _delete_from(table: FileStoreTable, first_tag: int, first: int, last_schema: int) -> None:
    """Delete snapshots from the id `first` on, and schemas after the id `last_schema`.

    Tags of snapshots from the id `first_tag` on are deleted before them. Of snapshots and schemas,
    the newest are deleted first.
    """
    io, paths = table.io, table.paths
    for tag, snapshot in tagged_snapshots(table).items():
        if snapshot.id >= first_tag:
            io.delete_quietly(tag_path(paths, tag))
    io.delete_quietly(paths.latest_hint)
    for snapshot_id in reversed(snapshot_ids(io, paths)):
        if snapshot_id >= first:
            io.delete_quietly(paths.snapshot(snapshot_id))
    if not snapshot_ids(io, paths):
        io.delete_quietly(paths.earliest_hint)
    for schema_id in reversed(schema_ids(io, paths)):
        if schema_id > last_schema:
            io.delete_quietly(paths.schema(schema_id))


def check_new_branch(table: FileStoreTable, name: str) -> None:
    """Raise ConfigError if the name is invalid or in use, or the table is itself a branch."""
    check_name("branch", name)
    if name == MAIN_BRANCH or name.isdigit():
        raise ConfigError(f"branch name '{name}' is the main branch's, or a number")
    if table.branch != MAIN_BRANCH:
        raise ConfigError(f"table {table.name}: branches begin at the main branch or its tags")
    if name in branch_names(table.io, table.paths):
        raise ConfigError(f"table {table.name} has a branch '{name}' already")


def _check_exists(table: FileStoreTable, name: str) -> None:
    branches = branch_names(table.io, table.paths)
    if name not in branches:
        existing = ", ".join(branches) or "none"
        raise ConfigError(f"table {table.name} has no branch '{name}'; its branches: {existing}")


def _copy(io: FileIO, source: str, target: str) -> None:
    """Copy a small file. Raises FormatError if the target exists with another content."""
    _write(io, io.read_bytes(source), target)


def _write(io: FileIO, data: bytes, target: str) -> None:
    if not io.try_write_atomic(target, data) and io.read_bytes(target) != data:
        raise FormatError(f"{target} is there already, and differs from what was copied")
