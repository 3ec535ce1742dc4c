"""Remove the schema envelopes of Connect's JSON converter from values and keys of messages.

An envelope `{"schema":...,"payload":...}` has the same bytes in all messages of a table except for
the payload, so each distinct envelope is parsed once, and later recognised by its bytes.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import NO_COMMENTS, Comments
from ingestd.cdc.columns.connect_schema import (
    ConnectSchemaError,
    is_connect_schema,
    row_schema,
    struct_columns,
    struct_comments,
)
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.cdc.record_errors import PARSE_ERRORS, RecordError, explain, record_error
from ingestd.paimon.spec.row_selection import Indices

_WRAPPED = b'"payload"'
_MAX_CHECKS, _MAX_NAMES = 1000, 32
_PLAIN_NAME = re.compile(r"[\w.$ -]{1,200}")
_Check = Callable[[bytes], object]
_decode_key_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_BLANKS = b" \t\r\n"
_MAX_ENVELOPES = 1000
"""Maximum number of cached envelopes.

A connector sends an envelope for the values and another for the keys of each table, and new
envelopes after a schema change.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Envelope:
    """An envelope: all bytes before and after the payload, and the columns in its schema.

    `columns` is None if there is no schema, or if it does not describe rows. `comments` are the
    comments of the table and its columns in the schema.
    """

    prefix: bytes
    suffix: bytes
    columns: tuple[WireColumn, ...] | None
    comments: Comments = NO_COMMENTS

    def cut(self, messages: Sequence[bytes]) -> list[bytes] | None:
        """Return messages without this envelope, or None if a message has another envelope."""
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


NO_ENVELOPE = Envelope(b"", b"", None)
"""The value for messages without an envelope, which the converter sends if schemas are disabled."""


