"""Encode and decode deletion vectors: the positions of the deleted rows of a data file.

An index file is a version byte followed by vectors; its manifest entry contains, for each data
file, the range of bytes of its vector. Two layouts exist, distinguished by their magic numbers:
32-bit vectors, which every reader supports, and 64-bit vectors (`deletion-vectors.bitmap64`).

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/tableindex/#deletion-vectors
"""

import struct
import zlib
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ingestd.errors import FormatError
from ingestd.paimon.spec.index_manifest import DeletionVectorRange
from ingestd.paimon.spec.roaring import decode_roaring, encode_roaring
from ingestd.wording import counted

Positions: TypeAlias = npt.NDArray[np.int64]
"""Sorted distinct row numbers of a data file, from 0."""

_VERSION = b"\x01"
_MAGIC_32 = struct.pack(">i", 1581511376)
_MAGIC_64 = struct.pack("<i", 1681511377)
_WORD = struct.Struct(">i")
_CRC = struct.Struct(">I")
_MAX_POSITION = 0x7FFF_FFFF
"""Highest position of a 32-bit vector: Java reads positions as signed numbers."""


def encode_deletion_vector(positions: Positions, *, bitmap64: bool = False) -> bytes:
    """Return the bytes of a deletion vector, including length and checksum.

    `positions` (n,) are ascending and distinct. With `bitmap64`, they have 64 bits. Raises
    ValueError if a position does not fit into a 32-bit vector.
    """
    if bitmap64:
        body = _MAGIC_64 + _encode_64(positions)
    elif len(positions) and not 0 <= positions[0] <= positions[-1] <= _MAX_POSITION:
        raise ValueError("row positions do not fit into a 32-bit deletion vector")
    else:
        body = _MAGIC_32 + encode_roaring(positions.astype(np.uint32))
    return _WORD.pack(len(body)) + body + _CRC.pack(zlib.crc32(body))


def encode_dv_index(
    vectors: Mapping[str, Positions],
    *,
    bitmap64: bool = False,
) -> tuple[bytes, tuple[DeletionVectorRange, ...]]:
    """Return an index file with the given vectors, and the range of each vector in the file.

    `vectors` has the positions of deleted rows, ascending, by name of the data file. The length in
    the range of a 32-bit vector excludes the length word and the checksum; the length of a 64-bit
    vector includes both. With `bitmap64`, positions have 64 bits. Raises ValueError if a position
    does not fit into a 32-bit vector.
    """
    parts, ranges, offset = [_VERSION], [], len(_VERSION)
    for name, positions in vectors.items():
        data = encode_deletion_vector(positions, bitmap64=bitmap64)
        length = len(data) if bitmap64 else len(data) - 8
        ranges.append(DeletionVectorRange(name, offset, length, len(positions)))
        parts.append(data)
        offset += len(data)
    return b"".join(parts), tuple(ranges)


def decode_dv_index(
    data: bytes, ranges: tuple[DeletionVectorRange, ...], source: str
) -> dict[str, Positions]:
    """Return the deletion vectors of an index file by name of the data file.

    Raises FormatError, naming `source`, if the version is unknown, or a vector is damaged or does
    not have the number of positions in its range.
    """
    if data[:1] != _VERSION:
        raise FormatError(f"deletion vectors {source} have version {data[:1]!r}, not {_VERSION!r}")
    return {range_.data_file_name: _vector(data, range_, source) for range_ in ranges}


def _vector(data: bytes, dv_range: DeletionVectorRange, source: str) -> Positions:
    where = f"deletion vectors {source}, those of {dv_range.data_file_name}"
    positions = decode_deletion_vector(data[max(dv_range.offset, 1) :], where)
    if dv_range.cardinality is not None and dv_range.cardinality != len(positions):
        raise FormatError(
            f"{where}: they delete {counted(len(positions), 'row')}, expected "
            f"{dv_range.cardinality}"
        )
    return positions


def decode_deletion_vector(data: bytes, source: str) -> Positions:
    """Return the positions, ascending, of the vector (of either layout) at the start of `data`.

    Raises FormatError, naming `source`, if the vector is damaged.
    """
    if len(data) < _WORD.size:
        raise FormatError(f"{source}: the file ends before them")
    (length,) = _WORD.unpack_from(data)
    body, check = data[4 : 4 + length], data[4 + length : 8 + length]
    if length < 4 or len(check) < _CRC.size:
        raise FormatError(f"{source}: the file ends before they do")
    if _CRC.unpack(check)[0] != zlib.crc32(body):
        raise FormatError(f"{source}: the checksum is wrong")
    magic = body[:4]
    if magic == _MAGIC_32:
        numbers, end = decode_roaring(body, source, 4)
        positions = numbers.astype(np.int64)
    elif magic == _MAGIC_64:
        positions, end = _decode_64(body, source)
    else:
        raise FormatError(f"{source}: they begin with {magic.hex()}, which no layout does")
    if end != len(body):
        raise FormatError(f"{source}: {len(body) - end} bytes are left after them")
    return positions


def _encode_64(positions: Positions) -> bytes:
    """Encode positions as the number of bitmaps, then a bitmap per value of the upper 32 bits.

    As in Java, there is a bitmap for each value from 0 to the highest; without positions, it is
    empty.
    """
    count = int(positions[-1] >> 32) + 1 if len(positions) else 0
    borders = np.searchsorted(positions, np.arange(1, count, dtype=np.int64) << 32)
    parts = np.split(positions & 0xFFFF_FFFF, borders)[:count]
    pieces = [struct.pack("<q", count)]
    for key, low_bits in enumerate(parts):
        pieces += [struct.pack("<i", key), encode_roaring(low_bits.astype(np.uint32))]
    return b"".join(pieces)


def _decode_64(body: bytes, source: str) -> tuple[Positions, int]:
    """Return the positions of a 64-bit vector, and the offset of its end in `body`."""
    if len(body) < 12:
        raise FormatError(f"{source}: the file ends before they do")
    (count,) = struct.unpack_from("<q", body, 4)
    at, parts, previous = 12, [np.empty(0, np.int64)], -1
    for _ in range(count):
        if at + 4 > len(body):
            raise FormatError(f"{source}: bitmaps are missing")
        (key,) = struct.unpack_from("<i", body, at)
        if key <= previous:
            raise FormatError(f"{source}: bitmaps are out of order")
        numbers, at = decode_roaring(body, source, at + 4)
        parts.append(numbers.astype(np.int64) + (key << 32))
        previous = key
    return np.concatenate(parts), at
