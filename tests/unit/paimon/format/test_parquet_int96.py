"""INT96 timestamps that nanoseconds cannot hold."""

import io as bytes_io
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.format.parquet import read_file
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.arrow import FIELD_ID_KEY, Array
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.options import core_options
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.write.table_write import write_file

PATH = "/t/data-1.parquet"
YEAR_10000, YEAR_2500, YEAR_1 = 253_402_300_800_000_000, 16_725_225_600_000_000, -(10**16)


def _stored(table: pa.Table) -> MemoryFileIO:
    sink = bytes_io.BytesIO()
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True)
    io = MemoryFileIO()
    io.write_new(PATH, sink.getvalue())
    return io


def _micros(*values: int | None) -> Array:
    return pa.array(values, pa.timestamp("us"))


@pytest.mark.parametrize("far", [YEAR_10000, YEAR_2500, -62_000_000_000_000_000])
def test_a_far_timestamp_is_what_it_is_and_so_are_its_neighbours(far: int) -> None:
    values = [far, None, -1, 0, -86_400_000_001, 10**15]
    io = _stored(pa.table({"a": _micros(*values), "b": _micros(*[5] * 6)}))
    found = read_file(io, PATH, None)
    assert found.column("a").cast(pa.int64()).to_pylist() == values
    assert found.schema.field("b").type == pa.timestamp("ns")


def test_early_times_of_day_are_negative_there_and_still_nanoseconds() -> None:
    values = pa.array([-1, -86_400_000_000_001, None], pa.timestamp("ns"))
    found = read_file(_stored(pa.table({"a": values})), PATH, None).column("a")
    assert found.combine_chunks().equals(values)


def test_a_far_timestamp_inside_a_column_is_refused() -> None:
    lists = pa.array([[1], [YEAR_10000]], pa.list_(pa.timestamp("us")))
    with pytest.raises(UnsupportedError, match="column a: a timestamp inside it"):
        read_file(_stored(pa.table({"a": lists})), PATH, None)
    near = pa.array([[1], None, [None, 7]], pa.list_(pa.timestamp("us")))
    assert read_file(_stored(pa.table({"a": near})), PATH, None).num_rows == 3


LOWEST, HIGHEST = -(2**63), 2**63 - 1


@pytest.mark.parametrize("values", [[LOWEST], [HIGHEST, None], [HIGHEST - 999, 0, LOWEST + 807]])
def test_the_ends_of_the_range_of_nanoseconds_are_exact(values: list[int | None]) -> None:
    column = pa.array(values, pa.timestamp("ns"))
    found = read_file(_stored(pa.table({"a": column})), PATH, None).column("a")
    assert found.combine_chunks().equals(column)


def test_other_timestamps_of_a_file_with_nanoseconds_keep_their_unit_wherever_they_are() -> None:
    far = [YEAR_10000, YEAR_1, None]
    inner = pa.list_(pa.field("item", pa.timestamp("us", tz="UTC"), metadata={FIELD_ID_KEY: b"9"}))
    table = pa.table(
        {
            "n": pa.array([HIGHEST, -1, None], pa.timestamp("ns")),
            "us": pa.array(far, pa.timestamp("us")),
            "lists": pa.array([far, [], None], inner),
            "maps": pa.array([[(0, far[0])], [], None], pa.map_(pa.int64(), pa.timestamp("us"))),
            "d": pa.array([Decimal(5)] * 3, pa.decimal128(18)),
        }
    )
    io = MemoryFileIO()
    write_file(io, PATH, table, core_options(new_schema([("n", parse_type("INT"))], (), (), {}, 0)))
    stored = pq.ParquetFile(io.open_input(PATH))
    types = [stored.schema.column(i).physical_type for i in range(6)]
    assert types == ["INT96", *["INT64"] * 5]
    assert stored.schema_arrow.field("lists").type == inner
    assert stored.schema_arrow.field("maps").type == table.schema.field("maps").type
    assert read_file(io, PATH, None).cast(table.schema).equals(table)
