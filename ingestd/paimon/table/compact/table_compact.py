"""Compact a table: plan buckets, rewrite them one by one, and commit one COMPACT snapshot.

    result = compact_table(table, now_ms=now)          # buckets whose triggers are due
    result = compact_table(table, now_ms=now, full=True)

Ingest may continue during a compaction: whichever of the two commits second is rebased onto the
snapshot of the other. If another process compacts a bucket at the same time and commits first, its
result is kept, and the files written here for this bucket are deleted.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/#compaction
"""

import logging
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from ingestd.crash_points import CrashPoint, reach
from ingestd.errors import CommitConflictError, CommitUnknownError, IngestdError
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.options import BucketMode, bucket_mode, refuse_unsupported
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.compact.append_compact import plan_append
from ingestd.paimon.table.compact.compact_bucket import CompactBucket, buckets_of, plan_bucket
from ingestd.paimon.table.compact.sorted_runs import SortedRuns, sorted_runs_of
from ingestd.paimon.table.compact.universal_compaction import PlanningTime
from ingestd.paimon.table.metadata.file_store_scan import PartitionFilter, live_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable

_LOG = logging.getLogger(__name__)
_MILLIS_OF_HOUR = 3_600_000
_HOURS = 24
CompactStatus = Literal["compacted", "nothing", "lost"]


@dataclass(frozen=True, slots=True)
class BucketReport:
    """The result of the compaction of a bucket; sizes are in bytes.

    `partition` is the serialized row, `reason` the trigger, and `upgraded` the number of files of
    which only the level changed. With `lost`, the result was not committed.
    """

    partition: bytes
    bucket: int
    reason: str
    files_before: int
    files_after: int
    upgraded: int
    rows_before: int
    rows_after: int
    bytes_read: int
    bytes_written: int
    changelog_rows: int
    lost: bool = False


def report_of(
    reason: str, message: CommitMessage, written: Sequence[DataFileMeta], *, lost: bool
) -> BucketReport:
    """Return the report of a bucket from its commit message and the files written for it.

    `reason` is the trigger of the compaction, `lost` whether it was dropped because another writer
    changed the bucket.
    """
    before, after = message.compact_before, message.compact_after
    old = {file.file_name for file in before}
    moved = {file.file_name for file in after if file.file_name in old}
    return BucketReport(
        partition=message.partition,
        bucket=message.bucket,
        reason=reason,
        files_before=len(before),
        files_after=len(after),
        upgraded=len(moved),
        rows_before=sum(file.row_count for file in before),
        rows_after=sum(file.row_count for file in after),
        bytes_read=sum(file.file_size for file in before if file.file_name not in moved),
        bytes_written=sum(file.file_size for file in written),
        changelog_rows=sum(file.row_count for file in message.compact_changelog),
        lost=lost,
    )


class CompactPlan(Protocol):
    """A planned compaction of one bucket, which `run` executes."""

    @property
    def bucket(self) -> CompactBucket:
        """The bucket as it was when the compaction was planned."""
        ...

    @property
    def inputs(self) -> tuple[DataFileMeta, ...]:
        """The live files that the compaction reads."""
        ...

    @property
    def reason(self) -> str:
        """The name of the trigger by which the bucket is compacted."""
        ...

    def run(self) -> tuple[CommitMessage, tuple[DataFileMeta, ...]]:
        """Compact the files; return the commit message and the files written for it.

        If this fails, the written files are deleted. Raises FormatError for a file that is missing
        or damaged, StorageError if the storage fails.
        """
        ...


def first_plans(plans: Iterable[CompactPlan], most_bytes: int) -> list[CompactPlan]:
    """Return the plans with the most input files, until their inputs reach `most_bytes` in total.

    They are ordered by the number of input files, descending. If there are plans, at least one is
    returned.
    """
    chosen: list[CompactPlan] = []
    size = 0
    for plan in sorted(plans, key=lambda plan: -len(plan.inputs)):
        if size >= most_bytes:
            break
        chosen.append(plan)
        size += sum(file.file_size for file in plan.inputs)
    return chosen


