"""Assign rows to partitions and buckets in tables whose keys are unique across partitions.

If a row has another partition than the existing row of its key, the merge engine decides:
`deduplicate` deletes the old row and writes the new row to its partition; `partial-update` and
`aggregation` merge the new row in the old partition; `first-row` drops the new row.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#cross-partitions-upsert
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.merge.row_kinds import NO_KIND
from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND, RowKind
from ingestd.paimon.spec.key_fingerprints import KeyFingerprints
from ingestd.paimon.spec.row_selection import Indices, Mask, retractions
from ingestd.paimon.table.buckets.bucket_assigner import OwnedBuckets
from ingestd.paimon.table.cross_partition.index_cache import INDEX_CACHE
from ingestd.paimon.table.cross_partition.key_index import UNKNOWN, BucketIds, KeyIndex
from ingestd.paimon.table.cross_partition.load_key_index import KeyShare, key_prints
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.write.table_write import AssignedRows

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class KeyRows:
    """The rows of a batch, ordered by key: the key number, row kind and partition of each row.

    `partition` is the partition in the values of the row. `old` is the partition of each key before
    the batch (`NOWHERE`: the key is new). Keys are numbered from 0 in sort order; partitions are
    numbers, too. All shapes are (rows,), except `old` (keys,).
    """

    key: Indices
    kind: npt.NDArray[np.int8]
    partition: Indices
    old: Indices

    @property
    def first(self) -> Indices:
        """The index of the first row of each key; shape (keys,)."""
        return np.searchsorted(self.key, np.arange(len(self.old)))

    @property
    def last(self) -> Indices:
        """The index of the last row of each key; shape (keys,)."""
        return np.searchsorted(self.key, np.arange(len(self.old)), side="right") - 1

    @property
    def retracts(self) -> Mask:
        """A mask of the retractions (-U and -D); shape (rows,)."""
        return retractions(self.kind)


@dataclass(frozen=True, slots=True)
class KeyMoves:
    """The target partitions of the rows of a batch, and the keys that change their partition.

    `target` is the partition to which each row belongs, and `is_written` whether the row is
    written. Row `moving[i]` moves its key out of partition `moved_from[i]`, in which the key is
    deleted.
    """

    target: Indices
    is_written: Mask
    moving: Indices
    moved_from: Indices


def moves_of(engine: str, rows: KeyRows, *, every_step: bool) -> KeyMoves:
    """Return the target partitions and the moves of the rows of a batch, for a merge engine.

    Keys move only with `deduplicate`. Without `every_step`, a key moves directly to its last
    partition: in intermediate partitions nothing is written or deleted.
    """
    if engine == "deduplicate":
        return _followed(rows, every_step)
    stays = np.where(rows.old != NOWHERE, rows.old, rows.partition[rows.first])[rows.key]
    written = stays == rows.partition if engine == "first-row" else np.ones(len(stays), bool)
    none: Indices = np.zeros(0, np.int64)
    return KeyMoves(stays, written, none, none)


def _followed(rows: KeyRows, every_step: bool) -> KeyMoves:
    """Return the moves for `deduplicate`: each added row moves its key to the row's partition."""
    old, here = rows.old[rows.key], np.arange(len(rows.key))
    adds = ~rows.retracts
    last_added = np.maximum.accumulate(np.where(adds, here, -1)) if len(here) else here
    has_added = last_added >= rows.first[rows.key]
    target = np.where(
        has_added, rows.partition[last_added], np.where(old != NOWHERE, old, rows.partition)
    )
    before = np.concatenate([old[:1], target[:-1]])
    before[rows.first] = rows.old
    moved = adds & (before != NOWHERE) & (before != target)
    written = np.ones(len(here), bool)
    if not every_step:
        final = target[rows.last][rows.key]
        written = (target == final) | (target == old)
        moved &= (before == final) | (before == old)
    moving = np.flatnonzero(moved)
    return KeyMoves(target, written, moving, before[moving])


def ends_deleted(rows: KeyRows, engine: str, *, remove_on_delete: bool) -> Mask:
    """Return a mask of the keys that have no row after the batch is merged; shape (keys,).

    `remove_on_delete` is whether a delete removes the row of its key in other merge engines than
    `deduplicate`.
    """
    last = rows.kind[rows.last]
    if engine == "deduplicate":
        return rows.retracts[rows.last]
    gone: Mask = last == (RowKind.DELETE if remove_on_delete else NO_KIND)
    return gone


