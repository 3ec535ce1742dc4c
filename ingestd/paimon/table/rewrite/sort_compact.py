"""Rewrite append tables without buckets in the order of some columns.

All files of a partition are replaced by files that hardly overlap in these columns, so that readers
with a filter on the columns open few files. Files that are appended meanwhile are not changed.

Rows are sorted in bounded memory: they are first distributed to ranges on the local disk, then each
range is sorted. Range bounds are chosen from a sample. A range that is too large is split again; if
this is not possible, because nearly all its rows are equal, it is sorted in parts.

Specification: https://paimon.apache.org/docs/1.4/maintenance/dedicated-compaction/#sort-compact
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.errors import ConfigError, storage_error
from ingestd.paimon.merge.key_order import Positions, positions_by_number
from ingestd.paimon.merge.sort_words import RANK_BITS, SORTABLE, Keys, interleaved, words
from ingestd.paimon.merge.value_codes import sequence_codes, sequence_ranks
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.manifest import by_partition
from ingestd.paimon.spec.options import BucketMode, bucket_mode, refuse_unsupported
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from ingestd.paimon.table.compact.compact_bucket import CompactBucket
from ingestd.paimon.table.compact.rolling_write import RollingWriter
from ingestd.paimon.table.files.data_files import DataFileReader
from ingestd.paimon.table.files.deletion_vectors import DeletionVectors
from ingestd.paimon.table.files.row_tracking import rewritten_files, rewritten_table
from ingestd.paimon.table.metadata.file_store_scan import PartitionFilter, live_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.read.table_read import selected_fields
from ingestd.paimon.table.rewrite.merged_stream import bounded_chunks, stored_parts
from ingestd.paimon.table.rewrite.rewrite_commit import commit_rewrite
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable

STRATEGIES = ("order", "zorder")
"""Sort strategies: by one column after another, or by all of them at once."""


@dataclass(frozen=True, slots=True)
class SortPlan:
    """A partition to rewrite, with all of its files as one bucket."""

    bucket: CompactBucket

    @property
    def rows(self) -> int:
        """The number of rows in the partition's files, including deleted rows."""
        return sum(file.row_count for file in self.bucket.files)

    @property
    def bytes(self) -> int:
        """The size of the partition's files in bytes."""
        return sum(file.file_size for file in self.bucket.files)


@dataclass(frozen=True, slots=True)
class SortedPartition:
    """A rewritten partition: its plan, its new files, and their snapshot."""

    plan: SortPlan
    files: tuple[DataFileMeta, ...]
    snapshot: Snapshot | None


def sort_fields(table: FileStoreTable, columns: Sequence[str], strategy: str) -> list[DataField]:
    """Return the columns to sort by, in the order of `columns`.

    `strategy` is the kind of order, one of `STRATEGIES`. Raises ConfigError for a table that cannot
    be sorted, an unknown strategy, no columns, a repeated column, and a column whose type has no
    order; ArgumentError for an unknown column; UnsupportedError for a table that cannot be written.
    """
    if bucket_mode(table.schema) is not BucketMode.BUCKET_UNAWARE:
        raise ConfigError(
            f"table {table.name} cannot be sorted: that needs a table without primary key and with "
            "'bucket' = '-1', whose rows may stand in any order"
        )
    if honoured.INCREMENTAL_CLUSTERING.of(table.schema.options):
        raise ConfigError(
            f"table {table.name} cannot be sorted: with 'clustering.incremental' Paimon's own "
            "compaction sorts its files, step by step"
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
    partition_filter: PartitionFilter | None,
    state: TableState | None = None,
) -> list[SortPlan]:
    """Return a plan for each partition that has files; only manifests are read.

    The table must have no buckets (see `sort_fields`). `state` is the newest state of the table
    (None: it is loaded). `partition_filter` selects partitions (None: all). Raises FormatError if a
    manifest is missing or damaged.
    """
    state = load_state(table) if state is None else state
    live = live_entries(table, state.manifests, partition_filter=partition_filter)
    plans = []
    for partition, entries in by_partition(live).items():
        files, index = tuple(entry.file for entry in entries), tuple(state.index_of(partition))
        plans.append(SortPlan(CompactBucket(table, partition, 0, -1, files, index)))
    return plans


