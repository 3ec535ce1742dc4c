"""Stage 2 of a batch, in one task: write the blobs of its slots as files with commit messages.

Files are not visible before the driver commits them. Files of failed attempts are orphan files,
never data.

The rows of a table are written in runs of bounded size. Rows of a topic partition are ordered by
offset. Rows of several topic partitions are ordered by their position in the source's log, because
a key can change its partition (for instance if the type of a key column changes), and its rows must
be applied in the order of the source.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.crash_points import CrashPoint, reach
from ingestd.ingest.dead_letters.dead_letter_topic import send_dead_letters
from ingestd.ingest.rows.arrival import arrival_ranks, concatenated
from ingestd.ingest.rows.blobs import (
    BUCKET,
    HASH,
    KIND,
    OFFSET,
    POSITION,
    Blob,
    RowBlob,
    receive,
)
from ingestd.ingest.rows.fill_unavailable import fill_unavailable
from ingestd.ingest.rows.omitted_values import omission_marks
from ingestd.ingest.rows.slot_assignment import assigners_of
from ingestd.ingest.settings.context import BatchContext
from ingestd.ingest.stages.batch_result import WriteOutcome
from ingestd.ingest.values.counts import Counts
from ingestd.paimon.merge.row_kinds import without_ignored
from ingestd.paimon.spec.binary_row import serialize_row
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER
from ingestd.paimon.spec.grouping import pair_order
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.paths import POSTPONE_BUCKET
from ingestd.paimon.table.buckets.bucket_assigner import DynamicBucketAssigner, partitions_of_rows
from ingestd.paimon.table.buckets.hash_index import HASH_CACHE
from ingestd.paimon.table.cross_partition.assigner import CrossPartitionAssigner
from ingestd.paimon.table.cross_partition.index_cache import INDEX_CACHE
from ingestd.paimon.table.cross_partition.load_key_index import (
    KeyShare,
    assigners_of_keys,
    primary_key_hashes,
)
from ingestd.paimon.table.write.commit_message import CommitMessage
from ingestd.paimon.table.write.postpone import postponed_table
from ingestd.paimon.table.write.table_write import (
    AssignedRows,
    data_file_names,
    write_assigned,
)

_Numbers = npt.NDArray[np.int64]
CompleteRows = Callable[[BatchContext, str, list[RowBlob]], tuple[list[RowBlob], int]]
"""Returns the rows of a table with values of other rows, and the number of values not found."""
RANK = "ingestd:rank"
"""The position of a row in the order of all rows of its table in the task, starting at 0."""


def write_slot(
    context: BatchContext, blobs: Iterable[Blob], complete: CompleteRows
) -> WriteOutcome:
    """Write the rows of all blobs of a task; return commit messages, reports and counts.

    `complete` fills in values that key-changing updates omitted. Rows get sequence numbers by order
    of arrival. If the batch must run again, nothing is written. If dead letters are written to a
    topic, they are sent immediately. Raises StorageError, FormatError or UnsupportedError if a
    table cannot be written, the errors of `send_dead_letters` if dead letters cannot be sent, and
    the errors of `complete`.
    """
    received = receive(blobs)
    reach(CrashPoint.SLOT_RECEIVED)
    counts = Counts()
    messages: dict[str, tuple[CommitMessage, ...]] = {}
    if not received.is_aborted:
        for identifier, row_blobs in received.rows.items():
            if identifier == context.dead_letters and context.dead_letter_topic is not None:
                send_dead_letters(context, [blob.rows for blob in row_blobs])
                continue
            writer = _TableWriter(context, identifier, counts)
            completed, unknown = complete(context, identifier, row_blobs)
            counts.unknown[identifier] += unknown
            written = writer.write(completed, context.write_buffer_size)
            if written:
                messages[identifier] = written
    for cache in (HASH_CACHE, INDEX_CACHE):
        counts.index_lookups.update(cache.lookups)
        cache.lookups.clear()
    reach(CrashPoint.SLOT_WRITTEN)
    return WriteOutcome(messages, received.reports, counts)


class _TableWriter:
    """The writer of the rows of one table, with the bucket assigners that it has loaded."""

    def __init__(self, context: BatchContext, identifier: str, counts: Counts) -> None:
        self._target = context.tables[identifier]
        self._table = self._target.table
        self._mode = bucket_mode(self._table.schema)
        if self._mode is BucketMode.POSTPONE:
            self._table = postponed_table(self._table, context.commit_user)
        elif self._mode is BucketMode.HASH_DYNAMIC:
            HASH_CACHE.limit(context.index_cache_bytes)
        elif self._mode is BucketMode.KEY_DYNAMIC:
            INDEX_CACHE.limit(context.index_cache_bytes)
        self._counts = counts
        self._assigners: dict[tuple[bytes, int], DynamicBucketAssigner] = {}
        self._new_name: Callable[[], str] = data_file_names(self._table)

    def write(self, blobs: list[RowBlob], write_buffer_size: int) -> tuple[CommitMessage, ...]:
        """Write all rows; return commit messages of written buckets and of changed hash indexes."""
        messages: list[CommitMessage] = []
        is_postponed = self._mode is BucketMode.POSTPONE
        # Merging sorts by key and sequence number anyway, so rows need not be sorted here.
        by_number = bool(self._table.schema.primary_keys) and not is_postponed
        whole = self._table.merge_rules.engine in ("partial-update", "aggregation")
        whole |= is_postponed or self._mode is BucketMode.KEY_DYNAMIC
        for run in runs(blobs, write_buffer_size, by_number=by_number, whole=whole):
            rows = self._prepared(run)
            if rows.num_rows:
                messages.extend(self._write_rows(rows))
        for assigner in self._assigners.values():
            for entry in assigner.prepare_commit():
                message = CommitMessage(entry.partition, entry.bucket, -1, new_index_files=(entry,))
                messages.append(message)
        for message in messages:
            files = (*message.new_files, *message.changelog_files)
            self._counts.files[self._target.identifier] += len(files)
            size = sum(file.file_size for file in files)
            self._counts.file_bytes[self._target.identifier] += size
        return tuple(messages)

    def _prepared(self, rows: pa.Table) -> pa.Table:
        """Return the rows of a run to write: without ignored rows, completed and numbered.

        Omitted values are filled, and tables with a primary key get sequence numbers.
        """
        identifier, schema = self._target.identifier, self._table.schema
        rows = self._without_ignored(rows)
        if omission_marks(rows):
            across = self._mode is BucketMode.KEY_DYNAMIC
            partition_lookup = self._partitions_of if across else None
            rows, unknown = fill_unavailable(self._target, rows, partition_lookup)
            self._counts.unknown[identifier] += unknown
        kinds = np.bincount(rows.column(KIND).to_numpy())
        for kind in np.flatnonzero(kinds).tolist():
            self._counts.rows[identifier, kind] += int(kinds[kind])
        if schema.primary_keys:
            numbers = rows.column(RANK).to_numpy() + self._target.sequence_base
            rows = rows.append_column(SEQUENCE_NUMBER, pa.array(numbers))
        helper_columns = {OFFSET, POSITION, RANK}
        return rows.select([name for name in rows.column_names if name not in helper_columns])

    def _partitions_of(self, keys: pa.Table) -> frozenset[bytes]:
        """Return the partitions, as serialized rows, in which the table has rows of these keys."""
        partitions: frozenset[bytes] = frozenset()
        for share, mine in self._shares(keys):
            assigner = CrossPartitionAssigner(self._table, self._target.snapshot_id, share)
            partitions |= assigner.partitions_of(keys.take(mine))
        return partitions

    def _shares(self, keys: pa.Table) -> Iterator[tuple[KeyShare, _Numbers]]:
        """Yield each share of the key hashes, with the indices of the rows whose key is in it."""
        assigners = self._target.assigners
        owners = assigners_of_keys(primary_key_hashes(self._table, keys), assigners)
        for owner in np.unique(owners).tolist():
            yield KeyShare(owner, assigners), np.flatnonzero(owners == owner)

    def _without_ignored(self, rows: pa.Table) -> pa.Table:
        """Remove and count the rows whose row kinds are ignored by table options."""
        written = without_ignored(rows, self._table.merge_rules)
        ignored = rows.num_rows - written.num_rows
        if ignored:
            self._counts.skip(self._target.identifier, "ignored", ignored)
        return written

    def _write_rows(self, rows: pa.Table) -> Iterator[CommitMessage]:
        table = self._table
        codes, values = partitions_of_rows(table, rows)
        partitions = [serialize_row(table.partition_types, value) for value in values]
        plain = rows.drop_columns([name for name in (BUCKET, HASH) if name in rows.column_names])
        if self._mode is BucketMode.KEY_DYNAMIC:
            yield from self._write_moving(plain, codes, partitions)
            return
        buckets = self._buckets(rows, codes, partitions)
        assigned = AssignedRows(plain, codes, partitions, buckets)
        yield from write_assigned(table, assigned, self._new_name)

    def _write_moving(
        self, rows: pa.Table, codes: _Numbers, partitions: list[bytes]
    ) -> Iterator[CommitMessage]:
        """Write rows whose keys can move between partitions, and yield the commit messages.

        One share of the keys is processed at a time.
        """
        for share, mine in self._shares(rows):
            assigner = CrossPartitionAssigner(self._table, self._target.snapshot_id, share)
            assigned = assigner.assign(rows.take(mine), codes[mine], partitions)
            written = list(write_assigned(self._table, assigned, self._new_name))
            yield from written
            assigner.wrote([file.file_name for message in written for file in message.new_files])

    def _buckets(self, rows: pa.Table, codes: _Numbers, partitions: list[bytes]) -> _Numbers:
        if self._mode is BucketMode.POSTPONE:
            return np.full(rows.num_rows, POSTPONE_BUCKET, np.int64)
        if BUCKET in rows.column_names:
            return rows.column(BUCKET).to_numpy().astype(np.int64)
        buckets: _Numbers = np.zeros(rows.num_rows, np.int64)
        if HASH not in rows.column_names:
            return buckets
        hashes = rows.column(HASH).to_numpy()
        owners = assigners_of(self._target, rows, hashes)
        order = pair_order(codes, owners)
        borders = np.flatnonzero((np.diff(codes[order]) != 0) | (np.diff(owners[order]) != 0)) + 1
        for mine in np.split(order, borders):
            assigner = self._assigner(partitions[int(codes[mine[0]])], int(owners[mine[0]]))
            buckets[mine] = assigner.assign(hashes[mine])
        return buckets

    def _assigner(self, partition: bytes, owner: int) -> DynamicBucketAssigner:
        key = (partition, owner)
        if key not in self._assigners:
            self._assigners[key] = DynamicBucketAssigner(
                self._table,
                partition,
                self._target.index_entries.of_partition(partition),
                owner,
                self._target.assigners,
            )
        return self._assigners[key]


def runs(
    blobs: Sequence[RowBlob],
    max_bytes: int,
    *,
    by_number: bool = False,
    whole: bool = False,
) -> Iterator[pa.Table]:
    """Yield the rows of blobs in runs of about `max_bytes`, each with at least one blob or row.

    Each row gets its rank among the rows of all blobs, in the column `RANK`, by which the rows of a
    run are sorted. All rows are one run if `whole` is set, for merge engines that cannot merge rows
    of a key across runs. They are also one run if values are omitted, because an older value can be
    in any earlier row. If `by_number` is set, the caller sorts the rows of a run, so this function
    sorts them only if values are omitted. It also splits blobs if necessary, so that no run has a
    row with a lower rank than a row of an earlier run: changelog readers read the files of a
    snapshot in sequence, and take the last row of a key as the newest.
    """
    fills = any(omission_marks(blob.rows) for blob in blobs)
    together, in_order = whole or fills, fills or not by_number
    ranks = arrival_ranks(blobs)
    if by_number and not together and sum(blob.rows.nbytes for blob in blobs) > max_bytes:
        yield from _runs_by_rank(blobs, ranks, max_bytes)
        return
    held: list[int] = []
    size = 0
    for number, blob in enumerate(blobs):
        if held and not together and size + blob.rows.nbytes > max_bytes:
            yield _run(blobs, ranks, held, in_order=in_order)
            held, size = [], 0
        held.append(number)
        size += blob.rows.nbytes
    if held:
        yield _run(blobs, ranks, held, in_order=in_order)


def _runs_by_rank(
    blobs: Sequence[RowBlob], ranks: Sequence[_Numbers], max_bytes: int
) -> Iterator[pa.Table]:
    """Yield the rows in runs of consecutive ranks, each of about `max_bytes`.

    Blobs are split; all rows of a blob are assumed to have the same size.
    """
    sizes = np.zeros(sum(len(rank) for rank in ranks))
    for blob, rank in zip(blobs, ranks, strict=True):
        sizes[rank] = blob.rows.nbytes / max(len(rank), 1)
    numbers = ((np.cumsum(sizes) - sizes) // max_bytes).astype(np.int64)
    borders = np.flatnonzero(np.diff(numbers, prepend=-1, append=-1))
    for start, end in pairwise(borders.tolist()):
        pieces, piece_ranks = [], []
        for blob, rank in zip(blobs, ranks, strict=True):
            mine = np.flatnonzero((rank >= start) & (rank < end))
            if len(mine):
                pieces.append(RowBlob(blob.origin, _picked(blob.rows, mine)))
                piece_ranks.append(rank[mine])
        yield _run(pieces, piece_ranks, list(range(len(pieces))), in_order=False)


def _picked(rows: pa.Table, indices: _Numbers) -> pa.Table:
    first, count = int(indices[0]), len(indices)
    if int(indices[-1]) - first == count - 1:
        return rows.slice(first, count)
    return rows.take(indices)


def _run(
    blobs: Sequence[RowBlob], ranks: Sequence[_Numbers], picked: list[int], *, in_order: bool
) -> pa.Table:
    tables = [blobs[number].rows.append_column(RANK, pa.array(ranks[number])) for number in picked]
    rows = pa.concat_tables(tables, promote_options="default")
    rank = concatenated([ranks[number] for number in picked])
    if in_order and bool((np.diff(rank) < 0).any()):
        rows = rows.take(np.argsort(rank))
    return rows