class CrossPartitionAssigner:
    """Assigns the rows of one batch to partitions and buckets, for a subset of a table's keys.

    `snapshot_id` is the snapshot on top of which the batch is assigned (None: the empty table), and
    `share` the subset of keys.
    """

    def __init__(self, table: FileStoreTable, snapshot_id: int | None, share: KeyShare) -> None:
        self._table = table
        self._snapshot_id = snapshot_id
        self._share = share
        self._after: KeyIndex | None = None

    def assign(self, rows: pa.Table, codes: Indices, partitions: Sequence[bytes]) -> AssignedRows:
        """Assign the rows of the batch to their targets.

        This must be called once, with all rows of the batch. `rows` have sequence numbers and row
        kinds; `partitions[codes[i]]` is the partition in the values of row i. The result also has
        the deletions of keys that move, in their old partitions. Raises FormatError for damaged
        files of the table, and UnsupportedError if no bucket is left for new keys.
        """
        options = self._table.options
        order, key, keys = _by_key(key_prints(self._table, rows), rows)
        index = INDEX_CACHE.open(self._table, self._snapshot_id, self._share, keys)
        before = index.lookup(keys)
        known = [*partitions]
        old = _partitions_of(before, index, known)
        ordered = rows.take(order)
        kinds = ordered.column(VALUE_KIND).to_numpy()
        batch = KeyRows(key, kinds, codes[order], old)
        every_step = options.changelog_producer == "input"
        moves = moves_of(options.merge_engine, batch, every_step=every_step)
        buckets = _Buckets(_NewKeyBuckets(self._table, self._share, index), known, before, old)
        targets = np.concatenate([moves.target[moves.is_written], moves.moved_from])
        owners = np.concatenate([key[moves.is_written], key[moves.moving]])
        bucket_of_row = buckets.of(keys, owners, targets)
        self._after = index.with_changes(keys, self._final(batch, moves, buckets))
        written = _written(self._table, ordered, moves, targets, known)
        return AssignedRows(written, targets, known, bucket_of_row)

    def partitions_of(self, rows: pa.Table) -> frozenset[bytes]:
        """Return the partitions that contained keys of the rows before the batch.

        Raises FormatError for damaged files of the table.
        """
        keys = key_prints(self._table, rows)
        index = INDEX_CACHE.open(self._table, self._snapshot_id, self._share, keys)
        bucket_ids = np.unique(index.lookup(keys)).tolist()
        return frozenset(
            index.dictionary.decode(bucket_id)[0]
            for bucket_id in bucket_ids
            if bucket_id != UNKNOWN
        )

    def wrote(self, files: Collection[str]) -> None:
        """Record the names of the data files to which the assigned rows were written.

        As soon as a snapshot contains these files, the cached index has the keys of the rows.
        """
        if self._after is not None and files:
            INDEX_CACHE.note(self._table, self._share, files, self._after)

    def _final(self, batch: KeyRows, moves: KeyMoves, buckets: "_Buckets") -> BucketIds:
        rules, engine = self._table.merge_rules, self._table.options.merge_engine
        gone = ends_deleted(batch, engine, remove_on_delete=rules.remove_on_delete)
        bucket_ids = buckets.bucket_ids(moves.target[batch.last])
        bucket_ids[gone] = UNKNOWN
        return bucket_ids


class _Buckets:
    """The buckets of the keys of a batch in each partition to which a row of the key is written.

    `before` has the bucket id of each key before the batch, `old` the partition of this bucket.
    """

    def __init__(
        self,
        new_keys: "_NewKeyBuckets",
        partitions: Sequence[bytes],
        before: BucketIds,
        old: Indices,
    ) -> None:
        self._new_keys = new_keys
        self._partitions = partitions
        self._before, self._old = before, old
        self._pairs: Indices = np.zeros(0, np.int64)
        self._ids: BucketIds = np.zeros(0, np.int32)

    def of(self, keys: KeyFingerprints, owners: Indices, targets: Indices) -> Indices:
        """Return the bucket of key number `owners[i]` in partition `targets[i]`, for each i."""
        self._pairs, inverse = np.unique(self._pair(owners, targets), return_inverse=True)
        owner, target = self._pairs // len(self._partitions), self._pairs % len(self._partitions)
        numbers = self._before[owner]
        is_new = self._old[owner] != target
        for partition in np.unique(target[is_new]).tolist():
            new = np.flatnonzero(is_new & (target == partition))
            prints = keys.first[owner[new]]
            numbers[new] = self._new_keys.bucket_ids(self._partitions[partition], prints)
        self._ids = numbers
        return self._new_keys.buckets(numbers)[inverse]

    def bucket_ids(self, targets: Indices) -> BucketIds:
        """Return the bucket id of each key in its last partition, `targets`; call after `of`."""
        new = np.flatnonzero(targets != self._old)
        bucket_ids = self._before.copy()
        bucket_ids[new] = self._ids[np.searchsorted(self._pairs, self._pair(new, targets[new]))]
        return bucket_ids

    def _pair(self, owners: Indices, targets: Indices) -> Indices:
        return owners * len(self._partitions) + targets


