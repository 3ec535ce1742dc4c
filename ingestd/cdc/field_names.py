"""Fields whose names a decoder of JSON cannot be given: messages with escaped names.

msgspec gives no field a name that JSON has to escape: with quotes, backslashes or control
characters. A plan with such a column calls it by a stand-in, and what is decoded in Python is
normalized to that first. It costs a second pass over the messages of such tables, and nothing for
others.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec

_MARK = "\x7f"
_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')
_STAND_IN = re.compile(r"\x7f([0-9a-f]{2})")

_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode_fields = msgspec.json.Encoder().encode


def has_plain_name(name: str) -> bool:
    """Whether a field can have the name as it is."""
    return _ESCAPED.search(name) is None


def stand_in(name: str) -> str:
    """A name that a field can have; different names have different ones."""
    return _ESCAPED.sub(lambda found: f"{_MARK}{ord(found[0]):02x}", name)


def normalized(message: bytes) -> bytes:
    """A JSON object with stand-ins for the names of its fields. Raises `PARSE_ERRORS`."""
    if b"\\" not in message and b"\x7f" not in message:
        return message  # no name of it has to be another
    return _renamed(message)


def normalized_images(message: bytes, images: tuple[str, ...] = ("before", "after")) -> bytes:
    """A JSON object with stand-ins in the objects that some of its fields hold.

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
    return _encode_fields({stand_in(name): value for name, value in _decode_fields(text).items()})


def told_by_name(decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """The same decoder, whose errors tell the names of the fields instead of stand-ins."""

    def decode_named(message: bytes) -> Any:  # noqa: ANN401  # whatever the decoder makes
        try:
            return decode(message)
        except msgspec.ValidationError as error:
            raise msgspec.ValidationError(_own_names(str(error))) from error

    return decode_named


def _own_names(text: str) -> str:
    return _STAND_IN.sub(lambda found: chr(int(found[1], 16)), text)
