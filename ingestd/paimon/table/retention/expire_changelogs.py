"""Expire the oldest long-lived changelogs, with the files that only they refer to.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot

With a changelog producer these are changelog files. Without a changelog producer they are the new
data files of the snapshots, which are deleted if a later snapshot has removed them.
"""

from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_scan import read_manifest_list
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.long_lived_changelogs import (
    changelog_ids,
    changelog_time,
    forget_changelogs,
)
from ingestd.paimon.table.metadata.snapshot_manager import (
    find_changelog,
    latest_snapshot_id,
    read_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.metadata.time_travel import tagged_snapshots
from ingestd.paimon.table.retention.consumers import consumers
from ingestd.paimon.table.retention.expire_plan import ExpireSettings, Window, changelogs_end
from ingestd.paimon.table.retention.expire_snapshots import (
    Expiry,
    delete_files,
    used_by_other_branches,
)
from ingestd.paimon.table.retention.expired_files import (
    Keep,
    TagNeeds,
    changelog_data,
    deleted_data,
    file_key,
    manifests_of,
    metadata_names,
)
from ingestd.paimon.table.retention.referenced_files import own_files


def expire_changelogs(table: FileStoreTable, settings: ExpireSettings, now_ms: int) -> Expiry:
    """Expire long-lived changelogs; return the expired ids and the deleted files.

    `settings` are the table's retention options. `now_ms` is in milliseconds of the epoch. Raises
    FormatError, before deleting anything, if a remaining snapshot, a tag, a branch or a consumer
    file is damaged.
    """
    plan = plan_changelog_expiry(table, settings, now_ms)
    if plan.ids and plan.end is not None:
        forget_changelogs(table, list(plan.ids), plan.end)
        delete_files(table, plan.files, directories=settings.clean_empty_directories)
    return plan


def plan_changelog_expiry(table: FileStoreTable, settings: ExpireSettings, now_ms: int) -> Expiry:
    """Return what `expire_changelogs` would delete at `now_ms`, in milliseconds of the epoch.

    Raises FormatError if a remaining snapshot, a tag, a branch or a consumer file is damaged.
    """
    ids = changelog_ids(table)
    latest = latest_snapshot_id(table.io, table.paths)
    if not ids or latest is None:
        return Expiry()
    window = Window(ids[0], latest, min(consumers(table).values(), default=None))
    end = changelogs_end(
        window,
        ids[-1],
        settings.changelogs,
        now_ms,
        lambda snapshot_id: changelog_time(table, snapshot_id),
    )
    changelogs = (find_changelog(table.io, table.paths, id_) for id_ in ids if id_ <= end)
    known = {changelog.id: changelog for changelog in changelogs if changelog is not None}
    expired = [changelog for changelog in known.values() if changelog.id < end]
    if not expired or end not in known:
        return Expiry(end=ids[0])
    files = _files(table, expired, known[end])
    return Expiry(ids=tuple(changelog.id for changelog in expired), end=end, files=tuple(files))


def _files(table: FileStoreTable, expired: list[Snapshot], last: Snapshot) -> list[str]:
    tags = TagNeeds(table, tagged_snapshots(table).values())
    elsewhere = used_by_other_branches(table)
    paths: list[str] = []
    manifests: list[str] = []
    for changelog in expired:
        if changelog.changelog_manifest_list is not None:
            paths += changelog_data(table, changelog)
            manifests += manifests_of(table, [changelog.changelog_manifest_list])
        elif table.io.exists(table.paths.manifest(changelog.delta_manifest_list)):
            paths += deleted_data(table, changelog, _kept_by(tags.before(changelog.id)))
            lists = (changelog.delta_manifest_list, changelog.base_manifest_list)
            manifests += manifests_of(table, lists)
    kept = _kept_metadata(table, tags.within(expired[0].id, last.id), last)
    paths += [table.paths.manifest(name) for name in manifests if name not in kept]
    unshared = (path for path in dict.fromkeys(paths) if path.rpartition("/")[2] not in elsewhere)
    return own_files(table, unshared)


def _kept_by(tagged: frozenset[tuple[bytes, int, str]]) -> Keep:
    return lambda entry: file_key(entry) in tagged


def _kept_metadata(table: FileStoreTable, tagged: list[Snapshot], last: Snapshot) -> set[str]:
    """Return the names of metadata files that tags, changelogs and remaining snapshots need.

    `last` is the first changelog that is kept.
    """
    earliest = read_snapshot(table.io, table.paths, snapshot_ids(table.io, table.paths)[0])
    kept = metadata_names(table, [*tagged, earliest])
    for name in (last.base_manifest_list, last.delta_manifest_list):
        # With a changelog producer these lists were deleted with the snapshot.
        if table.io.exists(table.paths.manifest(name)):
            metas = read_manifest_list(table.io, table.paths, name)
            kept |= {name, *(meta.file_name for meta in metas)}
    return kept
