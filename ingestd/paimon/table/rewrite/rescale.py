"""Rescale a table to another number of buckets, partition by partition.

Each OVERWRITE snapshot replaces whole partitions. It is committed only if these still have exactly
the files that were read, so that concurrent writes are not lost. A partition keeps its old number
of buckets until it is rewritten: an interrupted rescale continues when it is called again.

Specification: https://paimon.apache.org/docs/1.4/maintenance/rescale-bucket/#rescale-overwrite
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import pyarrow as pa

from ingestd.errors import ConfigError, FormatError
from ingestd.paimon.spec.compaction_options import compaction_options
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.manifest import ManifestEntry, by_partition
from ingestd.paimon.spec.options import BucketMode, bucket_mode, refuse_unsupported
from ingestd.paimon.spec.paths import POSTPONE_BUCKET
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from ingestd.paimon.table.buckets.bucket_assigner import assign_among
from ingestd.paimon.table.compact.compact_bucket import CompactBucket, buckets_of
from ingestd.paimon.table.compact.rolling_write import RollingWriter
from ingestd.paimon.table.metadata.file_store_scan import PartitionFilter, live_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.metadata_text import partition_name
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.rewrite.merged_stream import bucket_rows, merged_runs
from ingestd.paimon.table.rewrite.rewrite_commit import (
    commit_rewrite,
    written_messages,
)
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable

COMMIT_BYTES = 1 << 30
"""Size in bytes of data files from which on partitions are no longer added to a commit."""
OPEN_WRITERS = 8
"""Maximum number of new buckets written at the same time; each keeps a row group in memory."""


@dataclass(frozen=True, slots=True)
class PartitionRescale:
    """A partition to rescale: its serialized row, its current bucket count, and its live files."""

    partition: bytes
    buckets: int
    entries: tuple[ManifestEntry, ...]

    @property
    def rows(self) -> int:
        """The number of rows in the partition's files, before merging."""
        return sum(entry.file.row_count for entry in self.entries)

    @property
    def bytes(self) -> int:
        """The size of the partition's files in bytes."""
        return sum(entry.file.file_size for entry in self.entries)


@dataclass(frozen=True, slots=True)
class Rescaled:
    """The result of one commit of a rescale.

    `rows` and `files` are the numbers of rows and files that were written for these partitions,
    `snapshot` is the snapshot of the commit.
    """

    partitions: tuple[PartitionRescale, ...]
    rows: int
    files: int
    snapshot: Snapshot | None


def refuse_rescale(table: FileStoreTable, buckets: int) -> None:
    """Raise ConfigError for a table that cannot be rescaled, and for a bucket count below 1.

    Raises UnsupportedError for a table that cannot be written.
    """
    mode = bucket_mode(table.schema)
    if mode not in (BucketMode.HASH_FIXED, BucketMode.POSTPONE):
        raise ConfigError(
            f"table {table.name} has 'bucket' = '{table.options.bucket}': only tables with a fixed "
            "number of buckets, or with -2, can be rescaled"
        )
    if buckets < 1:
        raise ConfigError(f"{buckets} is no number of buckets: use at least 1")
    refuse_unsupported(table.schema, for_write=True)


def plan_rescale(
    table: FileStoreTable,
    buckets: int,
    partition_filter: PartitionFilter | None = None,
    state: TableState | None = None,
) -> list[PartitionRescale]:
    """Return the partitions that `rescale` would rewrite; only manifests are read.

    `state` is the newest state of the table (None: it is loaded). `partition_filter` selects
    partitions (None: all). Raises ConfigError for a table that cannot be rescaled, a bucket count
    below 1, or partitions with postponed rows, and UnsupportedError for a table that cannot be
    written.
    """
    refuse_rescale(table, buckets)
    state = load_state(table) if state is None else state
    live = live_entries(table, state.manifests, partition_filter=partition_filter)
    plans = []
    for partition, entries in by_partition(live).items():
        if all(entry.total_buckets == buckets for entry in entries):
            continue
        if any(entry.bucket == POSTPONE_BUCKET for entry in entries):
            raise ConfigError(_waiting(table, partition_name(table, partition)))
        plans.append(PartitionRescale(partition, entries[0].total_buckets, tuple(entries)))
    return plans


