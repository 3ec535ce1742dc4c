"""Footers of Parquet files."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestd.paimon.format.parquet_footer import check_chunk_types, member, read_footer, structs


def parquet() -> bytes:
    sink = pa.BufferOutputStream()
    rows = pa.table({"a": [1, 2, 3, 4], "b": [["x"], [], None, ["y"]], "c": [{"d": 1.0}] * 4})
    pq.write_table(rows, sink, row_group_size=2, compression="none")
    return bytes(sink.getvalue())


def test_a_sound_footer_has_chunks_of_the_types_of_its_columns() -> None:
    check_chunk_types(pa.BufferReader(parquet()))


def test_the_footer_is_read_as_structures() -> None:
    footer = read_footer(pa.BufferReader(parquet()))
    assert member(footer, 3) == 4
    assert len(structs(member(footer, 4))) == 2
    assert structs(member(footer, 99)) == []


def test_a_chunk_of_another_type_is_found_before_the_library_ends_the_process() -> None:
    data = parquet()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    found = 0
    for at in range(start, len(data) - 8):
        damaged = data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
        try:
            check_chunk_types(pa.BufferReader(damaged))
        except (ValueError, IndexError) as error:
            found += "another type" in str(error)
    assert found > 4


def test_a_footer_longer_than_its_file_is_an_error() -> None:
    with pytest.raises(ValueError, match="longer than the file"):
        read_footer(pa.BufferReader(b"PAR1" + (2**31).to_bytes(4, "little") + b"PAR1"))