@dataclass(frozen=True, slots=True)
class CompactResult:
    """The outcome of a compaction.

    If `status` is "compacted", `snapshot` has the changes in `buckets`, except those marked as
    lost. If it is "nothing", no trigger was due; `snapshot` is the newest snapshot. If it is
    "lost", other processes compacted every bucket at the same time, or were first in every attempt
    to commit; `snapshot` is None, and the files written are deleted. `seconds` is the duration.
    `sorted_runs` counts the runs of the snapshot from which the compaction began, with the changes
    of the compaction. `left` is the number of planned compactions that were left for the next call.
    """

    status: CompactStatus
    snapshot: Snapshot | None
    buckets: tuple[BucketReport, ...]
    seconds: float
    sorted_runs: SortedRuns
    left: int = 0


@dataclass(frozen=True, slots=True)
class _CompactedBucket:
    plan: CompactPlan
    message: CommitMessage
    files: tuple[DataFileMeta, ...]

    def delete(self) -> None:
        self.plan.bucket.delete(self.files, self.message.new_index_files)


def plan_compaction(
    table: FileStoreTable,
    *,
    now_ms: int,
    full: bool = False,
    partition_filter: PartitionFilter | None = None,
) -> list[CompactPlan]:
    """Return the plans that `compact_table` would run now; only manifests are read.

    With `full`, every bucket is compacted completely, whether or not a trigger is due.
    `partition_filter` selects partitions (None: all). Raises UnsupportedError for a table that
    cannot be written, FormatError for a damaged manifest.
    """
    refuse_unsupported(table.schema, for_write=True)
    buckets = _live_buckets(table, load_state(table), partition_filter)
    return list(_plans(table, buckets, now_ms, full=full))


def compact_table(
    table: FileStoreTable,
    *,
    now_ms: int,
    full: bool = False,
    partition_filter: PartitionFilter | None = None,
    commit_user: str | None = None,
    most_bytes: int | None = None,
) -> CompactResult:
    """Compact each bucket that is due, once; with `full`, compact every bucket completely.

    With `most_bytes`, only the buckets with the most files are compacted, until their inputs reach
    this size, so that the result is committed soon. `table` must have its newest schema. The option
    `write-only` has no effect here, because it only applies to writers. `commit_user` is the user
    of the snapshot (None: a new user). `partition_filter` selects partitions (None: all). Raises
    UnsupportedError for a table that cannot be written, FormatError for a damaged file, and
    StorageError if the storage fails; the files written are then deleted. Raises CommitUnknownError
    if it is unknown whether the snapshot was published; the files are then kept.
    """
    refuse_unsupported(table.schema, for_write=True)
    started = time.monotonic()
    state = load_state(table)
    buckets = _live_buckets(table, state, partition_filter)
    plans = list(_plans(table, buckets, now_ms, full=full))
    chosen = plans if most_bytes is None else first_plans(plans, most_bytes)
    reach(CrashPoint.COMPACTION_PLANNED)
    compacted = _run_plans(chosen)
    reach(CrashPoint.COMPACTION_WRITTEN)
    if not compacted:
        sorted_runs = _sorted_runs(table, state, buckets, ())
        return CompactResult("nothing", state.snapshot, (), time.monotonic() - started, sorted_runs)
    user = str(uuid.uuid4()) if commit_user is None else commit_user
    snapshot, lost = _commit(table, state, compacted, user, now_ms)
    reach(CrashPoint.COMPACTION_COMMITTED)
    committed = [job for job in compacted if not any(job is other for other in lost)]
    reports = tuple(_report(job, lost=any(job is other for other in lost)) for job in compacted)
    status: CompactStatus = "lost" if snapshot is None else "compacted"
    sorted_runs, left = _sorted_runs(table, state, buckets, committed), len(plans) - len(chosen)
    return CompactResult(status, snapshot, reports, time.monotonic() - started, sorted_runs, left)


def _run_plans(plans: Iterable[CompactPlan]) -> list[_CompactedBucket]:
    """Run the plans and return the changed buckets; after an error, delete the files written."""
    compacted: list[_CompactedBucket] = []
    try:
        for plan in plans:
            message, files = plan.run()
            if not message.is_empty:
                compacted.append(_CompactedBucket(plan, message, files))
    except BaseException:
        _delete(compacted)
        raise
    return compacted


