"""The history of columns renamed or dropped in a source table, with positions in its log.

The table stores the list in an option, written with the change itself in one version of its schema,
so that a statement is applied once, however often it is read. `apply_renames` applies the list to
rows.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass

from ingestd.errors import FormatError, SchemaConflictError
from ingestd.ingest.values.type_merge import merge_types
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_types import DataType

COLUMN_HISTORY_OPTION = honoured.COLUMN_CHANGES.name
"""Option of a table: [[position, old name, new name or "", and where it was read], ...] as JSON."""
MAX_ENTRIES = 200
"""Changes that a table remembers; rows older than the forgotten ones would add columns again."""


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
    """Return a type for a column under both names. Raises SchemaConflictError without one."""
    merged = merge_types(old, new)
    if merged is None:
        raise SchemaConflictError(
            f"column '{change.old}' is {old}, and {new} under its new name '{change.new}'; no type "
            "holds both: fix the type in schema.column-types"
        )
    return merged
