"""Stage 2 of a batch, one task: write the blobs of its slots as files with commit messages.

Files are not visible before the driver commits them; files of a failed attempt are orphan files,
never data.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.crash_points import Point, reach
from ingestd.ingest.dead_letters.dead_letter_topic import send_dead_letters
from ingestd.ingest.rows.blobs import BUCKET, HASH, KIND, OFFSET, POSITION, Blob, RowBlob, receive
from ingestd.ingest.rows.placement import assigners_of, partition_values
from ingestd.ingest.rows.unavailable import fill_unavailable
from ingestd.ingest.settings.context import BatchContext
from ingestd.ingest.stages.arrival import RANK, Run, repeated_rows, runs
from ingestd.ingest.stages.outcome import WriteOutcome
from ingestd.ingest.values.counts import Counts
from ingestd.ingest.values.row_groups import group_rows, stable_places
from ingestd.paimon.merge.row_kinds import ignored_kinds
from ingestd.paimon.spec.binary_row import deserialize_row, serialize_row
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.paths import POSTPONE_BUCKET
from ingestd.paimon.spec.row_picking import take_rows
from ingestd.paimon.table.buckets.assigner import DynamicBucketAssigner
from ingestd.paimon.table.buckets.hash_index import CACHE
from ingestd.paimon.table.cross_partition.assigner import CrossPartitionAssigner, PlacedRows
from ingestd.paimon.table.cross_partition.index_cache import KEPT
from ingestd.paimon.table.cross_partition.load import (
    KeyShare,
    assigners_of_keys,
    primary_key_hashes,
)
from ingestd.paimon.table.write.commit_message import CommitMessage
from ingestd.paimon.table.write.postpone import waiting_room
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket

_Numbers = npt.NDArray[np.int64]


def write_slot(context: BatchContext, blobs: Iterable[Blob]) -> WriteOutcome:
    """Write the rows of all blobs of a task, and return the reports among the blobs.

    Rows get sequence numbers in their order. If a blob is an abort marker, nothing is written.
    Dead letters are sent at once if they go to a topic.

    Raises StorageError, FormatError or UnsupportedError for the tables; SourceError or
    PolicyStopError if dead letters go to a topic.
    """
    CACHE.limit(context.index_cache_bytes)
    KEPT.limit(context.index_cache_bytes)
    received = receive(blobs)
    reach(Point.SLOT_RECEIVED)
    counts = Counts()
    messages: dict[str, tuple[CommitMessage, ...]] = {}
    if not received.void:
        for identifier, parts in received.rows.items():
            if identifier == context.dead_letters and context.dead_letter_topic is not None:
                send_dead_letters(context, [part.rows for part in parts])
                continue
            writer = _TableWriter(context, identifier, counts)
            written = writer.write(parts, context.write_buffer_size)
            if written:
                messages[identifier] = written
    reach(Point.SLOT_WRITTEN)
    return WriteOutcome(messages, received.reports, counts)


class _TableWriter:
    """Writes the rows of one table; keeps its bucket assigners until the last row."""

    def __init__(self, context: BatchContext, identifier: str, counts: Counts) -> None:
        self._target = context.tables[identifier]
        self._table = self._target.table
        self._mode = bucket_mode(self._table.schema)
        if self._mode is BucketMode.POSTPONE:
            self._table = waiting_room(self._table, context.commit_user)
        self._counts = counts
        self._assigners: dict[tuple[bytes, int], DynamicBucketAssigner] = {}
        self._new_name: Callable[[], str] = data_file_names(self._table)

    def write(self, parts: list[RowBlob], write_buffer_size: int) -> tuple[CommitMessage, ...]:
        """Return messages of all buckets with rows, and of those whose hash index grew."""
        messages: list[CommitMessage] = []
        waits = self._mode is BucketMode.POSTPONE
        # Merging sorts by key and number anyway, so sorting the rows would be useless.
        by_number = bool(self._table.schema.primary_keys) and not waits
        whole = self._table.merge_rules.engine in ("partial-update", "aggregation")
        whole |= waits or self._mode is BucketMode.KEY_DYNAMIC
        for run in runs(parts, write_buffer_size, by_number=by_number, whole=whole):
            rows = self._prepared(run)
            if rows.num_rows:
                messages.extend(self._write_rows(rows))
        for assigner in self._assigners.values():
            for entry in assigner.prepare_commit(self._table.io):
                message = CommitMessage(entry.partition, entry.bucket, -1, new_index_files=(entry,))
                messages.append(message)
        for message in messages:
            files = (*message.new_files, *message.changelog_files)
            self._counts.files[self._target.identifier] += len(files)
            size = sum(file.file_size for file in files)
            self._counts.file_bytes[self._target.identifier] += size
        return tuple(messages)

    def _prepared(self, run: Run) -> pa.Table:
        """Return the rows to write: without repeats, with cells filled, and numbered."""
        identifier, schema = self._target.identifier, self._table.schema
        rows = run.rows
        if not schema.primary_keys and POSITION in rows.column_names:
            repeated = repeated_rows(rows, run.topics, list(schema.field_names))
            self._counts.skip(identifier, "repeated", int(np.count_nonzero(repeated)))
            if bool(repeated.any()):
                rows = rows.filter(~repeated)
        across = self._mode is BucketMode.KEY_DYNAMIC
        whereabouts = self._partitions_of if across else None
        rows, unknown = fill_unavailable(self._target, self._without_ignored(rows), whereabouts)
        self._counts.unknown[identifier] += unknown
        kinds = np.bincount(rows.column(KIND).to_numpy())
        for kind in np.flatnonzero(kinds).tolist():
            self._counts.rows[identifier, kind] += int(kinds[kind])
        if schema.primary_keys:
            numbers = rows.column(RANK).to_numpy() + self._target.sequence_base
            rows = rows.append_column(SEQUENCE_NUMBER, pa.array(numbers))
        done_with = {OFFSET, POSITION, RANK}
        return rows.select([name for name in rows.column_names if name not in done_with])

    def _partitions_of(self, keys: pa.Table) -> frozenset[bytes]:
        """Return the present partitions of keys that do not include the partition columns."""
        found: frozenset[bytes] = frozenset()
        for share, mine in self._shares(keys):
            assigner = CrossPartitionAssigner(self._table, self._target.snapshot_id, share)
            found |= assigner.partitions_of(keys.take(mine))
        return found

    def _shares(self, keys: pa.Table) -> Iterator[tuple[KeyShare, _Numbers]]:
        """Yield each hash range of keys with the indices of its rows."""
        assigners = self._target.assigners
        owners = assigners_of_keys(primary_key_hashes(self._table, keys), assigners)
        for owner in np.unique(owners).tolist():
            yield KeyShare(owner, assigners), np.flatnonzero(owners == owner)

    def _without_ignored(self, rows: pa.Table) -> pa.Table:
        """Return the rows without those that the table's options ignore."""
        ignored = ignored_kinds(self._table.merge_rules, rows.column(KIND).to_numpy())
        if not bool(ignored.any()):
            return rows
        self._counts.skip(self._target.identifier, "ignored", int(np.count_nonzero(ignored)))
        return rows.filter(~ignored)

    def _write_rows(self, rows: pa.Table) -> Iterator[CommitMessage]:
        table = self._table
        groups = group_rows(rows, table.schema.partition_keys)
        values = partition_values(table, rows, groups.first)
        partitions = [serialize_row(table.partition_types, value) for value in values]
        plain = rows.drop_columns([name for name in (BUCKET, HASH) if name in rows.column_names])
        if self._mode is BucketMode.KEY_DYNAMIC:
            yield from self._write_moving(plain, groups.codes, partitions)
            return
        buckets = self._buckets(rows, groups.codes, partitions)
        yield from self._write_placed(PlacedRows(plain, groups.codes, partitions, buckets))

    def _write_moving(
        self, rows: pa.Table, codes: _Numbers, partitions: list[bytes]
    ) -> Iterator[CommitMessage]:
        """Write rows whose keys may move between partitions, one hash range of keys at a time."""
        for share, mine in self._shares(rows):
            assigner = CrossPartitionAssigner(self._table, self._target.snapshot_id, share)
            placed = assigner.place(rows.take(mine), codes[mine], partitions)
            written = list(self._write_placed(placed))
            yield from written
            assigner.wrote([file.file_name for one in written for file in one.new_files])

    def _write_placed(self, placed: PlacedRows) -> Iterator[CommitMessage]:
        table = self._table
        if not placed.rows.num_rows:
            return
        order = stable_places(placed.codes, placed.buckets)
        in_order = not bool((np.diff(order) < 0).any())
        ordered = placed.rows if in_order else take_rows(placed.rows, order)
        codes, numbers = placed.codes[order], placed.buckets[order]
        borders = np.flatnonzero((np.diff(codes) != 0) | (np.diff(numbers) != 0)) + 1
        starts = [0, *borders.tolist()]
        ends = [*borders.tolist(), len(order)]
        for start, end in zip(starts, ends, strict=True):
            partition = placed.partitions[int(codes[start])]
            yield write_bucket(
                table,
                partition,
                deserialize_row(table.partition_types, partition),
                int(numbers[start]),
                ordered.slice(start, end - start),
                new_name=self._new_name,
            )

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
        order = stable_places(codes, owners)
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
