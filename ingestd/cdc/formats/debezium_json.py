"""Data format `debezium-json`: Debezium change events in JSON, with or without their schemas.

Rows flattened by ExtractNewRecordState are recognised by the fields that it adds. A topic with only
such rows is read faster as `debezium-flat-json`.
"""

from ingestd.cdc.base import UNKNOWN_POSITION, FormatDescriptor, FormatSettings
from ingestd.cdc.columns.type_mapping import JSON_TYPE_MAPPINGS
from ingestd.cdc.ddl.schema_events import ddl_events
from ingestd.cdc.formats.debezium_flat_json import FlatDialect, flat_layout
from ingestd.cdc.json.debezium_event import EVENT_TIME, Event, is_debezium, read_event
from ingestd.cdc.json.format_readers import NativeFormat, TableFields, no_keys
from ingestd.cdc.json.json_changes import JsonChanges
from ingestd.cdc.json.message_layout import OPERATIONS
from ingestd.cdc.json.messages import Envelopes, MessageKeys
from ingestd.cdc.json.normalized_events import (
    NULL,
    Message,
    NormalizedEvent,
    TableNormalizer,
    TableNormalizers,
    TruncateEvent,
)
from ingestd.cdc.native_module import native_module
from ingestd.cdc.record_errors import RecordError
from ingestd.cdc.source_position import position_of

_FLATTENED = (b'"__op"', b'"__deleted"')
"""Fields that Debezium's ExtractNewRecordState adds to rows, as JSON."""
_NAMES = tuple(("source", name) for name in ("db", "schema", "table"))
_TABLE_FIELDS = TableFields(
    (*_NAMES, *(("payload", *path) for path in _NAMES)),
    {("op",): (*OPERATIONS, NULL), ("payload", "op"): (*OPERATIONS, NULL)},
)
"""The table and operation fields of messages with and without a Connect envelope."""
NATIVE = NativeFormat(flat_layout, _TABLE_FIELDS, no_keys)
"""Debezium events have the layout of normalized events; `flat_layout` is for flattened rows."""


def new_format(settings: FormatSettings) -> JsonChanges:
    """Return a new `debezium-json` decoder with empty caches."""
    return JsonChanges("debezium-json", DebeziumDialect(), settings, native_module(), NATIVE)


class DebeziumDialect:
    """A converter of Debezium messages to changes, truncates and DDL events.

    Change events have the layout of normalized events already, and are only extracted from their
    Connect envelopes. Flattened messages, which have no operation, are converted by `FlatDialect`.
    """

    def __init__(self) -> None:
        self._envelopes = Envelopes(is_key=False)
        self._keys = MessageKeys()
        self._normalizers = TableNormalizers()
        self._flat = FlatDialect()

    def normalize(self, value: bytes, key: bytes | None, topic: str) -> Message | None:
        """Return the change, the truncate or the DDL events in a message.

        Returns None for other messages without rows, such as heartbeats. Raises RecordError if the
        message is invalid.
        """
        envelope, payload = self._envelopes.open(value)
        if payload == NULL:
            return None
        try:
            event = read_event(payload, topic)
        except RecordError as error:
            if error.reason.code == "missing-op" and _may_be_flattened(value):
                return self._flat.normalize(value, key, topic)
            raise
        if event is None:
            return ddl_events(payload)
        if event.is_truncate:
            return _truncate(event)
        opened = self._keys.open(key)
        source = event.source
        normalizer = self._normalizers.get((source, envelope)) or self._normalizers.keep(
            (source, envelope),
            TableNormalizer(
                source, columns=envelope.columns, envelope=envelope, is_normalized=True
            ),
        )
        return NormalizedEvent(normalizer, (payload,), opened)

    def normalize_tombstone(self, key: bytes | None, topic: str) -> None:
        """Return None, because a tombstone only follows a delete event."""
        return


def _may_be_flattened(value: bytes) -> bool:
    return any(name in value for name in _FLATTENED)


def _truncate(event: Event) -> TruncateEvent:
    position = position_of(event.position)
    return TruncateEvent(event.source, None if position == UNKNOWN_POSITION else position)


FORMAT = FormatDescriptor(
    name="debezium-json",
    description="Debezium, JSON converter",
    new_decoder=new_format,
    recognizes=is_debezium,
    registry="optional",
    event_time=EVENT_TIME,
    type_mapping=JSON_TYPE_MAPPINGS,
    source_position=True,
    truncates=True,
    schema_changes=True,
)
