"""Read and write the blocks of Avro container files, for manifests and Avro data files.

The container is parsed here and not by fastavro, which treats a truncated file as a complete one,
so that rows would be lost silently. Records are encoded in `avro_container` and in the Avro file
format.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#avro
"""

import bz2
import hashlib
import io
import itertools
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import IO, Any, Protocol

import fastavro
import pyarrow as pa

Json = Any
"""An Avro schema, as parsed JSON or as parsed by fastavro."""

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
_LEVEL = 1
_CHECKSUM = "ingestd.crc32"
"""The header entry with the checksum of the file; the Avro format itself has no checksum."""
BROKEN = (
    ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError,
    OSError, RecursionError, StopIteration, TypeError, ValueError, lzma.LZMAError, struct.error,
    zlib.error, fastavro.schema.SchemaParseException, fastavro.schema.UnknownType,
)  # fmt: skip
"""Exceptions raised by the decoders for damaged bytes; fastavro has no exception of its own."""


class ByteSink(Protocol):
    """A writable byte stream, such as an open file."""

    def write(self, data: bytes, /) -> object:
        """Write bytes."""
        ...


@dataclass(frozen=True, slots=True)
class AvroBlocks:
    """A container file: schema as JSON text, and blocks as (record count, encoded records)."""

    schema: str
    blocks: tuple[tuple[int, bytes], ...]


@dataclass(frozen=True, slots=True)
class OpenBlocks:
    """A container file that is being read: its schema as JSON text, and its blocks.

    A block is a pair (record count, encoded records), which is decompressed when it is reached.
    """

    schema: str
    blocks: Iterator[tuple[int, bytes]]


