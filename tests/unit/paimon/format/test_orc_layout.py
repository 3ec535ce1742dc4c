"""Tests for ingestd.paimon.format.orc_layout."""

from decimal import Decimal
from typing import Any, cast

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from ingestd.paimon.format.orc_layout import OrcLayout
from ingestd.paimon.format.orc_scales import check_scales

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
