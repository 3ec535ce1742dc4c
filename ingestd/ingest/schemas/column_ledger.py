"""Which columns of a source table got new names or went, and where in the source's log that was.

The table keeps the list in an option of its own, written with the change itself in one version of
its schema: so a statement is followed once, however often it is read. The list says for every row
what its columns are called today. A row that stands in the log before a statement has the old name,
one behind it the new name; an old name behind the statement is another column.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch
from ingestd.errors import FormatError, SchemaConflictError
from ingestd.ingest.values.row_groups import Values
from ingestd.ingest.values.type_merge import merge_types
from ingestd.ingest.values.value_casts import cast_values
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import DataType

LEDGER_OPTION = "ingestd.column-changes"
"""Option of a table: [[position, old name, new name or null], ...] as JSON."""
MAX_ENTRIES = 200
"""Changes that a table remembers; rows older than the forgotten ones would bring columns back."""
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, order=True)
class ProvenChange:
    """A column was renamed, or dropped (`new` is ""), by a statement at a position of the log."""

    position: int
    old: str
    new: str = ""

    def __str__(self) -> str:
        return f"rename {self.old} to {self.new}" if self.new else f"drop {self.old}"


Ledger = tuple[ProvenChange, ...]


def read_ledger(options: Mapping[str, str], table: str) -> Ledger:
    """The changes that a table has followed, oldest first; FormatError if they are unreadable."""
    text = options.get(LEDGER_OPTION)
    if text is None:
        return ()
    try:
        return tuple(ProvenChange(int(at), str(old), str(new)) for at, old, new in json.loads(text))
    except (TypeError, ValueError) as error:
        raise FormatError(
            f"table {table}: option '{LEDGER_OPTION}' is damaged ({error}); remove it from the "
            "table, which then follows its source's statements anew"
        ) from error


def ledger_text(ledger: Iterable[ProvenChange]) -> str:
    """The option that keeps a list of changes."""
    newest = sorted(ledger)[-MAX_ENTRIES:]
    return json.dumps([[one.position, one.old, one.new] for one in newest], ensure_ascii=False)


def followed_until(ledger: Ledger) -> int:
    """The position of the newest statement that a table has followed; -1 if there is none."""
    return max((one.position for one in ledger), default=-1)


def followed_types(types: Mapping[str, DataType], ledger: Ledger) -> dict[str, DataType]:
    """Types found in rows from before and after the changes, under the names of today.

    SchemaConflictError if no type holds a column under its two names.
    """
    found = dict(types)
    for one in sorted(ledger):
        data_type = found.pop(one.old, None)
        if data_type is not None and one.new:
            known = found.get(one.new)
            found[one.new] = data_type if known is None else _together(one, data_type, known)
    return found


def with_old_names(types: Mapping[str, DataType], ledger: Ledger) -> dict[str, DataType]:
    """Types of a table's columns, also under the names that they had before."""
    found = dict(types)
    for one in sorted(ledger, reverse=True):
        if one.new in found:
            found.setdefault(one.old, found[one.new])
    return found


def as_of_today(batch: ChangeBatch, ledger: Ledger) -> ChangeBatch:
    """The batch under the names of today, without the columns that are gone.

    A row without a position in the log is taken for older than a statement unless it has a value
    under the new name as well. SchemaConflictError if no type holds a column under its two names.
    """
    for one in ledger:
        if one.old in batch.types or one.old in batch.unavailable:
            batch = _followed(batch, one)
    return batch


def _followed(batch: ChangeBatch, change: ProvenChange) -> ChangeBatch:
    before: Mask = batch.position <= change.position
    if change.new in batch.types:
        named = np.asarray(batch.columns.column(change.new).is_valid())
        before = before & ~((batch.position < 0) & named)
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
    """The column with nulls in all other rows."""
    if bool(rows.all()):
        return column
    nothing: Values = pa.scalar(None, column.type)
    return pc.if_else(pa.array(rows), column, nothing)


def _either(
    change: ProvenChange, moved: tuple[Values, DataType], known: tuple[Values, DataType] | None
) -> tuple[Values, DataType]:
    """The values under both names, of which a row has one."""
    if known is None:
        return moved
    merged = _together(change, moved[1], known[1])
    arrow_type: Values = to_arrow_type(merged)
    both = [
        values if values.type == arrow_type else cast_values(values, data_type, merged)[0]
        for values, data_type in (known, moved)
    ]
    return pc.coalesce(*both), merged


def _together(change: ProvenChange, old: DataType, new: DataType) -> DataType:
    merged = merge_types(old, new)
    if merged is None:
        raise SchemaConflictError(
            f"column '{change.old}' is {old}, and {new} under its new name '{change.new}'; no type "
            "holds both: fix the type in schema.column-types"
        )
    return merged
