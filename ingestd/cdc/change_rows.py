"""Assemble the decoded change events of one source table to a `ChangeBatch`.

`assemble` takes valid events, and raises for the first invalid one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import UNSET

from ingestd.cdc.base import ChangeBatch
from ingestd.cdc.columns.recast import recast
from ingestd.cdc.plan_column import PlanColumn
from ingestd.cdc.record_errors import refuse
from ingestd.cdc.row_layout import (
    ABSENT,
    OldKeys,
    RowLayout,
    row_layout,
    row_layout_with_images,
)
from ingestd.cdc.row_plan import Row, RowPlan
from ingestd.cdc.source_position import positions, snapshot_rows
from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.data_types import DataType, RowKind

Marks = npt.NDArray[np.bool_]
Value = Any

_INVALID = -1
_KIND_OF = np.full(128, _INVALID, np.int8)
_KIND_OF[[ord("c"), ord("r")]] = RowKind.INSERT
_KIND_OF[ord("u")] = RowKind.UPDATE_AFTER
_KIND_OF[ord("d")] = RowKind.DELETE


@dataclass(frozen=True, slots=True)
class Events:
    """Decoded events of one table: parallel lists; `keys` is None when they have no key."""

    changes: list[Any]
    keys: list[Row] | None
    offsets: npt.NDArray[np.int64]

    def take(self, indices: Sequence[int]) -> "Events":
        """Return the events at these indices."""
        return Events(
            [self.changes[index] for index in indices],
            None if self.keys is None else [self.keys[index] for index in indices],
            self.offsets[np.asarray(indices, np.int64)],
        )


@dataclass(frozen=True, slots=True)
class LaidOut:
    """The rows of a batch, with their row kinds.

    `events` (rows,) has the index of each row's event; None if every event is one row."""

    rows: list[Row]
    kinds: npt.NDArray[np.int8]
    events: npt.NDArray[np.int64] | None


def assemble(plan: RowPlan, events: Events) -> ChangeBatch:
    """Return the batch of a table's events. Raises one of `BUILD_ERRORS` for an invalid event."""
    laid_out = lay_out(plan, events)
    sources = [change.source for change in events.changes]
    offset, position, snapshot = events.offsets, positions(sources), snapshot_rows(sources)
    if laid_out.events is not None:
        offset, position = offset[laid_out.events], position[laid_out.events]
        snapshot = snapshot[laid_out.events]
    columns: dict[str, Array] = {}
    types: dict[str, DataType] = {}
    unavailable: dict[str, Marks] = {}
    for column in plan.columns:
        if column.column is None:
            continue
        values = column.values_of(laid_out.rows)
        untouched = _untouched(values, laid_out.kinds) if plan.wants.partial else None
        if untouched is None and is_absent(values):
            continue
        array, left_out = read_column(column, values)
        if untouched is not None:
            left_out = untouched if left_out is None else left_out | untouched
        columns[column.name] = array
        types[column.name] = column.column.table_type.as_nullable()
        if left_out is not None:
            unavailable[column.name] = left_out
    if not columns:
        raise refuse("decode", "empty-row", "a row has no columns")
    return ChangeBatch(
        source=plan.source,
        columns=pa.table(columns),
        types=types,
        primary_keys=plan.key_names,
        row_kind=laid_out.kinds,
        offset=offset,
        position=position,
        snapshot_row=snapshot,
        unavailable=unavailable,
    )


def join(plan: RowPlan, batches: Sequence[ChangeBatch]) -> ChangeBatch:
    """Return the concatenation of batches of one plan."""
    first = batches[0]
    if len(batches) == 1:
        return first
    types: dict[str, DataType] = {}
    for column in plan.columns:
        if column.column and any(column.name in batch.types for batch in batches):
            types[column.name] = column.column.table_type.as_nullable()
    return ChangeBatch(
        source=first.source,
        columns=_joined_columns(batches, list(types)),
        types=types,
        primary_keys=first.primary_keys,
        row_kind=np.concatenate([batch.row_kind for batch in batches]),
        offset=np.concatenate([batch.offset for batch in batches]),
        position=np.concatenate([batch.position for batch in batches]),
        snapshot_row=np.concatenate([batch.snapshot_row for batch in batches]),
        unavailable=_joined_marks(batches),
    )


def _joined_columns(batches: Sequence[ChangeBatch], names: list[str]) -> pa.Table:
    """Return the concatenated columns; a column that a batch lacks is null there."""
    tables = [batch.columns for batch in batches]
    joined = pa.concat_tables(tables, promote_options="default")
    return joined.select(names).combine_chunks()


def _joined_marks(batches: Sequence[ChangeBatch]) -> dict[str, Marks]:
    names = dict.fromkeys(name for batch in batches for name in batch.unavailable)
    return {
        name: np.concatenate(
            [
                batch.unavailable.get(name, np.zeros(len(batch.offset), np.bool_))
                for batch in batches
            ]
        )
        for name in names
    }


def _untouched(values: Sequence[Value], kinds: npt.NDArray[np.int8]) -> Marks | None:
    """Return a mask of the updates that lack the column; None if no update does."""
    absent = np.fromiter((value is UNSET for value in values), np.bool_, len(values))
    absent &= kinds == RowKind.UPDATE_AFTER
    return absent if absent.any() else None


def is_absent(values: Sequence[Value]) -> bool:
    """Return whether no row has the column."""
    return values[0] is UNSET and all(value is UNSET for value in values)


