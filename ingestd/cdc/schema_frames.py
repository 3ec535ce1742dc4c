"""Find the writer schema of a message, from bytes before its body or from a header.

In the Confluent wire format, a zero byte and a schema id of four bytes (big-endian) precede the
body; in the format of Apicurio, the id has eight bytes. Newer serializers write the id, or a byte
with value 1 and a GUID, into a header, and do not change the body.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from ingestd.cdc.base import RecordChunk
from ingestd.cdc.record_errors import refuse
from ingestd.cdc.schema_lookup import Framing, SchemaId

_NUMBER, _GUID = 0, 1
_GUID_BYTES = 16
_VALUE_HEADER, _KEY_HEADER = "__value_schema_id", "__key_schema_id"

Marks = tuple[bytes | None, bytes | None]
"""The first bytes of a value, and of its key."""
Headers = Sequence[tuple[str, bytes | None]]


class SchemaFrame(NamedTuple):
    """The reference of a message to its schema.

    `mark` are the bytes that identify the schema, and `skip` is the number of bytes before the
    body. `detail` are the bytes after the schema id that select a type in the schema (Protobuf).
    """

    mark: bytes
    skip: int
    detail: bytes = b""

    def schema_id(self, stage: str) -> SchemaId:
        """Return the schema id. Raises RecordError if `mark` contains none."""
        kind = self.mark[0] if self.mark else None
        if kind == _NUMBER and len(self.mark) in (5, 9):
            return int.from_bytes(self.mark[1:], "big")
        if kind == _GUID and len(self.mark) == 1 + _GUID_BYTES:
            return self.mark[1:].hex()
        document = "message key" if stage == "key" else "message value"
        shown = self.mark[:8].hex(" ") or "nothing"
        message = f"the {document} names no schema: it begins with {shown}"
        raise refuse(stage, "no-schema-id", message)


def frame_of(
    framing: Framing, message: bytes, headers: Headers | None, *, is_key: bool
) -> SchemaFrame:
    """Return the schema frame of a message.

    Its mark is empty if the schema id must be in a header and is missing there.
    """
    if headers and framing.location != "prefix":
        wanted = _KEY_HEADER if is_key else _VALUE_HEADER
        for name, value in headers:
            if name == wanted and value:
                size = 1 + _GUID_BYTES if value[0] == _GUID else len(value)
                return SchemaFrame(value[:size], 0, value[size:])
    if framing.location == "header":
        return SchemaFrame(b"", 0)
    size = 1 + (_GUID_BYTES if message[:1] == b"\x01" else framing.id_bytes)
    return SchemaFrame(message[:size], size)


Refine = Callable[[SchemaFrame, bytes], SchemaFrame]
"""A function that adds the detail of a message to its schema frame."""


@dataclass(slots=True)
class FrameGroup:
    """Records of a chunk with the same value schema and the same key schema.

    `key` is None, and `keys` is empty, if the records have no key. `indices` are the indices of the
    records in the chunk.
    """

    value: SchemaFrame
    key: SchemaFrame | None
    indices: list[int] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)


def grouped(
    chunk: RecordChunk,
    framing: Framing,
    *,
    with_keys: bool = True,
    refine: Refine | None = None,
) -> list[FrameGroup]:
    """Group the records of a chunk by the schemas of value and key.

    Records without a value are left out. Keys are ignored unless `with_keys`. `refine` adds the
    type within the schema to a frame.
    """
    if refine is None and not framing.needs_headers:
        quick = _by_prefix(chunk, 1 + framing.id_bytes, with_keys=with_keys)
        if quick is not None:
            return quick
    groups: dict[tuple[SchemaFrame, SchemaFrame | None], FrameGroup] = {}
    headers = chunk.headers if framing.needs_headers else None
    for index, value in enumerate(chunk.values):
        if value is None:
            continue
        own = None if headers is None else headers[index]
        key = chunk.keys[index] if with_keys else None
        value_frame = frame_of(framing, value, own, is_key=False)
        key_frame = None if key is None else frame_of(framing, key, own, is_key=True)
        if refine is not None:
            value_frame = refine(value_frame, value)
            key_frame = None if key is None or key_frame is None else refine(key_frame, key)
        group = groups.get((value_frame, key_frame))
        if group is None:
            group = groups[value_frame, key_frame] = FrameGroup(value_frame, key_frame)
        group.indices.append(index)
        group.values.append(value)
        if key is not None:
            group.keys.append(key)
    return list(groups.values())


def _by_prefix(chunk: RecordChunk, size: int, *, with_keys: bool) -> list[FrameGroup] | None:
    """Return the groups if all schema ids are numbers in the first `size` bytes, or else None."""
    values = _heads(chunk.values, size)
    keys = _heads(chunk.keys, size) if with_keys else [None] * len(values)
    marks = list(zip(values, keys, strict=True))
    groups: dict[Marks, FrameGroup] = {}
    for value, key in dict.fromkeys(marks):
        if any(mark and mark[0] == _GUID for mark in (value, key)):
            return None
        if value is not None:
            groups[value, key] = FrameGroup(
                SchemaFrame(value, size), None if key is None else SchemaFrame(key, size)
            )
    if len(groups) == 1 and None not in values:
        (group,) = groups.values()
        group.indices, group.values = list(range(len(values))), cast("list[bytes]", chunk.values)
    else:
        _sort_into(groups, marks, chunk.values)
    for group in groups.values():
        if group.key is not None:
            group.keys = [key for at in group.indices if (key := chunk.keys[at]) is not None]
    return list(groups.values())


def _sort_into(
    groups: Mapping[Marks, FrameGroup], marks: Sequence[Marks], messages: Sequence[bytes | None]
) -> None:
    for index, (mark, message) in enumerate(zip(marks, messages, strict=True)):
        if message is not None:
            group = groups[mark]
            group.indices.append(index)
            group.values.append(message)


def _heads(messages: Sequence[bytes | None], size: int) -> list[bytes | None]:
    return [None if message is None else message[:size] for message in messages]