def _report(compacted: _CompactedBucket, *, lost: bool) -> BucketReport:
    return report_of(compacted.plan.reason, compacted.message, compacted.files, lost=lost)


def _sorted_runs(
    table: FileStoreTable,
    state: TableState,
    buckets: Iterable[CompactBucket],
    committed: Iterable[_CompactedBucket],
) -> SortedRuns:
    number = state.snapshot.id if state.snapshot else None
    if not table.schema.primary_keys:
        return SortedRuns(number)
    files = {(bucket.partition, bucket.bucket): bucket.files for bucket in buckets}
    return sorted_runs_of(number, files, [job.message for job in committed])


def _plans(
    table: FileStoreTable, buckets: Iterable[CompactBucket], now_ms: int, *, full: bool
) -> Iterator[CompactPlan]:
    mode = bucket_mode(table.schema)
    moment = PlanningTime(now_ms, now_ms // _MILLIS_OF_HOUR % _HOURS)
    for bucket in buckets:
        if table.schema.primary_keys:
            plan = plan_bucket(bucket, moment, full=full)
            if plan is not None:
                yield plan
        else:
            has_buckets = mode is not BucketMode.BUCKET_UNAWARE
            yield from plan_append(bucket, has_buckets=has_buckets, full=full)


def _live_buckets(
    table: FileStoreTable, state: TableState, partition_filter: PartitionFilter | None
) -> list[CompactBucket]:
    live = live_entries(table, state.manifests, partition_filter=partition_filter)
    return buckets_of(table, (entry for entry in live if entry.bucket >= 0), state)


def _commit(
    table: FileStoreTable,
    state: TableState,
    compacted: Sequence[_CompactedBucket],
    user: str,
    now_ms: int,
) -> tuple[Snapshot | None, list[_CompactedBucket]]:
    """Commit the buckets that do not conflict; return the snapshot and the lost buckets.

    The snapshot is None if nothing was committed. The files written for lost buckets are deleted.
    """
    left, lost = list(compacted), list[_CompactedBucket]()
    while left:
        messages = tuple(job.message for job in left)
        committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, messages)
        try:
            result = commit(table, user, committable, state=state, now_ms=now_ms)
        except CommitUnknownError:
            raise
        except CommitConflictError as error:
            state = replace(load_state(table), loaded_at=state.loaded_at)
            gone = [job for job in left if not _still_fits(table, state, job)]
            # If all of them still fit, other writers were only faster in every attempt.
            given_up = gone or left
            _LOG.warning(
                "compaction_lost", extra={"ctx": {"buckets": len(given_up), "error": str(error)}}
            )
            _delete(given_up)
            lost += given_up
            left = [job for job in left if not any(job is other for other in given_up)]
        except IngestdError:
            _delete(left)
            raise
        else:
            # Other exceptions, as from a signal, do not imply that nothing was committed.
            return result.snapshot, lost
    return None, lost


def _still_fits(table: FileStoreTable, state: TableState, compacted: _CompactedBucket) -> bool:
    """Return whether the inputs, higher levels and deletion vectors of a bucket are unchanged."""
    bucket, message = compacted.plan.bucket, compacted.message
    entries = live_entries(
        table,
        state.manifests,
        partition_filter=frozenset({bucket.partition}),
        buckets=frozenset({bucket.bucket}),
    )
    now = next(iter(buckets_of(table, entries, state)), None)
    if now is None:
        return False
    live = {(file.file_name, file.level) for file in now.files}
    inputs = {(file.file_name, file.level) for file in message.compact_before}
    above = {name for name, level in live - inputs if level > 0}
    return (
        inputs <= live
        and (message.compact_expected is None or above == message.compact_expected)
        and {entry.file_name for entry in now.vector_files}
        == {entry.file_name for entry in bucket.vector_files}
    )


def _delete(compacted: Iterable[_CompactedBucket]) -> None:
    for job in compacted:
        job.delete()
