"""Rewrite append tables without buckets in the order of some columns.

All files of a partition are replaced by files that hardly overlap in these columns, so that readers
with a filter on them open few files. Files that are appended meanwhile are not changed.

Specification: https://paimon.apache.org/docs/1.4/maintenance/dedicated-compaction/#sort-compact
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from ingestd.errors import ConfigError
from ingestd.paimon.merge.sort_words import SORTABLE
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.index_manifest import DELETION_VECTORS_INDEX
from ingestd.paimon.spec.options import BucketMode, bucket_mode, refuse_unsupported
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from ingestd.paimon.table.compact.compact_bucket import CompactBucket
from ingestd.paimon.table.compact.rolling_write import RollingWriter
from ingestd.paimon.table.files.data_files import DataFileReader
from ingestd.paimon.table.files.deletion_vectors import DeletionVectors
from ingestd.paimon.table.metadata.file_store_scan import PartitionFilter, live_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.read.table_read import selected_fields
from ingestd.paimon.table.rewrite.external_sort import (
    ByAll,
    ByColumns,
    SortOrder,
    sample_of,
    sorted_rows,
)
from ingestd.paimon.table.rewrite.merged_stream import stored_parts
from ingestd.paimon.table.rewrite.rewrite_commit import commit_rewrite
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable

STRATEGIES = ("order", "zorder")
"""Sort strategies: by one column after another, or by all of them at once."""


@dataclass(frozen=True, slots=True)
class SortPlan:
    """A partition and its files, all of which are rewritten."""

    bucket: CompactBucket

    @property
    def rows(self) -> int:
        """Return the number of rows in its files, including deleted rows."""
        return sum(file.row_count for file in self.bucket.files)

    @property
    def bytes(self) -> int:
        """Return the size of its files in bytes."""
        return sum(file.file_size for file in self.bucket.files)


@dataclass(frozen=True, slots=True)
class Sorted:
    """A rewritten partition: its new files, and their snapshot."""

    plan: SortPlan
    files: tuple[DataFileMeta, ...]
    snapshot: Snapshot | None


def sort_fields(table: FileStoreTable, columns: Sequence[str], strategy: str) -> list[DataField]:
    """Return the columns to sort by, in the order of `columns`.

    Raises ConfigError for a table, strategy or column type that cannot be sorted, and for an
    unknown or repeated column.
    """
    if bucket_mode(table.schema) is not BucketMode.BUCKET_UNAWARE:
        raise ConfigError(
            f"table {table.name} cannot be sorted: that needs a table without primary key and with "
            "'bucket' = '-1', whose rows may stand in any order"
        )
    if strategy not in STRATEGIES:
        raise ConfigError(f"the order '{strategy}' is not supported; use {STRATEGIES}")
    refuse_unsupported(table.schema, for_write=True)
    fields = list(selected_fields(table, columns))
    if not fields or len(set(columns)) < len(columns):
        raise ConfigError("name the columns to sort by, each once, with commas between them")
    for field in fields:
        if field.type.root not in SORTABLE:
            raise ConfigError(f"rows cannot be sorted by {field.name} of type {field.type}")
    return [next(candidate for candidate in fields if candidate.name == name) for name in columns]


def plan_sort(
    table: FileStoreTable,
    partition_filter: PartitionFilter | None = None,
    state: TableState | None = None,
) -> list[SortPlan]:
    """Return a plan for each partition that has files; only manifests are read."""
    state = load_state(table) if state is None else state
    files: dict[bytes, list[DataFileMeta]] = defaultdict(list)
    for entry in live_entries(table, state.manifests, partition_filter=partition_filter):
        files[entry.partition].append(entry.file)
    plans = []
    for partition, own in files.items():
        index = tuple(state.index_of(partition))
        plans.append(SortPlan(CompactBucket(table, partition, 0, -1, tuple(own), index)))
    return plans


def sort_compact(
    table: FileStoreTable,
    columns: Sequence[str],
    strategy: str = "order",
    *,
    clock_ms: Callable[[], int],
    partition_filter: PartitionFilter | None = None,
) -> Iterator[Sorted]:
    """Rewrite each partition sorted, in a COMPACT snapshot of its own.

    Raises the errors of `sort_fields`; CommitConflictError if another process has replaced files of
    a partition or deleted rows of it; FormatError for a damaged file; StorageError if the local
    disk is full. Committed partitions stay sorted; new files of others are deleted.
    """
    fields = sort_fields(table, columns, strategy)
    for planned in plan_sort(table, partition_filter):
        state = load_state(table)
        for plan in plan_sort(table, frozenset({planned.bucket.partition}), state):
            yield _sorted(plan, fields, strategy, state, clock_ms())


def _sorted(
    plan: SortPlan, fields: Sequence[DataField], strategy: str, state: TableState, now_ms: int
) -> Sorted:
    bucket, table = plan.bucket, plan.bucket.table
    writer = RollingWriter(bucket.target(0), min(file.min_sequence_number for file in bucket.files))
    try:
        for rows in _in_order(plan, fields, strategy):
            writer.add(rows)
        files = tuple(writer.close())
    except BaseException:
        writer.abort()
        raise
    vectors = (entry for entry in bucket.index if entry.index_type == DELETION_VECTORS_INDEX)
    message = CommitMessage(
        bucket.partition,
        bucket.bucket,
        bucket.total_buckets,
        compact_before=bucket.files,
        compact_after=files,
        removed_index_files=tuple(vector.file_name for vector in vectors),
    )
    committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, (message,))
    result = commit_rewrite(table, committable, writer.abort, state=state, now_ms=now_ms)
    return Sorted(plan, files, result.snapshot)


def _in_order(plan: SortPlan, fields: Sequence[DataField], strategy: str) -> Iterator[pa.Table]:
    bucket = plan.bucket
    vectors = DeletionVectors.of(bucket.table, bucket.index)
    read = partial(stored_parts, DataFileReader(bucket.table, vectors), bucket, bucket.files)
    read_all = partial(read, bucket.table.schema.fields)
    first = next(read_all(), None)
    if first is None:
        return
    sample = sample_of(partial(read, fields), plan.rows)
    by_all = strategy == "zorder"
    names = tuple(field.name for field in fields)
    order: SortOrder = ByAll.of(names, sample) if by_all else ByColumns(names)
    size = first.nbytes // first.num_rows * plan.rows
    yield from sorted_rows(read_all, sample, size, order)
