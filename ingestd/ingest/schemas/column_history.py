"""The history of renamed and dropped columns of a table, and its application to older rows.

The history, with positions in the source's log, is stored in a table option. It is written with the
schema version that changes the columns, so that a DDL statement is applied once, even if it is read
several times.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch, RecordChunk
from ingestd.errors import FormatError, SchemaConflictError
from ingestd.ingest.values.source_points import (
    NO_POINT,
    UNKNOWN_TIME,
    SourcePoint,
    is_after,
    later_point,
    times_of,
)
from ingestd.ingest.values.type_merge import merge_types
from ingestd.ingest.values.value_casts import coalesced
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.arrow import Values
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.row_selection import Mask

COLUMN_HISTORY_OPTION = honoured.COLUMN_CHANGES.name
"""Table option with a JSON list of [position, old, new or "", time, topic, partition, offset]."""
MAX_ENTRIES = 200
"""Maximum number of changes in the history.

Older changes are removed; rows older than a removed change would add the renamed or dropped column
again.
"""


@dataclass(frozen=True, slots=True)
class StatementOrigin:
    """The record that contained a DDL statement; `time` is its timestamp in ms since the epoch.

    `partition` is ENDED_LOG if its topic partition was replaced since, so that its offset must not
    be compared.
    """

    time: int
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class ProvenChange:
    """A column rename, or drop (`new` is ""), by a DDL statement at a position in the source's log.

    The position is 0 if unknown. `stated` is the record of the statement, or None if the change was
    derived from a schema. Changes sort by age, the oldest first.
    """

    position: int
    old: str
    new: str = ""
    stated: StatementOrigin | None = None

    def __lt__(self, other: "ProvenChange") -> bool:
        if self.point.is_after(other.point) or other.point.is_after(self.point):
            return other.point.is_after(self.point)
        return self._order < other._order

    @property
    def point(self) -> SourcePoint:
        """The position of the statement, and the timestamp of its record, if these are known."""
        return SourcePoint(self.position, self.stated.time if self.stated else UNKNOWN_TIME)

    @property
    def _order(self) -> tuple[int, int, int, str, str]:
        at = self.stated
        record = (at.time, at.offset) if at else (0, 0)
        return self.position, *record, self.old, self.new

    def __str__(self) -> str:
        return f"rename {self.old} to {self.new}" if self.new else f"drop {self.old}"


Ledger = tuple[ProvenChange, ...]
ENDED_LOG = -1


def without_offsets(column_history: Ledger, replaced_from: Mapping[tuple[str, int], int]) -> Ledger:
    """Return a column history that no longer refers to offsets of replaced records.

    `replaced_from` maps (topic, partition) to the first offset whose record was replaced. Rows are
    then compared by time with DDL statements in replaced records.
    """
    return tuple(
        replace(change, stated=replace(at, partition=ENDED_LOG))
        if (at := change.stated) is not None
        and at.offset >= replaced_from.get((at.topic, at.partition), at.offset + 1)
        else change
        for change in column_history
    )


def read_column_history(options: Mapping[str, str], table: str) -> Ledger:
    """Return the changes applied to a table, oldest first.

    Raises FormatError if the table option is invalid.
    """
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
    """Return the value of the table option with the newest `MAX_ENTRIES` of these changes."""
    newest = sorted(column_history)[-MAX_ENTRIES:]
    entries = [
        [
            change.position,
            change.old,
            change.new,
            *(astuple(change.stated) if change.stated else ()),
        ]
        for change in newest
    ]
    return json.dumps(entries, ensure_ascii=False)


def _change(position: int, old: str, new: str, *stated: int | str) -> ProvenChange:
    at = None
    if stated:
        time, topic, partition, offset = stated
        at = StatementOrigin(int(time), str(topic), int(partition), int(offset))
    return ProvenChange(int(position), str(old), str(new), at)


def not_applied(
    changes: Iterable[ProvenChange], column_history: Ledger
) -> tuple[ProvenChange, ...]:
    """Return the changes of a statement that are later than all changes in a column history.

    If the source sent a statement again, its position is not later, so it is left out.
    """
    newest = reduce(later_point, (change.point for change in column_history), NO_POINT)
    applied = {(change.position, change.old, change.new) for change in column_history}
    return tuple(
        change
        for change in changes
        if change.point.is_after(newest)
        and (change.position, change.old, change.new) not in applied
    )


def followed_types(types: Mapping[str, DataType], column_history: Ledger) -> dict[str, DataType]:
    """Return the column types after the renames and drops of a column history are applied.

    Dropped columns are removed. If a column has a type under its old and under its new name, the
    result is a type that holds the values of both. Raises SchemaConflictError if no such type
    exists.
    """
    current = dict(types)
    for change in sorted(column_history):
        data_type = current.pop(change.old, None)
        if data_type is not None and change.new:
            known = current.get(change.new)
            current[change.new] = (
                data_type if known is None else type_of_both(change, data_type, known)
            )
    return current


def with_old_names(types: Mapping[str, DataType], column_history: Ledger) -> dict[str, DataType]:
    """Return the types of a table's columns under their current and their former names."""
    named = dict(types)
    for change in sorted(column_history, reverse=True):
        if change.new in named:
            named.setdefault(change.old, named[change.new])
    return named


