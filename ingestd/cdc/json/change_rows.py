"""Build change batches from change events that were decoded to structs (see `cdc.assembly`)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from operator import is_, is_not
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import UNSET

from ingestd.cdc.assembly import TableChanges, assemble_changes, assemble_valid
from ingestd.cdc.base import ChangeBatch
from ingestd.cdc.change_images import Cells, invalid_values, take
from ingestd.cdc.columns.arrow_calls import nulls
from ingestd.cdc.columns.column_reader import PlanColumn, Value
from ingestd.cdc.json.row_plan import Row, RowPlan
from ingestd.cdc.operations import kinds_of_operations
from ingestd.cdc.record_errors import Reason, Reasons
from ingestd.cdc.row_layout import ABSENT, Kinds
from ingestd.cdc.source_position import positions, snapshot_mask
from ingestd.paimon.spec.row_selection import Indices, Mask


@dataclass(frozen=True, slots=True)
class Events:
    """Decoded change events of one table: changes, message keys and offsets as parallel sequences.

    `keys` is None if messages have no key.
    """

    changes: list[Any]
    keys: list[Row] | None
    offsets: npt.NDArray[np.int64]

    def take(self, indices: Indices) -> "Events":
        """Return the events at these indices, which must be ascending and distinct."""
        if len(indices) == len(self.changes):
            return self
        kept = indices.tolist()
        keys = None if self.keys is None else [self.keys[index] for index in kept]
        return Events([self.changes[index] for index in kept], keys, self.offsets[indices])


def assemble(plan: RowPlan, events: Events) -> ChangeBatch:
    """Build a change batch from a table's events.

    Raises RecordError if a change has no row or no columns, and ValueError, TypeError,
    ArithmeticError, RecursionError, ArrowException or MsgspecError for a value that does not fit
    its column.
    """
    return assemble_changes(_table_changes(plan, events))


def assemble_good(plan: RowPlan, events: Events) -> tuple[ChangeBatch | None, Reasons]:
    """Build a batch of the valid events.

    Returns the batch, or None if no event is valid, and the rejection reasons of the invalid events
    by index.
    """
    return assemble_valid(
        len(events.changes), lambda indices: _table_changes(plan, events.take(indices))
    )


def _table_changes(plan: RowPlan, events: Events) -> TableChanges[PlanColumn]:
    changes = events.changes
    sources = [change.source for change in changes]
    keys = events.keys if plan.key_names else None
    return TableChanges(
        source=plan.source,
        columns=plan.columns,
        key_names=plan.key_names,
        kinds=_row_kinds(changes),
        after=_image(plan, [change.after for change in changes]),
        before=_image(plan, [change.before for change in changes]),
        key=None if keys is None else _image(plan, keys),
        offset=events.offsets,
        position=positions(sources),
        snapshot_row=snapshot_mask(sources),
        partial=plan.wants.partial,
        images=plan.wants.images,
        sought=plan.columns if plan.wants.presence else (),
        named=[column for column in plan.columns if column.name not in plan.wants.hidden],
    )


def _row_kinds(changes: Sequence[Any]) -> Kinds:
    operations = [change.op for change in changes]
    codes = "".join(operations).encode("ascii", "replace")
    if len(codes) == len(operations):
        return kinds_of_operations(np.frombuffer(codes, np.uint8))
    single = [
        operation.encode("ascii", "replace") if len(operation) == 1 else b"?"
        for operation in operations
    ]
    return kinds_of_operations(np.frombuffer(b"".join(single), np.uint8))


def _image(plan: RowPlan, rows: list[Row | None]) -> "_StructImage":
    missing, size = rows.count(None), len(rows)
    if not missing:
        return _StructImage(rows, np.ones(size, np.bool_))
    if missing == size:
        return _StructImage([plan.empty_row] * size, np.zeros(size, np.bool_))
    there = np.fromiter(map(is_not, rows, repeat(None)), np.bool_, size)
    return _StructImage([plan.empty_row if row is None else row for row in rows], there)


class _StructImage:
    """The images of changes, as structs; a change without an image has a struct of nulls."""

    def __init__(self, rows: list[Row], there: Mask) -> None:
        self.there = there
        self._rows = rows
        self._latest: tuple[PlanColumn | None, list[Value]] = (None, [])

    def lacking(self, column: PlanColumn) -> Mask:
        """Return a mask (n,) of the changes whose image exists, but lacks this field."""
        absent = map(is_, self._values(column), repeat(UNSET))
        return np.fromiter(absent, np.bool_, len(self._rows))

    def cells(self, column: PlanColumn, wanted: Mask | None = None) -> Cells | None:
        """Return the cells (n,) of a column, or None if no image has it.

        Raises ValueError, TypeError, ArithmeticError, RecursionError, ArrowException or
        MsgspecError if a value does not fit.
        """
        if wanted is None:
            return _read(column, self._values(column), self.there)
        indices = np.flatnonzero(wanted & self.there)
        values = self._values_at(column, indices)
        cells = _read(column, values, np.ones(len(values), np.bool_))
        if cells is None:
            return None
        positions = np.full(len(wanted), ABSENT)
        positions[indices] = np.arange(len(indices))
        return take(cells, positions)

    def invalid(self, column: PlanColumn, wanted: Mask | None) -> Iterator[tuple[int, Reason]]:
        """Yield the (index, reason) of each value for which `cells` raises."""
        reader, target = column.reader, column.column
        if reader is not None and target is not None:
            indices = np.flatnonzero(self.there if wanted is None else wanted & self.there)
            values = self._values_at(column, indices)
            read = lambda values: column.as_declared(reader.read(values)[0])  # noqa: E731
            for position, reason in invalid_values(target, values, read):
                yield int(indices[position]), reason

    def overlaid(self, over: Mask, other: "_StructImage") -> "_StructImage":
        """Return these images, replaced by those of `other` where the mask is set."""
        rows = self._rows.copy()
        for index in np.flatnonzero(over).tolist():
            rows[index] = other._rows[index]
        return _StructImage(rows, np.where(over, other.there, self.there))

    def _values(self, column: PlanColumn) -> list[Value]:
        # Callers request the cells of a column, and then the mask of images that lack it.
        if self._latest[0] is not column:
            self._latest = (column, column.values_of(self._rows))
        return self._latest[1]

    def _values_at(self, column: PlanColumn, indices: Indices) -> list[Value]:
        return column.values_of([self._rows[index] for index in indices.tolist()])


def _read(column: PlanColumn, values: list[Value], there: Mask) -> Cells | None:
    """Return the cells of a column from its values, or None if no image has the field.

    `there` marks the values of changes that have an image. The cells of a column whose type is not
    known yet are nulls.
    """
    if all(value is UNSET for value in compress(values, there.tobytes())):
        return None
    if column.reader is None or column.column is None:
        return Cells(nulls(len(values)))
    array, left_out = column.reader.read(values)
    return Cells(column.as_declared(array), left_out)


def join(plan: RowPlan, batches: Sequence[ChangeBatch]) -> ChangeBatch:
    """Concatenate one or more batches of a table, all of which were decoded with the same plan."""
    first = batches[0]
    if len(batches) == 1:
        return first
    types = {}
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
        lacking=_joined_lacking(plan, batches) if plan.wants.presence else {},
        partial=first.partial,
    )


def _joined_columns(batches: Sequence[ChangeBatch], names: list[str]) -> pa.Table:
    """Return the concatenated columns `names` of batches, with nulls where a batch lacks one."""
    tables = [batch.columns for batch in batches]
    joined = pa.concat_tables(tables, promote_options="default")
    return joined.select(names).combine_chunks()


def _joined_lacking(plan: RowPlan, batches: Sequence[ChangeBatch]) -> dict[str, Mask]:
    return {
        column.name: np.concatenate([batch.lacks(column.name) for batch in batches])
        for column in plan.columns
    }


def _joined_marks(batches: Sequence[ChangeBatch]) -> dict[str, Mask]:
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
