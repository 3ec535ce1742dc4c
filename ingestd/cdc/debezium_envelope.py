"""The schema envelope of Connect's JSON converter around keys and values.

An envelope `{"schema":...,"payload":...}` has the same bytes in message after message except for
the payload, so each distinct one is parsed once and later recognised by its bytes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ingestd.cdc.columns.connect_schema import (
    ConnectSchemaError,
    is_connect_schema,
    row_columns,
    struct_columns,
)
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.cdc.record_errors import PARSE_ERRORS, RecordError, explain, refuse

_BLANKS = b" \t\r\n"
_MAX_SHAPES = 1000
"""Envelopes cached; a connector has one for each table and key, and one more after each DDL."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """An envelope: all bytes before and after the payload, and the columns of its schema.

    `columns` is None when there is no schema, or none that describes rows.
    """

    prefix: bytes
    suffix: bytes
    columns: tuple[WireColumn, ...] | None

    def cut(self, messages: Sequence[bytes]) -> list[bytes] | None:
        """Return the payloads of messages; None if one has another envelope."""
        if not self.prefix:
            return list(messages)
        prefix, suffix = self.prefix, self.suffix
        start, end = len(prefix), -len(suffix)
        payloads = [
            message[start:end]
            for message in messages
            if message.startswith(prefix) and message.endswith(suffix)
        ]
        return payloads if len(payloads) == len(messages) else None


BARE = Shape(b"", b"", None)
"""No envelope: schemas are disabled in the converter."""


class _Wrapper(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    schema: msgspec.Raw
    payload: msgspec.Raw


class Envelopes:
    """Removes envelopes from messages and caches them. `is_key` is True for message keys.

    With `is_row` the payload of a value is the row itself, as that of a key always is.
    """

    def __init__(self, *, is_key: bool, is_row: bool = False) -> None:
        self._is_key = is_key
        self._is_row = is_key or is_row
        self._part = "message key" if is_key else "message value"
        self._shapes: dict[tuple[bytes, bytes], Shape] = {}
        self._latest = BARE
        self._decode = msgspec.json.Decoder(_Wrapper).decode

    def open(self, message: bytes) -> tuple[Shape, bytes]:
        """Return the envelope of a message and its payload. Raises RecordError."""
        if self._latest is not BARE:
            payloads = self._latest.cut((message,))
            if payloads:
                return self._latest, payloads[0]
        try:
            wrapper = self._decode(message)
        except msgspec.ValidationError:
            return BARE, message
        except PARSE_ERRORS as error:
            raise RecordError(explain(error, self._part, self._stage)) from error
        shape = self._shape(message, bytes(wrapper.schema), bytes(wrapper.payload))
        if shape is BARE:
            return BARE, message
        self._latest = shape
        return shape, bytes(wrapper.payload)

    @property
    def _stage(self) -> str:
        return "key" if self._is_key else "decode"

    def _shape(self, message: bytes, schema: bytes, payload: bytes) -> Shape:
        start = _payload_start(message, payload)
        if message[start : start + len(payload)] != payload:
            raise refuse(self._stage, "invalid-envelope", f"the {self._part} has two payloads")
        around = (message[:start], message[start + len(payload) :])
        shape = self._shapes.get(around)
        if shape is None:
            shape = self._read_shape(around, schema)
            if len(self._shapes) >= _MAX_SHAPES:
                self._shapes.clear()
            self._shapes[around] = shape
        return shape

    def _read_shape(self, around: tuple[bytes, bytes], schema: bytes) -> Shape:
        try:
            document = json.loads(schema)
            if document is None:
                return Shape(*around, None)
            if not isinstance(document, dict) or not isinstance(document.get("type"), str):
                # A key or a row with columns of these names.
                return BARE
            if not is_connect_schema(document):
                return Shape(*around, None)
            columns = struct_columns(document) if self._is_row else row_columns(document)
            return Shape(*around, columns)
        except (ConnectSchemaError, ValueError, RecursionError) as error:
            message = f"the schema in the {self._part} cannot be read: {error}"
            raise refuse(self._stage, "invalid-schema", message) from error


def _payload_start(message: bytes, payload: bytes) -> int:
    """Return where the payload begins, which may be before or after the schema."""
    fields = message.lstrip(_BLANKS)[1:].lstrip(_BLANKS)
    if fields.startswith(b'"payload"'):
        start = message.index(b":") + 1
        while message[start] in _BLANKS:
            start += 1
        return start
    before_end = message.rstrip(_BLANKS)[:-1].rstrip(_BLANKS)
    return len(before_end) - len(payload)
