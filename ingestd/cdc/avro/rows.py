"""Assemble the changes of one table in Avro to a change batch: `change_rows` on columns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.cdc.avro.cells import build_column, find_left_out, without
from ingestd.cdc.avro.envelope import Changes, Indices, Reasons
from ingestd.cdc.avro.nodes import AvroNode
from ingestd.cdc.avro.positions import source_positions, source_snapshots
from ingestd.cdc.base import ChangeBatch
from ingestd.cdc.change_rows import kinds_of_operations
from ingestd.cdc.columns.arrow_calls import (
    Marks,
    equal,
    if_else,
    marks_of,
    members,
    nulls,
    take,
    take_rows,
    valid_marks,
)
from ingestd.cdc.columns.recast import recast
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.cdc.record_errors import BUILD_ERRORS, PARSE_ERRORS, Reason, explain_cell
from ingestd.cdc.row_layout import (
    ABSENT,
    OldKeys,
    RowLayout,
    row_layout,
    row_layout_with_images,
)
from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.data_types import RowKind

_CELL_ERRORS = (*BUILD_ERRORS, *PARSE_ERRORS)


@dataclass(frozen=True, slots=True)
class AvroColumn:
    """A column of rows or of message keys, and its values as an array of an Avro node.

    Without `node`, the array has the column's own type.
    """

    column: WireColumn
    node: AvroNode | None
    array: Array

    def built(self) -> Array:
        """Return the values in the column's type."""
        if self.node is None:
            return recast(self.array, self.column)
        return build_column(self.array, self.column, self.node)


@dataclass(frozen=True, slots=True)
class TableChanges:
    """The changes of one table.

    `keys` has a column for each field of the message key, None if messages have no key. `columns`
    are those of rows and keys, `nodes` the Avro types of the rows' columns. `images` is whether the
    before images are wanted.
    """

    changes: Changes
    columns: Mapping[str, WireColumn]
    nodes: Mapping[str, AvroNode | None]
    keys: Mapping[str, AvroColumn] | None
    offsets: npt.NDArray[np.int64]
    images: bool = False

    def keep(self, marks: Marks) -> "TableChanges":
        """Return the marked changes."""
        rows = pa.array(np.flatnonzero(marks))

        def kept(array: Any) -> Any:  # noqa: ANN401  (an Arrow array or None)
            return None if array is None else take(array, rows)

        old = self.changes
        changes = Changes(
            old.table,
            old.places[marks],
            old.operations[marks],
            kept(old.before),
            kept(old.after),
            {name: kept(array) for name, array in old.source.items()},
        )
        keys = None
        if self.keys is not None:
            keys = {
                name: AvroColumn(one.column, one.node, kept(one.array))
                for name, one in self.keys.items()
            }
        return replace(self, changes=changes, keys=keys, offsets=self.offsets[marks])


def change_batch(table: TableChanges, refused: Reasons) -> ChangeBatch | None:
    """Return the batch of valid changes; add the reasons of others to `refused`, by index."""
    bad = _without_row(table)
    while True:
        if bad:
            refused.update({int(table.changes.places[row]): why for row, why in bad.items()})
            marks = np.ones(len(table.offsets), np.bool_)
            marks[list(bad)] = False
            table = table.keep(marks)
        if not len(table.offsets):
            return None
        rows = _Rows(table)
        bad = rows.build()
        if not bad:
            return rows.batch()


def _without_row(table: TableChanges) -> Reasons:
    """Return the reasons of changes without a row."""
    changes, size = table.changes, len(table.offsets)
    deletes = changes.operations == "d"
    bad: Reasons = {}
    for row in np.flatnonzero(~deletes & ~_there(changes.after, size)).tolist():
        bad[row] = Reason("decode", "missing-after", "an event has no after image")
    if table.keys is None:
        message = "a delete has neither a message key nor a before image: no row to delete"
        for row in np.flatnonzero(deletes & ~_there(changes.before, size)).tolist():
            bad[row] = Reason("key", "missing-key", message)
    return bad


def _there(image: Array | None, size: int) -> Marks:
    if image is None:
        return np.zeros(size, np.bool_)
    return valid_marks(image)


def _fields(image: Array | None) -> dict[str, Array]:
    return {} if image is None else members(image)