def sort_compact(
    table: FileStoreTable,
    columns: Sequence[str],
    strategy: str = "order",
    *,
    clock_ms: Callable[[], int],
    partition_filter: PartitionFilter | None = None,
) -> Iterator[SortedPartition]:
    """Rewrite partitions in sorted order; yield each after it was committed in a COMPACT snapshot.

    `strategy` is one of `STRATEGIES`. `clock_ms` returns the current time in milliseconds of the
    epoch. `partition_filter` selects partitions (None: all). Raises ConfigError for invalid
    columns, an unknown strategy or a table that cannot be sorted; UnsupportedError for a table that
    cannot be written; CommitConflictError if another process has replaced files of a partition or
    deleted rows of it; FormatError for a damaged file; StorageError if the local disk is full.
    Committed partitions stay sorted; new files of other partitions are deleted.
    """
    fields = sort_fields(table, columns, strategy)
    for planned in plan_sort(table, partition_filter):
        state = load_state(table)
        for plan in plan_sort(table, frozenset({planned.bucket.partition}), state):
            yield _sorted(plan, fields, strategy, state, clock_ms())


def _sorted(
    plan: SortPlan, fields: Sequence[DataField], strategy: str, state: TableState, now_ms: int
) -> SortedPartition:
    table = plan.bucket.table
    bucket = replace(plan.bucket, table=rewritten_table(table))
    plan = replace(plan, bucket=bucket)
    writer = RollingWriter(bucket.target(0), min(file.min_sequence_number for file in bucket.files))
    try:
        for rows in _in_order(plan, fields, strategy):
            writer.add(rows)
        files = rewritten_files(table, writer.close())
    except BaseException:
        writer.abort()
        raise
    message = CommitMessage(
        bucket.partition,
        bucket.bucket,
        bucket.total_buckets,
        compact_before=bucket.files,
        compact_after=files,
        removed_index_files=tuple(entry.file_name for entry in bucket.vector_files),
    )
    committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, (message,))
    result = commit_rewrite(table, committable, state=state, now_ms=now_ms)
    return SortedPartition(plan, files, result.snapshot)


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


MEMORY = 64 << 20
"""Bytes of rows, as columns in memory, that are sorted at a time."""
SAMPLE_ROWS = 1 << 16
_MOST_RANGES = 64
_MOST_RANK = (1 << RANK_BITS) - 1

Read = Callable[[], Iterator[pa.Table]]


class SortOrder(Protocol):
    """A sort order of rows, by which append tables are rewritten."""

    def order(self, rows: pa.Table) -> Positions:
        """Return the positions of the rows in sorted order; shape (n,)."""
        ...

    def ranges(self, rows: pa.Table, borders: pa.Table) -> npt.NDArray[np.int64]:
        """Return the range number of each row; shape (n,).

        This is the number of rows of `borders` that are less than or equal to the row; `borders` is
        sorted.
        """
        ...


@dataclass(frozen=True, slots=True)
class ByColumns:
    """The sort order by the columns `names`, most significant first; nulls precede other values.

    Rows that are equal in all of these columns stay in their order.
    """

    names: tuple[str, ...]

    def order(self, rows: pa.Table) -> Positions:
        """Return the positions of the rows in sorted order; shape (n,)."""
        codes = sequence_codes([rows.column(name) for name in self.names])
        return np.lexsort(codes[::-1])

    def ranges(self, rows: pa.Table, borders: pa.Table) -> npt.NDArray[np.int64]:
        """Return the range number of each row: the number of `borders` less than or equal to it.

        `borders` has sorted rows; the result has the shape (n,).
        """
        both = pa.concat_tables([borders.select(self.names), rows.select(self.names)])
        ranks = sequence_ranks(both.columns)
        own, others = ranks[: borders.num_rows], ranks[borders.num_rows :]
        return np.searchsorted(own, others, side="right")