def _waiting(table: FileStoreTable, partition: str) -> str:
    """Return the message for a partition with postponed rows, which must get a bucket first."""
    compact = f"`ingestd compact {table.warehouse} {table.name}`"
    where = f"table {table.name}{', partition ' + partition if partition else ''}"
    if bucket_mode(table.schema) is BucketMode.POSTPONE:
        return f"{where}: rows wait for their bucket; give them one first with {compact}"
    number = table.options.bucket
    return (
        f"{where}: option 'bucket' was altered from -2 to {number} while rows waited for their "
        f"bucket; set it back to -2 and run {compact}, then set it to {number} and try again"
    )


def rescale(
    table: FileStoreTable,
    buckets: int,
    *,
    clock_ms: Callable[[], int],
    partition_filter: PartitionFilter | None = None,
) -> Iterator[Rescaled]:
    """Rewrite partitions with the new bucket count; yield the result of each commit.

    The schema of `table` must already have the new number in the option `bucket`, unless the table
    has postponed buckets; otherwise ValueError is raised. `clock_ms` returns the current time in
    milliseconds of the epoch. `partition_filter` selects partitions (None: all). Raises the errors
    of `plan_rescale`; CommitConflictError if another process has changed files of a partition;
    FormatError for damaged files. After an error, committed partitions stay rescaled, and the new
    files of other partitions are deleted. Raises CommitUnknownError if the storage does not report
    whether a snapshot was published: the new files then stay.
    """
    if bucket_mode(table.schema) is BucketMode.HASH_FIXED and table.options.bucket != buckets:
        raise ValueError(f"option 'bucket' is {table.options.bucket}, not {buckets}")
    plans = plan_rescale(table, buckets, partition_filter)
    for together in _groups(plans):
        state = load_state(table)
        now = plan_rescale(table, buckets, frozenset(plan.partition for plan in together), state)
        if now:
            yield _rescaled(table, buckets, state, now, clock_ms())


def _groups(plans: Iterable[PartitionRescale]) -> Iterator[list[PartitionRescale]]:
    group, size = list[PartitionRescale](), 0
    for plan in plans:
        group.append(plan)
        size += plan.bytes
        if size >= COMMIT_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _rescaled(
    table: FileStoreTable,
    buckets: int,
    state: TableState,
    plans: Sequence[PartitionRescale],
    now_ms: int,
) -> Rescaled:
    messages = written_messages(
        table, (message for plan in plans for message in _of_partition(table, buckets, state, plan))
    )
    committable = ManifestCommittable(
        BATCH_COMMIT_IDENTIFIER,
        messages,
        overwrite=True,
        replaced=frozenset(plan.partition for plan in plans),
        rewrites=frozenset(entry.identifier for plan in plans for entry in plan.entries),
    )
    result = commit_rewrite(table, committable, state=state, now_ms=now_ms)
    files = [file for message in messages for file in message.new_files]
    return Rescaled(
        tuple(plans), sum(file.row_count for file in files), len(files), result.snapshot
    )


