"""Long-lived changelogs: copies of expired snapshots for streaming readers.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot

A long-lived changelog is a copy of a snapshot file, in a directory with its own hint files. Of the
files that the snapshot refers to, only those with its changes are kept.
"""

import contextlib
import json
from dataclasses import replace

from ingestd.paimon.spec.paths import file_numbers
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import earliest_snapshot_id, find_changelog


def changelog_ids(table: FileStoreTable) -> list[int]:
    """Return the ids of all long-lived changelogs, ascending, from a listing."""
    return file_numbers(table.io.list_names(table.paths.changelog_dir), "changelog-")


def first_change_id(table: FileStoreTable) -> int | None:
    """Return the id of the oldest snapshot whose changes can be read; None if the table has none.

    It is the oldest long-lived changelog, or without these, the oldest snapshot.
    """
    kept = changelog_ids(table)
    return kept[0] if kept else earliest_snapshot_id(table.io, table.paths)


def keep_changelogs(table: FileStoreTable, ids: list[int]) -> None:
    """Copy the files of snapshots that are about to expire to long-lived changelogs.

    `ids` are the ids of the snapshots, ascending; existing copies are overwritten. Snapshots that
    another process has expired meanwhile are left out. The hint LATEST is written last.
    """
    kept = []
    for id_ in ids:
        with contextlib.suppress(FileNotFoundError):
            data = table.io.read_bytes(table.paths.snapshot(id_))
            table.io.overwrite(table.paths.changelog(id_), data)
            kept.append(id_)
    if kept:
        _write_hint(table, "LATEST", kept[-1])


def without_deleted_changelog(table: FileStoreTable, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot of a tag, without its changelog if that was deleted by an expiry.

    A snapshot that refers to a missing changelog would stop streaming readers.
    """
    name = snapshot.changelog_manifest_list
    if name is None or table.io.exists(table.paths.manifest(name)):
        return snapshot
    return replace(
        snapshot,
        changelog_manifest_list=None,
        changelog_manifest_list_size=None,
        changelog_record_count=None,
    )


def forget_changelogs(table: FileStoreTable, ids: list[int], first_left: int) -> None:
    """Delete the files of the oldest long-lived changelogs, and update the hint EARLIEST.

    `ids` are the ids of these changelogs, and `first_left` is the id of the oldest one that
    remains. The data files and manifests to which the changelogs refer are not deleted.
    """
    for id_ in ids:
        table.io.delete_quietly(table.paths.changelog(id_))
    _write_hint(table, "EARLIEST", first_left)


def cut_changelogs(table: FileStoreTable, last: int) -> list[int]:
    """Delete the long-lived changelogs after the id `last`, newest first; return their ids.

    The hint LATEST is written first, with -1 if no changelog remains.
    """
    ids = changelog_ids(table)
    removed = [id_ for id_ in reversed(ids) if id_ > last]
    if removed:
        left = [id_ for id_ in ids if id_ <= last]
        # -1 means unknown to readers.
        _write_hint(table, "LATEST", left[-1] if left else -1)
    for snapshot in removed:
        table.io.delete_quietly(table.paths.changelog(snapshot))
    return removed


def changelog_time(table: FileStoreTable, snapshot_id: int) -> int | None:
    """Return the commit time of a long-lived changelog (ms of the epoch); None if it is missing.

    Raises FormatError if its file is damaged.
    """
    changelog = find_changelog(table.io, table.paths, snapshot_id)
    return None if changelog is None else changelog.time_millis


def _write_hint(table: FileStoreTable, name: str, snapshot_id: int) -> None:
    table.io.overwrite(f"{table.paths.changelog_dir}/{name}", json.dumps(snapshot_id).encode())
