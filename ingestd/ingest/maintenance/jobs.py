"""Run one maintenance job, a compaction or an expiry, and return its statistics."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from ingestd.errors import IngestdError
from ingestd.ingest.maintenance.scheduler import Job
from ingestd.paimon.catalog.base import Catalog, Identifier
from ingestd.paimon.iceberg.iceberg_sync import update_iceberg
from ingestd.paimon.io.probes import store_now_ms
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.table.compact.sorted_runs import SortedRuns
from ingestd.paimon.table.compact.table_compact import CompactResult, CompactStatus, compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.retention.maintenance import run_maintenance
from ingestd.paimon.table.rewrite.postpone_move import move_postponed

JOB_BYTES = 1 << 30
"""A compaction that has read this many bytes leaves further buckets to the next compaction."""


@dataclass(frozen=True, slots=True)
class CompactionDone:
    """The result of a compaction.

    `buckets` is the number of committed buckets; files, bytes and changelog rows are counted only
    for these. `sorted_runs` are the numbers of sorted runs by bucket after the compaction.
    `snapshot_id` is the snapshot of the compaction, or None if it made no snapshot. `lost` is the
    number of buckets that conflicted with other writers. `left` is the number of buckets that
    remain for the next compaction, lost ones included. `iceberg_failed` is whether writing the
    Iceberg metadata of the table has failed.
    """

    job: Job
    status: CompactStatus
    snapshot_id: int | None
    seconds: float
    sorted_runs: SortedRuns
    buckets: int = 0
    lost: int = 0
    files_before: int = 0
    files_after: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    changelog_rows: int = 0
    left: int = 0
    iceberg_failed: bool = False


@dataclass(frozen=True, slots=True)
class Expired:
    """The result of an expiry job.

    `snapshots`, `changelogs`, `partitions` and `tags` count what was deleted, and `files` is the
    number of files deleted with snapshots and changelogs. `tags_created` is the number of new tags,
    and `partitions_done` the number of partitions that were marked as done. `iceberg_failed` is
    whether writing the Iceberg metadata of the table has failed.
    """

    job: Job
    seconds: float
    snapshots: int = 0
    changelogs: int = 0
    partitions: int = 0
    tags: int = 0
    tags_created: int = 0
    files: int = 0
    iceberg_failed: bool = False
    partitions_done: int = 0


@dataclass(frozen=True, slots=True)
class NotDone:
    """The result of a failed job: the class of the error, and its message.

    Steps of the job before the failure may have changed the table.
    """

    job: Job
    error: str
    message: str


Done = CompactionDone | Expired | NotDone


def do_job(
    catalog: Catalog, job: Job, commit_user: str, clock: Callable[[], float] | None = None
) -> Done:
    """Run a maintenance job on the current state of the table, and return its result.

    `commit_user` is the user of the commits of compactions. `clock` returns seconds since the
    epoch; if it is None, expiry uses the clock of the object store, because the clock of this
    machine may be wrong. Before a compaction, rows in postponed buckets are moved to real buckets.
    Returns a `NotDone` if an IngestdError is raised.
    """
    now_ms = int((clock or time.time)() * 1000)
    try:
        table = catalog.get_table(Identifier.parse(job.table))
        if job.kind == "expire":
            if clock is None:
                now_ms = store_now_ms(table.io, table.paths.snapshot_dir)
            return _expire(job, table, now_ms)
        full = job.kind == "full"
        if bucket_mode(table.schema) is BucketMode.POSTPONE:
            move_postponed(table, commit_user, state=load_state(table), now_ms=now_ms)
        result = compact_table(
            table, now_ms=now_ms, full=full, commit_user=commit_user, most_bytes=JOB_BYTES
        )
    except IngestdError as error:
        return NotDone(job, type(error).__name__, error.message)
    return _compacted(job, result, iceberg_failed=not update_iceberg(table))


def _compacted(job: Job, result: CompactResult, *, iceberg_failed: bool) -> CompactionDone:
    committed = [bucket for bucket in result.buckets if not bucket.lost]
    lost = len(result.buckets) - len(committed)
    snapshot = result.snapshot if result.status == "compacted" else None
    return CompactionDone(
        job=job,
        status=result.status,
        snapshot_id=snapshot.id if snapshot else None,
        seconds=result.seconds,
        sorted_runs=result.sorted_runs,
        buckets=len(committed),
        lost=lost,
        files_before=sum(bucket.files_before for bucket in committed),
        files_after=sum(bucket.files_after for bucket in committed),
        bytes_read=sum(bucket.bytes_read for bucket in committed),
        bytes_written=sum(bucket.bytes_written for bucket in committed),
        changelog_rows=sum(bucket.changelog_rows for bucket in committed),
        # Nothing else makes a compaction of a lost bucket due before the next commit.
        left=result.left + lost,
        iceberg_failed=iceberg_failed,
    )


def _expire(job: Job, table: FileStoreTable, now_ms: int) -> Expired:
    begin = time.monotonic()
    done = run_maintenance(table, now_ms)
    tags_changed = bool(done.expired_tags or done.tags.created or done.tags.deleted)
    return Expired(
        job=job,
        seconds=time.monotonic() - begin,
        snapshots=len(done.snapshots.ids),
        changelogs=len(done.changelogs.ids),
        partitions=len(done.partitions.partitions),
        tags=len(done.expired_tags) + len(done.tags.deleted),
        tags_created=len(done.tags.created),
        files=len(done.snapshots.files) + len(done.changelogs.files),
        iceberg_failed=not update_iceberg(table, tags=tags_changed),
        partitions_done=len(done.done),
    )
