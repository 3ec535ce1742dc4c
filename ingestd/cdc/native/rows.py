"""Decode the messages of a table natively to a change batch: `change_rows` on columns.

Messages that are not exactly as expected are decoded in Python instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import UNSET

from ingestd.cdc.base import ChangeBatch
from ingestd.cdc.messages import Messages
from ingestd.cdc.native.cells import (
    Cells,
    Indices,
    Marks,
    build,
    choose,
    differ,
    stacked,
    take,
    to_cells,
)
from ingestd.cdc.native.image import Image
from ingestd.cdc.native.message_layout import IrregularError, LayoutChanges
from ingestd.cdc.native.module import Columns
from ingestd.cdc.native.plan import form_of
from ingestd.cdc.native.reader import NativeReader
from ingestd.cdc.plan_column import PlanColumn
from ingestd.cdc.record_errors import BUILD_ERRORS, PARSE_ERRORS
from ingestd.cdc.row_layout import OldKeys, RowLayout, row_layout, row_layout_with_images
from ingestd.cdc.row_plan import RowPlan
from ingestd.paimon.spec.data_types import DataType, RowKind


def read_natively(plan: RowPlan, messages: Messages) -> ChangeBatch | None:
    """Return the batch of Debezium messages; None if any must be decoded in Python."""
    return None if plan.native is None else read_with(plan.native, plan, messages)


def read_with(native: NativeReader, plan: RowPlan, messages: Messages) -> ChangeBatch | None:
    """Return the batch of messages of a layout; None if any must be decoded in Python."""
    shape = messages.value_shape
    columns = native.values.read(messages.values, shape.prefix, shape.suffix)
    if columns is None:
        return None
    keys: Columns | None = None
    if native.keys is not None and messages.keys is not None:
        shape = messages.key_shape
        keys = native.keys.read(messages.keys, shape.prefix, shape.suffix)
        if keys is None:
            return None
    try:
        changes = native.layout.changes(columns, messages.offsets)
        return _batch(plan, _Table(plan, changes, keys, native.hidden))
    except (*BUILD_ERRORS, *PARSE_ERRORS):
        return None


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a batch: cells by column name, without columns that every row lacks.

    `changes` (rows,) has the index of each row's change, or is None if every change is one row.
    """

    cells: Mapping[str, Cells]
    kinds: npt.NDArray[np.int8]
    changes: Indices | None

    def laid_out(
        self, layout: RowLayout, before: Mapping[str, Cells], key_names: tuple[str, ...]
    ) -> "_Rows":
        """Return the rows of a layout; `before` are cells of the before images, by column."""
        cells = {}
        for name, found in self.cells.items():
            both = stacked(found, before[name]) if name in before else found
            cells[name] = take(both, layout.keys if name in key_names else layout.values)
        return _Rows(cells, layout.kinds, layout.changes)


@dataclass(frozen=True, slots=True)
class _Table:
    """The changes of one table, and the columns of their message keys."""

    plan: RowPlan
    changes: LayoutChanges
    keys: Columns | None
    hidden: frozenset[str]

    @property
    def size(self) -> int:
        """Return the number of changes."""
        return len(self.changes.kinds)

    @property
    def updates(self) -> Marks:
        """Return a mask of the updates."""
        marks: Marks = self.changes.kinds == RowKind.UPDATE_AFTER
        return marks

    @property
    def deletes(self) -> Marks:
        """Return a mask of the deletes."""
        marks: Marks = self.changes.kinds == RowKind.DELETE
        return marks

    @property
    def columns(self) -> list[PlanColumn]:
        """Return the columns whose values are read."""
        return [
            column
            for column in self.plan.columns
            if column.reader is not None and column.name not in self.hidden
        ]

    @property
    def key_columns(self) -> list[PlanColumn]:
        """Return the columns of the key, in its order."""
        by_name = {column.name: column for column in self.plan.columns}
        return [by_name[name] for name in self.plan.key_names]

    def key_of_message(self, column: PlanColumn) -> Cells:
        """Return a column of the message keys, or of the before images if messages have no key."""
        if self.keys is None:
            before = self.changes.before
            if (before.lacking(column.name) & self.deletes).any():
                raise IrregularError(f"some images before lack {column.name}")
            return before.cells(column)
        return to_cells(self.keys[(column.name,)], form_of(column), self.size)


