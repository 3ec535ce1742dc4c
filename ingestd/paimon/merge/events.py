"""The events of a merge: rows in order by key, and the operation of each row on a column.

A merge engine assigns every event an operation for each column; the aggregate function of the
column folds the events of a key into one value.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/#overview
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.merge.key_order import SortedKeys
from ingestd.paimon.spec.arrow import Array, Column
from ingestd.paimon.spec.row_selection import Indices, Mask

Ops = npt.NDArray[np.uint8]
"""The operation of each event on a column, one of the constants below; shape (n,)."""

SKIP = np.uint8(0)
"""The row leaves the column unchanged."""
AGG = np.uint8(1)
"""The row's value is newer than the accumulated one."""
REVERSED = np.uint8(2)
"""The row's value is older than the accumulated one, by its sequence group."""
RETRACT = np.uint8(3)
"""The row's value is retracted."""
SET = np.uint8(4)
"""The row's value replaces the accumulated one, null or not."""


@dataclass(frozen=True, slots=True)
class MergeEvents:
    """The events of a merge, grouped by key, from oldest to newest; each key has at least one.

    `rows` (n,) holds positions in the input table, `starts` (keys,) the first event of each key,
    `key` (n,) the number of each event's key.
    """

    rows: Indices
    starts: Indices
    key: Indices

    @classmethod
    def of(cls, keys: SortedKeys) -> "MergeEvents":
        """Return one event per row, in the order of `keys`."""
        return cls(keys.order, np.flatnonzero(keys.first), np.cumsum(keys.first) - 1)

    @property
    def count(self) -> int:
        """The number of keys."""
        return len(self.starts)

    @property
    def ends(self) -> Indices:
        """The index after the last event of each key; shape (keys,)."""
        return np.append(self.starts[1:], len(self.rows))

    @property
    def sizes(self) -> Indices:
        """The number of events of each key; shape (keys,)."""
        return self.ends - self.starts

    def repeated(self, twice: Mask) -> "MergeEvents":
        """Return the events, in which each event marked by `twice` (n,) occurs twice in a row."""
        again = np.repeat(np.arange(len(self.rows)), 1 + twice)
        key = self.key[again]
        return MergeEvents(self.rows[again], np.searchsorted(key, np.arange(self.count)), key)

    def last(self, marked: Mask) -> Indices:
        """Return the number of the last event of each key that the mask (n,) marks; shape (keys,).

        The number is -1 for keys without a marked event.
        """
        at = np.where(marked, np.arange(len(marked)), -1)
        newest: Indices = np.maximum.reduceat(at, self.starts) if self.count else at
        return newest

    def first(self, marked: Mask) -> Indices:
        """Return the number of the first event of each key that the mask (n,) marks; shape (keys,).

        The number is -1 for keys without a marked event.
        """
        none = len(marked)
        at = np.where(marked, np.arange(none), none)
        oldest: Indices = np.minimum.reduceat(at, self.starts) if self.count else at
        return np.where(oldest == none, -1, oldest)

    def valid(self, column: Column) -> Mask:
        """Return a mask (n,) of the events whose cell in a column is not null."""
        if not column.null_count:
            return np.ones(len(self.rows), np.bool_)
        known: Any = column.is_valid()
        marks: Mask = known.to_numpy(zero_copy_only=False)[self.rows]
        return marks

    def since_set(self, ops: Ops) -> Mask:
        """Return a mask (n,) of each key's events from its last SET on, without SKIP events.

        A SET event replaces all older values, a SKIP event has no effect. For a key without a SET,
        these are all events but the skipped ones.
        """
        counts: Mask = ops != SKIP
        sets = ops == SET
        if bool(sets.any()):
            counts &= np.arange(len(ops)) >= self.last(sets)[self.key]
        return counts

    def pick(self, column: Column, at: Indices) -> Column:
        """Return one cell of a column per key, from the event whose number is in `at` (keys,).

        The cell is null where the number is -1.
        """
        missing = at < 0
        if not bool(missing.any()):
            return column.take(self.rows[at])
        rows = np.where(missing, 0, self.rows[np.where(missing, 0, at)])
        indices: Any = pa.array(rows, mask=missing)
        return column.take(indices)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A selection of some events of a merge, in order of keys.

    `at` (chosen,) holds the numbers of the events, `key` (chosen,) the number of each event's key,
    `count` is the number of keys. A key may have no event.
    """

    at: Indices
    key: Indices
    count: int

    @classmethod
    def of(cls, events: MergeEvents, marked: Mask) -> "Chosen":
        """Return the selection of the events in the mask `marked` (events,)."""
        at = np.flatnonzero(marked)
        return cls(at, events.key[at], events.count)

    @property
    def offsets(self) -> Indices:
        """The bounds of each key's events in `at`; shape (keys + 1,)."""
        return np.searchsorted(self.key, np.arange(self.count + 1))

    @property
    def present(self) -> Mask:
        """A mask (keys,) of the keys that have an event."""
        sizes = np.diff(self.offsets)
        return sizes > 0

    @property
    def starts(self) -> Indices:
        """The index in `at` of the first event of each key that has an event."""
        return self.offsets[:-1][self.present]


def in_virtual_order(events: MergeEvents, ops: Ops, chosen: Chosen) -> Chosen:
    """Return the chosen events with the REVERSED events of each key first, in reverse order.

    A REVERSED event is older than the accumulated value, by its sequence group.
    """
    older = ops[chosen.at] == REVERSED
    if not bool(older.any()):
        return chosen
    order = np.lexsort((np.where(older, -chosen.at, chosen.at), ~older, chosen.key))
    return Chosen(chosen.at[order], chosen.key[order], chosen.count)


def whole(column: Column) -> Array:
    """Return a chunked column as one Arrow array."""
    if isinstance(column, pa.Array):
        return column
    array: Any = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    result: Array = array
    return result


def spread(values: npt.NDArray[Any], present: Mask) -> npt.NDArray[Any]:
    """Return an array (keys,) with `values` at the keys that `present` marks, and zero elsewhere.

    `values` has one value per marked key.
    """
    full = np.zeros(len(present), values.dtype)
    full[present] = values
    return full
