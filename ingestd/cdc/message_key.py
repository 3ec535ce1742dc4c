"""The key of a Kafka message in JSON, without the envelope of the JSON converter."""

import re
from collections.abc import Callable

import msgspec

from ingestd.cdc.debezium_envelope import BARE, Envelopes, Shape
from ingestd.cdc.record_errors import PARSE_ERRORS, RecordError, explain, refuse

_WRAPPED = b'"payload"'
_MAX_CHECKS, _MAX_NAMES = 1000, 32
_PLAIN_NAME = re.compile(r"[\w.$ -]{1,200}")
_Check = Callable[[bytes], object]
_decode_key_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class MessageKey(msgspec.Struct, frozen=True, gc=False):
    """A message key without its envelope; `shape` is None if there is no key."""

    shape: Shape | None
    payload: bytes
    names: tuple[str, ...]


NO_KEY = MessageKey(None, b"", ())


class MessageKeys:
    """Removes envelopes from message keys; if `lenient`, a key that is not an object is ignored."""

    def __init__(self, *, lenient: bool = False) -> None:
        self._lenient = lenient
        self._envelopes = Envelopes(is_key=True)
        self._names: tuple[str, ...] = ()
        self._same: _Check | None = None
        self._checks: dict[tuple[str, ...], _Check | None] = {}

    def open(self, key: bytes | None) -> MessageKey:
        """Return the key of a message. Raises RecordError for an invalid one."""
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
                return MessageKey(BARE, key, self._names)
        shape, payload = self._envelopes.open(key) if wrapped else (BARE, key)
        if payload.strip() == b"null":
            return NO_KEY
        try:
            names = tuple(_decode_key_fields(payload))
        except msgspec.ValidationError as error:
            message = "the message key is not a JSON object"
            raise refuse("key", "not-an-object", message) from error
        except PARSE_ERRORS as error:
            raise RecordError(explain(error, "message key", "key")) from error
        if not names:
            return NO_KEY
        self._remember(names)
        return MessageKey(shape, payload, names)

    def _remember(self, names: tuple[str, ...]) -> None:
        """Cache a check for the fields of a key: most keys have those of the previous one."""
        if names == self._names:
            return
        if names not in self._checks:
            if len(self._checks) >= _MAX_CHECKS:
                self._checks.clear()
            self._checks[names] = _check_of(names)
        self._names, self._same = names, self._checks[names]


def _check_of(names: tuple[str, ...]) -> _Check | None:
    """Return a decoder of JSON objects with only these fields; None for unsupported names."""
    if len(names) > _MAX_NAMES or not all(map(_PLAIN_NAME.fullmatch, names)):
        return None
    attributes = {f"f{number}": name for number, name in enumerate(names)}
    fields = [(attribute, msgspec.Raw) for attribute in attributes]
    form = msgspec.defstruct("Key", fields, rename=attributes, forbid_unknown_fields=True, gc=False)
    return msgspec.json.Decoder(form).decode