def _batch(plan: RowPlan, table: _Table) -> ChangeBatch:
    rows = _rows(plan, table)
    changes = table.changes
    offset, position, snapshot = changes.offsets, changes.log.position, changes.log.snapshot
    if rows.changes is not None:
        offset, position = offset[rows.changes], position[rows.changes]
        snapshot = snapshot[rows.changes]
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
        raise IrregularError("a row has no columns")
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


def _rows(plan: RowPlan, table: _Table) -> _Rows:
    changes, deletes = table.changes, table.deletes
    if (changes.after.there == deletes).any():
        raise IrregularError("a delete has an after image, or another change has none")
    if table.keys is None and (deletes & ~changes.before.there).any():
        raise IrregularError("a delete has neither a message key nor a before image")
    if not plan.key_names:
        return _keyless_rows(table)
    cells = {
        column.name: _row_cells(table, column)
        for column in table.columns
        if column.name not in plan.key_names
    }
    for column in table.key_columns:
        cells[column.name] = _key(table, column)
    rows = _Rows(cells, changes.kinds, None)
    rows = _with_images(table, rows) if plan.wants.images else _with_moves(table, rows)
    return _without_absent_columns(table, rows)


def _row_cells(table: _Table, column: PlanColumn) -> Cells:
    """Return the cells of after images; those that a partial update lacks are omitted."""
    after = table.changes.after
    _refuse_defaults(after, column)
    cells = after.cells(column)
    if not table.plan.wants.partial:
        return cells
    untouched = after.lacking(column.name) & table.updates
    if not untouched.any():
        return cells
    if table.plan.wants.images:
        raise IrregularError(f"some updates lack {column.name}")
    left_out = untouched if cells.left_out is None else cells.left_out | untouched
    return replace(cells, left_out=left_out)


def _refuse_defaults(image: Image, column: PlanColumn) -> None:
    """Raise IrregularError if an absent field has a default."""
    if column.default is not UNSET and image.lacking(column.name).any():
        raise IrregularError(f"{column.name} has a default")


def _without_absent_columns(table: _Table, rows: _Rows) -> _Rows:
    """Drop columns that no row has, unless a DELETE of only a key requires all columns."""
    changes, images = table.changes, table.plan.wants.images
    bare = table.deletes & ~changes.before.there if images else table.deletes
    if bare.any() or (not images and (rows.kinds == RowKind.DELETE).any()):
        return rows

    def stays(column: PlanColumn, cells: Cells) -> bool:
        name = column.name
        if column.default is not UNSET or name in table.plan.key_names:
            return True
        seen = changes.after.seen(name) or (images and changes.before.seen(name))
        return bool(seen) or (table.plan.wants.partial and cells.left_out is not None)

    cells = {
        column.name: rows.cells[column.name]
        for column in table.columns
        if stays(column, rows.cells[column.name])
    }
    return replace(rows, cells=cells)


def _key(table: _Table, column: PlanColumn) -> Cells:
    """Return the cells of a key column: of the rows, or of the message keys for deletes."""
    changes, deletes, name = table.changes, table.deletes, column.name
    if changes.rows is not None and table.keys is None:
        if changes.rows.seen(name) < table.size:
            raise IrregularError(f"some rows lack {name}")
        cells = changes.rows.cells(column)
    else:
        rows, seen = int(np.count_nonzero(changes.after.there)), changes.after.seen(name)
        if not seen and not (rows and table.keys is None):
            cells = table.key_of_message(column)
        elif seen < rows:
            raise IrregularError(f"some rows lack {name}")
        else:
            cells = changes.after.cells(column)
            if deletes.any():
                cells = choose(deletes, table.key_of_message(column), cells)
    if cells.left_out is not None:
        raise IrregularError(f"a value of {name} was left out")
    return cells


