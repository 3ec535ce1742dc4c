"""Rows of a batch as native cells; inserts deletes of old keys, and before images, between them.

Applies the rules of `row_images` to columns.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.cdc.native.cells import Cells, Indices, Marks, differ, take
from ingestd.paimon.spec.data_types import RowKind


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a batch: cells by column name, without columns that every row lacks.

    `events` has the index of each row's message, or is None if every message makes one row.
    """

    cells: Mapping[str, Cells]
    kinds: npt.NDArray[np.int8]
    events: Indices | None


def with_old_keys(rows: Rows, old_keys: Mapping[str, Cells], places: Indices) -> Rows:
    """Insert a DELETE of the old key before each row whose index is in `places`."""
    events = np.insert(np.arange(len(rows.kinds)), places, places)
    inserted = places + np.arange(len(places))
    others = events.copy()
    others[inserted] = -1
    keys = events.copy()
    keys[inserted] += len(rows.kinds)
    cells = {
        name: replace(found, array=pa.concat_arrays([found.array, old_keys[name].array]))
        if name in old_keys
        else found
        for name, found in rows.cells.items()
    }
    kinds = rows.kinds[events]
    kinds[inserted] = RowKind.DELETE
    return Rows(
        {name: take(one, keys if name in old_keys else others) for name, one in cells.items()},
        kinds,
        events,
    )


def with_images(
    rows: Rows,
    old: Mapping[str, Cells],
    there: Marks,
    key_names: tuple[str, ...],
    *,
    partial: bool = False,
) -> Rows:
    """Return updates as two rows and deletes as their whole before images.

    `old` contains the before images; `there` marks the messages that have one. With `partial`, the
    after image of an update that changed its key stays UPDATE_AFTER: it may omit columns.
    """
    count = len(rows.kinds)
    updates = (rows.kinds == RowKind.UPDATE_AFTER) & there
    moved = np.zeros(count, np.bool_)
    for name in key_names:
        moved |= updates & differ(old[name], rows.cells[name])
    places = np.flatnonzero(updates)
    events: Indices = np.insert(np.arange(count), places, places)
    inserted = places + np.arange(len(places))
    kinds = rows.kinds[events]
    kinds[inserted] = np.where(moved[places], RowKind.DELETE, RowKind.UPDATE_BEFORE)
    new_kind = RowKind.UPDATE_AFTER if partial else RowKind.INSERT
    kinds[inserted + 1] = np.where(moved[places], new_kind, RowKind.UPDATE_AFTER)
    keys = events.copy()
    keys[inserted] += count
    others = keys.copy()
    # The key of a delete is that of its message, everything else that of the image.
    others[(rows.kinds[events] == RowKind.DELETE) & there[events]] += count
    cells = {
        name: take(_stacked(found, old[name]), keys if name in key_names else others)
        for name, found in rows.cells.items()
    }
    return Rows(cells, kinds, events)


def _stacked(first: Cells, second: Cells) -> Cells:
    left_out = None
    if first.left_out is not None or second.left_out is not None:
        left_out = np.concatenate([_marks(first), _marks(second)])
    array = pa.concat_arrays([first.array, second.array])
    return Cells(array, left_out, first.seen + second.seen)


def _marks(cells: Cells) -> Marks:
    return np.zeros(len(cells.array), np.bool_) if cells.left_out is None else cells.left_out
