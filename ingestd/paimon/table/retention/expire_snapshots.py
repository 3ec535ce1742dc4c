"""Expire the oldest snapshots, and delete the files that only they need.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-snapshots/#expire-snapshots

Everything is planned before the first deletion. Snapshot files are deleted first, so that an
existing snapshot can always be read: an expiry that is killed leaves orphan files, never a snapshot
without its files.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ingestd.crash_points import CrashPoint, reach
from ingestd.errors import FormatError
from ingestd.paimon.spec.data_file import FileSource
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.paths import MAIN_BRANCH
from ingestd.paimon.spec.snapshot import CARRIED_OPTION, Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.long_lived_changelogs import changelog_ids, keep_changelogs
from ingestd.paimon.table.metadata.snapshot_manager import (
    find_snapshot,
    latest_snapshot_id,
    mend_earliest_hint,
    put_back_hinted,
    snapshot_ids,
)
from ingestd.paimon.table.metadata.table_state import is_same_snapshot, newest_record
from ingestd.paimon.table.metadata.time_travel import branch_names, tagged_snapshots
from ingestd.paimon.table.retention.consumers import consumers, expired_consumers, forget_consumers
from ingestd.paimon.table.retention.expire_plan import ExpireSettings, Window, snapshots_end
from ingestd.paimon.table.retention.expired_files import (
    Keep,
    TagNeeds,
    changelog_data,
    deleted_data,
    file_key,
    index_and_statistics,
    manifests_of,
    metadata_names,
)
from ingestd.paimon.table.retention.referenced_files import (
    UsedFiles,
    files_of_new_references,
    own_files,
    reference_marks,
)

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Expiry:
    """Expired snapshots or long-lived changelogs: their ids, and the paths of the deleted files.

    `end` is the id of the first snapshot or changelog that is kept (None: the table has none).
    `kept_as_changelogs` are the ids of expired snapshots that are kept as long-lived changelogs;
    `consumers` are the ids of the deleted consumers. `snapshots` are the expired snapshots and the
    first one that is kept.
    """

    ids: tuple[int, ...] = ()
    end: int | None = None
    files: tuple[str, ...] = ()
    kept_as_changelogs: tuple[int, ...] = ()
    consumers: tuple[str, ...] = ()
    snapshots: tuple[Snapshot, ...] = field(default=(), repr=False, compare=False)


def expire_snapshots(table: FileStoreTable, settings: ExpireSettings, now_ms: int) -> Expiry:
    """Expire snapshots, and consumers without progress; return what was deleted.

    `settings` are the table's retention options. Writers, readers, another expiry, a rollback, and
    the creation of tags and branches may run at the same time. `now_ms` is in milliseconds of the
    epoch. Raises FormatError, before deleting anything, if a remaining snapshot, a tag, a branch or
    a consumer file is damaged.
    """
    known = reference_marks([table], only_tags=True)
    plan = plan_snapshot_expiry(table, settings, now_ms)
    forget_consumers(table, plan.consumers)
    if not plan.ids or plan.end is None:
        mend_earliest_hint(table.io, table.paths)
        return plan
    reach(CrashPoint.EXPIRY_PLANNED)
    keep_changelogs(table, list(plan.kept_as_changelogs))
    for id_ in plan.ids:
        table.io.delete_quietly(table.paths.snapshot(id_))
    reach(CrashPoint.EXPIRED_SNAPSHOTS)
    table.io.overwrite(table.paths.earliest_hint, str(plan.end).encode())
    reach(CrashPoint.EXPIRY_HINTED)
    # From here on the deleted snapshots cannot be tagged; tags created or moved since the plan
    # keep their files.
    kept = files_of_new_references([table], known, only_tags=True)
    if _was_overtaken(table, plan):
        return replace(plan, files=())
    files = tuple(path for path in plan.files if path not in kept)
    delete_files(table, files, directories=settings.clean_empty_directories)
    reach(CrashPoint.EXPIRED_FILES)
    return replace(plan, files=files)


def _was_overtaken(table: FileStoreTable, plan: Expiry) -> bool:
    """Return whether a rollback, or another expiry, deleted the snapshot that the plan keeps.

    The target of a rollback may need the files of the plan; if it was deleted here after the
    rollback had ended, it is put back.
    """
    last = plan.snapshots[-1]
    if is_same_snapshot(find_snapshot(table.io, table.paths, last.id), last):
        return False
    _LOG.warning("expiry_overtaken", extra={"ctx": {"table": table.name, "snapshot": last.id}})
    put_back_hinted(table.io, table.paths, plan.snapshots)
    mend_earliest_hint(table.io, table.paths)
    return True


def plan_snapshot_expiry(table: FileStoreTable, settings: ExpireSettings, now_ms: int) -> Expiry:
    """Return what `expire_snapshots` would delete at `now_ms`, in milliseconds of the epoch.

    Raises FormatError if a remaining snapshot, a tag, a branch or a consumer file is damaged.
    """
    gone = expired_consumers(table, now_ms, settings.consumer_ms)
    ids = snapshot_ids(table.io, table.paths)
    latest = latest_snapshot_id(table.io, table.paths)
    if not ids or latest is None:
        return Expiry(consumers=tuple(gone))
    window = Window(ids[0], latest, _held_by_consumers(table, settings, gone))
    end = snapshots_end(window, settings.snapshots, now_ms, lambda id_: _time_of(table, id_))
    # Snapshots committed since the listing may also be before `end`: they expire.
    expired = _there(
        table,
        (snapshot_id for snapshot_id in (*ids, *range(ids[-1] + 1, end)) if snapshot_id < end),
    )
    end = _held_by_record(table, end)
    expired = [snapshot for snapshot in expired if snapshot.id < end]
    last = find_snapshot(table.io, table.paths, end)
    if not expired or last is None:
        return Expiry(end=ids[0], consumers=tuple(gone))
    try:
        files = _Files(table, settings, expired, last).paths()
    except FormatError:
        if find_snapshot(table.io, table.paths, end) is not None:
            raise
        # Another expiry has deleted these snapshots and more.
        return plan_snapshot_expiry(table, settings, now_ms)
    expired_ids = tuple(snapshot.id for snapshot in expired)
    return Expiry(
        ids=expired_ids,
        end=end,
        files=tuple(files),
        kept_as_changelogs=expired_ids if settings.is_changelog_decoupled else (),
        consumers=tuple(gone),
        snapshots=(*expired, last),
    )


def delete_files(table: FileStoreTable, paths: Iterable[str], *, directories: bool) -> None:
    """Delete files; with `directories`, also the directories that become empty.

    Only directories of buckets and of their partitions are deleted. Failures to delete a file are
    logged, not raised.
    """
    parents: dict[str, None] = {}
    for path in paths:
        table.io.delete_quietly(path)
        parents[path.rpartition("/")[0]] = None
    for parent in parents if directories else ():
        if parent.rpartition("/")[2].startswith("bucket-"):
            delete_empty_directories(table, parent)


def delete_empty_directories(table: FileStoreTable, bucket: str) -> None:
    """Delete the directory of a bucket, and then the directories of its partition, if empty.

    `bucket` is the path of the directory of the bucket.
    """
    directory = bucket
    for _ in range(len(table.schema.partition_keys) + 1):
        if not table.io.delete_empty_directory(directory):
            return
        directory = directory.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class _Files:
    """The files to delete with the consecutive snapshots `expired`; `last` is the next snapshot."""

    table: FileStoreTable
    settings: ExpireSettings
    expired: list[Snapshot]
    last: Snapshot

    def paths(self) -> list[str]:
        """Return the paths of these files, data files first."""
        tags = TagNeeds(self.table, tagged_snapshots(self.table).values())
        elsewhere = used_by_other_branches(self.table)
        data = self._data(tags)
        metadata = self._metadata(tags)
        paths = dict.fromkeys([*data, *metadata])
        return own_files(
            self.table, (path for path in paths if path.rpartition("/")[2] not in elsewhere)
        )

    def _data(self, tags: TagNeeds) -> list[str]:
        table, paths = self.table, []
        for snapshot in [*self.expired[1:], self.last]:
            paths += deleted_data(table, snapshot, self._keep(tags.before(snapshot.id)))
        if not self.settings.is_changelog_decoupled:
            for snapshot in self.expired:
                paths += changelog_data(table, snapshot)
        return paths

    def _keep(self, tagged: frozenset[tuple[bytes, int, str]]) -> Keep:
        appends_are_changes = self._appends_are_changes()

        def keep(entry: ManifestEntry) -> bool:
            appended = entry.file.file_source in (None, FileSource.APPEND)
            return (appends_are_changes and appended) or file_key(entry) in tagged

        return keep

    def _appends_are_changes(self) -> bool:
        """Return whether long-lived changelogs are read from the new files of snapshots."""
        if self.settings.has_producer:
            return False
        return self.settings.is_changelog_decoupled or bool(changelog_ids(self.table))

    def _metadata(self, tags: TagNeeds) -> list[str]:
        table, decoupled = self.table, self.settings.is_changelog_decoupled
        kept_tags = tags.within(self.expired[0].id, self.last.id)
        kept = metadata_names(table, [*kept_tags, self.last])
        manifests: list[str] = []
        for snapshot in self.expired:
            if not self._appends_are_changes():
                lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
                manifests += manifests_of(table, lists)
            if not decoupled:
                manifests += manifests_of(table, [snapshot.changelog_manifest_list])
        paths = [table.paths.manifest(name) for name in manifests if name not in kept]
        return [*paths, *index_and_statistics(table, self.expired, kept)]


def _time_of(table: FileStoreTable, snapshot_id: int) -> int | None:
    snapshot = find_snapshot(table.io, table.paths, snapshot_id)
    return None if snapshot is None else snapshot.time_millis


def _there(table: FileStoreTable, ids: Iterable[int]) -> list[Snapshot]:
    snapshots = (find_snapshot(table.io, table.paths, id_) for id_ in ids)
    return [snapshot for snapshot in snapshots if snapshot is not None]


def _held_by_consumers(
    table: FileStoreTable, settings: ExpireSettings, gone: list[str]
) -> int | None:
    if not settings.consumers_hold_snapshots:
        return None
    consumer_snapshots = consumers(table)
    return min(
        (consumer_snapshots[name] for name in consumer_snapshots if name not in gone), default=None
    )


def _held_by_record(table: FileStoreTable, end: int) -> int:
    """Return the id of the first snapshot to keep: the newest up to `end` with a progress record.

    Every remaining snapshot, as the target of a rollback, then has a progress record at or before
    it. Returns `end` for a table without progress records.
    """
    if CARRIED_OPTION not in table.schema.options:
        return end
    record = newest_record(table, find_snapshot(table.io, table.paths, end), "")
    return end if record is None else record.id


def used_by_other_branches(table: FileStoreTable) -> set[str]:
    """Return the names, without directories, of all files that other branches may need.

    Other branches are all but that of `table`. Raises FormatError if one of them is damaged.
    """
    if table.branch == MAIN_BRANCH and not branch_names(table.io, table.paths):
        return set()
    used = UsedFiles()
    used.add_table(table, without=table)
    return used.names