def encode_blocks(
    schema: str,
    blocks: Sequence[tuple[int, bytes]],
    codec: str = "zstandard",
    header: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Return a container file with these blocks, each given as (record count, encoded records).

    The records are compressed here: `codec` is a name such as "null", "deflate" or "zstandard",
    which compresses with level 1. `header` are further entries of the file's header.
    """
    packed = BlockWriter(schema, io.BytesIO(), codec, _LEVEL, header)
    for count, payload in blocks:
        packed.add(count, payload)
    out = io.BytesIO()
    packed.write_to(out)
    return out.getvalue()


class BlockWriter:
    """A writer of a container file.

    It buffers the blocks in the stream `spool`, because the header, which precedes them, contains
    their checksum. `schema` is JSON text, `codec` the name of a compression, `level` the
    compression level of zstandard, and `header` has further entries of the file's header.
    """

    def __init__(
        self,
        schema: str,
        spool: IO[bytes],
        codec: str,
        level: int,
        header: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._meta = {"avro.schema": schema.encode(), "avro.codec": codec.encode()}
        self._meta |= {name: value.encode() for name, value in header.items()}
        self._spool = spool
        self._pack = ENCODERS[codec]
        self._level = level
        self._checksum = _header_checksum(self._meta)
        self._digest = hashlib.md5(usedforsecurity=False)
        self._ends: list[int] = []

    @property
    def size(self) -> int:
        """The size in bytes of the blocks so far, including their sync markers."""
        return self._ends[-1] + _SYNC_SIZE * len(self._ends) if self._ends else 0

    def add(self, count: int, payload: bytes) -> None:
        """Compress and add a block of `count` encoded records, which are joined in `payload`."""
        block = self._pack(payload, self._level)
        self._checksum = _checksum(self._checksum, count, block)
        self._digest.update(block)
        self._spool.write(encode_long(count) + encode_long(len(block)) + block)
        self._ends.append(self._spool.tell())

    def write_to(self, out: ByteSink) -> None:
        """Write the whole file, header and blocks, to `out`."""
        meta = {**self._meta, _CHECKSUM: b"%08x" % self._checksum}
        sync, header = self._digest.digest(), io.BytesIO()
        fastavro.schemaless_writer(
            header, _HEADER_SCHEMA, {"magic": _MAGIC, "meta": meta, "sync": sync}
        )
        out.write(header.getvalue())
        self._spool.seek(0)
        for start, end in itertools.pairwise([0, *self._ends]):
            out.write(self._spool.read(end - start) + sync)


def decode_blocks(data: bytes) -> AvroBlocks:
    """Return the decompressed blocks of a container file.

    An invalid file raises an error of the decoders, which `BROKEN` lists, such as ValueError or
    EOFError.
    """
    opened = open_blocks(io.BytesIO(data), len(data))
    return AvroBlocks(opened.schema, tuple(opened.blocks))


def open_blocks(stream: IO[bytes], end: int) -> OpenBlocks:
    """Open a container file of `end` bytes; its blocks are read on demand.

    An invalid file raises an error of the decoders, which `BROKEN` lists, such as ValueError or
    EOFError, possibly only after the last block.
    """
    head = stream.read(len(_MAGIC))
    if head != _MAGIC:
        raise ValueError("it does not begin with the Avro magic")
    stream.seek(0)
    header: Any = fastavro.schemaless_reader(stream, _HEADER_SCHEMA, None)
    codec = header["meta"].get("avro.codec", b"null").decode()
    if codec not in _DECODERS:
        raise ValueError(f"codec '{codec}' is not one of {', '.join(_DECODERS)}")
    schema = header["meta"]["avro.schema"].decode()
    return OpenBlocks(schema, _blocks(stream, end, header, _DECODERS[codec]))


def _header_checksum(meta: Mapping[str, bytes]) -> int:
    return zlib.crc32(meta["avro.codec"] + b"\n" + meta["avro.schema"])


def _checksum(checksum: int, count: int, block: bytes) -> int:
    """Return the checksum extended by a stored block.

    Most codecs do not detect changed bytes themselves.
    """
    return zlib.crc32(block, zlib.crc32(encode_long(count), checksum))


def _blocks(
    stream: IO[bytes],
    end: int,
    header: Mapping[str, Any],
    unpack: Callable[[bytes], bytes],
) -> Iterator[tuple[int, bytes]]:
    meta: Mapping[str, bytes] = header["meta"]
    promised = meta.get(_CHECKSUM)
    checksum = 0 if promised is None else _header_checksum(meta)
    while stream.tell() < end:
        count, size = _decode_long(stream), _decode_long(stream)
        if count < 0 or not 0 <= size <= end:
            raise ValueError("a block has no such size")
        block, sync = stream.read(size), stream.read(_SYNC_SIZE)
        if sync != header["sync"]:
            raise ValueError("a block does not end at its sync marker")
        if promised is not None:
            checksum = _checksum(checksum, count, block)
        yield count, unpack(block)
    if promised is not None and promised != b"%08x" % checksum:
        raise ValueError("its checksum is wrong")


def parse_block_schema(document: Json) -> Json:
    """Return the schema with which `encode_records` and `decode_records` process a whole block.

    It is the parsed schema of an array of records of the Avro schema `document`. Logical types are
    replaced by their plain types.
    """
    record = _without_logical_types(document)
    return fastavro.parse_schema({"type": "array", "items": record})


def _without_logical_types(schema: Json) -> Json:
    if isinstance(schema, list):
        return [_without_logical_types(branch) for branch in schema]
    if isinstance(schema, dict):
        kept = {key: value for key, value in schema.items() if key != "logicalType"}
        return {key: _without_logical_types(value) for key, value in kept.items()}
    return schema


def encode_records(schema: Json, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the encoded records of a block; `schema` is a result of `parse_block_schema`."""
    body = io.BytesIO()
    fastavro.schemaless_writer(body, schema, rows)
    # An Avro array is encoded as a count, the items and a zero; a block contains the items only.
    return body.getvalue()[len(encode_long(len(rows))) if rows else 0 : -1]


def decode_records(schema: Json, count: int, payload: bytes) -> list[dict[str, Any]]:
    """Return the `count` records of the block `payload`.

    `schema` is a result of `parse_block_schema`. If the block does not contain exactly `count`
    records, an error of the decoders is raised, which `BROKEN` lists, such as ValueError or
    EOFError.
    """
    if count == 0 and not payload:
        return []
    body = io.BytesIO(encode_long(count) + payload + b"\0")
    rows: Any = fastavro.schemaless_reader(body, schema, None)
    if len(rows) != count or body.read():
        raise ValueError("a block does not hold the records it announces")
    return list(rows)


def _zstd(payload: bytes, level: int) -> bytes:
    return bytes(pa.Codec("zstd", compression_level=level).compress(payload, asbytes=True))


def _unzstd(block: bytes) -> bytes:
    # The streaming API, because a zstandard frame need not state its decompressed size.
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        return bytes(stream.read())


def _deflate(payload: bytes, _level: int) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(payload) + packer.flush()


def _inflate(block: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=-15)
    payload = unpacker.decompress(block)
    # Some writers append bytes after the end of the stream.
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


def _snappy(payload: bytes, _level: int) -> bytes:
    block = bytes(pa.Codec("snappy").compress(payload, asbytes=True))
    return block + zlib.crc32(payload).to_bytes(4, "big")


ENCODERS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "null": lambda payload, _: payload,
    "deflate": _deflate,
    "zstandard": _zstd,
    "bzip2": lambda payload, _: bz2.compress(payload),
    "xz": lambda payload, _: lzma.compress(payload),
    "snappy": _snappy,
}
"""Codecs for writing; the level applies to zstandard only."""
_DECODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": _inflate,
    "zstandard": _unzstd,
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
    "snappy": _unsnappy,
}


def encode_long(number: int) -> bytes:
    """Encode a non-negative number as an Avro long."""
    rest, out = number << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _decode_long(stream: IO[bytes]) -> int:
    number: Any = fastavro.schemaless_reader(stream, "long", None)
    return int(number)
