"""Cells of arrays and maps taken apart into elements, and put together again.

All cells that count are taken apart once. What stays of their elements is decided by numbers that
stand for equal values, and the result is put together by position, whatever the type is.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.merge.events import (
    Chosen,
    Index,
    Mask,
    MergeEvents,
    Ops,
    in_virtual_order,
    whole,
)
from ingestd.paimon.spec.arrow import Array, Column


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of the chosen cells, key by key.

    `values` has them one after the other; `key` is the key of each, `event` the number of its
    event among the chosen ones.
    """

    values: Array
    key: Index
    event: Index
    chosen: Chosen

    @classmethod
    def of(
        cls, column: Column, events: MergeEvents, ops: Ops, *, virtual: bool = False
    ) -> "Elements":
        """Elements of all cells since the last SET that are no null.

        `virtual` puts older rows (REVERSED) in front.
        """
        array = whole(column)
        counts = events.since_set(ops) & events.valid(array)
        chosen = Chosen.of(events, counts)
        if virtual:
            chosen = in_virtual_order(events, ops, chosen)
        cells: Any = array.take(events.rows[chosen.at])
        sizes = np.diff(cells.offsets.to_numpy())
        return cls(_flat(cells), np.repeat(chosen.key, sizes), _numbered(sizes), chosen)

    @property
    def cells(self) -> Index:
        """Number of the cells that count, by key."""
        return np.diff(self.chosen.offsets)

    def gather(self, at: Index, kind: pa.DataType) -> Array:
        """Return one array or map a key from the elements at some positions, which are by key.

        Keys without a cell that counts are null.
        """
        offsets = list_offsets(self.key[at], self.chosen.present)
        return list_array(kind, offsets, self.values.take(at))


def _numbered(sizes: Index) -> Index:
    return np.repeat(np.arange(len(sizes)), sizes)


def _flat(taken: Array) -> Array:
    """Elements of lists, or entries of maps as structs, of cells without nulls."""
    cells: Any = taken
    start, end = cells.offsets[0].as_py(), cells.offsets[-1].as_py()
    if not pa.types.is_map(cells.type):
        values: Array = cells.values.slice(start, end - start)
        return values
    parts = [cells.keys.slice(start, end - start), cells.items.slice(start, end - start)]
    entries: Array = pa.StructArray.from_arrays(
        parts, fields=[cells.type.key_field, cells.type.item_field]
    )
    return entries


def first_of_each(key: Index, code: Index) -> Mask:
    """Marks the first element of each code within its key."""
    return _one_of_each(key, code, np.arange(len(key)))


def last_of_each(key: Index, code: Index) -> Mask:
    """Marks the last element of each code within its key."""
    return _one_of_each(key, code, -np.arange(len(key)))


def _one_of_each(key: Index, code: Index, priority: Index) -> Mask:
    order = np.lexsort((priority, code, key))
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (key[order][1:] != key[order][:-1]) | (code[order][1:] != code[order][:-1])
    marks = np.zeros(len(order), np.bool_)
    marks[order[begins]] = True
    return marks


def list_offsets(key: Index, present: Mask) -> Array:
    """Offsets of the lists of each key, null for those that are not present."""
    offsets = np.searchsorted(key, np.arange(len(present) + 1)).astype(np.int32)
    nulls: Array = pa.array(offsets, mask=np.append(~present, False))
    return nulls


def list_array(kind: pa.DataType, offsets: Array, values: Array) -> Array:
    """Return an array of a list or map type from offsets (null: the cell is) and elements."""
    # The stubs know fewer element types than there are.
    lists: Any = pa.ListArray
    maps: Any = pa.MapArray
    entries: Any = values
    array: Array
    if pa.types.is_map(kind):
        array = maps.from_arrays(offsets, entries.field(0), entries.field(1), type=kind)
    else:
        array = lists.from_arrays(offsets, values, type=kind)
    return array


def is_null(values: Array) -> Mask:
    """Return whether each element is a null."""
    marks: Any = pc.is_null(values)
    nulls: Mask = marks.to_numpy(zero_copy_only=False)
    return nulls
