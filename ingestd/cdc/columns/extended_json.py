"""Convert MongoDB's Extended JSON to plain text and plain JSON.

Versions 1 and 2 (canonical, relaxed, strict) are supported. Other objects are left unchanged.
"""

import base64
import binascii
import re
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa

from ingestd.cdc.columns.temporal_columns import read_texts
from ingestd.paimon.spec.data_types import DataType

_MILLIS = DataType("TIMESTAMP_LTZ", precision=3)
_UUID_TYPES = frozenset({"03", "04", "3", "4"})
_INTEGER = re.compile(r"[+-]?\d{1,30}")
_decode = msgspec.json.Decoder(float_hook=Decimal).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

Json = Any
"""A decoded JSON value."""
Fields = Mapping[str, Json]


def document_texts(document: str) -> dict[str, str | None]:
    """Return the fields of a document as text (see `field_text`), or None for null.

    Raises msgspec.MsgspecError or ValueError if the document is invalid.
    """
    fields = _decode_fields(document)
    return {name: field_text(bytes(raw)) for name, raw in fields.items()}


def field_text(raw: bytes) -> str | None:
    """Return a JSON value as text: scalars as plain text, objects and arrays as compact JSON.

    Returns None for null. Raises msgspec.MsgspecError or ValueError if the value is invalid.
    """
    if raw[:1] not in (b"{", b"[", b'"', b"n"):
        return raw.decode()
    value = plain(_decode(raw))
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return _encode(value).decode() if isinstance(value, dict | list) else str(value)


def plain(value: Json) -> Json:
    """Replace the special objects of Extended JSON in a decoded value by plain values.

    Raises ValueError if a special object is invalid.
    """
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    for name, read in _SPECIAL.items():
        if name in value and len(value) <= 2:
            return read(value[name], value)
    return {name: plain(item) for name, item in value.items()}


def _as_it_is(value: Json, fields: Fields) -> Json:
    return value if isinstance(value, str) else plain(value)


def _integer(value: Json, fields: Fields) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    raise ValueError(f"{value!r} is not an integer of Extended JSON")


def _date(value: Json, fields: Fields) -> int:
    """Return the value of a $date in milliseconds since the epoch."""
    if isinstance(value, dict):
        value = plain(value)
    if isinstance(value, str) and not _INTEGER.fullmatch(value):
        millis = read_texts([value], _MILLIS)
        return int(millis.cast(pa.int64())[0].as_py())
    return _integer(value, fields)


def _timestamp(value: Json, fields: Fields) -> Json:
    """Return the value of a $timestamp in seconds since the epoch."""
    return plain(value.get("t")) if isinstance(value, dict) else value


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
    "$numberDouble": _as_it_is,
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
