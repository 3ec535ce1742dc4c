"""Data format `debezium-bson`: Debezium's MongoDB events, whose images are JSON documents.

Each field of a document becomes a STRING column, and `_id` is the key. If an update describes only
the changed fields, other columns keep their values. Versions 1 and 2 of MongoDB's Extended JSON
(canonical, relaxed, strict) become plain text and plain JSON; other objects are left unchanged.
"""

import base64
import binascii
import re
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import pyarrow as pa

from ingestd.cdc.base import FormatDescriptor, FormatSettings, JsonObject, SourceTable
from ingestd.cdc.columns.raw_cells import SPECIAL_FLOATS
from ingestd.cdc.columns.temporal_columns import read_texts
from ingestd.cdc.columns.type_mapping import TO_STRING
from ingestd.cdc.json.debezium_event import EVENT_TIME, Head, is_control, is_debezium
from ingestd.cdc.json.json_changes import JsonChanges
from ingestd.cdc.json.message_head import HeadReader, required
from ingestd.cdc.json.messages import Envelopes, MessageKeys
from ingestd.cdc.json.normalized_events import (
    NULL,
    SNAPSHOT,
    STREAMED,
    NormalizedEvent,
    TableNormalizer,
    TableNormalizers,
    TruncateEvent,
)
from ingestd.cdc.native_module import native_module
from ingestd.cdc.record_errors import PARSE_ERRORS, RecordError, record_error
from ingestd.cdc.source_position import is_snapshot
from ingestd.paimon.spec.data_types import DataType

_ID = "_id"
_NO_DOCUMENT = (*PARSE_ERRORS, ValueError, TypeError, ArithmeticError)


def new_format(settings: FormatSettings) -> JsonChanges:
    """Return a new `debezium-bson` decoder with empty caches."""
    texts = FormatSettings(settings.type_mapping | {TO_STRING})
    return JsonChanges("debezium-bson", BsonDialect(), texts, native_module())


class _Source(msgspec.Struct, gc=False):
    db: str | None = None
    collection: str | None = None
    snapshot: str | bool | None = None


class _Update(msgspec.Struct, rename="camel", gc=False):
    updated_fields: str | None = None
    removed_fields: list[str] | None = None
    truncated_arrays: list[Any] | None = None


class _Event(msgspec.Struct, rename="camel", gc=False):
    op: str | None = None
    source: _Source | None = None
    before: str | None = None
    after: str | None = None
    update_description: _Update | None = None


class _Key(msgspec.Struct, gc=False):
    id: str | int


Texts = dict[str, str | None]


