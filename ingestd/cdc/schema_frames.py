"""Find the writer schema of a message by bytes before its body or by a header.

In the Confluent wire format, a zero byte and a schema id of four bytes (big-endian) precede the
body; serializers of Apicurio 2 write eight bytes. Newer serializers write the id, or a byte with
value 1 and a GUID, into a header, and do not change the body. Apicurio's headers contain the id in
eight bytes; their names state its kind.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from ingestd.cdc.base import RecordChunk, Texts, has_no_nulls, picked, present_indices, shared_head
from ingestd.cdc.record_errors import record_error
from ingestd.cdc.schema_lookup import Framing, SchemaId
from ingestd.paimon.spec.row_selection import Indices

_NUMBER, _GUID = 0, 1
_GUID_MARK = bytes([_GUID])
_GUID_BYTES = 16
_VALUE_HEADER, _KEY_HEADER = "__value_schema_id", "__key_schema_id"
_KINDED = re.compile(rb"(contentIds|globalIds)/(.{8})", re.DOTALL)
"""The mark of a frame whose id is in a header of Apicurio: the kind, and the id in eight bytes."""
_ENCODING, _BINARY = b"encoding/", b"BINARY"
_APICURIO_IDS = ("contentId", "globalId")
_APICURIO_TYPE = "apicurio.protobuf.type"

Headers = Sequence[tuple[str, bytes | None]]


class SchemaFrame(NamedTuple):
    """The reference of a message to its schema.

    `mark` are the bytes that identify the schema, and `skip` is the number of bytes before the
    body. In Protobuf, the message type in the schema is selected by `detail`, the bytes after the
    schema id, or by its name `type_name`.
    """

    mark: bytes
    skip: int
    detail: bytes = b""
    type_name: str = ""

    def schema_id(self, stage: str) -> SchemaId:
        """Return the id of the schema in the registry.

        Raises RecordError, with the stage `stage`, if `mark` contains no id.
        """
        kind = self.mark[0] if self.mark else None
        if kind == _NUMBER and len(self.mark) in (5, 9):
            return int.from_bytes(self.mark[1:], "big")
        if kind == _GUID and len(self.mark) == 1 + _GUID_BYTES:
            return self.mark[1:].hex()
        if kinded := _KINDED.fullmatch(self.mark):
            return f"{kinded[1].decode()}/{int.from_bytes(kinded[2], 'big')}"
        document = "message key" if stage == "key" else "message value"
        if self.mark.startswith(_ENCODING):
            message = (
                f"the {document} is not Avro in its binary encoding; set "
                "apicurio.registry.avro.encoding=BINARY for the producers"
            )
            raise record_error(stage, "unsupported-encoding", message)
        shown = self.mark[:8].hex(" ") or "nothing"
        message = f"the {document} names no schema: it begins with {shown}"
        raise record_error(stage, "no-schema-id", message)


def frame_of(
    framing: Framing, message: bytes, headers: Headers | None, *, is_key: bool
) -> SchemaFrame:
    """Return the reference to the writer schema in a message or its headers.

    `headers` are the headers of the record, None if they were not fetched. The mark of the frame is
    empty if the schema id must be in a header and is missing there. `is_key` selects the headers of
    message keys.
    """
    if headers and framing.location != "prefix" and framing.is_apicurio:
        frame = _apicurio_frame(dict(headers), is_key=is_key)
        if frame is not None:
            return frame
    elif headers and framing.location != "prefix":
        wanted = _KEY_HEADER if is_key else _VALUE_HEADER
        for name, value in headers:
            if name == wanted and value:
                size = 1 + _GUID_BYTES if value[0] == _GUID else len(value)
                return SchemaFrame(value[:size], 0, value[size:])
    if framing.location == "header":
        return SchemaFrame(b"", 0)
    size = 1 + (_GUID_BYTES if message[:1] == _GUID_MARK else framing.id_bytes)
    return SchemaFrame(message[:size], size)


def _apicurio_frame(headers: Mapping[str, bytes | None], *, is_key: bool) -> SchemaFrame | None:
    """Return the schema frame in headers of Apicurio; None if they contain no schema id."""
    document, of_type = ("key", ".key") if is_key else ("value", "")
    encoding = headers.get(f"apicurio.{document}.encoding") or _BINARY
    if encoding != _BINARY:
        return SchemaFrame(_ENCODING + encoding, 0)
    for kind in _APICURIO_IDS:
        number = headers.get(f"apicurio.{document}.{kind}")
        if number is not None:
            type_name = (headers.get(_APICURIO_TYPE + of_type) or b"").decode(errors="replace")
            return SchemaFrame(f"{kind}s/".encode() + number, 0, b"", type_name)
    return None


Refine = Callable[[SchemaFrame, bytes], SchemaFrame]
"""A function that adds the detail of a message to its schema frame."""


@dataclass(frozen=True, slots=True)
class FrameGroup:
    """Records of a chunk with the same value schema and the same key schema.

    `key` is None, and `keys` is empty, if the records have no key. If they have no value, `values`
    is empty, and `value` is the frame of the key. `indices` are the indices of the records in the
    chunk.
    """

    value: SchemaFrame
    key: SchemaFrame | None
    indices: Indices
    values: Sequence[bytes]
    keys: Sequence[bytes]


def grouped(
    chunk: RecordChunk,
    framing: Framing,
    *,
    with_keys: bool = True,
    refine: Refine | None = None,
) -> list[FrameGroup]:
    """Group the records of a chunk by the schemas of value and key.

    Records without a value are left out. Keys are ignored unless `with_keys` is set. `refine` adds
    the message type to the frame of a Protobuf schema (None: frames are not changed).
    """
    if not framing.needs_headers:
        whole = _one_group(chunk, framing, refine, with_keys=with_keys)
        if whole is not None:
            return [whole]
    groups: dict[tuple[SchemaFrame, SchemaFrame | None], list[int]] = {}
    for index, (key, value) in enumerate(zip(chunk.keys, chunk.values, strict=True)):
        if value is None:
            continue
        headers = None if chunk.headers is None else chunk.headers[index]
        value_frame = frame_of(framing, value, headers, is_key=False)
        key_frame = None
        if with_keys and key is not None:
            key_frame = frame_of(framing, key, headers, is_key=True)
        if refine is not None:
            value_frame = refine(value_frame, value)
            key_frame = None if key_frame is None else refine(key_frame, key or b"")
        groups.setdefault((value_frame, key_frame), []).append(index)
    return [
        _group(chunk, value, key, np.array(indices, np.int64))
        for (value, key), indices in groups.items()
    ]


def tombstones(
    chunk: RecordChunk, frame_of_key: Callable[[int, bytes], SchemaFrame]
) -> list[FrameGroup]:
    """Return the records with a key but without a value, grouped by the schema of the key.

    `frame_of_key` returns the schema frame of a key, given the index of its record and the key.
    """
    groups: dict[SchemaFrame, list[int]] = {}
    if not has_no_nulls(chunk.values):
        for index, (key, value) in enumerate(zip(chunk.keys, chunk.values, strict=True)):
            if value is None and key is not None:
                groups.setdefault(frame_of_key(index, key), []).append(index)
    return [
        replace(_group(chunk, frame, frame, np.array(indices, np.int64)), values=())
        for frame, indices in groups.items()
    ]


def _one_group(
    chunk: RecordChunk, framing: Framing, refine: Refine | None, *, with_keys: bool
) -> FrameGroup | None:
    """Return all records with a value as one group, or None if they may have several schemas.

    All values must begin with the same bytes, and so must all keys unless no record has a key.
    """
    indices = present_indices(chunk.values, empty=True)
    value = _shared_frame(chunk.values, framing, refine)
    if value is None:
        return None
    keys = picked(chunk.keys, indices) if with_keys else ()
    if not len(present_indices(keys, empty=True)):
        return _group(chunk, value, None, indices)
    key = _shared_frame(keys, framing, refine)
    if key is None or not has_no_nulls(keys):
        return None
    return _group(chunk, value, key, indices)


def _shared_frame(messages: Texts, framing: Framing, refine: Refine | None) -> SchemaFrame | None:
    """Return the schema frame of all messages, or None if they may have different frames."""
    head = shared_head(messages, 1 + framing.id_bytes)
    if head is None or head[:1] == _GUID_MARK:
        return None
    frame = SchemaFrame(head, 1 + framing.id_bytes)
    if refine is None:
        return frame
    refined = refine(frame, next(message for message in messages if message is not None))
    shares_detail = refined.detail and shared_head(messages, refined.skip) is not None
    return refined if shares_detail else None


def _group(
    chunk: RecordChunk, value: SchemaFrame, key: SchemaFrame | None, indices: Indices
) -> FrameGroup:
    whole = len(indices) == len(chunk.values)
    values = chunk.values if whole else picked(chunk.values, indices)
    keys: Texts = ()
    if key is not None:
        keys = chunk.keys if whole else picked(chunk.keys, indices)
    # The records of a group have a value, and all or none of them a key.
    return FrameGroup(
        value, key, indices, cast("Sequence[bytes]", values), cast("Sequence[bytes]", keys)
    )