def read_column(column: PlanColumn, values: Sequence[Value]) -> tuple[Array, Marks | None]:
    """Return a column's array and the mask of omitted values. Raises one of `BUILD_ERRORS`."""
    if column.reader is None or column.column is None:
        raise ValueError(f"column {column.name} has no reader yet")
    array, left_out = column.reader.read(values)
    return recast(array, column.column), left_out


def lay_out(plan: RowPlan, events: Events) -> LaidOut:
    """Return the rows of events. Raises one of `BUILD_ERRORS` for an event without a row."""
    kinds = _row_kinds(events.changes)
    rows = [change.after for change in events.changes]
    for index in np.flatnonzero(kinds == RowKind.DELETE).tolist():
        rows[index] = _deleted_row(plan, events, index)
    if rows.count(None):
        raise refuse("decode", "missing-after", "an event has no after image")
    if plan.key_values is None:
        return LaidOut(rows, kinds, None)
    _fill_keys(plan, events, rows)
    befores = [change.before for change in events.changes]
    images = plan.wants.images
    attributes = [column.attribute for column in plan.columns] if images else plan.key_attributes
    _complete_before_images(befores, rows, kinds, attributes)
    old = _old_keys(plan, befores, rows, kinds)
    if images:
        known = np.array([before is not None for before in befores], np.bool_)
        layout = row_layout_with_images(kinds, old, known, partial=plan.wants.partial)
    elif old.moved.any():
        layout = row_layout(kinds, old)
    else:
        return LaidOut(rows, kinds, None)
    return LaidOut(_rows_of(plan, layout, [*rows, *befores]), layout.kinds, layout.changes)


def _row_kinds(changes: Sequence[Any]) -> npt.NDArray[np.int8]:
    operations = "".join([change.op for change in changes]).encode("ascii", "replace")
    if len(operations) != len(changes):
        raise refuse("decode", "unknown-op", "an event has an unknown op")
    return kinds_of_operations(np.frombuffer(operations, np.uint8))


def kinds_of_operations(letters: npt.NDArray[np.uint8]) -> npt.NDArray[np.int8]:
    """Return the row kinds of operations, ASCII letters. Raises RecordError for an unknown one."""
    kinds: npt.NDArray[np.int8] = _KIND_OF[letters]
    if (kinds == _INVALID).any():
        raise refuse("decode", "unknown-op", "an event has an unknown op")
    return kinds


def _deleted_row(plan: RowPlan, events: Events, index: int) -> Row:
    if plan.key_values is not None and events.keys is not None:
        return plan.key_only_row(plan.key_values(events.keys[index]))
    before = events.changes[index].before
    if before is not None and plan.key_values is not None:
        values = plan.key_values(before)
        if UNSET not in values:
            return plan.key_only_row(values)
        before = None
    if before is None:
        message = "a delete has neither a message key nor a before image: no row to delete"
        raise refuse("key", "missing-key", message)
    return before


def _fill_keys(plan: RowPlan, events: Events, rows: list[Row]) -> None:
    """Set key fields that rows lack to those of the message key."""
    for attribute in plan.key_attributes:
        get = attrgetter(attribute)
        values = list(map(get, rows))
        if events.keys is None or UNSET not in values:
            continue
        for index, value in enumerate(values):
            if value is UNSET:
                setattr(rows[index], attribute, get(events.keys[index]))


def _complete_before_images(
    befores: Sequence[Row | None],
    rows: Sequence[Row],
    kinds: npt.NDArray[np.int8],
    attributes: Sequence[str],
) -> None:
    """Set fields that before images of updates lack: a source may send the changed ones only."""
    updates = _updates_with_before(befores, kinds)
    for attribute in attributes:
        get = attrgetter(attribute)
        for index in updates:
            if get(befores[index]) is UNSET:
                setattr(befores[index], attribute, get(rows[index]))


def _updates_with_before(befores: Sequence[Row | None], kinds: npt.NDArray[np.int8]) -> list[int]:
    updates = np.flatnonzero(kinds == RowKind.UPDATE_AFTER).tolist()
    return [index for index in updates if befores[index] is not None]


def _old_keys(
    plan: RowPlan,
    befores: Sequence[Row | None],
    rows: Sequence[Row],
    kinds: npt.NDArray[np.int8],
) -> OldKeys:
    complete, moved = np.zeros(len(kinds), np.bool_), np.zeros(len(kinds), np.bool_)
    updates = _updates_with_before(befores, kinds)
    complete[updates] = True
    for attribute in plan.key_attributes:
        get = attrgetter(attribute)
        old = [get(befores[index]) for index in updates]
        new = [get(rows[index]) for index in updates]
        if old != new:
            moved[updates] |= np.array([a != b for a, b in zip(old, new, strict=True)], np.bool_)
        if None in old or UNSET in old:
            complete[updates] &= [value is not None and value is not UNSET for value in old]
    return OldKeys(complete, moved)


def _rows_of(plan: RowPlan, layout: RowLayout, images: Sequence[Row]) -> list[Row]:
    """Return the rows of a layout; `images` are the after images and then the before images."""
    rows: list[Row] = []
    for key, values in zip(layout.keys.tolist(), layout.values.tolist(), strict=True):
        key_image = images[key]
        if values == ABSENT:
            row = plan.key_only_row(
                [getattr(key_image, key_attribute) for key_attribute in plan.key_attributes]
            )
        else:
            row = images[values]
            if values != key:
                for attribute in plan.key_attributes:
                    setattr(row, attribute, getattr(key_image, attribute))
        rows.append(row)
    return rows
