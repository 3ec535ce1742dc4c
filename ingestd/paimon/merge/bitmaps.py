"""The aggregate functions rbm32 and rbm64: the union of Roaring bitmaps.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/aggregation/#aggregation-functions
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from ingestd.errors import FormatError
from ingestd.paimon.merge.events import REVERSED, MergeEvents, Ops, whole
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.roaring64 import Bitmap64, decode_roaring64, encode_roaring64


def union32(column: Column, events: MergeEvents, ops: Ops) -> Column:
    """Return the union of the 32-bit bitmaps of each key, in the portable Roaring format.

    `ops` (n,) are the operations of the events; values before the last SET of a key do not count.
    Nulls are ignored; a key without bitmaps gets null. If a key has only one cell, it is returned
    unchanged. Raises FormatError if a key has several cells, and one of them is not such a bitmap.
    """
    return _unions(column, events, ops, _united32)


def union64(column: Column, events: MergeEvents, ops: Ops) -> Column:
    """Return the union of the 64-bit bitmaps of each key, in Java's format.

    `ops` (n,) are the operations of the events; values before the last SET of a key do not count.
    Nulls are ignored; a key without bitmaps gets null. If a key has only one cell, it is returned
    unchanged. Raises FormatError if a key has several cells, and one of them is not such a bitmap.
    """
    return _unions(column, events, ops, _united64)


def _unions(
    column: Column,
    events: MergeEvents,
    ops: Ops,
    united: Callable[[list[bytes], Sequence[bool]], bytes],
) -> Column:
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
    older = (ops[at] == REVERSED).tolist()
    spans = [slice(*bounds[key : key + 2]) for key in np.flatnonzero(several).tolist()]
    unions = [united(values[span], older[span]) for span in spans]
    replace: Any = pc.replace_with_mask
    column_of_unions: Column = replace(cells, pa.array(several), pa.array(unions, cells.type))
    return column_of_unions


def _united32(cells: list[bytes], _: Sequence[bool]) -> bytes:
    bitmap = BitMap.union(*map(_decoded32, cells))
    bitmap.run_optimize()
    data: bytes = bitmap.serialize()
    return data


def _united64(cells: list[bytes], older: Sequence[bool]) -> bytes:
    """Return the union of the cells of a key; `older` marks those older than all before them.

    The bytes depend on which of two bitmaps is added to the other: Java adds to the older one.
    """
    bitmap, *others = map(_decoded64, cells)
    for other, is_older in zip(others, older[1:], strict=True):
        if is_older:
            bitmap, other = other, bitmap
        bitmap.add(other)
    return encode_roaring64(bitmap)


def _decoded32(cell: bytes) -> BitMap:
    try:
        return BitMap.deserialize(cell)
    except (ValueError, IndexError) as error:
        raise _no_bitmap("rbm32", cell, "the portable 32-bit format", str(error)) from error


def _decoded64(cell: bytes) -> Bitmap64:
    try:
        return decode_roaring64(cell)
    except FormatError as error:
        layout = "the format of Java's Roaring64Bitmap"
        raise _no_bitmap("rbm64", cell, layout, error.message) from error


def _no_bitmap(function: str, cell: bytes, layout: str, problem: str) -> FormatError:
    return FormatError(
        f"aggregate function '{function}': a value of {len(cell)} bytes is not a Roaring bitmap in "
        f"{layout} ({problem}); correct it at its source, or change the function of the column, "
        "such as to 'last_value'"
    )
