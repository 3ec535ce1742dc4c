"""The aggregate function rbm32: the union of Roaring bitmaps.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/aggregation/#aggregation-functions
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from ingestd.errors import FormatError
from ingestd.paimon.merge.events import MergeEvents, Ops, whole
from ingestd.paimon.spec.arrow import Column


def union(column: Column, events: MergeEvents, ops: Ops) -> Column:
    """Return the union of the bitmaps per key; nulls are ignored.

    A cell is a bitmap in the portable 32-bit format. The only cell of a key is returned unchanged.
    Raises FormatError if a key has several cells, and one of them is not such a bitmap.
    """
    at = np.flatnonzero(events.since_set(ops) & events.valid(column))
    bounds = np.searchsorted(events.key[at], np.arange(events.count + 1))
    counts = np.diff(bounds)
    first = np.full(events.count, -1)
    first[counts > 0] = at[bounds[:-1][counts > 0]]
    cells = whole(events.pick(column, first))
    several = counts > 1
    if not bool(several.any()):
        return cells
    rows: Any = column
    values = rows.take(pa.array(events.rows[at])).to_pylist()
    unions = [
        _united(values[bounds[key] : bounds[key + 1]]) for key in np.flatnonzero(several).tolist()
    ]
    replace: Any = pc.replace_with_mask
    united: Column = replace(cells, pa.array(several), pa.array(unions, cells.type))
    return united


def _united(cells: list[bytes]) -> bytes:
    bitmap = BitMap.union(*map(_decoded, cells))
    bitmap.run_optimize()
    data: bytes = bitmap.serialize()
    return data


def _decoded(cell: bytes) -> BitMap:
    try:
        return BitMap.deserialize(cell)
    except (ValueError, IndexError) as error:
        raise FormatError(
            f"aggregate function 'rbm32': a value of {len(cell)} bytes is not a Roaring bitmap in "
            f"the portable 32-bit format ({error}); correct it at its source, or change the "
            "function of the column, such as to 'last_value'"
        ) from error