@dataclass(frozen=True, slots=True)
class ByAll:
    """The z-order of several columns, which sorts by all of them at once.

    Each value is represented by its rank among the values of its column in a sample; nulls have the
    lowest rank. `samples` has the sorted distinct values of the sample by column, as unsigned
    numbers.
    """

    samples: dict[str, npt.NDArray[np.uint64]]

    @classmethod
    def of(cls, names: Sequence[str], sample: pa.Table) -> "ByAll":
        """Return the sort order by the columns `names`; ranks are taken from `sample`."""
        return cls({name: np.unique(words(sample.column(name))) for name in names})

    def order(self, rows: pa.Table) -> Positions:
        """Return the positions of the rows in sorted order; shape (n,)."""
        return np.argsort(self._keys(rows), kind="stable")

    def ranges(self, rows: pa.Table, borders: pa.Table) -> npt.NDArray[np.int64]:
        """Return the range number of each row: the number of `borders` less than or equal to it.

        `borders` has sorted rows; the result has the shape (n,).
        """
        return np.searchsorted(self._keys(borders), self._keys(rows), side="right")

    def _keys(self, rows: pa.Table) -> Keys:
        ranks = []
        for name, sample in self.samples.items():
            quantiles = np.searchsorted(sample, words(rows.column(name)), side="right")
            ranks.append((quantiles * _MOST_RANK // max(len(sample), 1)).astype(np.uint16))
        return interleaved(ranks)


def sample_of(read: Read, rows: int) -> pa.Table:
    """Return a sample of evenly spread rows; `read` yields all rows, `rows` is their number.

    The sample has from `SAMPLE_ROWS` to twice as many rows, or all rows if there are fewer.
    """
    step, skipped, parts = max(rows // SAMPLE_ROWS, 1), 0, list[pa.Table]()
    for batch in read():
        picked = np.arange(-skipped % step, batch.num_rows, step)
        skipped += batch.num_rows
        parts.append(batch.take(picked))
    return pa.concat_tables(parts)


def sorted_rows(read: Read, sample: pa.Table, size: int, order: SortOrder) -> Iterator[pa.Table]:
    """Yield the rows of `read` in the given order, in parts of at most about twice `MEMORY` bytes.

    `read` yields all rows, and may be called twice; `size` is their approximate size in bytes;
    `sample` has some of them, with the sort columns. If the rows exceed the memory and nearly all
    are equal, each part is sorted by itself, without an order between the parts. Raises
    StorageError if the local disk is full.
    """
    whole = _in_memory(read) if size <= MEMORY else None
    if whole is not None:
        yield whole.take(order.order(whole))
        return
    count = min(max(-(-2 * size // MEMORY), 2), _MOST_RANGES)
    evenly = np.linspace(0, sample.num_rows - 1, count + 1).astype(np.int64)[1:-1]
    borders = sample.take(order.order(sample)[evenly])
    with _Spill(count) as ranges:
        for rows in read():
            ranges.add(rows, order.ranges(rows, borders))
        for range_number in ranges.filled():
            again = partial(ranges.read, range_number)
            if ranges.rows[range_number] == sum(ranges.rows):
                for rows in bounded_chunks(again(), MEMORY):
                    yield rows.take(order.order(rows))
                continue
            range_sample = (
                sample_of(again, ranges.rows[range_number])
                if ranges.sizes[range_number] > MEMORY
                else sample
            )
            yield from sorted_rows(again, range_sample, ranges.sizes[range_number], order)


def _in_memory(read: Read) -> pa.Table | None:
    """Return all rows, or None if they take more than twice `MEMORY`."""
    held, size = list[pa.Table](), 0
    for rows in read():
        held.append(rows)
        size += rows.nbytes
        if size > 2 * MEMORY:
            return None
    return pa.concat_tables(held)


class _Spill:
    """Rows on the local disk by range number, in unnamed files."""

    def __init__(self, ranges: int) -> None:
        self.rows = [0] * ranges
        self.sizes = [0] * ranges
        self._files: list[Any] = [None] * ranges
        self._writers: list[pa.RecordBatchStreamWriter | None] = [None] * ranges

    def __enter__(self) -> "_Spill":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            if file is not None:
                # Rows that did not fit on a full disk are no longer needed.
                with contextlib.suppress(OSError):
                    file.close()

    def add(self, rows: pa.Table, range_numbers: npt.NDArray[np.int64]) -> None:
        for range_number, positions in positions_by_number(range_numbers):
            self._write(range_number, rows.take(positions))

    def filled(self) -> list[int]:
        return [range_number for range_number, rows in enumerate(self.rows) if rows]

    def read(self, range_number: int) -> Iterator[pa.Table]:
        writer, file = self._writers[range_number], self._files[range_number]
        if file is None:
            return
        with _on_disk():
            if writer is not None:
                writer.close()
                self._writers[range_number] = None
                file.flush()
            file.seek(0)
            for batch in pa.ipc.open_stream(file):
                yield pa.Table.from_batches([batch])

    def _write(self, range_number: int, rows: pa.Table) -> None:
        with _on_disk():
            writer = self._writers[range_number]
            if writer is None:
                file = tempfile.TemporaryFile(prefix="ingestd-sort-")  # noqa: SIM115  (read later)
                self._files[range_number] = file
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                writer = pa.ipc.new_stream(file, rows.schema, options=options)
                self._writers[range_number] = writer
            writer.write_table(rows)
        self.rows[range_number] += rows.num_rows
        self.sizes[range_number] += rows.nbytes


@contextlib.contextmanager
def _on_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(
            f"rows cannot be sorted on the local disk at {tempfile.gettempdir()}: {error}; "
            "make room, or set TMPDIR",
            error,
        ) from error
