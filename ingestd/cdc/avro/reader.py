"""Read Avro messages with the same writer schema into Arrow arrays, one for each node.

Each array has one element per requested row. Its type is determined only by the physical type;
`cdc.avro.record_columns` derives the meaning of values from the schema. Unions of more than one
type besides null become JSON text, and are the only values that are processed one by one.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.cdc.avro.arrow_types import json_texts, storage_type
from ingestd.cdc.avro.cursor import AvroCursor, Ints
from ingestd.cdc.avro.items import (
    KEY,
    BrokenItemError,
    ItemBytes,
    cells_of,
    next_block,
    read_item,
    without_bytes,
)
from ingestd.cdc.avro.nodes import AvroNode
from ingestd.cdc.avro.scalars import SCALARS, Read, choices
from ingestd.cdc.cell_budget import CellBudgetError
from ingestd.cdc.columns.arrow_calls import (
    make_list,
    make_map,
    nulls,
    offsets_of,
    struct_of,
    take,
    take_rows,
    to_array,
)
from ingestd.paimon.spec.arrow import Array

_FEW = 16
"""Maximum number of rows for which items are read one by one, which is faster for few rows."""
Wanted = Mapping[str, Collection[str] | None]
"""The requested fields of a record, each with the requested fields of its value (None: all)."""


def read_fields(cursor: AvroCursor, record: AvroNode, wanted: Wanted) -> dict[str, Array]:
    """Read one array for each requested field of the records, by name; other fields are skipped."""
    arrays: dict[str, Array] = {}
    for name, child in zip(record.names, record.children, strict=True):
        if name in wanted:
            arrays[name] = _some(cursor, child, cursor.rows, wanted[name])
        else:
            pass_over(cursor, child, cursor.rows)
    return arrays


def _some(cursor: AvroCursor, node: AvroNode, rows: Ints, wanted: Collection[str] | None) -> Array:
    """Read the values of a node, with only the requested fields if the values are records."""
    if wanted is None or node.present.kind != "record":
        return read(cursor, node, rows)
    if node.kind == "record":
        return struct_of(_fields(cursor, node, rows, wanted), len(rows))
    for child, positions in _branches(cursor, node, rows):
        if child is node.present:
            return _spread(_some(cursor, child, rows[positions], wanted), positions, len(rows))
    return nulls(len(rows), storage_type(node, wanted))


def all_fields(record: AvroNode) -> Wanted:
    """Return a request for all fields of a record."""
    return dict.fromkeys(record.names)


def _fields(
    cursor: AvroCursor, record: AvroNode, rows: Ints, wanted: Collection[str]
) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for name, child in zip(record.names, record.children, strict=True):
        if name in wanted:
            arrays[name] = read(cursor, child, rows)
        else:
            pass_over(cursor, child, rows)
    return arrays


def read(cursor: AvroCursor, node: AvroNode, rows: Ints) -> Array:
    """Read the values of a node in these rows."""
    if not len(rows):
        return pa.array([], storage_type(node))
    return _READ[node.kind](cursor, node, rows)


def pass_over(cursor: AvroCursor, node: AvroNode, rows: Ints) -> None:
    """Skip the values of a node in these rows."""
    kind = node.kind
    if kind in _NUMBERS:
        cursor.varints(rows)
    elif kind in _SIZED:
        cursor.skip(rows, cursor.varints(rows))
    elif kind == "record":
        for child in node.children:
            pass_over(cursor, child, rows)
    elif kind in _FIXED_SIZE:
        cursor.skip(rows, _FIXED_SIZE[kind])
    elif kind in ("nullable", "union"):
        for child, positions in _branches(cursor, node, rows):
            pass_over(cursor, child, rows[positions])
    else:
        read(cursor, node, rows)


_NUMBERS = frozenset({"int", "long", "enum"})
_SIZED = frozenset({"bytes", "string"})
_FIXED_SIZE: Mapping[str, int] = {"null": 0, "boolean": 1, "float": 4, "double": 8}


def _record(cursor: AvroCursor, node: AvroNode, rows: Ints) -> Array:
    return struct_of(_fields(cursor, node, rows, node.names), len(rows))


def _branches(
    cursor: AvroCursor, node: AvroNode, rows: Ints
) -> list[tuple[AvroNode, npt.NDArray[np.intp]]]:
    """Read the branch numbers of a union.

    Returns the branches that occur, each with the indices of its values in `rows`.
    """
    chosen = choices(cursor, node, rows, len(node.children))
    return [
        (child, positions)
        for number, child in enumerate(node.children)
        if len(positions := np.flatnonzero(chosen == number))
    ]


def _nullable(cursor: AvroCursor, node: AvroNode, rows: Ints) -> Array:
    for child, positions in _branches(cursor, node, rows):
        if child is node.present:
            return _spread(read(cursor, child, rows[positions]), positions, len(rows))
    return nulls(len(rows), storage_type(node))


def _spread(values: Array, positions: npt.NDArray[np.intp], size: int) -> Array:
    """Return an array of length `size` with `values` at `positions`, else null."""
    if len(positions) == size:
        return values
    indices = np.full(size, -1, np.int64)
    indices[positions] = np.arange(len(positions))
    return take_rows(values, indices)


def _union(cursor: AvroCursor, node: AvroNode, rows: Ints) -> Array:
    texts: list[str | None] = [None] * len(rows)
    for child, positions in _branches(cursor, node, rows):
        values = json_texts(read(cursor, child, rows[positions]), child)
        for index, text in zip(positions.tolist(), values, strict=True):
            texts[index] = text
    return pa.array(texts, pa.string())


def _array(cursor: AvroCursor, node: AvroNode, rows: Ints) -> Array:
    offsets, order, (items,) = _blocks(cursor, rows, node.children)
    return make_list(offsets, take(items, pa.array(order)))


def _map(cursor: AvroCursor, node: AvroNode, rows: Ints) -> Array:
    offsets, order, (keys, values) = _blocks(cursor, rows, (KEY, node.children[0]))
    indices = pa.array(order)
    return make_map(offsets, take(keys, indices), take(values, indices))


def _blocks(
    cursor: AvroCursor, rows: Ints, parts: tuple[AvroNode, ...]
) -> tuple[Array, Ints, list[Array]]:
    """Read the items of arrays or the entries of maps.

    Returns the offsets of the rows, the order in which to take the items, and an array of items for
    each of `parts`, the nodes of an item. Each step reads the next item of every row that has more
    items. If only a few rows have more items, a step reads all remaining items of these rows.
    """
    size = len(rows)
    left = np.zeros(size, np.int64)
    counts = np.zeros(size, np.int64)
    is_open = np.ones(size, np.bool_)
    owners: list[npt.NDArray[np.intp]] = []
    pieces: list[list[Array]] = [[] for _ in parts]
    while True:
        _next_blocks(cursor, rows, left, is_open, parts)
        active = np.flatnonzero(left > 0)
        if not len(active):
            break
        if len(active) <= _FEW:
            for index in active.tolist():
                cells = _read_one_by_one(cursor, int(rows[index]), parts, int(left[index]))
                for number, part in enumerate(parts):
                    pieces[number].append(to_array(cells[number], storage_type(part)))
                owners.append(np.full(len(cells[0]), index))
                counts[index] += len(cells[0])
            left[active], is_open[active] = 0, False
            continue
        for number, part in enumerate(parts):
            pieces[number].append(read(cursor, part, rows[active]))
        owners.append(active)
        left[active] -= 1
        counts[active] += 1
    items = [
        pa.concat_arrays(arrays) if arrays else pa.array([], storage_type(part))
        for part, arrays in zip(parts, pieces, strict=True)
    ]
    order = np.argsort(np.concatenate(owners), kind="stable") if owners else np.zeros(0, np.int64)
    return offsets_of(counts), order, items


def _read_one_by_one(
    cursor: AvroCursor, row: int, parts: tuple[AvroNode, ...], count: int
) -> list[list[Any]]:
    """Read all remaining items of one row, and return a list for each part.

    `count` is the number of items left in the current block. The lists are empty if an item does
    not match the schema.
    """
    cells: list[list[Any]] = [[] for _ in parts]
    own = cursor.rows[row : row + 1]
    data, at = ItemBytes(cursor.rest(row), cursor.budget(row)), 0
    try:
        while count:
            for _ in range(count):
                for part, values in zip(parts, cells, strict=True):
                    value, at = read_item(data, at, part)
                    values.append(value)
            count, at = next_block(data, at, parts)
    except (BrokenItemError, CellBudgetError) as error:
        cursor.mark(own, over=isinstance(error, CellBudgetError))
        return [[] for _ in parts]
    cursor.skip(own, at)
    cursor.cells[row] = data.budget.left
    return cells


def _next_blocks(
    cursor: AvroCursor,
    rows: Ints,
    left: Ints,
    is_open: npt.NDArray[np.bool_],
    parts: tuple[AvroNode, ...],
) -> None:
    """Read the headers of the next blocks, in rows whose previous block has ended.

    Sets `left` to the number of items in the block, and `is_open` to whether more blocks can
    follow.

    A block may not have more items than its message has unread bytes (unless items take no bytes),
    and not more than the cell budget of the message allows.
    """
    is_open &= ~cursor.bad[rows]
    left[~is_open] = 0
    heads = np.flatnonzero(is_open & (left == 0))
    if not len(heads):
        return
    counts = cursor.varints(rows[heads])
    sized = np.flatnonzero(counts < 0)
    if len(sized):
        cursor.varints(rows[heads[sized]])
        counts = np.abs(counts)
    wrong = counts < 0
    if not without_bytes(parts):
        wrong |= counts > cursor.left(rows[heads])
    if wrong.any():
        cursor.mark(rows[heads[wrong]])
        counts[wrong] = 0
    counts[~cursor.spend(rows[heads], counts, cells_of(parts))] = 0
    left[heads] = counts
    is_open[heads] = counts > 0


_READ: Mapping[str, Read] = {
    **SCALARS,
    "record": _record,
    "nullable": _nullable,
    "union": _union,
    "array": _array,
    "map": _map,
}