class _Rows:
    """Builds the columns of a batch."""

    def __init__(self, table: TableChanges) -> None:
        self._table = table
        self._size = len(table.offsets)
        letters = "".join(table.changes.operations.tolist()).encode()
        self._kinds = kinds_of_operations(np.frombuffer(letters, np.uint8))
        self._deletes: Marks = self._kinds == RowKind.DELETE
        self._after = _fields(table.changes.after)
        self._before = _fields(table.changes.before)
        self._columns: dict[str, Array] = {}
        self._left_out: dict[str, Marks] = {}
        self._old: dict[str, Array] = {}
        self._old_left_out: dict[str, Marks] = {}
        self._old_key: dict[str, Array] = {}
        self._bad: Reasons = {}

    def build(self) -> Reasons:
        """Build all columns; return the reasons of rows with cells that do not fit."""
        for name, column in self._table.columns.items():
            key = None if self._table.keys is None else self._table.keys.get(name)
            part = self._row_part(name, column)
            if part is not None:
                self._columns[name] = self._built(part)
            if key is not None:
                self._put_key(name, key)
        self._build_old_key()
        if self._table.images and self._table.keys:
            self._build_old()
        return self._bad

    def _build_old(self) -> None:
        for name, node in self._table.nodes.items():
            if name not in self._columns or name not in self._before:
                continue
            left_out = find_left_out(self._before[name])
            if left_out is not None:
                self._old_left_out[name] = left_out
            array = without(self._before[name], left_out)
            self._old[name] = self._built(AvroColumn(self._table.columns[name], node, array))

    def _row_part(self, name: str, column: WireColumn) -> AvroColumn | None:
        if name not in self._table.nodes or name not in self._after:
            return None
        node = self._table.nodes[name]
        array = self._after[name]
        if self._deletes.any():
            missing = nulls(self._size, array.type)
            other = self._before.get(name, missing) if self._table.keys is None else missing
            array = if_else(pa.array(self._deletes), other, array)
        left_out = find_left_out(array)
        if left_out is not None:
            self._left_out[name] = left_out
        return AvroColumn(column, node, without(array, left_out))

    def _put_key(self, name: str, key: AvroColumn) -> None:
        """Set the key column of deletes, which have no row, to that of the message key."""
        if name not in self._columns:
            self._columns[name] = self._built(key)
        elif self._deletes.any():
            self._columns[name] = if_else(
                pa.array(self._deletes), self._built(key), self._columns[name]
            )

    def _built(self, part: AvroColumn) -> Array:
        try:
            return part.built()
        except _CELL_ERRORS:
            self._bad.update(_invalid(part, 0))
            return nulls(self._size, pa.null())

    def batch(self) -> ChangeBatch:
        """Return the batch, with old keys or before images laid out between the rows."""
        changes = self._table.changes
        events = self._laid_out()
        position = source_positions(changes.source, self._size)
        snapshot = source_snapshots(changes.source, self._size)
        columns = self._table.columns
        return ChangeBatch(
            source=changes.table,
            columns=pa.table(self._columns),
            types={name: columns[name].table_type.as_nullable() for name in self._columns},
            primary_keys=tuple(self._table.keys or ()),
            row_kind=self._kinds,
            offset=self._table.offsets[events],
            position=position[events],
            snapshot_row=snapshot[events],
            unavailable=self._left_out,
        )

    def _laid_out(self) -> Indices:
        """Lay out the rows; return the index of each row's change."""
        old, size = self._old_keys(), self._size
        if self._table.images and self._table.keys:
            before = _there(self._table.changes.before, size)
            layout = row_layout_with_images(self._kinds, old, before)
            # A column that the before images lack has the values of the after images.
            self._take(layout, {**self._columns, **self._old})
        elif (old.complete & old.moved).any():
            layout = row_layout(self._kinds, old)
            self._take(layout, self._old_key)
        else:
            return np.arange(size)
        self._kinds = layout.kinds
        return layout.changes

    def _take(self, layout: RowLayout, before: Mapping[str, Array]) -> None:
        """Take the cells of rows from the after images and the columns of before images."""
        keys, none = self._table.keys or {}, np.zeros(self._size, np.bool_)
        for name, array in self._columns.items():
            places = layout.keys if name in keys else layout.values
            both = pa.concat_arrays([array, before[name]]) if name in before else array
            self._columns[name] = take_rows(both, places)
        for name in {**self._left_out, **self._old_left_out}:
            first = self._left_out.get(name, none)
            second = self._old_left_out.get(name, none) if name in self._old else first
            self._left_out[name] = np.concatenate([first, second])[layout.values] & (
                layout.values != ABSENT
            )

    def _old_keys(self) -> OldKeys:
        complete, moved = self._updates_with_before(), np.zeros(self._size, np.bool_)
        complete &= bool(self._old_key)
        for name, old in self._old_key.items():
            moved |= ~marks_of(equal(old, self._columns[name]))
            complete &= _there(old, self._size)
        return OldKeys(complete, moved)

    def _build_old_key(self) -> None:
        """Build the key columns of the before images of updates."""
        keys, updates = self._table.keys, self._updates_with_before()
        if not keys or not updates.any() or not keys.keys() <= self._before.keys():
            return
        for name in keys:
            before = self._before[name]
            array = if_else(pa.array(updates), before, nulls(self._size, before.type))
            column, node = self._table.columns[name], self._table.nodes[name]
            self._old_key[name] = self._built(AvroColumn(column, node, array))

    def _updates_with_before(self) -> Marks:
        before = _there(self._table.changes.before, self._size)
        marks: Marks = (self._kinds == RowKind.UPDATE_AFTER) & before
        return marks


def _invalid(part: AvroColumn, start: int) -> Iterator[tuple[int, Reason]]:
    """Indices of values that do not fit the column, found by halving."""
    try:
        part.built()
    except _CELL_ERRORS as error:
        size = len(part.array)
        if size > 1:
            middle = size // 2
            for begin, end in ((0, middle), (middle, size)):
                half = take_rows(part.array, np.arange(begin, end))
                yield from _invalid(AvroColumn(part.column, part.node, half), start + begin)
        else:
            value = part.array.to_pylist()[0]
            column = part.column
            yield start, explain_cell(error, column.name, value, column.table_type)
