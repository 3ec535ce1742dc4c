"""Avro container files as their blocks: the frame that manifests and Avro data files share.

The frame is laid out here and not left to fastavro, because a reader that meets the end of a
truncated file as if it were the end of the data would lose rows without a word. What records
look like is the business of `avro_container` and of the Avro file format.
Specification: Manifest; Data files.
"""

import bz2
import hashlib
import io
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa

Json = Any
"""A schema, as JSON gives it or as fastavro has parsed it."""

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
_CHECKSUM = "ingestd.crc32"
"""Beside the header entries of the format, none of which is a checksum."""
BROKEN = (
    ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError,
    OSError, RecursionError, StopIteration, TypeError, ValueError, lzma.LZMAError, struct.error,
    zlib.error, fastavro.schema.SchemaParseException, fastavro.schema.UnknownType,
)  # fmt: skip
"""What broken bytes make the decoders raise; fastavro has no error of its own."""


@dataclass(frozen=True, slots=True)
class AvroBlocks:
    """A container file: its schema as JSON text and its blocks (records, their bytes)."""

    schema: str
    blocks: tuple[tuple[int, bytes], ...]


def encode_blocks(
    schema: str, blocks: Sequence[tuple[int, bytes]], codec: str = "zstandard", level: int = 1
) -> bytes:
    """A container file of blocks given as (records, their encoded bytes), compressed here.

    `codec` is a name of `ENCODERS`; `level` is that of zstandard.
    """
    packed = [(count, ENCODERS[codec](payload, level)) for count, payload in blocks]
    content = b"".join(block for _, block in packed)
    sync = hashlib.md5(content, usedforsecurity=False).digest()
    out = io.BytesIO()
    meta = {"avro.schema": schema.encode(), "avro.codec": codec.encode()}
    meta[_CHECKSUM] = _checksum(meta, packed)
    header = {"magic": _MAGIC, "meta": meta, "sync": sync}
    fastavro.schemaless_writer(out, _HEADER_SCHEMA, header)
    for count, block in packed:
        out.write(encode_long(count) + encode_long(len(block)) + block + sync)
    return out.getvalue()


def decode_blocks(data: bytes) -> AvroBlocks:
    """The blocks of a container file, decompressed; one of `BROKEN` if it is none."""
    if data[:4] != _MAGIC:
        raise ValueError("it does not begin with the Avro magic")
    stream = io.BytesIO(data)
    header: Any = fastavro.schemaless_reader(stream, _HEADER_SCHEMA, None)
    codec = header["meta"].get("avro.codec", b"null").decode()
    if codec not in _DECODERS:
        raise ValueError(f"codec '{codec}' is not one of {', '.join(_DECODERS)}")
    schema = header["meta"]["avro.schema"].decode()
    packed = tuple(_blocks(stream, len(data), header["sync"]))
    promised = header["meta"].get(_CHECKSUM)
    if promised is not None and promised != _checksum(header["meta"], packed):
        raise ValueError("its checksum is wrong")
    return AvroBlocks(schema, tuple((n, _DECODERS[codec](block)) for n, block in packed))


def _checksum(meta: Mapping[str, bytes], packed: Sequence[tuple[int, bytes]]) -> bytes:
    """Of the header and of the blocks as they are stored: few codecs notice other bytes."""
    found = zlib.crc32(meta["avro.codec"] + b"\n" + meta["avro.schema"])
    for count, block in packed:
        found = zlib.crc32(block, zlib.crc32(encode_long(count), found))
    return b"%08x" % found


def _blocks(stream: io.BytesIO, end: int, marker: bytes) -> Iterator[tuple[int, bytes]]:
    while stream.tell() < end:
        count, size = _decode_long(stream), _decode_long(stream)
        block, sync = stream.read(size), stream.read(_SYNC_SIZE)
        if count < 0 or size < 0 or sync != marker:
            raise ValueError("a block does not end at its sync marker")
        yield count, block


def parse_block_schema(document: Json) -> Json:
    """A record's schema as that of a block, logical types left as the plain values they are."""
    record = _without_logical_types(document)
    return fastavro.parse_schema({"type": "array", "items": record})


def _without_logical_types(schema: Json) -> Json:
    if isinstance(schema, list):
        return [_without_logical_types(part) for part in schema]
    if isinstance(schema, dict):
        kept = {key: part for key, part in schema.items() if key != "logicalType"}
        return {key: _without_logical_types(part) for key, part in kept.items()}
    return schema


def encode_records(schema: Json, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The bytes of a block's records; `schema` as `parse_block_schema` gives it."""
    body = io.BytesIO()
    fastavro.schemaless_writer(body, schema, rows)
    # An Avro array is a count, its items and a zero: the block of a container within.
    return body.getvalue()[len(encode_long(len(rows))) if rows else 0 : -1]


def decode_records(schema: Json, count: int, payload: bytes) -> list[dict[str, Any]]:
    """The records of a block; one of `BROKEN` if the bytes are not exactly `count` of them."""
    if count == 0:
        return []
    body = io.BytesIO(encode_long(count) + payload + b"\0")
    rows: Any = fastavro.schemaless_reader(body, schema, None)
    if len(rows) != count or body.read():
        raise ValueError("a block does not hold the records it announces")
    return list(rows)


def _zstd(payload: bytes, level: int) -> bytes:
    return bytes(pa.Codec("zstd", compression_level=level).compress(payload, asbytes=True))


def _unzstd(block: bytes) -> bytes:
    # The stream form, because a frame need not tell the size of what is in it.
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        return bytes(stream.read())


def _deflate(payload: bytes, _level: int) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(payload) + packer.flush()


def _inflate(block: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=-15)
    payload = unpacker.decompress(block)
    # Some writers leave bytes behind the stream.
    if not unpacker.eof:
        raise ValueError("a block ends before its deflate stream does")
    return payload


def _unsnappy(block: bytes) -> bytes:
    payload, checksum = block[:-4], int.from_bytes(block[-4:], "big")
    size, shift = 0, 0
    for byte in payload[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    content = bytes(pa.Codec("snappy").decompress(payload, size, asbytes=True))
    if zlib.crc32(content) != checksum:
        raise ValueError("a block does not match its checksum")
    return content


ENCODERS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "null": lambda payload, _: payload,
    "deflate": _deflate,
    "zstandard": _zstd,
    "bzip2": lambda payload, _: bz2.compress(payload),
    "xz": lambda payload, _: lzma.compress(payload),
}
"""Codecs that are written; a level matters to zstandard only."""
_DECODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": _inflate,
    "zstandard": _unzstd,
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
    "snappy": _unsnappy,
}


def encode_long(number: int) -> bytes:
    """Avro's long of a number that is not negative."""
    rest, out = number << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _decode_long(stream: io.BytesIO) -> int:
    number: Any = fastavro.schemaless_reader(stream, "long", None)
    return int(number)
