"""Encode and decode the container of the file indexes of a data file.

The kinds of indexes are in `file_index_kinds`. Numbers are big-endian.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-file
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from ingestd.errors import FormatError

FileIndexes: TypeAlias = Mapping[str, Mapping[str, bytes | None]]
"""Column name -> index type -> the bytes of the index; None if it is empty."""

_MAGIC = 1493475289347502
_VERSION = 1
_START = struct.Struct(">qii")
_COUNT = struct.Struct(">i")
_PLACE = struct.Struct(">ii")
_TEXT = struct.Struct(">H")
_EMPTY = -1
_SUM = struct.Struct(">I")
_MARK = _COUNT.pack(9) + b"crc32"
"""Precedes the checksum at the end of the head; other readers skip these 9 bytes and the checksum.
"""


def encode_file_index(indexes: FileIndexes) -> bytes:
    """Return the bytes of a container with these indexes: bytes by column, then by index type.

    None in place of the bytes stands for an empty index.
    """
    size = _START.size + _COUNT.size + len(_MARK) + _SUM.size
    for column, kinds in indexes.items():
        size += len(_text(column)) + _COUNT.size
        size += sum(len(_text(kind)) + _PLACE.size for kind in kinds)
    head = [_START.pack(_MAGIC, _VERSION, size), _COUNT.pack(len(indexes))]
    bodies: list[bytes] = []
    for column, kinds in indexes.items():
        head += [_text(column), _COUNT.pack(len(kinds))]
        for kind, body in kinds.items():
            if body is None:
                head += [_text(kind), _PLACE.pack(_EMPTY, 0)]
            else:
                head += [_text(kind), _PLACE.pack(size + sum(map(len, bodies)), len(body))]
                bodies.append(body)
    head.append(_MARK)
    start, rest = b"".join(head), b"".join(bodies)
    return start + _SUM.pack(zlib.crc32(rest, zlib.crc32(start))) + rest


def decode_file_index(data: bytes, source: str) -> FileIndexes:
    """Return the indexes of a container: bytes (None: empty index) by column and index type.

    Raises FormatError, naming `source`, if the container is damaged.
    """
    try:
        magic, version, size = _START.unpack_from(data)
        if magic != _MAGIC or version != _VERSION:
            raise ValueError(f"it begins with {magic}, version {version}")
        _check_sum(data, size)
        return {column: dict(kinds) for column, kinds in _Head(data, _START.size).columns()}
    except (struct.error, ValueError) as error:
        raise FormatError(f"file index {source} cannot be read: {error}") from error


def _check_sum(data: bytes, size: int) -> None:
    """Raise ValueError if the file has a checksum, after its head, that does not match its bytes.

    `size` is the length of the head with the checksum.
    """
    at = size - _SUM.size
    if at < len(_MARK) or data[at - len(_MARK) : at] != _MARK:
        return
    if _SUM.unpack_from(data, at)[0] != zlib.crc32(data[size:], zlib.crc32(data[:at])):
        raise ValueError("its checksum is wrong")


class _Head:
    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def columns(self) -> Iterator[tuple[str, list[tuple[str, bytes | None]]]]:
        for _ in range(self._unpack(_COUNT)[0]):
            name = self._read_text()
            count = self._unpack(_COUNT)[0]
            yield name, [self._index() for _ in range(count)]

    def _index(self) -> tuple[str, bytes | None]:
        kind = self._read_text()
        start, length = self._unpack(_PLACE)
        if start == _EMPTY:
            return kind, None
        body = self._data[start : start + length]
        if start < 0 or length < 0 or len(body) < length:
            raise ValueError(f"the {kind} is outside the file")
        return kind, body

    def _read_text(self) -> str:
        (length,) = self._unpack(_TEXT)
        raw = self._data[self._at : self._at + length]
        if len(raw) < length:
            raise ValueError("it ends too early")
        self._at += length
        return _decode_text(raw)

    def _unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        values = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return values


def _text(text: str) -> bytes:
    """Encode text as Java's modified UTF-8 (surrogate pairs, no zero byte), after its length."""
    units = text.encode("utf-16-be", "surrogatepass")
    chars = (chr(unit) for (unit,) in struct.iter_unpack(">H", units))
    raw = b"".join(
        b"\xc0\x80" if char == "\0" else char.encode("utf-8", "surrogatepass") for char in chars
    )
    return _TEXT.pack(len(raw)) + raw


def _decode_text(raw: bytes) -> str:
    halves = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return halves.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
