"""Convert keys, values and headers of records to text for display: JSON, other text, or hex."""

import json
import unicodedata
from dataclasses import dataclass
from typing import Literal

_FRAME_BYTES = 5
"""The size in bytes of the frame of a schema registry: a zero byte, then the schema id."""
_LAYOUT = "\n\r\t"

BytesForm = Literal["null", "empty", "json", "text", "framed", "hex"]


@dataclass(frozen=True, slots=True)
class ShownBytes:
    """Bytes of a record in readable form.

    `content` is text if `form` is "text" or "json", hex if it is "hex" or "framed", empty if it is
    "empty", and None if it is "null". With "framed", it has the bytes after the frame of a schema
    registry, and `schema_id` is the id in the frame; with other forms, `schema_id` is None.
    """

    form: BytesForm
    content: str | None
    schema_id: int | None = None

    def __str__(self) -> str:
        if self.content is None:
            return "null"
        if self.form == "framed":
            return f"schema {self.schema_id}, then {self.content}"
        return "empty" if self.form == "empty" else self.content


def shown_bytes(content: bytes | None) -> ShownBytes:
    """Convert bytes of a record to readable text, in the form that fits them.

    UTF-8 without control characters, other than line ends and tabs, is shown as text, or as JSON if
    it is a JSON object or array. Of other bytes, a zero byte and the four bytes after it are the
    frame of a schema registry.
    """
    if content is None:
        return ShownBytes("null", None)
    if not content:
        return ShownBytes("empty", "")
    text = _text_of(content)
    if text is not None:
        return ShownBytes("json" if _is_json(text) else "text", text)
    if content[0] == 0 and len(content) >= _FRAME_BYTES:
        schema_id = int.from_bytes(content[1:_FRAME_BYTES])
        return ShownBytes("framed", content[_FRAME_BYTES:].hex(), schema_id)
    return ShownBytes("hex", content.hex())


def _text_of(content: bytes) -> str | None:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    controls = (unicodedata.category(char) == "Cc" and char not in _LAYOUT for char in text)
    return None if any(controls) else text


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