class _Wrapper(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    schema: msgspec.Raw
    payload: msgspec.Raw


class Envelopes:
    """A cache of the envelopes of message keys or values; `open` removes the envelopes.

    `is_key` is True for message keys, whose payloads are rows. `is_row` states whether the payloads
    of message values are rows, and not change events.
    """

    def __init__(self, *, is_key: bool, is_row: bool = False) -> None:
        self._is_key = is_key
        self._is_row = is_key or is_row
        self._part = "message key" if is_key else "message value"
        self._known: dict[tuple[bytes, bytes], Envelope] = {}
        self._latest = NO_ENVELOPE
        self._decode = msgspec.json.Decoder(_Wrapper).decode

    def open(self, message: bytes) -> tuple[Envelope, bytes]:
        """Return the envelope and the payload of a message.

        Returns `NO_ENVELOPE` and the message itself if it has no envelope. Raises
        RecordError if the envelope is invalid.
        """
        if self._latest is not NO_ENVELOPE:
            payloads = self._latest.cut((message,))
            if payloads:
                return self._latest, payloads[0]
        try:
            wrapper = self._decode(message)
        except msgspec.ValidationError:
            return NO_ENVELOPE, message
        except PARSE_ERRORS as error:
            raise RecordError(explain(error, self._part, self._stage)) from error
        envelope = self._envelope(message, bytes(wrapper.schema), bytes(wrapper.payload))
        if envelope is NO_ENVELOPE:
            return NO_ENVELOPE, message
        self._latest = envelope
        return envelope, bytes(wrapper.payload)

    @property
    def _stage(self) -> str:
        return "key" if self._is_key else "decode"

    def _envelope(self, message: bytes, schema: bytes, payload: bytes) -> Envelope:
        start = _payload_start(message, payload)
        if message[start : start + len(payload)] != payload:
            raise record_error(
                self._stage, "invalid-envelope", f"the {self._part} has two payloads"
            )
        around = (message[:start], message[start + len(payload) :])
        envelope = self._known.get(around)
        if envelope is None:
            envelope = self._read_envelope(around, schema)
            if len(self._known) >= _MAX_ENVELOPES:
                self._known.clear()
            self._known[around] = envelope
        return envelope

    def _read_envelope(self, around: tuple[bytes, bytes], schema: bytes) -> Envelope:
        try:
            document = json.loads(schema)
            if document is None:
                return Envelope(*around, None)
            if not isinstance(document, dict) or not isinstance(document.get("type"), str):
                # The message is a key or row that has columns with these names.
                return NO_ENVELOPE
            if not is_connect_schema(document):
                return Envelope(*around, None)
            rows = document if self._is_row else row_schema(document)
            if rows is None:
                return Envelope(*around, None)
            return Envelope(*around, struct_columns(rows), struct_comments(rows))
        except (ConnectSchemaError, ValueError, RecursionError) as error:
            message = f"the schema in the {self._part} cannot be read: {error}"
            raise record_error(self._stage, "invalid-schema", message) from error


def _payload_start(message: bytes, payload: bytes) -> int:
    """Return the index of the payload's first byte; the payload is before or after the schema."""
    fields = message.lstrip(_BLANKS)[1:].lstrip(_BLANKS)
    if fields.startswith(b'"payload"'):
        start = message.index(b":") + 1
        while message[start] in _BLANKS:
            start += 1
        return start
    before_end = message.rstrip(_BLANKS)[:-1].rstrip(_BLANKS)
    return len(before_end) - len(payload)


class MessageKey(msgspec.Struct, frozen=True, gc=False):
    """A message key without its envelope, and the names of its fields.

    `envelope` is None if the message has no key.
    """

    envelope: Envelope | None
    payload: bytes
    names: tuple[str, ...]


NO_KEY = MessageKey(None, b"", ())


class MessageKeys:
    """A reader of message keys, which removes their envelopes.

    If `lenient`, an invalid key, such as one that is not an object, is treated as absent.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        self._lenient = lenient
        self._envelopes = Envelopes(is_key=True)
        self._names: tuple[str, ...] = ()
        self._same: _Check | None = None
        self._checks: dict[tuple[str, ...], _Check | None] = {}

    def open(self, key: bytes | None) -> MessageKey:
        """Parse a message key; null and an object without fields are treated as absent.

        Raises RecordError if the key is invalid, unless invalid keys are treated as absent.
        """
        if key is None:
            return NO_KEY
        try:
            return self._open(key)
        except RecordError:
            if self._lenient:
                return NO_KEY
            raise

    def _open(self, key: bytes) -> MessageKey:
        wrapped = _WRAPPED in key
        if not wrapped and self._same is not None:
            try:
                self._same(key)
            except PARSE_ERRORS:
                pass  # reported below
            else:
                return MessageKey(NO_ENVELOPE, key, self._names)
        envelope, payload = self._envelopes.open(key) if wrapped else (NO_ENVELOPE, key)
        if payload.strip() == b"null":
            return NO_KEY
        try:
            names = tuple(_decode_key_fields(payload))
        except msgspec.ValidationError as error:
            message = "the message key is not a JSON object"
            raise record_error("key", "not-an-object", message) from error
        except PARSE_ERRORS as error:
            raise RecordError(explain(error, "message key", "key")) from error
        if not names:
            return NO_KEY
        self._remember(names)
        return MessageKey(envelope, payload, names)

    def _remember(self, names: tuple[str, ...]) -> None:
        """Cache a fast check for keys with these field names, because most keys have the same."""
        if names == self._names:
            return
        if names not in self._checks:
            if len(self._checks) >= _MAX_CHECKS:
                self._checks.clear()
            self._checks[names] = _check_of(names)
        self._names, self._same = names, self._checks[names]


def _check_of(names: tuple[str, ...]) -> _Check | None:
    """Return a decoder that accepts only objects with exactly these fields.

    Returns None if there are too many names, or if a name has unusual characters.
    """
    if len(names) > _MAX_NAMES or not all(map(_PLAIN_NAME.fullmatch, names)):
        return None
    attributes = {f"f{number}": name for number, name in enumerate(names)}
    fields = [(attribute, msgspec.Raw) for attribute in attributes]
    key_struct = msgspec.defstruct(
        "Key", fields, rename=attributes, forbid_unknown_fields=True, gc=False
    )
    return msgspec.json.Decoder(key_struct).decode


@dataclass(frozen=True, slots=True)
class Messages:
    """The values and keys of messages, parallel to `offsets`, and their envelopes.

    `keys` is None if messages have no key. If some messages are tombstones that delete the row with
    their key, `valued` are the indices of the other messages, and `values` has only their values.
    """

    values: Sequence[bytes]
    keys: Sequence[bytes] | None
    offsets: npt.NDArray[np.int64]
    value_envelope: Envelope = NO_ENVELOPE
    key_envelope: Envelope = NO_ENVELOPE
    valued: Indices | None = None

    def part(self, start: int, stop: int) -> "Messages":
        """Return the messages with indices in `[start, stop)`."""
        keys = None if self.keys is None else self.keys[start:stop]
        return replace(
            self,
            values=self.values[start:stop],
            keys=keys,
            offsets=self.offsets[start:stop],
        )

    def payloads(self) -> "Messages":
        """Return the messages with their envelopes removed.

        Raises RecordError if a value is not in `value_envelope`, or a key not in `key_envelope`.
        """
        values = self.value_envelope.cut(self.values)
        keys = None if self.keys is None else self.key_envelope.cut(self.keys)
        if values is None or (keys is None and self.keys is not None):
            raise record_error("decode", "invalid-envelope", "a message has a different envelope")
        return Messages(values, keys, self.offsets)

    def has_keys_in_order(self, names: Sequence[str]) -> bool:
        """Return whether all keys have their fields in this order, or messages have no keys."""
        return self.keys is None or _in_order(self.keys, names)


def _in_order(keys: Sequence[bytes], names: Sequence[str]) -> bool:
    """Return whether all keys have their fields in this order."""
    if len(names) < 2:
        return True
    # Atomic groups prevent backtracking over a key that repeats a field many times.
    patterns = (rb'(?>.*?"%s"\s*:)' % re.escape(name.encode()) for name in names)
    match = re.compile(b"".join(patterns), re.DOTALL).match
    return all(match(key) for key in keys)
