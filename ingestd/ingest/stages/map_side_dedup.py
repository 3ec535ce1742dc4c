"""Rows on their way out of a decode task: as blobs at once, or when more of their keys have come.

Rows of a table that keeps the newest row of a key are held back until the task has read its share,
or as much as it may hold. What a later row takes the place of then never leaves the task.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.ingest.rows.blobs import KIND, OFFSET, Blob, BlobOrigin, UnsentRows, split_by_slot
from ingestd.ingest.rows.newest_rows import (
    can_be_left_out,
    keeps_newest,
    newest_rows,
    with_reached_positions,
)
from ingestd.ingest.rows.placement import Slots, place
from ingestd.ingest.settings.context import BatchContext, TableContext
from ingestd.ingest.values.counts import Counts, TopicPartition

Pairs = Iterator[tuple[int, Blob]]

_LEAST_ROWS = 2048
"""Fewer rows of a topic partition are not worth looking for the newest among them."""


@dataclass(slots=True)
class _Held:
    """Rows of one table and topic partition, and the slot of each."""

    parts: list[tuple[pa.Table, Slots]] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return sum(part.num_rows for part, _ in self.parts)

    @property
    def can_be_left_out(self) -> bool:
        names = {tuple(part.column_names) for part, _ in self.parts}
        return len(names) == 1 and all(can_be_left_out(part) for part, _ in self.parts)

    def in_order(self) -> tuple[pa.Table, Slots]:
        """All rows by their offsets."""
        rows = pa.concat_tables([part for part, _ in self.parts])
        slots = np.concatenate([slots for _, slots in self.parts])
        offsets = rows.column(OFFSET).to_numpy()
        if bool((offsets[1:] >= offsets[:-1]).all()):
            return rows, slots
        # Batches of one chunk may have rows of one table in turn.
        order = np.argsort(offsets, kind="stable")
        return rows.take(order), slots[order]


class MapSideDedup:
    """What one decode task hands on; rows that are left out are counted as rows all the same."""

    def __init__(self, context: BatchContext, task_index: int, counts: Counts) -> None:
        self._context = context
        self._index = task_index
        self._counts = counts
        self._held: dict[tuple[str, TopicPartition], _Held] = {}
        self._bytes = 0

    def add(self, target: TableContext, where: TopicPartition, rows: pa.Table) -> Pairs:
        """Take rows of a table, in its columns; blobs of those that are not held back."""
        placed, slots = place(target, rows, self._context.slots, self._index)
        if not keeps_newest(target.table):
            yield from _blobs(target.identifier, where, placed, slots)
            return
        self._bytes += placed.nbytes
        self._held.setdefault((target.identifier, where), _Held()).parts.append((placed, slots))

    @property
    def is_full(self) -> bool:
        """Whether as much is held back as may be; to be asked between chunks of records."""
        return self._bytes >= self._context.max_chunk_bytes

    def release(self) -> Pairs:
        """Blobs of all that is held back."""
        held, self._held, self._bytes = self._held, {}, 0
        for key in list(held):
            yield from self._release(*key, held.pop(key))

    def _release(self, identifier: str, where: TopicPartition, held: _Held) -> Pairs:
        if held.rows < _LEAST_ROWS or not held.can_be_left_out:
            for rows, slots in held.parts:
                yield from _blobs(identifier, where, rows, slots)
            return
        rows, slots = held.in_order()
        rows = with_reached_positions(rows, slots)
        stay = newest_rows(self._context.tables[identifier].table, rows)
        self._count_others(identifier, rows.column(KIND).to_numpy(), stay)
        # What is taken is in memory several times until it has gone.
        pieces = 1 + rows.nbytes // self._context.max_chunk_bytes
        for some in np.array_split(stay, min(pieces, len(stay))):
            first, count = int(some[0]), int(some[-1] - some[0]) + 1
            mine = slice(first, first + count)
            yield from _blobs(
                identifier, where, rows.slice(first, count), slots[mine], some - first
            )

    def _count_others(
        self, table: str, kinds: npt.NDArray[np.int8], stay: npt.NDArray[np.int64]
    ) -> None:
        left_out = np.bincount(kinds) - np.bincount(kinds[stay], minlength=int(kinds.max()) + 1)
        for kind in np.flatnonzero(left_out).tolist():
            self._counts.rows[table, kind] += int(left_out[kind])


def _blobs(
    table: str,
    where: TopicPartition,
    rows: pa.Table,
    slots: Slots,
    picked: npt.NDArray[np.int64] | None = None,
) -> Pairs:
    """A blob for each slot, of all rows or of those that are picked."""
    for slot, part in split_by_slot(rows, slots, picked):
        first = int(part.column(OFFSET)[0].as_py())
        yield slot, UnsentRows(BlobOrigin(table, *where, first), part)