def _of_partition(
    table: FileStoreTable, buckets: int, state: TableState, plan: PartitionRescale
) -> Iterator[CommitMessage]:
    old = sorted(buckets_of(table, plan.entries, state), key=attrgetter("bucket"))
    return rewritten(Rewrite(table, plan.partition, plan.buckets, buckets), old)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The rewrite of a partition, a serialized row, from `before` buckets to `after` buckets."""

    table: FileStoreTable
    partition: bytes
    before: int
    after: int

    def may_move(self, old: int, new: int) -> bool:
        """Return whether a row of the old bucket `old` may belong to the new bucket `new`.

        Both are the hash of the row modulo a bucket count, which rules out most pairs.
        """
        return (old - new) % math.gcd(self.before, self.after) == 0

    def bucket(self, number: int) -> CompactBucket:
        """Return the new bucket with this number, which has no files yet."""
        return CompactBucket(self.table, self.partition, number, self.after, ())


def rewritten(rewrite: Rewrite, old: Sequence[CompactBucket]) -> Iterator[CommitMessage]:
    """Write the rows of the `old` buckets to new buckets; yield a message per bucket with rows.

    `old` are all buckets of the partition of `rewrite`. Raises FormatError if an old bucket has a
    row that cannot belong to it (see `Rewrite.may_move`); the files of messages that were not
    yielded yet are then deleted.
    """
    step = math.gcd(rewrite.before, rewrite.after)
    for remainder in range(step):
        sources = [bucket for bucket in old if bucket.bucket % step == remainder]
        numbers = list(range(remainder, rewrite.after, step))
        for start in range(0, len(numbers), OPEN_WRITERS):
            if sources:
                yield from _written(rewrite, sources, numbers[start : start + OPEN_WRITERS])


def _written(
    rewrite: Rewrite, old: Sequence[CompactBucket], numbers: Sequence[int]
) -> Iterator[CommitMessage]:
    keyed = bool(rewrite.table.schema.primary_keys)
    level = compaction_options(rewrite.table.schema).num_levels - 1 if keyed else 0
    merges = keyed and len(old) > 1
    sink = _Sink(rewrite, numbers, 0 if merges else level)
    try:
        for bucket in old:
            for rows in bucket_rows(bucket):
                sink.add(bucket, rows)
            if keyed:
                sink.end_run()
        sink.end_run()
        if merges:
            sink.merge(level)
    except BaseException:
        sink.abort()
        raise
    for number in numbers:
        files = tuple(file for run in sink.runs[number] for file in run)
        if files:
            yield CommitMessage(rewrite.partition, number, rewrite.after, new_files=files)


class _Sink:
    """Several new buckets, and the sorted runs that were written to each, by bucket number."""

    def __init__(self, rewrite: Rewrite, numbers: Sequence[int], level: int) -> None:
        self.runs = {number: list[list[DataFileMeta]]() for number in numbers}
        self._rewrite = rewrite
        self._level = level
        self._writers: dict[int, RollingWriter] = {}

    def add(self, origin: CompactBucket, rows: pa.Table) -> None:
        """Write the rows of an old bucket that belong to the new buckets of this sink.

        Raises FormatError if the old bucket has a row that cannot be in it.
        """
        rewrite = self._rewrite
        buckets = assign_among(rewrite.table, rows, rewrite.after)
        for number in np.unique(buckets).tolist():
            if not rewrite.may_move(origin.bucket, number):
                raise FormatError(
                    f"table {rewrite.table.name}: bucket {origin.bucket} has rows of another one; "
                    "`ingestd verify` names its file"
                )
            if number in self.runs:
                self._writer(number).add(rows.filter(pa.array(buckets == number)))

    def end_run(self) -> None:
        """End a sorted run: rows added next may have smaller keys."""
        for number in list(self._writers):
            files = self._writers[number].close()
            del self._writers[number]
            if files:
                self.runs[number].append(files)

    def merge(self, level: int) -> None:
        """Merge the runs of each bucket into one run of level `level`."""
        for number, runs in self.runs.items():
            bucket = self._rewrite.bucket(number)
            writer = RollingWriter(bucket.target(level))
            try:
                for rows in merged_runs(bucket, runs):
                    writer.add(rows)
                files = writer.close()
            except BaseException:
                writer.abort()
                raise
            self.runs[number] = [files]
            for run in runs:
                bucket.delete(run, ())

    def abort(self) -> None:
        """Delete all files that were written."""
        for writer in self._writers.values():
            writer.abort()
        for number, runs in self.runs.items():
            for run in runs:
                self._rewrite.bucket(number).delete(run, ())

    def _writer(self, number: int) -> RollingWriter:
        if number not in self._writers:
            target = self._rewrite.bucket(number).target(self._level)
            self._writers[number] = RollingWriter(target)
        return self._writers[number]