class BsonDialect:
    """A converter of messages with MongoDB documents to changes."""

    def __init__(self) -> None:
        self._envelopes = Envelopes(is_key=False)
        self._events = HeadReader(_Event)
        self._heads = HeadReader(Head)
        self._keys = MessageKeys()
        self._ids = HeadReader(_Key)
        self._normalizers = TableNormalizers()

    def normalize(
        self, value: bytes, key: bytes | None, topic: str
    ) -> NormalizedEvent | TruncateEvent | None:
        """Return the change or the truncate in a message.

        Returns None for a null payload, a logical decoding message, and a control message that is
        not a truncate. Raises RecordError if the message is invalid.
        """
        payload = self._envelopes.open(value)[1]
        event = None if payload == NULL else self._event(payload, topic)
        if event is None:
            return None
        normalizer = self._normalizer(event)
        if event.op in ("t", "m"):
            return TruncateEvent(normalizer.source, None) if event.op == "t" else None
        snapshot = event.source is not None and is_snapshot(event.source.snapshot)
        where = SNAPSHOT if snapshot else STREAMED
        if event.op == "d":
            row = msgspec.json.encode({_ID: self._id(event.before, key)})
            return NormalizedEvent(normalizer, (normalizer.delete(row, where),))
        if event.op == "u":
            row = msgspec.json.encode(self._updated(event, key))
            return NormalizedEvent(normalizer, (normalizer.update(row, where=where),))
        if event.op in ("c", "r"):
            row = msgspec.json.encode(_document(required(event.after, "after")))
            return NormalizedEvent(normalizer, (normalizer.insert(row, where),))
        raise record_error("decode", "unknown-op", f"op of the message value is {event.op!r}")

    def normalize_tombstone(self, key: bytes | None, topic: str) -> None:
        """Return None, because a tombstone only follows a delete event."""
        return

    def _event(self, payload: bytes, topic: str) -> _Event | None:
        """Return the event in a payload, or None for a control message.

        Raises RecordError if the payload is neither.
        """
        try:
            event = self._events.read(payload)
        except RecordError:
            if is_control(self._heads.read(payload), payload, topic):
                return None
            raise
        if event.op is None and is_control(self._heads.read(payload), payload, topic):
            return None
        return event

    def _normalizer(self, event: _Event) -> TableNormalizer:
        source = event.source or _Source()
        partial = event.op == "u" and event.after is None
        which = (source.db, source.collection, partial)
        normalizer = self._normalizers.get(which)
        if normalizer is not None:
            return normalizer
        table = SourceTable(source.db, None, required(source.collection, "collection"))
        return self._normalizers.keep(which, TableNormalizer(table, (_ID,), partial=partial))

    def _updated(self, event: _Event, key: bytes | None) -> Texts:
        """Return the fields of the new document; without a document, `_id` and the changed fields.

        Raises RecordError if the event has neither, or describes a change inside of a field.
        """
        if event.after is not None:
            return _document(event.after)
        update = event.update_description
        if update is None:
            raise record_error(
                "decode", "missing-after", "an update has no document and no description"
            )
        changed: Texts = {_ID: self._id(event.before, key)}
        changed |= _document(update.updated_fields or "{}")
        changed |= dict.fromkeys(update.removed_fields or ())
        if update.truncated_arrays or any("." in name for name in changed):
            message = (
                "an update describes a change inside of a field; set capture.mode of the connector "
                "to change_streams_update_full"
            )
            raise record_error("decode", "nested-update", message)
        return changed

    def _id(self, before: str | None, key: bytes | None) -> str:
        """Return the `_id` of a row.

        The `_id` is taken from the before image if there is one, else from the message key. Raises
        RecordError if it is missing there.
        """
        if before is not None:
            identifier = _document(before).get(_ID)
        else:
            opened = self._keys.open(key)
            if opened.envelope is None:
                message = "the change has neither a message key nor a document before"
                raise record_error("key", "missing-key", message)
            named = self._ids.read(opened.payload).id
            identifier = str(named) if isinstance(named, int) else _text(named)
        if identifier is None:
            raise record_error("key", "missing-key", "the document has no _id")
        return identifier


def _document(text: str) -> Texts:
    try:
        return document_texts(text)
    except _NO_DOCUMENT as error:
        message = f"the message value has a document that cannot be read: {error}"
        raise record_error("decode", "invalid-document", message) from error


def _text(value: str) -> str | None:
    """Return the text of an id in Extended JSON or plain text, or None if the id is null.

    Raises RecordError if it is invalid Extended JSON.
    """
    try:
        msgspec.json.decode(value)
    except PARSE_ERRORS:
        return value
    try:
        return _field_text(value.strip().encode())
    except _NO_DOCUMENT as error:
        message = f"the message key has no id: {error}"
        raise record_error("key", "invalid-document", message) from error


def _is_mongodb(message: JsonObject) -> bool:
    if not is_debezium(message):
        return False
    source = message.get("source")
    if isinstance(source, dict) and source.get("connector") == "mongodb":
        return True
    return isinstance(message.get("after"), str) or isinstance(message.get("before"), str)


FORMAT = FormatDescriptor(
    name="debezium-bson",
    description="Debezium for MongoDB, JSON converter",
    new_decoder=new_format,
    recognizes=_is_mongodb,
    event_time=EVENT_TIME,
    truncates=True,
)


_MILLIS = DataType("TIMESTAMP_LTZ", precision=3)
_DOUBLE = "$numberDouble"
_UUID_TYPES = frozenset({"03", "04", "3", "4"})
_INTEGER = re.compile(r"[+-]?\d{1,30}")


class _Float(str):
    """The text of a number with a fraction or an exponent."""

    __slots__ = ()


_decode = msgspec.json.Decoder(float_hook=Decimal).decode
_decode_document = msgspec.json.Decoder(float_hook=_Float).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

Json = Any
"""A decoded JSON value."""
Fields = Mapping[str, Json]


def document_texts(document: str) -> dict[str, str | None]:
    """Return the fields of a MongoDB document as text for STRING columns, None for null.

    Extended JSON of scalars becomes plain text; objects and arrays become JSON text. Raises
    msgspec.MsgspecError or ValueError if the document is invalid.
    """
    try:
        return _texts_of_fields(document)
    except _NO_DOCUMENT:
        fields = _decode_fields(document)
        return {name: _field_text(bytes(raw)) for name, raw in fields.items()}


