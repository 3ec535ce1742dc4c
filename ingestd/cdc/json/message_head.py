"""Readers of the outer fields of message values, for formats other than Debezium's."""

from typing import Generic, TypeVar

import msgspec

from ingestd.cdc.record_errors import PARSE_ERRORS, RecordError, explain, record_error

_PART = "message value"
_decode_names = msgspec.json.Decoder(list[str] | None).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

Head = TypeVar("Head", bound=msgspec.Struct)
Value = TypeVar("Value")


class HeadReader(Generic[Head]):
    """A reader of the outer fields of message values, which are the fields of the struct `head`.

    Nested values are not decoded if their fields have the type msgspec.Raw.
    """

    def __init__(self, head: type[Head]) -> None:
        self._decode = msgspec.json.Decoder(head).decode

    def read(self, value: bytes) -> Head:
        """Return the outer fields of a message value.

        Raises RecordError if the value is not a message of this format.
        """
        try:
            return self._decode(value)
        except msgspec.ValidationError as error:
            message = f"the {_PART} is not a message of this format: {error}"
            raise record_error("decode", "not-an-event", message) from error
        except PARSE_ERRORS as error:
            raise RecordError(explain(error, _PART)) from error

    def names(self, field: msgspec.Raw, called: str) -> tuple[str, ...]:
        """Return the distinct column names listed in a field, or an empty tuple for null.

        `called` is the name of the field in error messages. Raises RecordError if the field is not
        a list of names.
        """
        try:
            return tuple(dict.fromkeys(_decode_names(field) or ()))
        except PARSE_ERRORS as error:
            message = f"{called} of the {_PART} is not a list of names: {error}"
            raise record_error("decode", "invalid-keys", message) from error


def required(value: "Value | None", called: str) -> Value:
    """Return a required field. Raises RecordError if it is null or empty.

    `called` is the name of the field in the error.
    """
    if value is None or value in ("", b"null"):
        raise record_error("decode", f"missing-{called}", f"the {_PART} has no {called}")
    return value


def fields_of(image: bytes) -> dict[str, msgspec.Raw]:
    """Split a row image, a JSON object, into undecoded values by field name.

    Raises RecordError if it is not a JSON object.
    """
    try:
        return _decode_fields(image)
    except PARSE_ERRORS as error:
        raise RecordError(explain(error, _PART)) from error


def image_of(fields: dict[str, msgspec.Raw]) -> bytes:
    """Join undecoded JSON values by field name into a row image, a JSON object."""
    return msgspec.json.encode(fields)
