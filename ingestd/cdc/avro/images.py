"""Insert before images between the rows of changes in Avro.

Applies the rules of `row_images` to columns.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.cdc.columns.arrow_calls import Marks, take
from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.data_types import RowKind


@dataclass(frozen=True, slots=True)
class Columns:
    """Arrays by column name, and marks of the values that the source omitted."""

    arrays: Mapping[str, Array]
    left_out: Mapping[str, Marks]


@dataclass(frozen=True, slots=True)
class Paired:
    """Rows with their before images; `events` has the index of each row's change."""

    columns: Columns
    kinds: npt.NDArray[np.int8]
    events: npt.NDArray[np.int64]


def with_images(
    after: Columns, before: Columns, kinds: npt.NDArray[np.int8], updates: Marks, moved: Marks
) -> Paired:
    """Return each marked update as two rows, the first from `before`.

    `moved` marks updates that changed their key. A column that the before images lack has the
    values of the after images.
    """
    size, places = len(kinds), np.flatnonzero(updates)
    events = np.insert(np.arange(size), places, places)
    inserted = places + np.arange(len(places))
    row_kinds = kinds[events]
    row_kinds[inserted] = np.where(moved[places], RowKind.DELETE, RowKind.UPDATE_BEFORE)
    row_kinds[inserted + 1] = np.where(moved[places], RowKind.INSERT, RowKind.UPDATE_AFTER)
    rows = events.copy()
    rows[inserted] += size
    arrays = {}
    for name, array in after.arrays.items():
        both = pa.concat_arrays([array, before.arrays.get(name, array)])
        arrays[name] = take(both, pa.array(rows))
    none = np.zeros(size, np.bool_)
    left_out = {}
    for name in {**after.left_out, **before.left_out}:
        first = after.left_out.get(name, none)
        second = before.left_out.get(name, none) if name in before.arrays else first
        left_out[name] = np.concatenate([first, second])[rows]
    return Paired(Columns(arrays, left_out), row_kinds, events)