def _texts_of_fields(document: str) -> dict[str, str | None]:
    """Return the same texts as `document_texts`, from values that are decoded together.

    Raises msgspec.MsgspecError or ValueError if the texts are not known from the values, too.
    """
    fields = _decode_document(document)
    if not isinstance(fields, dict) or (0 in fields.values() and "-0" in document):
        raise ValueError("the document is not an object, or may contain the integer -0")
    return {
        name: value if type(value) is str else _TEXT_BY_TYPE[type(value)](value)
        for name, value in fields.items()
    }


def _object_text(value: dict[str, Json]) -> str | None:
    identifier = value.get("$oid") if len(value) == 1 else None
    return identifier if type(identifier) is str else _text_of(_with_decimals(value))


def _with_decimals(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _with_decimals(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_decimals(item) for item in value]
    return Decimal(value) if isinstance(value, _Float) else value


_TEXT_BY_TYPE: Mapping[type, Callable[[Json], str | None]] = {
    int: str,
    _Float: str,
    dict: _object_text,
    list: lambda value: _text_of(_with_decimals(value)),
    bool: lambda value: _text_of(value),
    type(None): lambda value: None,
}


def _field_text(raw: bytes) -> str | None:
    """Return a JSON value as text: scalars as plain text, objects and arrays as compact JSON.

    Returns None for null. Raises msgspec.MsgspecError or ValueError if the value is invalid.
    """
    if raw[:1] not in (b"{", b"[", b'"', b"n"):
        return raw.decode()
    return _text_of(_decode(raw))


def _text_of(decoded: Json) -> str | None:
    if isinstance(decoded, dict) and isinstance(decoded.get(_DOUBLE), str):
        return str(decoded[_DOUBLE])
    value = _plain(decoded)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return _encode(value).decode() if isinstance(value, dict | list) else str(value)


def _plain(value: Json) -> Json:
    """Replace the special objects of Extended JSON in a decoded value by plain values.

    Raises ValueError if a special object is invalid.
    """
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    for name, read in _SPECIAL.items():
        if name in value and len(value) <= 2:
            return read(value[name], value)
    return {name: _plain(item) for name, item in value.items()}


def _as_it_is(value: Json, fields: Fields) -> Json:
    return value if isinstance(value, str) else _plain(value)


def _integer(value: Json, fields: Fields) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    raise ValueError(f"{value!r} is not an integer of Extended JSON")


def _double(value: Json, fields: Fields) -> Json:
    """Return the value of a $numberDouble: a number, or the text of NaN or an infinity."""
    if not isinstance(value, str) or value in SPECIAL_FLOATS:
        return value
    try:
        return Decimal(value)
    except InvalidOperation as error:
        raise ValueError(f"{value!r} is not a number of Extended JSON") from error


def _date(value: Json, fields: Fields) -> int:
    """Return the value of a $date in milliseconds since the epoch."""
    if isinstance(value, dict):
        value = _plain(value)
    if isinstance(value, str) and not _INTEGER.fullmatch(value):
        millis = read_texts([value], _MILLIS)
        return int(millis.cast(pa.int64())[0].as_py())
    return _integer(value, fields)


def _timestamp(value: Json, fields: Fields) -> Json:
    """Return the value of a $timestamp in seconds since the epoch."""
    return _plain(value.get("t")) if isinstance(value, dict) else value


def _binary(value: Json, fields: Fields) -> str:
    subtype = fields.get("$type", "00")
    if isinstance(value, dict):
        value, subtype = value.get("base64"), value.get("subType", "00")
    if not isinstance(value, str):
        raise ValueError("$binary of Extended JSON is not base64")
    data = binascii.a2b_base64(value.encode(), strict_mode=True)
    if str(subtype) in _UUID_TYPES and len(data) == 16:
        return str(uuid.UUID(bytes=data))
    return base64.b64encode(data).decode()


def _regex(value: Json, fields: Fields) -> str:
    options = fields.get("$options", "")
    if isinstance(value, dict):
        value, options = value.get("pattern"), value.get("options", "")
    return f"/{value}/{options}"


def _nothing(value: Json, fields: Fields) -> None:
    return None


def _named(name: str) -> Callable[[Json, Fields], str]:
    return lambda value, fields: name


_SPECIAL: Mapping[str, Callable[[Json, Fields], Json]] = {
    "$oid": _as_it_is,
    "$numberInt": _integer,
    "$numberLong": _integer,
    _DOUBLE: _double,
    "$numberDecimal": _as_it_is,
    "$date": _date,
    "$timestamp": _timestamp,
    "$binary": _binary,
    "$uuid": _as_it_is,
    "$regularExpression": _regex,
    "$regex": _regex,
    "$symbol": _as_it_is,
    "$code": _as_it_is,
    "$undefined": _nothing,
    "$minKey": _named("MinKey"),
    "$maxKey": _named("MaxKey"),
}
