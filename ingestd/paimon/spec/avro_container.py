"""Avro container files as bytes: records in, records out, and one error for all that is broken.

fastavro codes the records; the container around them is laid out here, because a reader that
meets the end of a truncated file as if it were the end of the data would lose data files
without a word. Logical types are left as plain numbers. Specification: Manifest.
"""

import functools
import hashlib
import io
import json
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import fastavro
import pyarrow as pa

from ingestd.errors import FormatError

_Json = Any

_MAGIC = b"Obj\x01"
_SYNC_SIZE = 16
_HEADER_SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Header",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 4}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": _SYNC_SIZE}},
        ],
    }
)
_BROKEN = (
    ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError,
    OSError, RecursionError, StopIteration, TypeError, ValueError, struct.error, zlib.error,
    fastavro.schema.SchemaParseException, fastavro.schema.UnknownType,
)  # fmt: skip
"""What broken bytes make the decoder raise; it has no error of its own."""


def encode_records(
    schema: Mapping[str, Any], version: int, records: Iterable[Mapping[str, Any]]
) -> bytes:
    """A container file (codec zstandard) of records, each with its `_VERSION`."""
    text = json.dumps(schema)
    rows = [{"_VERSION": version, **record} for record in records]
    body = io.BytesIO()
    fastavro.schemaless_writer(body, _block_schema(text), rows)
    # An Avro array is a count, its items and a zero: the block of a container within.
    payload = body.getvalue()[_count_size(len(rows)) : -1]
    block = bytes(pa.compress(payload, codec="zstd", asbytes=True))
    sync = hashlib.md5(block, usedforsecurity=False).digest()
    out = io.BytesIO()
    meta = {"avro.schema": text.encode(), "avro.codec": b"zstandard"}
    header = {"magic": _MAGIC, "meta": meta, "sync": sync}
    fastavro.schemaless_writer(out, _HEADER_SCHEMA, header)
    if rows:
        out.write(_encode_long(len(rows)) + _encode_long(len(block)) + block + sync)
    return out.getvalue()


def decode_records(data: bytes, version: int, source: str) -> list[dict[str, Any]]:
    """The records of a container file.

    FormatError names `source` if the file is broken or a record's `_VERSION` is another one.
    """
    try:
        records = _decode(data)
        found = {record["_VERSION"] for record in records}
    except _BROKEN as error:
        raise FormatError(f"{source} is no readable Avro file: {error!r}") from error
    if found - {version}:
        raise FormatError(
            f"{source} has _VERSION {sorted(found, key=str)}, only {version} is understood"
        )
    return records


def _decode(data: bytes) -> list[dict[str, Any]]:
    if data[:4] != _MAGIC:
        raise ValueError("it does not begin with the Avro magic")
    stream = io.BytesIO(data)
    header: Any = fastavro.schemaless_reader(stream, _HEADER_SCHEMA, None)
    codec = header["meta"].get("avro.codec", b"null").decode()
    if codec not in _CODECS:
        raise ValueError(f"codec '{codec}' is not one of {', '.join(_CODECS)}")
    schema = _block_schema(header["meta"]["avro.schema"].decode())
    records: list[dict[str, Any]] = []
    while stream.tell() < len(data):
        count, size = _decode_long(stream), _decode_long(stream)
        block, sync = stream.read(size), stream.read(_SYNC_SIZE)
        if count < 0 or size < 0 or sync != header["sync"]:
            raise ValueError("a block does not end at its sync marker")
        records += _decode_block(schema, count, _CODECS[codec](block))
    return records


def _decode_block(schema: _Json, count: int, payload: bytes) -> list[dict[str, Any]]:
    if count == 0:
        return []
    body = io.BytesIO(_encode_long(count) + payload + b"\0")
    rows: Any = fastavro.schemaless_reader(body, schema, None)
    if len(rows) != count or body.read():
        raise ValueError("a block does not hold the records it announces")
    return list(rows)


@functools.lru_cache(maxsize=16)
def _block_schema(text: str) -> _Json:
    record = _without_logical_types(json.loads(text))
    return fastavro.parse_schema({"type": "array", "items": record})


def _without_logical_types(schema: _Json) -> _Json:
    if isinstance(schema, list):
        return [_without_logical_types(part) for part in schema]
    if isinstance(schema, dict):
        kept = {key: part for key, part in schema.items() if key != "logicalType"}
        return {key: _without_logical_types(part) for key, part in kept.items()}
    return schema


def _unzstd(block: bytes) -> bytes:
    # The stream form, because a frame need not tell the size of what is in it.
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        return bytes(stream.read())


def _inflate(block: bytes) -> bytes:
    return zlib.decompress(block, wbits=-15)


_CODECS: Mapping[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": _inflate,
    "zstandard": _unzstd,
}


def _encode_long(number: int) -> bytes:
    """Avro's long of a number that is not negative."""
    rest, out = number << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _count_size(count: int) -> int:
    return len(_encode_long(count)) if count else 0


def _decode_long(stream: io.BytesIO) -> int:
    number: Any = fastavro.schemaless_reader(stream, "long", None)
    return int(number)
