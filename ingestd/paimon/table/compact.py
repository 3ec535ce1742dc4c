"""Compacting a table: what there is to do, doing it bucket by bucket, one COMPACT snapshot.

    result = compact_table(table, now_ms=now)          # what the triggers ask for
    result = compact_table(table, now_ms=now, full=True)

Nothing is visible before the snapshot is, and ingest may go on meanwhile: its appends and our
snapshot are rebased over each other. A bucket that somebody else has compacted meanwhile is given
up, with the files that were made for it. Specification: Compaction; Snapshot (conflicts).
"""

import logging
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ingestd.errors import CommitConflictError, CommitUnknownError
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.index_manifest import DELETION_VECTORS_INDEX, IndexManifestEntry
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.options import BucketMode, bucket_mode, refuse_unsupported
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from ingestd.paimon.table.commit import commit
from ingestd.paimon.table.commit_message import CommitMessage, ManifestCommittable
from ingestd.paimon.table.compact_append import plan_append
from ingestd.paimon.table.compact_bucket import CompactBucket, plan_bucket
from ingestd.paimon.table.compaction_plan import Moment
from ingestd.paimon.table.file_store_table import FileStoreTable
from ingestd.paimon.table.scan import PartitionFilter, live_entries
from ingestd.paimon.table.table_state import TableState, load_state

_LOG = logging.getLogger(__name__)
_MILLIS_OF_HOUR = 3_600_000
_HOURS = 24

CompactStatus = Literal["compacted", "nothing", "lost"]


class CompactPlan(Protocol):
    """What is to be compacted in one bucket at once, and why."""

    @property
    def bucket(self) -> CompactBucket:
        """The bucket as it was when it was planned."""
        ...

    @property
    def inputs(self) -> tuple[DataFileMeta, ...]:
        """The files that it is about."""
        ...

    @property
    def reason(self) -> str:
        """Which trigger it is."""
        ...

    def run(self) -> tuple[CommitMessage, tuple[DataFileMeta, ...]]:
        """Compact; the message for the committer, and the files that were made for it."""
        ...


@dataclass(frozen=True, slots=True)
class BucketReport:
    """What a compaction did in one bucket; sizes in bytes, `upgraded` files only moved."""

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


@dataclass(frozen=True, slots=True)
class CompactResult:
    """Outcome of a compaction.

    `compacted`: `snapshot` has what `buckets` say, except of those marked as lost. `nothing`:
    no trigger asked for anything. `lost`: others have compacted every bucket meanwhile; the files
    that were made are deleted. `seconds` is the time it took.
    """

    status: CompactStatus
    snapshot: Snapshot | None
    buckets: tuple[BucketReport, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class _Made:
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
    state: TableState | None = None,
) -> list[CompactPlan]:
    """What `compact_table` would do now; only manifests are read.

    UnsupportedError for a table that cannot be written.
    """
    refuse_unsupported(table.schema, for_write=True)
    state = load_state(table) if state is None else state
    entries = live_entries(table, state.manifests, partition_filter=partition_filter)
    return list(_plans(table, entries, state, now_ms, full=full))


def compact_table(
    table: FileStoreTable,
    *,
    now_ms: int,
    full: bool = False,
    partition_filter: PartitionFilter | None = None,
) -> CompactResult:
    """Compact what the table's triggers ask for, once in each bucket; with `full` all there is.

    `table` is as of its newest schema. `write-only` is an option for other writers: this is the
    compaction that they leave to somebody. Raises UnsupportedError for a table that cannot be
    written, FormatError for a damaged file, StorageError; in all of these nothing is left behind.
    CommitUnknownError if the storage does not say whether the snapshot landed: files stay.
    """
    started = time.monotonic()
    state = load_state(table)
    plans = plan_compaction(
        table, now_ms=now_ms, full=full, partition_filter=partition_filter, state=state
    )
    made: list[_Made] = []
    try:
        for plan in plans:
            message, files = plan.run()
            if not message.is_empty:
                made.append(_Made(plan, message, files))
    except BaseException:
        _delete(made)
        raise
    if not made:
        return CompactResult("nothing", state.snapshot, (), time.monotonic() - started)
    snapshot, lost = _commit(table, state, made, now_ms)
    reports = tuple(_report(one, lost=any(one is other for other in lost)) for one in made)
    status: CompactStatus = "lost" if snapshot is None else "compacted"
    return CompactResult(status, snapshot, reports, time.monotonic() - started)


