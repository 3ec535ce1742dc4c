"""Blob files: the values of one BLOB column, each with its checksum, and an index of them.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#blob

A value is stored as a magic number, its bytes, its length and a CRC-32. The index at the end has
the stored lengths of all rows, -1 for null.
"""

import struct
import zlib

from ingestd.errors import FormatError
from ingestd.paimon.io.file_io import FileIO

_MAGIC = (1481511375).to_bytes(4, "little")
_VERSION = 1
_END = struct.Struct("<iB")
"""The length of the index, and the version of the file."""
_AFTER = struct.Struct("<qI")
"""The stored length of a value, and the CRC-32 of what precedes it."""


def read_blobs(io: FileIO, path: str) -> list[bytes | None]:
    """Return the values of a blob file, one per row, in order; None for null.

    Raises FileNotFoundError if the file does not exist, FormatError if it is damaged.
    """
    data = io.read_bytes(path)
    try:
        return _values(data)
    except (struct.error, ValueError) as error:
        raise FormatError(f"data file {path} is damaged: {error}") from error


def _values(data: bytes) -> list[bytes | None]:
    size, version = _END.unpack(data[-_END.size :])
    if version != _VERSION:
        raise ValueError(f"version {version} of the format is not known")
    end = len(data) - _END.size - size
    if size < 0 or end < 0:
        raise ValueError("the index is longer than the file")
    values: list[bytes | None] = []
    start = 0
    for length in _lengths(data[end : -_END.size]):
        values.append(None if length == -1 else _value(data[start : start + length], length))
        start += max(length, 0)
    if start != end:
        raise ValueError("the index does not have the lengths of the values")
    return values


def _value(stored: bytes, length: int) -> bytes:
    content, after = stored[: -_AFTER.size], stored[-_AFTER.size :]
    if (length, zlib.crc32(stored[:-4])) != _AFTER.unpack(after) or content[:4] != _MAGIC:
        raise ValueError("a value has another length or checksum")
    return content[4:]


def _lengths(index: bytes) -> list[int]:
    """Return the numbers of an index: the first and the differences, zigzag-encoded varints."""
    lengths, total, number, shift = list[int](), 0, 0, 0
    for byte in index:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            total += (number >> 1) ^ -(number & 1)
            lengths.append(total)
            number = shift = 0
    if shift:
        raise ValueError("the index ends within a number")
    return lengths
