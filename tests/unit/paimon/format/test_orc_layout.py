"""Tests for ingestd.paimon.format.orc_layout."""

import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from ingestd.errors import FormatError
from ingestd.paimon.format.base import BatchSize
from ingestd.paimon.format.orc import check_scales, read_batches, read_file
from ingestd.paimon.format.orc_layout import OrcLayout
from ingestd.paimon.io.file_io import FileIO, LocalFileIO

ROWS = 3000
STRUCT = pa.struct([("x", pa.decimal128(9))])
TABLE = pa.table(
    {
        "n": pa.array(range(ROWS)),
        "d": pa.array([Decimal(n) / 100 for n in range(ROWS)], pa.decimal128(20, 2)),
        "s": pa.array(
            [{"x": Decimal(n)} for n in range(ROWS)], pa.struct([("x", pa.decimal128(9))])
        ),
    }
)


def _file(compression: str = "zstd") -> bytes:
    sink, write_table = pa.BufferOutputStream(), cast("Any", orc.write_table)
    write_table(TABLE, sink, compression=compression, file_version="0.12")
    return sink.getvalue().to_pybytes()


def _layout(data: bytes) -> OrcLayout:
    return OrcLayout(pa.BufferReader(data))


@pytest.mark.parametrize("compression", ["zstd", "snappy", "lz4", "zlib", "uncompressed"])
def test_scales_of_decimals_inside_and_outside_of_structs_are_found(compression: str) -> None:
    streams = list(_layout(_file(compression)).scale_streams(None))
    assert len(streams) == 2
    for stream, scale in zip(streams, (2, 0), strict=True):
        # Runs of 512 equal values: a head of two bytes, the value (doubled), no difference.
        assert stream.encoding == 2
        assert stream.data[:4] == bytes([0xC1, 0xFF, 2 * scale, 0])
        check_scales(stream)


def test_only_columns_that_are_asked_for_are_looked_at() -> None:
    layout = _layout(_file())
    assert [len(list(layout.scale_streams([name]))) for name in ("n", "d", "s")] == [0, 1, 1]


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_what_is_no_footer_is_refused(cut: int) -> None:
    with pytest.raises((ValueError, IndexError, KeyError, OSError)):
        list(_layout(_file()[:-cut]).scale_streams(None))


def test_rows_are_as_wide_as_their_cells_and_texts() -> None:
    sink, write_table = pa.BufferOutputStream(), cast("Any", orc.write_table)
    texts = pa.array([b"x" * 1000, b"x" * 3000, None, None], pa.binary())
    write_table(pa.table({"n": range(4), "b": texts, "t": ["abc"] * 4}), sink)
    layout = _layout(sink.getvalue().to_pybytes())
    assert layout.row_bytes(None) == 3 * 8 + 1000 + 3
    assert layout.row_bytes(["n"]) == 8
    assert layout.row_bytes(["t"]) == 8 + 3


def _packed(data: bytes, block: int = 1 << 18) -> bytes:
    parts = [zlib.compress(data[at : at + block], 9, -15) for at in range(0, len(data), block)]
    return b"".join((len(one) << 1).to_bytes(3, "little") + one for one in parts)


def _with_footer(footer: bytes, block: int = 1 << 18, before: bytes = b"") -> bytes:
    """A file of a few kilobytes whose footer is as large as it likes."""
    packed = _packed(footer, block)
    script = b"\x08" + _number(len(packed)) + b"\x10\x01\x18" + _number(block)
    script += b"\x22\x02\x00\x0c\x82\xf4\x03\x03ORC"
    return b"ORC" + before + packed + script + bytes([len(script)])


def _streamed(io: FileIO, path: str, columns: None) -> list[pa.Table]:
    return list(read_batches(io, path, columns, BatchSize(1 << 20, 1000)))


def _number(value: int) -> bytes:
    low = value & 0x7F
    return bytes([low]) if value < 0x80 else bytes([low | 0x80]) + _number(value >> 7)


EMPTY_TYPE, EMPTY_STRIPE = b"\x22\x00", b"\x1a\x00"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (_with_footer(EMPTY_TYPE * 300_000), "262144 fields"),
        (_with_footer(EMPTY_STRIPE * 9_000_000), "16777216 bytes"),
        (_with_footer(b"\x22" + _number(600_000) + b"\x1a\x00" * 300_000), "262144 fields"),
        (_with_footer(EMPTY_TYPE, 1 << 30), "blocks of 1073741824 bytes"),
        (_with_footer(b"\x08" + b"\xff" * 1000), "128 bits"),
    ],
    ids=["types", "bytes", "names", "block", "number"],
)
def test_small_files_that_would_fill_the_memory_are_damaged(
    tmp_path: Path, data: bytes, why: str
) -> None:
    path = tmp_path / "bomb.orc"
    path.write_bytes(data)
    assert len(data) < 1 << 16
    for read in (read_file, _streamed):
        with pytest.raises(FormatError, match=f"bomb.orc is damaged: .*{why}"):
            read(LocalFileIO(), str(path), None)


def test_a_stripe_with_a_large_footer_is_looked_at_before_it_is_read(tmp_path: Path) -> None:
    streams = _packed(b"\x0a\x00" * 9_000_000)
    stripe = b"\x08\x03\x10\x00\x18\x00\x20" + _number(len(streams)) + b"\x28\x01"
    kinds = b"\x22\x08\x08\x0c\x12\x01\x01\x1a\x01n" + b"\x22\x02\x08\x03"
    footer = b"\x1a" + _number(len(stripe)) + stripe + kinds + b"\x30\x01"
    path = tmp_path / "bomb.orc"
    path.write_bytes(_with_footer(footer, before=streams))
    for read in (read_file, _streamed):
        with pytest.raises(FormatError, match=r"bomb.orc is damaged: .*16777216 bytes"):
            read(LocalFileIO(), str(path), None)
