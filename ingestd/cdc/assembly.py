"""Assemble changes of one source table, given by column, into a `ChangeBatch`.

This module applies the rules of change data capture, for all sources of changes:

* An insert or update becomes its after image. A key field that the image lacks takes its value from
  the message key, or from the before image of an update if messages have no key.
* A delete becomes the key of its message, or the key in its before image if messages have no key.
  In a table without a key it becomes its whole before image.
* The before image of an update may contain only the changed fields; the other fields take the
  values of the after image.
* For updates that change a key, and for requested before images, see `row_layout`.
* A batch has the columns that occur in any row. A row that consists only of a key has null in all
  other columns. If `partial`, a column that an update lacks is marked as omitted: the old value in
  the table is still valid.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.cdc.base import ChangeBatch, SourceTable
from ingestd.cdc.change_images import (
    CELL_ERRORS,
    Cells,
    ColumnT,
    Image,
    choose_cells,
    differ,
    known,
    stacked,
    take,
)
from ingestd.cdc.columns.arrow_calls import nulls
from ingestd.cdc.record_errors import BUILD_ERRORS, Reason, Reasons, RecordError
from ingestd.cdc.row_layout import (
    ABSENT,
    NO_KIND,
    Kinds,
    OldKeys,
    RowLayout,
    row_layout,
    row_layout_with_images,
)
from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.data_types import DataType, RowKind
from ingestd.paimon.spec.row_selection import Indices, Mask, retractions

EMPTY_ROW = Reason("decode", "empty-row", "a row has no columns")
_NO_ROW = "a delete has neither a message key nor a before image: no row to delete"


@dataclass(frozen=True, slots=True)
class TableChanges(Generic[ColumnT]):
    """n changes of one table: row kinds, images, and positions in the topic and the source's log.

    `columns` are all columns of rows, including key columns. `key_names` is empty if the table has
    no key. `after`, `before` and `key` are the images of the changes; `key` is None if messages
    have no key. `kinds`, `offset` (in the topic), `position` (in the source's log, -1 if unknown)
    and `snapshot_row` (a mask of snapshot rows) have shape (n,). If `partial`, updates omit columns
    that they did not change. If `images`, the batch has rows for before images. `sought` are the
    columns for which the batch marks the rows whose message lacks them. A row without a message key
    must have one of the columns `named`, unless there are none.
    """

    source: SourceTable
    columns: Sequence[ColumnT]
    key_names: tuple[str, ...]
    kinds: Kinds
    after: Image[ColumnT]
    before: Image[ColumnT]
    key: Image[ColumnT] | None
    offset: npt.NDArray[np.int64]
    position: npt.NDArray[np.int64]
    snapshot_row: Mask
    partial: bool = False
    images: bool = False
    sought: Sequence[ColumnT] = ()
    named: Sequence[ColumnT] = ()


def assemble_changes(changes: TableChanges[ColumnT]) -> ChangeBatch:
    """Build the `ChangeBatch` of a table: after images of inserts and updates, keys of deletes.

    Raises RecordError for a change without a row or columns, and the errors of `Image.cells`.
    """
    for reason in _without_row(changes).values():
        raise RecordError(reason)
    rows = _Rows(changes)
    columns, types, unavailable = dict[str, Array](), dict[str, DataType](), dict[str, Mask]()
    for column in changes.columns:
        if column.table_type is None:
            continue
        cells = rows.new(column)
        cells = cells if rows.layout is None else rows.laid_out(column, cells, rows.layout)
        omitted = rows.omitted(column) if changes.partial else None
        if cells is None and (omitted is not None or rows.have_bare_keys):
            cells = Cells(nulls(rows.count, to_arrow_type(column.table_type)))
        if cells is None:
            continue
        columns[column.name] = cells.array
        types[column.name] = column.table_type.as_nullable()
        masks = [mask for mask in (cells.left_out, omitted) if mask is not None and mask.any()]
        if masks:
            unavailable[column.name] = np.logical_or.reduce(masks)
    if not columns:
        raise RecordError(EMPTY_ROW)
    taken = slice(None) if rows.layout is None else rows.layout.changes
    return ChangeBatch(
        source=changes.source,
        columns=pa.table(columns),
        types=types,
        primary_keys=changes.key_names,
        row_kind=changes.kinds if rows.layout is None else _row_kinds(rows.layout, unavailable),
        offset=changes.offset[taken],
        position=changes.position[taken],
        snapshot_row=changes.snapshot_row[taken],
        unavailable=unavailable,
        lacking=rows.lacking_columns() if changes.sought else {},
        partial=changes.partial,
    )


def _row_kinds(layout: RowLayout, unavailable: Mapping[str, Mask]) -> Kinds:
    """Return the row kinds, with an INSERT for each update that changed its key and omits values.

    The table has no row with the new key from which the omitted values could be taken; they are
    those of the row with the old key.
    """
    kinds, changes = layout.kinds, layout.changes
    if not unavailable:
        return kinds
    moved = np.zeros(len(kinds), np.bool_)
    moved[1:] = (changes[1:] == changes[:-1]) & (kinds[:-1] == RowKind.DELETE)
    lacking = np.logical_or.reduce(list(unavailable.values()))
    return np.where(moved & lacking, np.int8(RowKind.INSERT), kinds)


def assemble_valid(
    size: int, changes_at: Callable[[Indices], TableChanges[ColumnT]]
) -> tuple[ChangeBatch | None, Reasons]:
    """Build a batch of the valid changes, and return it with the rejection reasons of the others.

    `size` is the number of changes, and `changes_at` returns the changes at the given ascending
    indices. The batch is None if no change is valid. Reasons are by the index of the change.
    """
    refused: Reasons = {}
    left = np.arange(size)
    while len(left):
        changes = changes_at(left)
        bad, batch = _without_row(changes), None
        if not bad:
            try:
                batch = assemble_changes(_recording(changes, bad))
            except BUILD_ERRORS as error:
                bad = bad or dict.fromkeys(range(len(left)), _reason_of(error))
        if not bad:
            return batch, refused
        refused |= {int(left[index]): reason for index, reason in bad.items()}
        left = np.delete(left, list(bad))
    return None, refused


def _reason_of(error: Exception) -> Reason:
    """Return the rejection reason for one of `BUILD_ERRORS` that is not attributed to a value."""
    if isinstance(error, RecordError):
        return error.reason
    return Reason("decode", "wrong-type", str(error))


def _without_row(changes: TableChanges[ColumnT]) -> Reasons:
    """Return the rejection reasons of changes that cannot become a row, by index."""
    deletes, known_kind = changes.kinds == RowKind.DELETE, changes.kinds != NO_KIND
    bad: Reasons = {}
    for index in np.flatnonzero(~known_kind).tolist():
        bad[index] = Reason("decode", "unknown-op", "an event has an unknown op")
    for index in np.flatnonzero(known_kind & ~deletes & ~changes.after.there).tolist():
        bad[index] = Reason("decode", "missing-after", "an event has no after image")
    if changes.key is None and deletes.any():
        missing = ~changes.before.there
        for column in _key_columns(changes):
            missing |= changes.before.lacking(column)
        for index in np.flatnonzero(deletes & missing).tolist():
            bad[index] = Reason("key", "missing-key", _NO_ROW)
    for index in np.flatnonzero(_empty_rows(changes)).tolist():
        bad.setdefault(index, EMPTY_ROW)
    return bad


def _empty_rows(changes: TableChanges[ColumnT]) -> Mask:
    """Return a mask (n,) of the changes whose row has no columns, so that nothing is known of it.

    What is in the rows beside it must not decide whether it is a row of nulls.
    """
    deletes, before = changes.kinds == RowKind.DELETE, changes.before
    rows = changes.after.there & ~deletes & ~before.there
    if not changes.named or (changes.key is not None and changes.key_names):
        return np.zeros_like(rows)
    gone = deletes & before.there & (not changes.key_names)
    for column in changes.named:
        if rows.any():
            rows &= changes.after.lacking(column)
        if gone.any():
            gone &= before.lacking(column)
    empty: Mask = rows | gone
    return empty


def _key_columns(changes: TableChanges[ColumnT]) -> list[ColumnT]:
    return [column for column in changes.columns if column.name in changes.key_names]


@dataclass(frozen=True, slots=True)
class _RecordingImage(Generic[ColumnT]):
    """An image that records invalid values instead of raising an error.

    `cells` adds the rejection reasons to `bad`, and returns None for the column. If `bad` is not
    empty afterwards, a batch that was assembled from the image must not be used.
    """

    image: Image[ColumnT]
    bad: Reasons

    @property
    def there(self) -> Mask:
        """A mask (n,) of the changes that have this image."""
        return self.image.there

    def lacking(self, column: ColumnT) -> Mask:
        """Return a mask (n,) of the changes whose image exists, but lacks this field."""
        return self.image.lacking(column)

    def cells(self, column: ColumnT, wanted: Mask | None = None) -> Cells | None:
        """Return the cells of a column as `Image.cells`, or None if a value is invalid.

        Raises ValueError, TypeError, ArithmeticError, RecursionError, ArrowException or
        MsgspecError only if the invalid values cannot be identified.
        """
        try:
            return self.image.cells(column, wanted)
        except CELL_ERRORS:
            invalid = dict(self.image.invalid(column, wanted))
            if not invalid:
                raise
            self.bad.update(invalid | self.bad)
            return None

    def invalid(self, column: ColumnT, wanted: Mask | None) -> Iterable[tuple[int, Reason]]:
        """Yield the (index, reason) of each value for which `cells` raises."""
        return self.image.invalid(column, wanted)

    def overlaid(self, over: Mask, other: Self) -> Image[ColumnT]:
        """Return these images, replaced by those of `other` where the mask is set."""
        return _RecordingImage(self.image.overlaid(over, other.image), self.bad)


def _recording(changes: TableChanges[ColumnT], bad: Reasons) -> TableChanges[ColumnT]:
    key = None if changes.key is None else _RecordingImage(changes.key, bad)
    after, before = _RecordingImage(changes.after, bad), _RecordingImage(changes.before, bad)
    return replace(changes, after=after, before=before, key=key)


class _Rows(Generic[ColumnT]):
    """The rows of valid changes: their layout, and the cells of their columns.

    `layout` is None if each change is one row with the cells of `new`.
    """

    def __init__(self, changes: TableChanges[ColumnT]) -> None:
        self._changes = changes
        self._deletes: Mask = changes.kinds == RowKind.DELETE
        self._updates: Mask = (changes.kinds == RowKind.UPDATE_AFTER) & changes.before.there
        self._rows = changes.after
        if not changes.key_names and self._deletes.any():
            self._rows = changes.after.overlaid(self._deletes, changes.before)
        deleted_rows = bool((changes.after.there & self._deletes).any())
        self._inserted_or_updated = ~self._deletes if deleted_rows else None
        self._keys: dict[str, Cells | None] = {}
        self._old_keys: dict[str, Cells | None] = {}
        """The cells of key columns after and before the changes, if the layout depends on them."""
        self.layout = self._lay_out()

    def new(self, column: ColumnT) -> Cells | None:
        """Return the cells of a column after the changes, or None if no image has it.

        A delete has only key cells, or in a table without a key the cells of its before image.
        """
        if column.name in self._keys:
            return self._keys[column.name]
        changes, wanted = self._changes, self._deletes
        if not changes.key_names:
            return self._rows.cells(column)
        cells = changes.after.cells(column, self._inserted_or_updated)
        if column.name not in changes.key_names:
            return cells
        keys = changes.before if changes.key is None else changes.key
        if changes.key is None:
            wanted = wanted | self._kept(column)
        else:
            wanted = wanted | changes.after.lacking(column)
        return choose_cells(wanted, keys.cells(column, wanted), cells) if wanted.any() else cells

    def _kept(self, column: ColumnT) -> Mask:
        """Return a mask (n,) of the updates that have a key column only in their before image."""
        kept: Mask = self._updates & self._changes.after.lacking(column)
        return kept & ~self._changes.before.lacking(column) if kept.any() else kept

    def _old(self, column: ColumnT, new: Cells | None, wanted: Mask) -> Cells | None:
        """Return the cells of a column before the changes, or None if no image has it.

        Only the before images in the mask `wanted` (n,) are read. Cells that the before image of an
        update lacks are taken from `new`.
        """
        before = self._changes.before
        unwanted = (before.there & ~wanted).any()
        cells = before.cells(column, wanted if unwanted else None)
        lacking = before.lacking(column) & self._updates
        return choose_cells(lacking, new, cells) if lacking.any() else cells

    def _lay_out(self) -> RowLayout | None:
        """Return the row layout, or None if each change is one row with the cells of `new`."""
        changes, has_before = self._changes, self._changes.before.there
        used = has_before if changes.images else self._updates
        if not used.any() or not (changes.key_names or changes.images):
            return None
        complete, moved = self._updates, np.zeros_like(self._updates)
        for column in _key_columns(changes):
            new = self._keys[column.name] = self.new(column)
            old = self._old_keys[column.name] = self._old(column, new, self._updates)
            if old is None or column.table_type is None:
                complete = np.zeros_like(complete)
            else:
                complete = complete & known(old)
                moved |= True if new is None else differ(old, new)
        old_keys = OldKeys(complete, moved)
        if changes.images:
            partial = changes.partial
            return row_layout_with_images(changes.kinds, old_keys, has_before, partial=partial)
        return row_layout(changes.kinds, old_keys) if (complete & moved).any() else None

    def laid_out(self, column: ColumnT, new: Cells | None, layout: RowLayout) -> Cells | None:
        """Return the cells of a column by row of the layout, or None if no image has the column.

        `new` are the cells of the column after the changes.
        """
        changes, size = self._changes, len(self._deletes)
        positions, old = layout.values, None
        if column.name in changes.key_names:
            positions, old = layout.keys, self._old_keys[column.name]
        elif changes.images:
            old = self._old(column, new, self._shown)
        if old is None:
            return None if new is None else take(new, np.where(positions < size, positions, ABSENT))
        if new is None:
            return take(old, np.maximum(positions - size, ABSENT))
        return take(stacked(new, old), positions)

    @cached_property
    def _shown(self) -> Mask:
        """A mask (n,) of changes whose before image supplies the values of a row."""
        size, shown = len(self._deletes), np.zeros_like(self._deletes)
        if self.layout is not None:
            shown[self.layout.values[self.layout.values >= size] - size] = True
        return shown

    def lacking_columns(self) -> dict[str, Mask]:
        """Return masks (rows,) of the rows that lack a sought column, by column.

        Columns that no row lacks are left out, unless they have no type yet.
        """
        masks = {column.name: (column, self.lacking(column)) for column in self._changes.sought}
        return {
            name: mask
            for name, (column, mask) in masks.items()
            if column.table_type is None or mask.any()
        }

    def omitted(self, column: ColumnT) -> Mask | None:
        """Return a mask (rows,) of updates that lack the column, or None if no update does."""
        kinds = self._changes.kinds if self.layout is None else self.layout.kinds
        omitted: Mask = self.lacking(column) & (kinds == RowKind.UPDATE_AFTER)
        return omitted if omitted.any() else None

    def lacking(self, column: ColumnT) -> Mask:
        """Return a mask (rows,) of the inserts and updates that lack the column.

        No row lacks a key column if messages have keys.
        """
        changes, layout = self._changes, self.layout
        if column.name in changes.key_names and changes.key is not None:
            return np.zeros(self.count, np.bool_)
        lacking, kinds = changes.after.lacking(column), changes.kinds
        if column.name in changes.key_names:
            lacking = lacking & ~self._kept(column)
        if not lacking.any():
            return np.zeros(self.count, np.bool_)
        if layout is not None:
            lacking, kinds = lacking[layout.changes], layout.kinds
        marks: Mask = lacking & ~retractions(kinds)
        return marks

    @property
    def count(self) -> int:
        return len(self._deletes if self.layout is None else self.layout.kinds)

    @cached_property
    def have_bare_keys(self) -> bool:
        """Whether any row is a delete that has only key values, and null in all other columns."""
        changes, layout, deletes = self._changes, self.layout, self._deletes
        if not changes.key_names:
            return False
        if layout is not None and (layout.values == ABSENT).any():
            return True
        bare = deletes & ~changes.before.there if changes.images else deletes
        return bool(bare.any())
