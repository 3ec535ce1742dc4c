"""Run the expiry and tagging that the options of a table require, without compaction.

Tags are created first, because they protect files from expiry. Snapshots expire after tags and
partitions, so that files which these steps release are deleted with the snapshots.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot
"""

from dataclasses import dataclass, field

from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.retention.auto_tags import AutoTags, make_auto_tags, tags_to_expire
from ingestd.paimon.table.retention.done_partitions import mark_done_partitions
from ingestd.paimon.table.retention.expire_changelogs import expire_changelogs
from ingestd.paimon.table.retention.expire_partitions import ExpiredPartitions, expire_partitions
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import Expiry, expire_snapshots
from ingestd.paimon.table.retention.tags import delete_tags


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """The result of the maintenance of a table, by step.

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


def run_maintenance(table: FileStoreTable, now_ms: int) -> MaintenanceResult:
    """Create tags; expire tags, partitions, snapshots and changelogs; mark partitions as done.

    The steps, which the options of the table enable, are executed in this order. `now_ms` is in
    milliseconds of the epoch. Raises the errors of the steps; later steps are then not executed.
    """
    options = table.schema.options
    settings = expire_settings(options)
    tags = make_auto_tags(table, options, now_ms)
    expired_tags = tags_to_expire(table, options, now_ms)
    delete_tags(table, *expired_tags)
    return MaintenanceResult(
        tags,
        tuple(expired_tags),
        expire_partitions(table, options, now_ms),
        expire_snapshots(table, settings, now_ms),
        expire_changelogs(table, settings, now_ms),
        mark_done_partitions(table, options, now_ms),
    )
