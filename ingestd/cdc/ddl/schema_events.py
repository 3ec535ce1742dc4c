"""Debezium's schema change events: which columns of which tables got new names, or are gone.

A change counts as proven if the statement says it and the columns that the event lists agree: the
new name is among them and the old one is not. Connectors without statements prove nothing.
"""

import re

import msgspec

from ingestd.cdc.base import UNKNOWN_POSITION, RecordChunk, SchemaChangeEvent, SourceTable
from ingestd.cdc.ddl.alter_text import ColumnChange, column_changes
from ingestd.cdc.source_position import SourcePosition, position_of

_MARK = b'"tableChanges"'
_NAME = re.compile(r'"((?:[^"]|"")*)"')


class _Column(msgspec.Struct, gc=False):
    name: str


class _Table(msgspec.Struct, gc=False):
    columns: list[_Column] = []


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


def schema_changes(chunk: RecordChunk, index: int, payload: bytes) -> list[SchemaChangeEvent]:
    """What the control message at a place of a chunk proves of columns; usually nothing."""
    if _MARK not in payload:
        return []
    try:
        event = _decode(payload)
    except msgspec.DecodeError:
        return []
    stated = column_changes(event.ddl or "")
    found = []
    for change in event.changes or () if stated else ():
        names = [] if change.table is None else [column.name for column in change.table.columns]
        proven = _proven(stated, names) if change.type == "ALTER" else []
        if proven:
            found.append(
                SchemaChangeEvent(
                    source=_source(event, change.id),
                    partition=chunk.partition,
                    offset=int(chunk.offsets[index]),
                    position=_position(event.source),
                    columns=tuple(proven),
                )
            )
    return found


def _proven(stated: list[ColumnChange], names: list[str]) -> list[ColumnChange]:
    """Changes that the columns behind the statement agree with; names in their own spelling."""
    spelled = {name.lower(): name for name in names}
    proven = []
    for old, new in stated:
        if old.lower() in spelled:
            continue
        if new is None:
            proven.append(ColumnChange(old, None))
        elif new.lower() in spelled:
            proven.append(ColumnChange(old, spelled[new.lower()]))
    return proven


def _source(event: _Event, identifier: str) -> SourceTable:
    names = [one.replace('""', '"') for one in _NAME.findall(identifier)] or [identifier]
    return SourceTable(event.database, event.schema, names[-1])


def _position(source: SourcePosition) -> int | None:
    position = position_of(source)
    return None if position == UNKNOWN_POSITION else position
