"""Compact one bucket of a primary-key table.

The result is a message for the committer; nothing is visible before the commit.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/#compaction
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ingestd.paimon.spec.compaction_options import compaction_options, lookup_rules
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.index_manifest import DELETION_VECTORS_INDEX, IndexManifestEntry
from ingestd.paimon.spec.manifest import BucketKey, ManifestEntry, by_bucket
from ingestd.paimon.spec.record_level_expire import expired_rows
from ingestd.paimon.table.compact.merge_tree_compact import (
    BucketChange,
    BucketVectors,
    TreeCompaction,
    TreeRules,
    has_expired,
)
from ingestd.paimon.table.compact.rolling_write import FileTarget
from ingestd.paimon.table.compact.sorted_runs import Levels
from ingestd.paimon.table.compact.universal_compaction import (
    CompactionPick,
    PlanningTime,
    pick_full,
    pick_runs,
)
from ingestd.paimon.table.files.data_files import delete_uncommitted_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_paths import index_path
from ingestd.paimon.table.metadata.table_state import TableState
from ingestd.paimon.table.write.commit_message import CommitMessage


@dataclass(frozen=True, slots=True)
class CompactBucket:
    """A bucket to compact, with its live data files and its index files.

    `partition` is the serialized row, `total_buckets` the bucket count of its partition.
    """

    table: FileStoreTable
    partition: bytes
    bucket: int
    total_buckets: int
    files: tuple[DataFileMeta, ...]
    index: tuple[IndexManifestEntry, ...] = ()

    @property
    def vector_files(self) -> list[IndexManifestEntry]:
        """The index files with deletion vectors."""
        return [entry for entry in self.index if entry.index_type == DELETION_VECTORS_INDEX]

    def target(self, level: int) -> FileTarget:
        """Return the destination of new data files of a level."""
        values = self.table.partition_values(self.partition)
        return FileTarget(self.table, values, self.bucket, level)

    def delete(self, files: Sequence[DataFileMeta], index: Sequence[IndexManifestEntry]) -> None:
        """Delete new data files and index files of the bucket that will not be committed.

        Failures are logged, not raised.
        """
        values = self.table.partition_values(self.partition)
        delete_uncommitted_files(self.table, values, self.bucket, files)
        for entry in index:
            self.table.io.delete_quietly(index_path(self.table, entry))

    def message(self, change: BucketChange, expected: Sequence[str]) -> CommitMessage:
        """Return the commit message of a change.

        `expected` are the names of unchanged files above level 0; the commit fails if they have
        changed.
        """
        index = () if change.index is None else (change.index,)
        return CommitMessage(
            self.partition,
            self.bucket,
            self.total_buckets,
            compact_before=tuple(change.before),
            compact_after=tuple(change.after),
            compact_changelog=tuple(change.changelog),
            compact_expected=frozenset(expected),
            new_index_files=index,
        )


def buckets_of(
    table: FileStoreTable, entries: Iterable[ManifestEntry], state: TableState
) -> list[CompactBucket]:
    """Return the buckets of live files of a state, in the order in which they first appear."""
    index: dict[BucketKey, list[IndexManifestEntry]] = defaultdict(list)
    for entry in (*state.index_entries.values(), *state.repeated_index_entries):
        index[entry.partition, entry.bucket].append(entry)
    return [
        CompactBucket(
            table, *key, own[-1].total_buckets, tuple(e.file for e in own), tuple(index[key])
        )
        for key, own in by_bucket(entries).items()
    ]


@dataclass(frozen=True, slots=True)
class TreePlan:
    """A planned compaction of the newest sorted runs of a bucket, or of single files.

    `levels` has all sorted runs of the bucket. If `files` is empty, `choice` determines how many of
    the newest runs are compacted, and into which level. Otherwise, each of the `files`, which are
    in the top level, is rewritten separately. `rules` are the options of the table at the time of
    planning.
    """

    bucket: CompactBucket
    levels: Levels
    choice: CompactionPick
    rules: TreeRules
    files: tuple[DataFileMeta, ...] = ()

    @property
    def reason(self) -> str:
        """The name of the trigger by which the bucket is compacted."""
        return self.choice.reason

    @property
    def inputs(self) -> tuple[DataFileMeta, ...]:
        """The files to compact."""
        if self.files:
            return self.files
        runs = self.levels.runs[: self.choice.count]
        return tuple(file for run in runs for file in run.files)

    def run(self) -> tuple[CommitMessage, tuple[DataFileMeta, ...]]:
        """Compact the files; return the commit message and the new files.

        If this fails, the new files are deleted. Raises FormatError for a file that is missing or
        damaged, StorageError if the storage fails.
        """
        bucket, table = self.bucket, self.bucket.table
        vectors = BucketVectors(table, bucket.partition, bucket.bucket, bucket.index)
        target = bucket.target(self.choice.output_level)
        work = TreeCompaction(target, bucket.partition, self.levels, self.rules, vectors)
        try:
            if self.files:
                work.rewrite_each(self.files)
            else:
                work.compact_runs(self.levels.runs[: self.choice.count])
            change = work.finish()
        except BaseException:
            bucket.delete(work.change.written, ())
            raise
        inputs = {file.file_name for file in change.before}
        expected = [
            file.file_name
            for run in self.levels.runs
            for file in run.files
            if run.level > 0 and file.file_name not in inputs
        ]
        return bucket.message(change, expected), tuple(change.written)


def plan_bucket(bucket: CompactBucket, moment: PlanningTime, *, full: bool) -> TreePlan | None:
    """Return a plan for the compaction of a bucket, or None if no compaction is due.

    With `full`, the bucket is compacted into one sorted run, whether or not a trigger is due; if it
    is one already, files with deleted or expired rows are rewritten. `moment` is the time of
    planning. Raises ConfigError or UnsupportedError if options of the table are invalid or not
    supported.
    """
    schema = bucket.table.schema
    options = compaction_options(schema)
    rules = TreeRules(options, lookup_rules(schema), expired_rows(schema, moment.now_ms))
    types = [field.type for field in schema.key_fields]
    levels = Levels.of(types, bucket.files, options.num_levels)
    if full:
        choice = pick_full(levels.sizes, levels.max_level)
        if choice is None:
            return _top_rewrites(bucket, levels, rules)
        return TreePlan(bucket, levels, choice, rules)
    since = PlanningTime(moment.now_ms, moment.hour, levels.last_full_ms)
    choice = pick_runs(levels.sizes, levels.max_level, options, since)
    if choice is None:
        return None
    plan = TreePlan(bucket, levels, choice, rules)
    only = plan.inputs[0] if len(plan.inputs) == 1 else None
    return None if only is not None and only.level == choice.output_level else plan


def _top_rewrites(bucket: CompactBucket, levels: Levels, rules: TreeRules) -> TreePlan | None:
    """Return a plan to rewrite single files of a fully compacted bucket.

    These are files with deleted or expired rows, or all files if the table's options require it.
    Returns None without such files.
    """
    deleted = {
        dv_range.data_file_name for entry in bucket.index for dv_range in entry.dv_ranges or ()
    }
    files = tuple(
        file
        for run in levels.runs
        for file in run.files
        if rules.options.rewrites_all
        or file.file_name in deleted
        or has_expired(bucket.table, file, rules.expired)
    )
    if not files:
        return None
    choice = CompactionPick(len(levels.runs), levels.max_level, "full")
    return TreePlan(bucket, levels, choice, rules, files)