def _with_images(table: _Table, rows: _Rows) -> _Rows:
    """Lay out rows with before images; fields that these lack have the value of the after image."""
    before, there = table.changes.before, table.changes.before.there
    old: dict[str, Cells] = {}
    for column in table.columns:
        _refuse_defaults(before, column)
        cells, lacking = before.cells(column), before.lacking(column.name) & table.updates
        if lacking.any():
            cells = choose(lacking, rows.cells[column.name], cells)
        old[column.name] = cells
    moved = np.zeros(table.size, np.bool_)
    for name in table.plan.key_names:
        known = old[name].array.is_valid().to_numpy(zero_copy_only=False)
        if old[name].left_out is not None or (there & ~known).any():
            raise IrregularError(f"some images before have no {name}")
        moved |= differ(old[name], rows.cells[name])
    layout = row_layout_with_images(
        rows.kinds, OldKeys(there, moved), there, partial=table.plan.wants.partial
    )
    return rows.laid_out(layout, old, table.plan.key_names)


def _with_moves(table: _Table, rows: _Rows) -> _Rows:
    """Lay out rows with a DELETE of the old key before each update that changed its key."""
    updates = table.updates & table.changes.before.there
    if not updates.any():
        return rows
    old_keys = {column.name: _old_key(table, column, rows) for column in table.key_columns}
    moved = np.zeros(len(updates), np.bool_)
    for name, old in old_keys.items():
        moved |= differ(old, rows.cells[name])
    complete = updates
    for old in old_keys.values():
        if not (complete & moved).any():
            return rows
        complete = complete & old.array.is_valid().to_numpy(zero_copy_only=False)
        if old.left_out is not None:
            raise IrregularError("a value of a key was left out")
    if not (complete & moved).any():
        return rows
    layout = row_layout(rows.kinds, OldKeys(complete, moved))
    return rows.laid_out(layout, old_keys, table.plan.key_names)


def _old_key(table: _Table, column: PlanColumn, rows: _Rows) -> Cells:
    """Return a key column of before images; what they lack has the value of the after image."""
    before, new = table.changes.before, rows.cells[column.name]
    lacking = before.lacking(column.name)
    if not lacking.any():
        return before.cells(column)
    _refuse_defaults(before, column)
    if not (before.there & ~lacking & table.updates).any():
        return new
    return choose(lacking, new, before.cells(column))


def _keyless_rows(table: _Table) -> _Rows:
    """Return the rows of a table without a key: a DELETE is its whole before image."""
    cells: dict[str, Cells] = {}
    for column in table.columns:
        found = _keyless_cells(table, column)
        if found is not None:
            cells[column.name] = found
    return _Rows(cells, table.changes.kinds, None)


def _keyless_cells(table: _Table, column: PlanColumn) -> Cells | None:
    """Return the cells of a column; None if no row has it."""
    changes, deletes, name = table.changes, table.deletes, column.name
    if changes.rows is not None:
        _refuse_defaults(changes.rows, column)
        return changes.rows.cells(column) if changes.rows.seen(name) else None
    _refuse_defaults(changes.after, column)
    _refuse_defaults(changes.before, column)
    untouched = table.plan.wants.partial and bool(table.updates.any())
    if not (changes.after.seen(name) or changes.before.seen(name) or untouched):
        return None
    if (changes.after.lacking(name) | changes.before.lacking(name) & deletes).any():
        raise IrregularError(f"some rows lack {name}")
    after = changes.after.cells(column)
    return choose(deletes, changes.before.cells(column), after) if deletes.any() else after
