"""Drop rows in a decode task that are replaced by a later row with the same key.

Rows of a table that keeps only the newest row of a key are buffered until the task has read its
ranges, or its memory limit is reached. Tables for which earlier rows of a key matter, because they
merge rows, order them by a column, or write an input changelog, get all rows.
Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/#deduplicate
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.ingest.rows.blobs import (
    HASH,
    KIND,
    OFFSET,
    POSITION,
    UNAVAILABLE_PREFIX,
    Blob,
    BlobOrigin,
    UnsentRows,
)
from ingestd.ingest.rows.slot_assignment import Slots
from ingestd.ingest.settings.context import BatchContext, TableContext
from ingestd.ingest.values.counts import Counts
from ingestd.kafka.offset_ranges import SourcePartition
from ingestd.paimon.spec.arrow import Values
from ingestd.paimon.spec.changelog_checks import writes_input
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.row_selection import Indices
from ingestd.paimon.table.buckets.hash_index import key_hashes
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

Pairs = Iterator[tuple[int, Blob]]
_LEAST_ROWS = 2048
"""Fewer buffered rows of a table and topic partition are not deduplicated."""


@dataclass(slots=True)
class _Held:
    """Buffered rows of one table and topic partition, and their slots."""

    parts: list[tuple[pa.Table, Slots]] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return sum(rows.num_rows for rows, _ in self.parts)

    @property
    def can_be_left_out(self) -> bool:
        names = {tuple(rows.column_names) for rows, _ in self.parts}
        return len(names) == 1 and all(can_be_left_out(rows) for rows, _ in self.parts)

    def in_order(self) -> tuple[pa.Table, Slots]:
        """Return all rows and their slots, ordered by offset."""
        rows = pa.concat_tables([table for table, _ in self.parts])
        slots = np.concatenate([slots for _, slots in self.parts])
        offsets = rows.column(OFFSET).to_numpy()
        if bool((offsets[1:] >= offsets[:-1]).all()):
            return rows, slots
        # Several batches of one chunk may have rows of the table.
        order = np.argsort(offsets, kind="stable")
        return rows.take(order), slots[order]


@dataclass(slots=True)
class MapSideDedup:
    """Buffers the rows of one decode task, and drops rows that a later row of their key replaces.

    Only rows of the same topic partition are compared. Dropped rows are counted as written rows.
    """

    _context: BatchContext
    _counts: Counts
    _held: dict[tuple[str, SourcePartition], _Held] = field(default_factory=dict)
    _bytes: int = 0

    def add(
        self, target: TableContext, where: SourcePartition, rows: pa.Table, slots: Slots
    ) -> Pairs:
        """Buffer rows of a table, or yield their blobs as (slot, blob) pairs.

        `where` is the topic partition of the rows, and `slots` (rows,) are the numbers of the write
        tasks that get them. Rows are buffered only if the table keeps the newest row of each key.
        """
        if not keeps_newest(target.table):
            yield from _blobs(target.identifier, where, rows, slots)
            return
        self._bytes += rows.get_total_buffer_size()  # cheaper than the exact size
        self._held.setdefault((target.identifier, where), _Held()).parts.append((rows, slots))

    @property
    def is_full(self) -> bool:
        """Whether the buffered rows have `max_chunk_bytes` of the batch context or more.

        The caller checks it between chunks of records, and then calls `release`.
        """
        return self._bytes >= self._context.max_chunk_bytes

    def release(self) -> Pairs:
        """Empty the buffer, and yield the rows that no later row replaces as (slot, blob) pairs.

        Nothing is dropped from a table's rows of one topic partition if they are few, if their
        columns differ, or if one of them omits values or is a before image.
        """
        held, self._held, self._bytes = self._held, {}, 0
        for key in list(held):
            yield from self._release(*key, held.pop(key))

    def _release(self, identifier: str, where: SourcePartition, held: _Held) -> Pairs:
        if held.rows < _LEAST_ROWS or not held.can_be_left_out:
            for rows, slots in held.parts:
                yield from _blobs(identifier, where, rows, slots)
            return
        rows, slots = held.in_order()
        rows = with_reached_positions(rows, slots)
        stay = newest_rows(self._context.tables[identifier].table, rows)
        self._count_others(identifier, rows.column(KIND).to_numpy(), stay)
        # Processed in pieces, because selected rows are in memory several times.
        pieces = 1 + rows.nbytes // self._context.max_chunk_bytes
        for piece in np.array_split(stay, min(pieces, len(stay))):
            first, count = int(piece[0]), int(piece[-1] - piece[0]) + 1
            mine = slice(first, first + count)
            yield from _blobs(
                identifier, where, rows.slice(first, count), slots[mine], piece - first
            )

    def _count_others(
        self, table: str, kinds: npt.NDArray[np.int8], stay: npt.NDArray[np.int64]
    ) -> None:
        left_out = np.bincount(kinds) - np.bincount(kinds[stay], minlength=int(kinds.max()) + 1)
        for kind in np.flatnonzero(left_out).tolist():
            self._counts.rows[table, kind] += int(left_out[kind])


def _blobs(
    table: str,
    where: SourcePartition,
    rows: pa.Table,
    slots: Slots,
    picked: npt.NDArray[np.int64] | None = None,
) -> Pairs:
    """Yield one blob per slot, with all rows or only the `picked` rows."""
    for slot, slot_rows in split_by_slot(rows, slots, picked):
        first = int(slot_rows.column(OFFSET)[0].as_py())
        yield slot, UnsentRows(BlobOrigin(table, *where, first), slot_rows)


def split_by_slot(
    rows: pa.Table,
    slots: npt.NDArray[np.int64],
    picked: npt.NDArray[np.int64] | None = None,
) -> list[tuple[int, pa.Table]]:
    """Group all rows, or the rows at the `picked` indices, by slot; return (slot, rows) pairs.

    A slot is the number of a write task; `slots` (rows,) has the slot of every row. The rows of a
    slot keep their order.
    """
    if picked is not None and len(picked) == len(slots):
        picked = None
    mine = slots if picked is None else slots[picked]
    if len(mine) == 0:
        return []
    first = int(mine[0])
    if bool((mine == first).all()):
        return [(first, rows if picked is None else rows.take(picked))]
    order = np.argsort(mine, kind="stable")
    ordered = mine[order]
    borders = np.flatnonzero(np.diff(ordered)) + 1
    bounds = pairwise([0, *borders.tolist(), len(ordered)])
    taken = rows.take(order if picked is None else picked[order])
    return [(int(ordered[start]), taken.slice(start, end - start)) for start, end in bounds]


def keeps_newest(table: FileStoreTable) -> bool:
    """Return whether a table depends only on the newest row of each key, by order of arrival.

    This is false, for instance, if columns order the rows, row kinds are ignored, the changelog
    contains the input, or keys can change their partition.
    """
    rules = table.merge_rules
    return (
        bool(table.schema.primary_keys)
        and rules.engine == "deduplicate"
        and not (rules.sequence_fields or rules.rowkind_field)
        and not (rules.ignore_delete or rules.ignore_update_before)
        and not writes_input(table.schema)
        and bucket_mode(table.schema) in (BucketMode.HASH_FIXED, BucketMode.HASH_DYNAMIC)
    )


def can_be_left_out(rows: pa.Table) -> bool:
    """Return whether each of these rows can be replaced by a later row of its key.

    That is not the case if a row omits values or is a before image.
    """
    if any(name.startswith(UNAVAILABLE_PREFIX) for name in rows.column_names):
        return False
    return not bool((rows.column(KIND).to_numpy() == RowKind.UPDATE_BEFORE).any())


def newest_rows(table: FileStoreTable, rows: pa.Table) -> Indices:
    """Return the ascending indices of the rows that no later row with the same key replaces.

    If hashes are equal but keys are not known to be equal, both rows are kept.
    """
    hashes = rows.column(HASH).to_numpy() if HASH in rows.column_names else key_hashes(table, rows)
    packed = (hashes.astype(np.int64) << 32) | np.arange(len(hashes))
    packed.sort()
    twins = np.flatnonzero((packed[1:] >> 32) == (packed[:-1] >> 32))
    earlier, later = packed[twins] & 0xFFFFFFFF, packed[twins + 1] & 0xFFFFFFFF
    same = np.ones(len(twins), np.bool_)
    for name in table.schema.primary_keys if len(twins) else ():
        same &= _equal(rows.column(name), earlier, later)
    stays = np.ones(len(hashes), np.bool_)
    stays[earlier[same]] = False
    return np.flatnonzero(stays)


def with_reached_positions(rows: pa.Table, slots: npt.NDArray[np.int64]) -> pa.Table:
    """Raise the source position of each row to the largest one of the rows before it in its slot.

    The rows of several topic partitions are ordered by these positions, so that rows that are
    dropped afterwards do not change the order of the others. `slots` has the slot of every row;
    shape (rows,). Rows without a position column are returned unchanged.
    """
    if POSITION not in rows.column_names:
        return rows
    reached = rows.column(POSITION).to_numpy().copy()
    if not bool((reached[1:] < reached[:-1]).any()):
        return rows
    for slot in np.unique(slots):
        mine = np.flatnonzero(slots == slot)
        reached[mine] = np.maximum.accumulate(reached[mine])
    at = rows.column_names.index(POSITION)
    return rows.set_column(at, POSITION, pa.array(reached))


def _equal(column: Values, rows: Indices, others: Indices) -> npt.NDArray[np.bool_]:
    if pa.types.is_integer(column.type) and not column.null_count:
        numbers = column.to_numpy()
        same: npt.NDArray[np.bool_] = numbers[rows] == numbers[others]
        return same
    equal: Values = pc.equal(column.take(pa.array(rows)), column.take(pa.array(others)))
    return np.asarray(pc.fill_null(equal, False))
