"""Read column renames, column drops and comments from Debezium's schema change events.

A change is proven if the DDL statement contains it, and the list of columns in the event contains
the new name, if any, but not the old name. An event without a statement proves no change. Events
contain comments only if the connector is configured to include them.
"""

import re

import msgspec

from ingestd.cdc.base import UNKNOWN_POSITION, Comments, DdlEvent, SourceTable
from ingestd.cdc.ddl.alter_text import proven_by_columns, renames_and_drops
from ingestd.cdc.source_position import SourcePosition, is_snapshot, position_of

_MARK = b'"tableChanges"'
_MOST_COMPARED = 100_000
"""Maximum product of altered tables and changes in an event; a larger event is ignored."""
_NAME = re.compile(r'"((?:[^"]|"")*)"')


class _Column(msgspec.Struct, gc=False):
    name: str
    comment: str | None = None


class _Table(msgspec.Struct, gc=False):
    columns: list[_Column] = []
    comment: str | None = None


class _TableChange(msgspec.Struct, gc=False):
    id: str
    type: str = ""
    table: _Table | None = None


class _Event(msgspec.Struct, gc=False):
    source: SourcePosition
    ddl: str | None = None
    database: str | None = msgspec.field(name="databaseName", default=None)
    schema: str | None = msgspec.field(name="schemaName", default=None)
    changes: list[_TableChange] | None = msgspec.field(name="tableChanges", default=None)


_decode = msgspec.json.Decoder(_Event).decode


def ddl_events(payload: bytes) -> list[DdlEvent]:
    """Return the column changes and comments in a control message, given as JSON.

    The list is empty if the message has none, or is not a valid schema change event.
    """
    if _MARK not in payload:
        return []
    try:
        return _events(_decode(payload))
    except msgspec.DecodeError:
        return []


def ddl_events_of(message: object) -> list[DdlEvent]:
    """Return the column changes and comments in a control message, given as a decoded value.

    The list is empty if the message has none, or is not a valid schema change event.
    """
    try:
        return _events(msgspec.convert(message, _Event))
    except msgspec.ValidationError:
        return []


def _events(event: _Event) -> list[DdlEvent]:
    events = []
    stated = renames_and_drops(event.ddl or "") if event.changes else []
    changes = [change for change in event.changes or () if change.type in ("ALTER", "CREATE")]
    if len(changes) * len(stated) > _MOST_COMPARED:
        return []
    for change in changes:
        table = change.table or _Table()
        names = [column.name for column in table.columns] if change.type == "ALTER" else []
        proven = proven_by_columns(stated, names)
        columns = ((column.name, column.comment) for column in table.columns)
        comments = Comments.of(table.comment, columns)
        if proven or comments:
            source = _source(event, change.id)
            events.append(DdlEvent(source, _position(event.source), proven, comments))
    return events


def _source(event: _Event, identifier: str) -> SourceTable:
    names = [match_.replace('""', '"') for match_ in _NAME.findall(identifier)] or [identifier]
    return SourceTable(event.database, event.schema, names[-1])


def _position(source: SourcePosition) -> int | None:
    position = UNKNOWN_POSITION if is_snapshot(source.snapshot) else position_of(source)
    return None if position == UNKNOWN_POSITION else position