@dataclass(frozen=True, slots=True)
class _NewKeyBuckets:
    """The assigner of buckets to keys that are new in a partition."""

    table: FileStoreTable
    share: KeyShare
    index: KeyIndex

    def bucket_ids(self, partition: bytes, prints: npt.NDArray[np.uint64]) -> BucketIds:
        share, dictionary = self.share, self.index.dictionary
        counts = self.index.counts_of(partition)
        owned = OwnedBuckets(self.table, counts, share.assigner, share.assigners)
        buckets, inverse = np.unique(owned.assign(prints), return_inverse=True)
        numbers = [dictionary.encode(partition, bucket) for bucket in buckets.tolist()]
        return np.array(numbers, np.int32)[inverse]

    def buckets(self, bucket_ids: BucketIds) -> Indices:
        distinct, inverse = np.unique(bucket_ids, return_inverse=True)
        buckets = [self.index.dictionary.decode(number)[1] for number in distinct.tolist()]
        return np.array(buckets, np.int64)[inverse]


def _by_key(prints: KeyFingerprints, rows: pa.Table) -> tuple[Indices, Indices, KeyFingerprints]:
    """Order rows by key and sequence; return the order, the key of each row, and the distinct keys.

    The key of a row is its index among the distinct keys, and the rows are in the new order.
    """
    numbers = rows.column(SEQUENCE_NUMBER).to_numpy()
    order = np.lexsort((numbers, prints.second, prints.first))
    ordered = prints.take(order)
    starts = np.ones(len(order), bool)
    starts[1:] = ordered.first[1:] != ordered.first[:-1]
    starts[1:] |= ordered.second[1:] != ordered.second[:-1]
    return order, np.cumsum(starts) - 1, ordered.take(starts)


def _partitions_of(bucket_ids: BucketIds, index: KeyIndex, known: list[bytes]) -> Indices:
    """Return the index in `known` of the partition of each bucket id, or `NOWHERE`.

    Partitions that `known` lacks are appended to it.
    """
    codes = {partition: code for code, partition in enumerate(known)}
    distinct, inverse = np.unique(bucket_ids, return_inverse=True)
    codes_of_buckets = []
    for number in distinct.tolist():
        if number == UNKNOWN:
            codes_of_buckets.append(NOWHERE)
            continue
        partition = index.dictionary.decode(number)[0]
        if partition not in codes:
            codes[partition] = len(known)
            known.append(partition)
        codes_of_buckets.append(codes[partition])
    return np.array(codes_of_buckets, np.int64)[inverse]


def _written(
    table: FileStoreTable, rows: pa.Table, moves: KeyMoves, codes: Indices, known: Sequence[bytes]
) -> pa.Table:
    """Return the rows to write and the deletions of keys that move, with their target partitions.

    `known[codes[i]]` is the partition of row i of the result.
    """
    deletes = rows.take(moves.moving)
    at = deletes.column_names.index(VALUE_KIND)
    kind = pa.array(np.full(len(moves.moving), int(RowKind.DELETE), np.int8))
    deletes = deletes.set_column(at, deletes.field(at), kind)
    together = pa.concat_tables([rows.filter(pa.array(moves.is_written)), deletes])
    values = [table.partition_values(partition) for partition in known]
    for number, name in enumerate(table.schema.partition_keys):
        field = together.schema.field(name)
        cells = column_of([value[number] for value in values], table.partition_types[number])
        together = together.set_column(
            together.column_names.index(name), field, cells.cast(field.type).take(codes)
        )
    return together
