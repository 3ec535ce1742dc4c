"""Blob files: values with checksums, and an index of their lengths."""

import struct
import zlib

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.format.blob import read_blobs
from ingestd.paimon.io.memory import MemoryFileIO

VALUES = [b"abc", None, b"", b"x" * 300]


def _file(values: list[bytes | None]) -> bytes:
    data, index, last = b"", b"", 0
    for value in values:
        length = -1 if value is None else len(value) + 16
        difference = length - last
        number, last = (difference << 1) ^ (difference >> 63), length
        while number > 127:
            index, number = index + bytes([number & 127 | 128]), number >> 7
        index += bytes([number])
        if value is not None:
            head = (1481511375).to_bytes(4, "little") + value + struct.pack("<q", length)
            data += head + struct.pack("<I", zlib.crc32(head))
    return data + index + struct.pack("<iB", len(index), 1)


def test_values_are_read_in_order() -> None:
    io = MemoryFileIO()
    io.write_new("/w/a.blob", _file(VALUES))
    assert read_blobs(io, "/w/a.blob") == VALUES


@pytest.mark.parametrize("at", [0, 5, 14, -1, -3, -7])
def test_a_changed_byte_is_found(at: int) -> None:
    data = bytearray(_file(VALUES))
    data[at] ^= 0x41
    io = MemoryFileIO()
    io.write_new("/w/a.blob", bytes(data))
    with pytest.raises(FormatError, match=r"/w/a\.blob"):
        read_blobs(io, "/w/a.blob")
