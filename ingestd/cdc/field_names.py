"""Escape field names that msgspec does not accept.

msgspec accepts no field name that JSON has to escape: with quotes, backslashes or control
characters. A plan has an escaped name for such a column, and messages that are decoded in Python
are rewritten to it first. Such tables need a second pass over their messages, others do not.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec

_MARK = "\x7f"
_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')
_ESCAPE = re.compile(r"\x7f([0-9a-f]{2})")

_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode_fields = msgspec.json.Encoder().encode


def has_plain_name(name: str) -> bool:
    """Return whether msgspec accepts the name unescaped."""
    return _ESCAPED.search(name) is None


def escaped_name(name: str) -> str:
    """Return a name that msgspec accepts; different names have different ones."""
    return _ESCAPED.sub(lambda found: f"{_MARK}{ord(found[0]):02x}", name)


def normalized(message: bytes) -> bytes:
    """Return a JSON object with escaped names of its fields. Raises `PARSE_ERRORS`."""
    if b"\\" not in message and b"\x7f" not in message:
        return message  # no name in it needs escaping
    return _renamed(message)


def normalized_images(message: bytes, images: tuple[str, ...] = ("before", "after")) -> bytes:
    """Return a JSON object with escaped names in the objects of the fields `images`.

    Raises `PARSE_ERRORS`.
    """
    if b"\\" not in message and b"\x7f" not in message:
        return message
    fields = _decode_fields(message)
    for image in images:
        text = bytes(fields.get(image, b""))
        if text.startswith(b"{"):
            fields[image] = msgspec.Raw(_renamed(text))
    return _encode_fields(fields)


def _renamed(text: bytes) -> bytes:
    return _encode_fields(
        {escaped_name(name): value for name, value in _decode_fields(text).items()}
    )


def with_own_names(decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Return the decoder with errors that have the fields' own names in place of escaped ones."""

    def decode_named(message: bytes) -> Any:  # noqa: ANN401  # the decoder's result
        try:
            return decode(message)
        except msgspec.ValidationError as error:
            raise msgspec.ValidationError(_own_names(str(error))) from error

    return decode_named


def _own_names(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