def _plans(
    table: FileStoreTable,
    entries: Iterable[ManifestEntry],
    state: TableState,
    now_ms: int,
    *,
    full: bool,
) -> Iterator[CompactPlan]:
    mode = bucket_mode(table.schema)
    moment = Moment(now_ms, now_ms // _MILLIS_OF_HOUR % _HOURS)
    for bucket in _buckets(table, entries, state):
        if table.schema.primary_keys:
            plan = plan_bucket(bucket, moment, full=full)
            if plan is not None:
                yield plan
        else:
            has_buckets = mode is not BucketMode.BUCKET_UNAWARE
            yield from plan_append(bucket, has_buckets=has_buckets, full=full)


def _buckets(
    table: FileStoreTable, entries: Iterable[ManifestEntry], state: TableState
) -> Iterator[CompactBucket]:
    """Buckets with files; what waits for its bucket is not among them."""
    groups: dict[tuple[bytes, int], list[ManifestEntry]] = defaultdict(list)
    for entry in entries:
        if entry.bucket >= 0:
            groups[entry.partition, entry.bucket].append(entry)
    index = _index_by_bucket(state)
    for place, own in groups.items():
        files = tuple(entry.file for entry in own)
        yield CompactBucket(table, *place, own[-1].total_buckets, files, tuple(index[place]))


def _index_by_bucket(state: TableState) -> Mapping[tuple[bytes, int], list[IndexManifestEntry]]:
    index: dict[tuple[bytes, int], list[IndexManifestEntry]] = defaultdict(list)
    for entry in (*state.index_entries.values(), *state.repeated_index_entries):
        index[entry.partition, entry.bucket].append(entry)
    return index


def _commit(
    table: FileStoreTable, state: TableState, made: Sequence[_Made], now_ms: int
) -> tuple[Snapshot | None, list[_Made]]:
    """Land what still can; the snapshot (None: nothing landed) and what was given up."""
    left, lost = list(made), list[_Made]()
    while left:
        messages = tuple(one.message for one in left)
        committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, messages)
        try:
            result = commit(table, str(uuid.uuid4()), committable, state=state, now_ms=now_ms)
        except CommitUnknownError:
            raise
        except CommitConflictError as error:
            state = load_state(table)
            gone = [one for one in left if not _still_fits(table, state, one)]
            # When all of them fit after all, the other writers were merely faster.
            given_up = gone or left
            _LOG.warning(
                "compaction_lost", extra={"ctx": {"buckets": len(given_up), "error": str(error)}}
            )
            _delete(given_up)
            lost += given_up
            left = [one for one in left if not any(one is other for other in given_up)]
        except BaseException:
            _delete(left)
            raise
        else:
            return result.snapshot, lost
    return None, lost


def _still_fits(table: FileStoreTable, state: TableState, made: _Made) -> bool:
    """Whether a bucket above level 0, its inputs and its deletion vectors are as they were."""
    bucket, message = made.plan.bucket, made.message
    entries = live_entries(
        table,
        state.manifests,
        partition_filter=frozenset({bucket.partition}),
        buckets=frozenset({bucket.bucket}),
    )
    now = next(_buckets(table, entries, state), None)
    if now is None:
        return False
    there = {(file.file_name, file.level) for file in now.files}
    inputs = {(file.file_name, file.level) for file in message.compact_before}
    above = {name for name, level in there - inputs if level > 0}
    return (
        inputs <= there
        and (message.compact_beside is None or above == message.compact_beside)
        and _vector_files(now) == _vector_files(bucket)
    )


def _vector_files(bucket: CompactBucket) -> set[str]:
    """Hash indexes may change: no compaction relies on them."""
    vectors = (one for one in bucket.index if one.index_type == DELETION_VECTORS_INDEX)
    return {one.file_name for one in vectors}


def _delete(made: Iterable[_Made]) -> None:
    for one in made:
        one.delete()


def _report(made: _Made, *, lost: bool) -> BucketReport:
    message, bucket = made.message, made.plan.bucket
    before, after = message.compact_before, message.compact_after
    new = {file.file_name for file in made.files}
    old = {file.file_name for file in before}
    upgraded = [file for file in after if file.file_name in old]
    moved = {file.file_name for file in upgraded}
    return BucketReport(
        partition=bucket.partition,
        bucket=bucket.bucket,
        reason=made.plan.reason,
        files_before=len(before),
        files_after=len(after),
        upgraded=len(upgraded),
        rows_before=sum(file.row_count for file in before),
        rows_after=sum(file.row_count for file in after),
        bytes_read=sum(file.file_size for file in before if file.file_name not in moved),
        bytes_written=sum(file.file_size for file in made.files if file.file_name in new),
        changelog_rows=sum(file.row_count for file in message.compact_changelog),
        lost=lost,
    )
