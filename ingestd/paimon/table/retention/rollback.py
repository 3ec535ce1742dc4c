"""Roll back to an older snapshot, deleting later ones.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-snapshots/#rollback-to-snapshot

Snapshots, tags and long-lived changelogs after the target are deleted; files to which only they
refer become orphan files. Afterwards, the progress records of writers are those of the target.
Writers of other programs must be stopped; a commit of this package that is not finished when its
base is deleted does not take effect. Meanwhile a tag keeps the files of the target from expiry.
"""

from dataclasses import dataclass

from ingestd.errors import CommitConflictError, ConfigError
from ingestd.paimon.spec.snapshot import Snapshot, carried_properties, encode_snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.long_lived_changelogs import (
    changelog_ids,
    cut_changelogs,
    without_deleted_changelog,
)
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot, snapshot_ids
from ingestd.paimon.table.metadata.time_travel import tag_path, tagged_snapshots
from ingestd.paimon.table.retention.referenced_files import is_kept

_KEEPER = "rollback-to-"


@dataclass(frozen=True, slots=True)
class Rollback:
    """A planned rollback: the snapshots, changelogs and tags after `target`, which it deletes.

    A progress record is a snapshot property with the Kafka offsets that the table contains.
    `record` is the newest remaining snapshot with one (None: no such snapshot). With
    `forgets_record`, only deleted snapshots have progress records: afterwards, no snapshot states
    which offsets the table contains. With `restored`, the target has expired, and its snapshot file
    is written again from a tag.
    """

    target: Snapshot
    snapshots: tuple[int, ...]
    changelogs: tuple[int, ...]
    tags: tuple[str, ...]
    record: Snapshot | None
    forgets_record: bool
    restored: bool


def plan_rollback(table: FileStoreTable, target: Snapshot) -> Rollback:
    """Return what `rollback` would delete. `target` is a snapshot, or the snapshot of a tag.

    Raises FormatError if a snapshot or tag is damaged.
    """
    ids = snapshot_ids(table.io, table.paths)
    snapshots = {id_: find_snapshot(table.io, table.paths, id_) for id_ in ids}
    before = [
        s for snapshot_id, s in snapshots.items() if s is not None and snapshot_id < target.id
    ]
    later = [s for snapshot_id, s in snapshots.items() if s is not None and snapshot_id > target.id]
    records = [snapshot for snapshot in (*before, target) if carried_properties(snapshot)]
    tagged = tagged_snapshots(table).items()
    return Rollback(
        target=target,
        snapshots=tuple(snapshot.id for snapshot in later),
        changelogs=tuple(
            changelog_id for changelog_id in changelog_ids(table) if changelog_id > target.id
        ),
        tags=tuple(name for name, snapshot in tagged if snapshot.id > target.id),
        record=records[-1] if records else None,
        forgets_record=not records and any(carried_properties(snapshot) for snapshot in later),
        restored=target.id not in ids,
    )


def rollback(table: FileStoreTable, plan: Rollback) -> None:
    """Roll back as planned.

    An interrupted rollback leaves the table at some snapshot after the target, and perhaps the tag
    `rollback-to-ID`; it can be repeated. Snapshots that were committed since the plan was made are
    deleted as well. Raises CommitConflictError if a writer commits while snapshots are deleted.
    Raises ConfigError if the target does not exist any more or, if the plan restores it, exists
    again.
    """
    target = plan.target
    keeper = f"{_KEEPER}{target.id}"
    _keep(table, plan, keeper)
    if table.snapshot_commit is not None:
        table.snapshot_commit.rollback(table.branch, target.id, _tag_of(table, target))
    else:
        _forget_snapshots(table, plan)
    for name in plan.tags:
        table.io.delete_quietly(tag_path(table.paths, name))
    cut_changelogs(table, target.id)
    table.io.delete_quietly(tag_path(table.paths, keeper))
    # The listing is used because the hint misses a snapshot after a gap.
    newest = max(snapshot_ids(table.io, table.paths), default=None)
    if newest != target.id:
        raise CommitConflictError(
            f"table {table.name}: snapshot {newest} appeared while it was rolled back to "
            f"{target.id}: a writer is at work; stop it and roll back again"
        )


def _keep(table: FileStoreTable, plan: Rollback, keeper: str) -> None:
    """Tag the target, so that an expiry or a deletion of its tag deletes none of its files.

    These delete a snapshot or tag before they look for new tags: if the target still exists after
    `keeper` was written, they will find this tag. Raises ConfigError, without the tag, if the
    target does not exist or, if the plan restores it, exists as a snapshot.
    """
    target, path = plan.target, tag_path(table.paths, keeper)
    table.io.overwrite(path, encode_snapshot(target))
    problem = None
    if plan.restored and find_snapshot(table.io, table.paths, target.id) is not None:
        problem = f"{table.paths.snapshot(target.id)} has appeared; plan the rollback again"
    elif not is_kept(table, target, but_tag=keeper):
        problem = f"table {table.name}: snapshot {target.id} has expired meanwhile; choose another"
    if problem is not None:
        table.io.delete_quietly(path)
        raise ConfigError(problem)


def _forget_snapshots(table: FileStoreTable, plan: Rollback) -> None:
    io, paths, target = table.io, table.paths, plan.target
    if plan.restored:
        # Restored first, so that the table is never empty.
        restored = without_deleted_changelog(table, target)
        io.try_write_atomic(paths.snapshot(target.id), encode_snapshot(restored))
        io.overwrite(paths.earliest_hint, str(target.id).encode())
    io.overwrite(paths.latest_hint, str(target.id).encode())
    for snapshot_id in reversed(snapshot_ids(io, paths)):
        if snapshot_id > target.id:
            io.delete_quietly(paths.snapshot(snapshot_id))
    # A writer may have written the hint of a snapshot that is deleted now.
    io.overwrite(paths.latest_hint, str(target.id).encode())
    if find_snapshot(io, paths, target.id) is None:
        # An expiry that was planned before has deleted it.
        io.try_write_atomic(paths.snapshot(target.id), encode_snapshot(target))


def _tag_of(table: FileStoreTable, target: Snapshot) -> str | None:
    """Return a tag of an expired snapshot, or None if the snapshot exists or has no tag."""
    if find_snapshot(table.io, table.paths, target.id) is not None:
        return None
    tagged = tagged_snapshots(table).items()
    return next((name for name, snapshot in tagged if snapshot.id == target.id), None)
