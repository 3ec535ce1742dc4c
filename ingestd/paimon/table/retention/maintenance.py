"""Run the expiry and tagging that the options of a table require, without compaction.

Tags are created first, because they protect files from expiry. Snapshots expire after tags and
partitions, so that files which these steps release are deleted with the snapshots.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot
"""

from dataclasses import dataclass, field

from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.retention.auto_tags import AutoTags, make_auto_tags, tags_to_expire
from ingestd.paimon.table.retention.done_partitions import mark_done_partitions
from ingestd.paimon.table.retention.expire_changelogs import (
    expire_changelogs,
    plan_changelog_expiry,
)
from ingestd.paimon.table.retention.expire_partitions import ExpiredPartitions, expire_partitions
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import (
    Expiry,
    expire_snapshots,
    plan_snapshot_expiry,
)
from ingestd.paimon.table.retention.tags import delete_tags


@dataclass(frozen=True, slots=True)
class MaintenancePlan:
    """The maintenance of a table, done or planned, by step.

    `tags` are the created and deleted automatic tags, `expired_tags` the names of tags deleted
    because of their age; `partitions`, `snapshots` and `changelogs` are those that expired. `done`
    are the paths of the success files of partitions.
    """

    tags: AutoTags = field(default_factory=AutoTags)
    expired_tags: tuple[str, ...] = ()
    partitions: ExpiredPartitions = field(default_factory=ExpiredPartitions)
    snapshots: Expiry = field(default_factory=Expiry)
    changelogs: Expiry = field(default_factory=Expiry)
    done: tuple[str, ...] = ()


def run_maintenance(
    table: FileStoreTable, now_ms: int, *, dry_run: bool = False
) -> MaintenancePlan:
    """Create tags; expire tags, partitions, snapshots and changelogs; mark partitions as done.

    The steps are executed in this order. With `dry_run`, a plan is returned instead, in which each
    step is planned without the effects of earlier steps. `now_ms` is in milliseconds of the epoch.
    Raises the errors of the steps; later steps are then not executed.
    """
    options = table.schema.options
    settings = expire_settings(options)
    tags = make_auto_tags(table, options, now_ms, dry_run=dry_run)
    over = tags_to_expire(table, options, now_ms)
    if not dry_run:
        delete_tags(table, *over)
    partitions = expire_partitions(table, options, now_ms, dry_run=dry_run)
    of_snapshots = plan_snapshot_expiry if dry_run else expire_snapshots
    of_changelogs = plan_changelog_expiry if dry_run else expire_changelogs
    return MaintenancePlan(
        tags,
        tuple(over),
        partitions,
        of_snapshots(table, settings, now_ms),
        of_changelogs(table, settings, now_ms),
        mark_done_partitions(table, options, now_ms, dry_run=dry_run),
    )
