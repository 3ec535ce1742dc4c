"""Which columns of a source table got new names or went, and where in the source's log that was.

The table keeps the list in an option of its own, written with the change itself in one version of
its schema: so a statement is followed once, however often it is read. What the list says of rows is
in `renamed_rows`.
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
"""Changes that a table remembers; rows older than the forgotten ones would bring columns back."""


@dataclass(frozen=True, slots=True)
class Stated:
    """Where a statement was read: its record, and the record's time (milliseconds since 1970)."""

    time: int
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class ProvenChange:
    """A column was renamed, or dropped (`new` is ""), by a statement at a position of the log.

    The position is 0 if it is not known. Sorted, the oldest statement is the first.
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
    """The changes that a table has followed, oldest first; FormatError if they are unreadable."""
    text = honoured.COLUMN_CHANGES.of(options)
    if text is None:
        return ()
    try:
        return tuple(_change(*entry) for entry in json.loads(text))
    except (TypeError, ValueError) as error:
        raise FormatError(
            f"table {table}: option '{COLUMN_HISTORY_OPTION}' is damaged ({error}); remove it from "
            "the table, which then follows its source's statements again"
        ) from error


def column_history_text(column_history: Iterable[ProvenChange]) -> str:
    """The option that keeps a list of changes."""
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
    """The position of the newest statement that a table has followed; -1 if there is none."""
    return max((one.position for one in column_history), default=-1)


def followed_types(types: Mapping[str, DataType], column_history: Ledger) -> dict[str, DataType]:
    """Types found in rows from before and after the changes, under the names of today.

    SchemaConflictError if no type holds a column under its two names.
    """
    found = dict(types)
    for one in sorted(column_history):
        data_type = found.pop(one.old, None)
        if data_type is not None and one.new:
            known = found.get(one.new)
            found[one.new] = data_type if known is None else type_of_both(one, data_type, known)
    return found


def with_old_names(types: Mapping[str, DataType], column_history: Ledger) -> dict[str, DataType]:
    """Types of a table's columns, also under the names that they had before."""
    found = dict(types)
    for one in sorted(column_history, reverse=True):
        if one.new in found:
            found.setdefault(one.old, found[one.new])
    return found


def type_of_both(change: ProvenChange, old: DataType, new: DataType) -> DataType:
    """The type of a column under both its names; SchemaConflictError if there is none."""
    merged = merge_types(old, new)
    if merged is None:
        raise SchemaConflictError(
            f"column '{change.old}' is {old}, and {new} under its new name '{change.new}'; no type "
            "holds both: fix the type in schema.column-types"
        )
    return merged
