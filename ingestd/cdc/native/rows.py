"""Messages through the native plans of a table to a change batch: as `change_rows`, on columns.

What is not exactly as expected gives no batch at all, and is decoded in Python.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import UNSET

from ingestd.cdc.base import ChangeBatch
from ingestd.cdc.change_rows import kinds_of_operations
from ingestd.cdc.messages import Messages
from ingestd.cdc.native.cells import (
    Cells,
    Marks,
    build,
    choose,
    differ,
    flags,
    to_cells,
)
from ingestd.cdc.native.images import Rows, with_images, with_old_keys
from ingestd.cdc.native.module import Columns
from ingestd.cdc.native.plan import AFTER, BEFORE, form_of
from ingestd.cdc.native.position import native_positions, native_snapshot_rows
from ingestd.cdc.plan_column import PlanColumn
from ingestd.cdc.record_errors import BUILD_ERRORS, PARSE_ERRORS
from ingestd.cdc.row_plan import RowPlan
from ingestd.paimon.spec.data_types import DataType, RowKind


class _OddError(ValueError):
    """Messages that only the decoder in Python can judge."""


def read_natively(plan: RowPlan, messages: Messages) -> ChangeBatch | None:
    """The batch of messages; None if any of them is for the decoder in Python."""
    native = plan.native
    if native is None:
        return None
    shape = messages.value_shape
    columns = native.changes.read(messages.values, shape.prefix, shape.suffix)
    if columns is None:
        return None
    keys: Columns | None = None
    if native.keys is not None and messages.keys is not None:
        shape = messages.key_shape
        keys = native.keys.read(messages.keys, shape.prefix, shape.suffix)
        if keys is None:
            return None
    try:
        after_only = bool(plan.key_names) and not plan.wants.images
        return _batch(plan, _Messages(columns, keys, messages.offsets, after_only=after_only))
    except (*BUILD_ERRORS, *PARSE_ERRORS):
        return None


@dataclass(frozen=True, slots=True)
class _Messages:
    """Columns of message values and of message keys.

    `after_only` says that all rows are those after changes.
    """

    values: Columns
    keys: Columns | None
    offsets: npt.NDArray[np.int64]
    after_only: bool

    def cells(self, image: str, column: PlanColumn) -> Cells:
        """A column of an image. Raises _OddError if an absent value stands for another."""
        found = self.values[image, column.name]
        if found.seen < self.values[(image,)].seen and column.default is not UNSET:
            raise _OddError(f"{column.name} has a default")
        return to_cells(found, form_of(column), len(self.offsets))

    def mention(self, column: PlanColumn) -> bool:
        """Whether any row has the column, or a default of it."""
        seen = any(self.values[image, column.name].seen for image in self.row_images)
        return seen or column.default is not UNSET

    def old_key_cells(self, column: PlanColumn) -> Cells:
        """A key column of the images before. Raises _OddError if one of them lacks it."""
        cells = self.cells(BEFORE, column)
        if cells.seen < np.count_nonzero(flags(self.values[(BEFORE,)])):
            raise _OddError(f"some images before lack {column.name}")
        return cells

    @property
    def row_images(self) -> tuple[str, ...]:
        """The images that hold whole rows."""
        return (AFTER,) if self.after_only else (BEFORE, AFTER)

    def key_cells(self, column: PlanColumn) -> Cells:
        """A column of the message keys, or without them of the images before."""
        if self.keys is None:
            return self.old_key_cells(column)
        return to_cells(self.keys[(column.name,)], form_of(column), len(self.offsets))


def _batch(plan: RowPlan, messages: _Messages) -> ChangeBatch:
    size = len(messages.offsets)
    snapshot = native_snapshot_rows(messages.values, size)
    position = native_positions(messages.values, snapshot)
    if position is None:
        raise _OddError("positions of more than one kind")
    rows = _rows(plan, messages)
    offset = messages.offsets
    if rows.events is not None:
        offset, position = offset[rows.events], position[rows.events]
        snapshot = snapshot[rows.events]
    columns = {}
    types: dict[str, DataType] = {}
    unavailable: dict[str, Marks] = {}
    for column in plan.columns:
        cells = rows.cells.get(column.name)
        if cells is None or column.column is None:
            continue
        array, left_out = build(column, cells)
        columns[column.name] = array
        types[column.name] = column.column.table_type.as_nullable()
        if left_out is not None:
            unavailable[column.name] = left_out
    if not columns:
        raise _OddError("a row has no columns")
    return ChangeBatch(
        source=plan.source,
        columns=pa.table(columns),
        types=types,
        primary_keys=plan.key_names,
        row_kind=rows.kinds,
        offset=offset,
        position=position,
        snapshot_row=snapshot,
        unavailable=unavailable,
    )


def _rows(plan: RowPlan, messages: _Messages) -> Rows:
    kinds = kinds_of_operations(np.frombuffer(messages.values[("op",)].data, np.uint8))
    deletes: Marks = kinds == RowKind.DELETE
    if (flags(messages.values[(AFTER,)]) == deletes).any():
        raise _OddError("a delete has an after image, or another change has none")
    if not plan.key_names:
        return _keyless_rows(plan, messages, kinds)
    if messages.keys is None and (deletes & ~flags(messages.values[(BEFORE,)])).any():
        raise _OddError("a delete has neither a message key nor a before image")
    if plan.wants.partial and (kinds == RowKind.UPDATE_AFTER).any():
        _refuse_lacking(plan, messages)
    has_deletes = bool(deletes.any())
    cells = {
        column.name: messages.cells(AFTER, column)
        for column in plan.columns
        if column.reader is not None
    }
    for column in _key_columns(plan):
        cells[column.name] = _key(column, messages, deletes if has_deletes else None)
    rows = Rows(cells, kinds, None)
    rows = (
        _with_images(plan, messages, rows)
        if plan.wants.images
        else _with_moves(plan, messages, rows)
    )
    return _without_absent_columns(plan, messages, rows)


def _refuse_lacking(plan: RowPlan, messages: _Messages) -> None:
    """_OddError if a row lacks a column, of which the older value may still hold."""
    rows = messages.values[(AFTER,)].seen
    for column in plan.columns:
        if column.reader is not None and messages.values[AFTER, column.name].seen < rows:
            raise _OddError(f"some rows lack {column.name}")


def _without_absent_columns(plan: RowPlan, messages: _Messages, rows: Rows) -> Rows:
    """A DELETE has all columns; without one, those that no row has are left out."""
    if (rows.kinds == RowKind.DELETE).any():
        return rows
    absent = {
        column.name
        for column in plan.columns
        if column.name in rows.cells
        and column.name not in plan.key_names
        and not messages.mention(column)
    }
    return replace(rows, cells={n: one for n, one in rows.cells.items() if n not in absent})


def _key_columns(plan: RowPlan) -> list[PlanColumn]:
    by_name = {column.name: column for column in plan.columns}
    return [by_name[name] for name in plan.key_names]


def _key(column: PlanColumn, messages: _Messages, deletes: Marks | None) -> Cells:
    """Cells of a key column: of the rows, and of the message keys where there is no row."""
    cells = messages.cells(AFTER, column)
    rows = messages.values[(AFTER,)].seen
    if not cells.seen and not (rows and messages.keys is None):
        cells = messages.key_cells(column)
    elif cells.seen < rows:
        raise _OddError(f"some rows lack {column.name}")
    elif deletes is not None:
        cells = choose(deletes, messages.key_cells(column), cells)
    if cells.left_out is not None:
        raise _OddError(f"a value of {column.name} was left out")
    return cells


def _with_images(plan: RowPlan, messages: _Messages, rows: Rows) -> Rows:
    """Rows before changes, of which every one has all columns that the rows after them have."""
    there = flags(messages.values[(BEFORE,)])
    count = int(np.count_nonzero(there))
    old: dict[str, Cells] = {}
    for column in plan.columns:
        if column.reader is None:
            continue
        seen = messages.values[BEFORE, column.name].seen
        if seen != count and (seen or messages.values[AFTER, column.name].seen):
            raise _OddError(f"some images before lack {column.name}")
        old[column.name] = messages.cells(BEFORE, column)
    for name in plan.key_names:
        known = old[name].array.is_valid().to_numpy(zero_copy_only=False)
        if old[name].left_out is not None or (there & ~known).any():
            raise _OddError(f"some images before have no {name}")
    return with_images(rows, old, there, plan.key_names)


def _with_moves(plan: RowPlan, messages: _Messages, rows: Rows) -> Rows:
    """A row more, a DELETE of the old key, before each update that changed its key."""
    keys = _key_columns(plan)
    old_keys = {column.name: messages.old_key_cells(column) for column in keys}
    updates = (rows.kinds == RowKind.UPDATE_AFTER) & flags(messages.values[(BEFORE,)])
    unlike = np.zeros(len(updates), np.bool_)
    for name, old in old_keys.items():
        unlike |= differ(old, rows.cells[name])
    moved = updates & unlike
    for old in old_keys.values():
        if not moved.any():
            return rows
        moved &= old.array.is_valid().to_numpy(zero_copy_only=False)
        if old.left_out is not None:
            raise _OddError("a value of a key was left out")
    places = np.flatnonzero(moved)
    if not len(places):
        return rows
    return with_old_keys(rows, old_keys, places)


def _keyless_rows(plan: RowPlan, messages: _Messages, kinds: npt.NDArray[np.int8]) -> Rows:
    """Without a key a DELETE is the whole row before it."""
    deletes: Marks = kinds == RowKind.DELETE
    before = flags(messages.values[(BEFORE,)])
    if (deletes & ~before).any():
        raise _OddError("a delete has neither a message key nor a before image")
    images = [(BEFORE, int(before.sum())), (AFTER, int((~deletes).sum()))]
    cells: dict[str, Cells] = {}
    for column in plan.columns:
        if column.reader is None:
            continue
        if not messages.mention(column):
            continue
        seen = [messages.values[image, column.name].seen for image, _ in images]
        if seen != [count for _, count in images]:
            raise _OddError(f"some rows lack {column.name}")
        after = messages.cells(AFTER, column)
        if deletes.any():
            after = choose(deletes, messages.cells(BEFORE, column), after)
        cells[column.name] = after
    return Rows(cells, kinds, None)
