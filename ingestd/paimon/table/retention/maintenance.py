"""Run the expiry and tagging that the options of a table require, without compaction.

Tags are created first, because they protect files from expiry. Snapshots expire after tags and
partitions, so that files which these steps release are deleted with the snapshots.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ingestd.errors import ConfigError, IngestdError, UnsupportedError
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
    milliseconds of the epoch. Snapshots and changelogs expire repeatedly until none is due: the
    limit of a single expiry (`snapshot.expire.limit`) may be less than what a stream commits in the
    time between two calls. Raises the errors of the steps; later steps are then not executed,
    unless the error is about an option: no later attempt would succeed, and the files of the table
    would grow without limit.
    """
    options = table.schema.options
    settings = expire_settings(options)
    steps, no_tags = _Steps(), tuple[str, ...]()
    tags = steps.run(lambda: make_auto_tags(table, options, now_ms), AutoTags())
    expired_tags = steps.run(lambda: tuple(tags_to_expire(table, options, now_ms)), no_tags)
    delete_tags(table, *expired_tags)
    partitions = steps.run(lambda: expire_partitions(table, options, now_ms), ExpiredPartitions())
    snapshots = _until_done(lambda: expire_snapshots(table, settings, now_ms))
    changelogs = _until_done(lambda: expire_changelogs(table, settings, now_ms))
    done = mark_done_partitions(table, options, now_ms)
    if steps.error is not None:
        raise steps.error
    return MaintenanceResult(tags, expired_tags, partitions, snapshots, changelogs, done)


def _until_done(expire: Callable[[], Expiry]) -> Expiry:
    """Call `expire` until nothing more expires; return the sum of the results."""
    done = expire()
    # Ids that are not new are those of files that cannot be deleted.
    while done.ids and (more := expire()).ids and more.ids[-1] > done.ids[-1]:
        done = replace(
            more,
            ids=(*done.ids, *more.ids),
            files=(*done.files, *more.files),
            kept_as_changelogs=(*done.kept_as_changelogs, *more.kept_as_changelogs),
            consumers=(*done.consumers, *more.consumers),
        )
    return done


_T = TypeVar("_T")


class _Steps:
    """Runs steps; `error` is the first error about an option that a step has raised."""

    def __init__(self) -> None:
        self.error: IngestdError | None = None

    def run(self, step: Callable[[], _T], otherwise: _T) -> _T:
        """Return the result of a step, or `otherwise` if it raises an error about an option."""
        try:
            return step()
        except (ConfigError, UnsupportedError) as error:
            self.error = self.error or error
            return otherwise
