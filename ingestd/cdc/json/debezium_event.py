"""Read the outer fields of Debezium payloads: of changes, truncates and control messages."""

from dataclasses import dataclass

import msgspec

from ingestd.cdc.base import JsonObject, SourceTable
from ingestd.cdc.event_time import EventTime
from ingestd.cdc.operations import ROW_OPERATIONS
from ingestd.cdc.record_errors import PARSE_ERRORS, Reason, RecordError, explain, record_error
from ingestd.cdc.source_position import SourcePosition

_NULL = msgspec.Raw(b"null")
_PART = "message value"
_TRUNCATE = "t"
_LOGICAL_MESSAGE = "m"
_HEARTBEAT = frozenset({"ts_ms"})
_TRANSACTION = frozenset({"status", "id", "event_count", "data_collections", "ts_ms"})
_HEARTBEAT_TOPIC = "__debezium-heartbeat"
EVENT_TIME = EventTime((("payload", "source", "ts_ms"), ("source", "ts_ms")))
"""The event time field of change events in JSON, with or without a schema envelope."""


class Head(msgspec.Struct, gc=False):
    """The outer fields of a Debezium payload as undecoded JSON; absent fields are null."""

    op: msgspec.Raw = _NULL
    source: msgspec.Raw = _NULL
    before: msgspec.Raw = _NULL
    after: msgspec.Raw = _NULL
    ts_ms: msgspec.Raw = _NULL
    ddl: msgspec.Raw = _NULL
    table_changes: msgspec.Raw = msgspec.field(name="tableChanges", default=_NULL)
    status: msgspec.Raw = _NULL
    id: msgspec.Raw = _NULL


class _Source(SourcePosition, gc=False):
    db: str | None = None
    schema: str | None = None
    table: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A row change or a truncate, with its source table and log position.

    `head` has the outer fields of the payload, undecoded.
    """

    head: Head
    source: SourceTable
    position: SourcePosition
    is_truncate: bool


_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_head = msgspec.json.Decoder(Head).decode
_decode_source = msgspec.json.Decoder(_Source).decode
_decode_text = msgspec.json.Decoder(str).decode


def is_debezium(message: JsonObject) -> bool:
    """Return whether a JSON object has the fields of a Debezium change event."""
    return "op" in message and not message.keys().isdisjoint(("before", "after", "source"))


def is_null(value: msgspec.Raw) -> bool:
    """Return whether a field of `Head` is null or absent."""
    return bytes(value) == b"null"


def read_event(payload: bytes, topic: str) -> Event | None:
    """Return the event in a payload, or None for a control message or a logical decoding message.

    Control messages are heartbeats, schema change events and transaction events. A heartbeat can be
    recognised by the name of its `topic`. Raises RecordError if the payload is invalid.
    """
    try:
        head = _decode_head(payload)
    except msgspec.ValidationError as error:
        message = f"the {_PART} is not a JSON object: {error}"
        raise record_error("decode", "not-an-object", message) from error
    except PARSE_ERRORS as error:
        raise RecordError(explain(error, _PART)) from error
    if is_null(head.op):
        if is_control(head, payload, topic):
            return None
        raise record_error(
            "decode", "missing-op", f"the {_PART} has no field op: it is not a Debezium event"
        )
    operation = _operation(head)
    if operation == _LOGICAL_MESSAGE and not is_null(head.source):
        return None
    source, position = _source(head)
    return Event(head, source, position, operation == _TRUNCATE)


def is_control(head: Head, payload: bytes, topic: str) -> bool:
    """Return whether a payload is a heartbeat, schema change event or transaction event.

    `head` has the outer fields of the payload. In a `topic` with the name of a heartbeat topic, all
    messages without an operation are heartbeats. In other topics, heartbeats and transaction events
    must have no fields but their own, and schema change events must have a `source`. A row with a
    column such as `ts_ms` is therefore not mistaken for one of them.
    """
    if not is_null(head.op):
        return False
    if topic.startswith(_HEARTBEAT_TOPIC):
        return True
    if not is_null(head.ddl) or not is_null(head.table_changes):
        return not is_null(head.source)
    if bytes(head.status) in (b'"BEGIN"', b'"END"'):
        return bytes(head.id).startswith(b'"') and _has_only(payload, _TRANSACTION)
    return not is_null(head.ts_ms) and _has_only(payload, _HEARTBEAT)


def _has_only(payload: bytes, names: frozenset[str]) -> bool:
    try:
        return _decode_fields(payload).keys() <= names
    except PARSE_ERRORS:  # a name that is not UTF-8
        return False


def _operation(head: Head) -> str:
    try:
        operation = _decode_text(head.op)
    except PARSE_ERRORS as error:
        raise record_error(
            "decode", "unknown-op", f"op of the {_PART} is not text: {error}"
        ) from error
    if operation not in ROW_OPERATIONS and operation not in {_TRUNCATE, _LOGICAL_MESSAGE}:
        message = f"op of the {_PART} is {operation[:20]!r}, not one of c, r, u, d, t, m"
        raise record_error("decode", "unknown-op", message)
    return operation


def _source(head: Head) -> tuple[SourceTable, SourcePosition]:
    try:
        source = _decode_source(head.source)
    except PARSE_ERRORS as error:
        reason = explain(error, _PART)
        message = f"source of the {_PART}: {reason.message}"
        raise RecordError(Reason("decode", "invalid-source", message)) from error
    if not source.table:
        raise record_error("decode", "missing-source", f"source of the {_PART} names no table")
    return SourceTable(source.db, source.schema, source.table), source