def type_of_both(change: ProvenChange, old: DataType, new: DataType) -> DataType:
    """Return a type that holds the values of a renamed column of the types `old` and `new`.

    Raises SchemaConflictError if no such type exists.
    """
    merged = merge_types(old, new)
    if merged is None:
        raise SchemaConflictError(
            f"column '{change.old}' is {old}, and {new} under its new name '{change.new}'; no type "
            "holds both: set one type for both names in schema.column-types, that of the table if "
            "it exists, else one that holds both, such as STRING"
        )
    return merged


def apply_renames(batch: ChangeBatch, column_history: Ledger, chunk: RecordChunk) -> ChangeBatch:
    """Rename columns of a batch to their current names, and remove dropped columns.

    Only rows older than a change are affected. Raises SchemaConflictError if no type holds the
    values of a column under its old and its new name.
    """
    for change in column_history:
        if change.old in batch.types or change.old in batch.unavailable:
            batch = _followed(batch, change, chunk)
    return batch


def _before(batch: ChangeBatch, change: ProvenChange, chunk: RecordChunk) -> Mask:
    """Return a mask (n,) of the rows that are older than the DDL statement.

    Positions decide, except between records whose timestamps are far apart (`source_points`),
    because positions may have begun again. A renamed column of a later record with an older
    position is renamed all the same, because a connector sends rows again under their old names. If
    a position is unknown, offsets are compared if both are in the same topic partition, else
    timestamps. If the timestamps are equal, a dropped column is kept, because that loses no value,
    and a renamed column is renamed. If the record of the statement is unknown, a row without a
    position is older. No row is older that has a value under the new name, unless offsets or
    timestamps of records without positions decide.
    """
    named = np.zeros(len(batch.offset), np.bool_)
    if change.new in batch.types:
        named = np.asarray(batch.columns.column(change.new).is_valid())
    before: Mask = batch.position <= change.position
    at = change.stated
    if at is None:
        return before & ~named
    times = times_of(chunk, batch.offset)
    later = is_after(batch.position, times, change.point)
    before = ~later | (before & bool(change.new))
    unknown = (batch.position < 0) | (change.position <= 0)
    if (chunk.topic, chunk.partition) == (at.topic, at.partition):
        older = batch.offset < at.offset
    else:
        older = (times < at.time) | ((times == at.time) & ~named & bool(change.new))
    return np.where(unknown, older, before & ~named)


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
    lacking = {**batch.lacking, change.old: batch.lacks(change.old) | before}
    if change.new:
        lacking[change.new] = batch.lacks(change.new) & (batch.lacks(change.old) | ~before)
    return replace(
        batch,
        columns=pa.table(values),
        types=types,
        unavailable=marks,
        primary_keys=keys,
        lacking=lacking,
    )


def _where(column: Values, rows: Mask) -> Values:
    """Return the column with nulls in the rows that the mask excludes."""
    if bool(rows.all()):
        return column
    nothing: Values = pa.scalar(None, column.type)
    return pc.if_else(pa.array(rows), column, nothing)


def _either(
    change: ProvenChange, moved: tuple[Values, DataType], known: tuple[Values, DataType] | None
) -> tuple[Values, DataType]:
    """Merge the values under the old and the new name, of which each row has at most one."""
    if known is None:
        return moved
    merged = type_of_both(change, moved[1], known[1])
    return coalesced((known, moved), merged), merged
