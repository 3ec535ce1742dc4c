"""Keep the history of renamed and dropped columns of a table, and apply it to older rows.

The history, with positions in the source's log, is an option of the table. It is written in the
schema version that changes the columns, so that a statement is applied once, however often it is
read.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch, RecordChunk
from ingestd.errors import FormatError, SchemaConflictError
from ingestd.ingest.values.row_groups import Values
from ingestd.ingest.values.type_merge import merge_types
from ingestd.ingest.values.value_casts import cast_values
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import DataType

COLUMN_HISTORY_OPTION = honoured.COLUMN_CHANGES.name
"""Option of a table: [[position, old name, new name or "", and where it was read], ...] as JSON."""
MAX_ENTRIES = 200
"""Changes that a table remembers; rows older than the forgotten ones would bring columns back."""
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Stated:
    """Where a statement was read: its record, and the record's time (milliseconds since 1970)."""

    time: int
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class ProvenChange:
    """A column rename, or drop (`new` is ""), by a statement at a position of the log.

    The position is 0 if unknown. The oldest statement sorts first.
    """

    position: int
    old: str
    new: str = ""
    stated: Stated | None = None

    def __lt__(self, other: "ProvenChange") -> bool:
        return self._order < other._order

    @property
    def _order(self) -> tuple[int, int, int, str, str]:
        at = self.stated
        place = (at.time, at.offset) if at else (0, 0)
        return self.position, *place, self.old, self.new

    def __str__(self) -> str:
        return f"rename {self.old} to {self.new}" if self.new else f"drop {self.old}"


Ledger = tuple[ProvenChange, ...]


def read_column_history(options: Mapping[str, str], table: str) -> Ledger:
    """Return the changes applied to a table, oldest first. Raises FormatError if invalid."""
    text = honoured.COLUMN_CHANGES.of(options)
    if text is None:
        return ()
    try:
        return tuple(_change(*entry) for entry in json.loads(text))
    except (TypeError, ValueError) as error:
        raise FormatError(
            f"table {table}: option '{COLUMN_HISTORY_OPTION}' is damaged ({error}); remove it from "
            "the table, which then applies its source's statements again"
        ) from error


def column_history_text(column_history: Iterable[ProvenChange]) -> str:
    """Return the option value of a list of changes."""
    newest = sorted(column_history)[-MAX_ENTRIES:]
    entries = [
        [one.position, one.old, one.new, *(astuple(one.stated) if one.stated else ())]
        for one in newest
    ]
    return json.dumps(entries, ensure_ascii=False)


def _change(position: int, old: str, new: str, *stated: int | str) -> ProvenChange:
    at = None
    if stated:
        time, topic, partition, offset = stated
        at = Stated(int(time), str(topic), int(partition), int(offset))
    return ProvenChange(int(position), str(old), str(new), at)


def followed_until(column_history: Ledger) -> int:
    """Return the position of the newest statement that a table has applied; -1 without one."""
    return max((one.position for one in column_history), default=-1)


def followed_types(types: Mapping[str, DataType], column_history: Ledger) -> dict[str, DataType]:
    """Return types of rows from before and after the changes, under the current names.

    Raises SchemaConflictError if no type holds a column under both names.
    """
    found = dict(types)
    for one in sorted(column_history):
        data_type = found.pop(one.old, None)
        if data_type is not None and one.new:
            known = found.get(one.new)
            found[one.new] = data_type if known is None else type_of_both(one, data_type, known)
    return found


def with_old_names(types: Mapping[str, DataType], column_history: Ledger) -> dict[str, DataType]:
    """Return types of a table's columns, also under their former names."""
    found = dict(types)
    for one in sorted(column_history, reverse=True):
        if one.new in found:
            found.setdefault(one.old, found[one.new])
    return found


def type_of_both(change: ProvenChange, old: DataType, new: DataType) -> DataType:
    """Return a type for the column under both names. Raises SchemaConflictError if none exists."""
    merged = merge_types(old, new)
    if merged is None:
        raise SchemaConflictError(
            f"column '{change.old}' is {old}, and {new} under its new name '{change.new}'; no type "
            "holds both: fix the type in schema.column-types"
        )
    return merged


def apply_renames(batch: ChangeBatch, column_history: Ledger, chunk: RecordChunk) -> ChangeBatch:
    """Rename columns of a batch to their current names, and remove dropped columns.

    Raises SchemaConflictError if no type fits a column under both its names.
    """
    for one in column_history:
        if one.old in batch.types or one.old in batch.unavailable:
            batch = _followed(batch, one, chunk)
    return batch


def _before(batch: ChangeBatch, change: ProvenChange, chunk: RecordChunk) -> Mask:
    """Return a mask of the rows that are older than the statement.

    Rows without a position are compared by record. Of records of two topic partitions with the same
    timestamp, a dropped column is kept, since that loses nothing; a renamed column is renamed
    unless the row has a value under the new name.
    """
    named = np.zeros(len(batch.offset), np.bool_)
    if change.new in batch.types:
        named = np.asarray(batch.columns.column(change.new).is_valid())
    before: Mask = batch.position <= change.position
    at = change.stated
    if at is None:
        return before & ~((batch.position < 0) & named)
    unknown = (batch.position < 0) | (change.position <= 0)
    if not bool(unknown.any()):
        return before
    if (chunk.topic, chunk.partition) == (at.topic, at.partition):
        older = batch.offset < at.offset
    else:
        times = chunk.timestamps[np.searchsorted(chunk.offsets, batch.offset)]
        older = (times < at.time) | ((times == at.time) & ~named & bool(change.new))
    return np.where(unknown, older, before)


def _followed(batch: ChangeBatch, change: ProvenChange, chunk: RecordChunk) -> ChangeBatch:
    before = _before(batch, change, chunk)
    values = {name: batch.columns.column(name) for name in batch.types}
    types, marks = dict(batch.types), dict(batch.unavailable)
    left_out = marks.pop(change.old, None)
    if left_out is not None and change.new:
        marks[change.new] = marks.get(change.new, False) | (left_out & before)
    if left_out is not None and bool((left_out & ~before).any()):
        marks[change.old] = left_out & ~before
    if change.old in values:
        column, data_type = values.pop(change.old), types.pop(change.old)
        rest = _where(column, ~before)
        if change.new:
            moved = (_where(column, before), data_type)
            known = (values[change.new], types[change.new]) if change.new in values else None
            values[change.new], types[change.new] = _either(change, moved, known)
        if rest.null_count < len(rest):
            values[change.old], types[change.old] = rest, data_type
    keys = batch.primary_keys
    if change.new and bool(before.all()):
        keys = tuple(change.new if name == change.old else name for name in keys)
    return replace(
        batch, columns=pa.table(values), types=types, unavailable=marks, primary_keys=keys
    )


def _where(column: Values, rows: Mask) -> Values:
    """Return the column with nulls in all other rows."""
    if bool(rows.all()):
        return column
    nothing: Values = pa.scalar(None, column.type)
    return pc.if_else(pa.array(rows), column, nothing)


def _either(
    change: ProvenChange, moved: tuple[Values, DataType], known: tuple[Values, DataType] | None
) -> tuple[Values, DataType]:
    """Return the values of a column under both names; a row has one of them."""
    if known is None:
        return moved
    merged = type_of_both(change, moved[1], known[1])
    arrow_type: Values = to_arrow_type(merged)
    both = [
        values if values.type == arrow_type else cast_values(values, data_type, merged)[0]
        for values, data_type in (known, moved)
    ]
    return pc.coalesce(*both), merged
