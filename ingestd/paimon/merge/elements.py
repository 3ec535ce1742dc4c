"""Elements of array and map cells, and the assembly of cells from elements.

Cells are flattened into elements once. Codes that are equal for equal values decide which elements
are kept, and the result is taken by position, so no function depends on the element type.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.merge.events import Chosen, MergeEvents, Ops, in_virtual_order, whole
from ingestd.paimon.spec.arrow import Array, Column
from ingestd.paimon.spec.row_selection import Indices, Mask


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of array or map cells, flattened in order of keys.

    `values` (n,) holds the elements, `key` (n,) the number of each element's key, `event` (n,) the
    number of its event among the chosen ones.
    """

    values: Array
    key: Indices
    event: Indices
    chosen: Chosen

    @classmethod
    def of(
        cls, column: Column, events: MergeEvents, ops: Ops, *, virtual: bool = False
    ) -> "Elements":
        """Return the elements of the non-null cells of each key from its last SET event on.

        `column` has arrays or maps, `ops` (n,) the operations of the events. A SET event replaces
        all older values. With `virtual`, cells whose event is older by its sequence group
        (REVERSED) are first.
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
    def cells(self) -> Indices:
        """The number of cells whose elements are here, for each key; shape (keys,)."""
        return np.diff(self.chosen.offsets)

    def gather(self, at: Indices, kind: pa.DataType) -> Array:
        """Build one array or map of the type `kind` per key from the elements at positions `at`.

        The positions are in order of keys. Keys without a chosen cell are null.
        """
        offsets = list_offsets(self.key[at], self.chosen.present)
        return list_array(kind, offsets, self.values.take(at))


def _numbered(sizes: Indices) -> Indices:
    return np.repeat(np.arange(len(sizes)), sizes)


def _flat(taken: Array) -> Array:
    """Return the elements of lists, or the entries of maps as structs; no cell may be null."""
    cells: Any = taken
    if not pa.types.is_map(cells.type):
        values: Array = cells.flatten()
        return values
    entries: Array = pa.StructArray.from_arrays(
        [cells.keys, cells.items], fields=[cells.type.key_field, cells.type.item_field]
    )
    return entries


def first_of_each(key: Indices, code: Indices) -> Mask:
    """Return a mask (n,) of the first element with each code within its key.

    `key` (n,) has the key number of each element, and `code` (n,) is equal for equal elements.
    """
    return _one_of_each(key, code, np.arange(len(key)))


def last_of_each(key: Indices, code: Indices) -> Mask:
    """Return a mask (n,) of the last element with each code within its key.

    `key` (n,) has the key number of each element, and `code` (n,) is equal for equal elements.
    """
    return _one_of_each(key, code, -np.arange(len(key)))


def _one_of_each(key: Indices, code: Indices, priority: Indices) -> Mask:
    order = np.lexsort((priority, code, key))
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (key[order][1:] != key[order][:-1]) | (code[order][1:] != code[order][:-1])
    marks = np.zeros(len(order), np.bool_)
    marks[order[begins]] = True
    return marks


def list_offsets(key: Indices, present: Mask) -> Array:
    """Return the list offsets (keys + 1,) of elements sorted by key, for `list_array`.

    `key` (n,) has the key of each element. The offset of a key that `present` (keys,) does not mark
    is null.
    """
    offsets = np.searchsorted(key, np.arange(len(present) + 1)).astype(np.int32)
    nulls: Array = pa.array(offsets, mask=np.append(~present, False))
    return nulls


def list_array(kind: pa.DataType, offsets: Array, values: Array) -> Array:
    """Build an array of a list or map type from its elements and the offsets of its cells.

    A cell whose offset is null is null. The elements of maps are structs of key and value.
    """
    # The type stubs lack some element types.
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
    """Return a mask (n,) of the values that are null."""
    marks: Any = pc.is_null(values)
    nulls: Mask = marks.to_numpy(zero_copy_only=False)
    return nulls
