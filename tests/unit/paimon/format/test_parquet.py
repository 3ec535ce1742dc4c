"""Parquet files: what is written, and that it comes back."""

import io as bytes_io
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestd.errors import FormatError, UnsupportedError
from ingestd.paimon.format.base import BatchSize
from ingestd.paimon.format.parquet import open_sink, read_batches, read_file
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.options import CoreOptions, core_options
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.write.table_write import encoded_size, write_file
from tests.support.every_type import COLUMNS, ROWS
from tests.support.native_tables import native_table, rows_table

PATH = "/t/data-1.parquet"


def _options(**given: str) -> CoreOptions:
    options = {name.replace("__", ".").replace("_", "-"): text for name, text in given.items()}
    return core_options(new_schema([("id", parse_type("INT"))], (), (), options, 0))


def _file(table: pa.Table, **options: str) -> pq.ParquetFile:
    io = MemoryFileIO()
    size = write_file(io, PATH, table, _options(**options))
    data = io.read_bytes(PATH)
    assert len(data) == size
    return pq.ParquetFile(bytes_io.BytesIO(data))


def test_every_type_comes_back() -> None:
    io = MemoryFileIO()
    table = native_table("/w", COLUMNS, io=io)
    rows = rows_table(table.schema, ROWS)
    write_file(io, PATH, rows, table.options)
    found = read_file(io, PATH, None).cast(rows.schema)
    # NaN is no equal of itself.
    assert found.drop(["float"]).equals(rows.drop(["float"]))


def test_file_has_no_arrow_schema_and_zstd_pages() -> None:
    file = _file(pa.table({"a": [1, 2, 3]}))
    assert b"ARROW:schema" not in (file.metadata.metadata or {})
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_row_groups_pages_and_dictionaries_are_those_of_the_options() -> None:
    rows = pa.table({"a": pa.array(range(100_000), pa.int64()), "b": ["x", "y"] * 50_000})
    assert _file(rows).metadata.num_row_groups == 1
    for name in ("file__block_size", "parquet__block__size"):
        assert _file(rows, **{name: "102400"}).metadata.num_row_groups > 5
    for wanted in ("true", "false"):
        group = _file(rows, parquet__enable__dictionary=wanted).metadata.row_group(0)
        found = {group.column(i).has_dictionary_page for i in range(2)}
        assert found == {wanted == "true"}
    sizes = []
    for compression, level in (("zstd", "1"), ("gzip", "1"), ("zstd", "19")):
        given = {"parquet.compression": compression, "parquet.compression.codec.zstd.level": level}
        file = _file(rows, **given)
        assert file.metadata.row_group(0).column(0).compression == compression.upper()
        sizes.append(file.metadata.row_group(0).column(0).total_compressed_size)
    assert sizes[2] < sizes[0]
    small = _file(rows, parquet__page__size="4096", file__compression="none")
    large = _file(rows, file__compression="none")
    sizes = [one.metadata.row_group(0).column(0).total_compressed_size for one in (small, large)]
    assert sizes[0] > sizes[1]  # each page has a header


@pytest.mark.parametrize(("precision", "physical"), [(9, "INT32"), (18, "INT64")])
def test_small_decimals_are_integers(precision: int, physical: str) -> None:
    column = pa.array([Decimal("1.5")], pa.decimal128(precision, 2))
    assert _file(pa.table({"a": column})).schema.column(0).physical_type == physical


def test_whole_numbers_are_stored_by_distances_where_the_table_asks_for_it() -> None:
    io = MemoryFileIO()
    table = native_table("/w", COLUMNS, io=io, options={"ingestd.number-encoding": "delta"})
    rows = rows_table(table.schema, ROWS)
    write_file(io, PATH, rows, table.options)
    assert read_file(io, PATH, None).cast(rows.schema).drop(["float"]).equals(rows.drop(["float"]))
    numbers = {"int": pa.array([1, None, 3], pa.int32()), "text": ["a", "b", "c"]}
    for encoding, found in (("delta", True), ("plain", False)):
        file = _file(pa.table(numbers), ingestd__number_encoding=encoding)
        group = file.metadata.row_group(0)
        assert ("DELTA_BINARY_PACKED" in group.column(0).encodings) == found
        assert "DELTA_BINARY_PACKED" not in group.column(1).encodings


def test_only_text_that_repeats_gets_a_dictionary() -> None:
    count = 5000
    file = _file(
        pa.table(
            {
                "status": ["new", "paid"] * (count // 2),
                "name": [f"name {n}" for n in range(count)],
                "number": pa.array([7] * count, pa.int64()),
            }
        )
    )
    group = file.metadata.row_group(0)
    encoded = [group.column(i).has_dictionary_page for i in range(3)]
    assert encoded == [True, False, False]


def test_chosen_compression_is_used() -> None:
    file = _file(pa.table({"a": [1]}), file__compression="snappy")
    assert file.metadata.row_group(0).column(0).compression == "SNAPPY"


def test_unknown_compression_is_refused_by_its_option() -> None:
    with pytest.raises(UnsupportedError, match=r"file\.compression.*lzo"):
        _file(pa.table({"a": [1]}), file__compression="lzo")


def test_nanoseconds_are_int96_and_come_back() -> None:
    column = pa.array([1, None, -1], pa.timestamp("ns"))
    io = MemoryFileIO()
    write_file(io, PATH, pa.table({"a": column}), _options())
    stored = pq.ParquetFile(bytes_io.BytesIO(io.read_bytes(PATH)))
    assert stored.schema.column(0).physical_type == "INT96"
    assert read_file(io, PATH, None).column("a").combine_chunks().equals(column)


def test_int96_beyond_nanoseconds_comes_in_microseconds_and_not_as_garbage() -> None:
    year_10000 = 253_402_300_800_000_000
    sink = bytes_io.BytesIO()
    table = pa.table({"a": pa.array([year_10000], pa.timestamp("us")), "b": [1]})
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True)
    io = MemoryFileIO()
    io.write_new(PATH, sink.getvalue())
    found = read_file(io, PATH, None)
    assert found.column_names == ["a", "b"]
    assert found.column("a").cast(pa.int64()).to_pylist() == [year_10000]


def test_columns_come_in_the_order_asked_for_and_absent_ones_are_left_out() -> None:
    io = MemoryFileIO()
    write_file(io, PATH, pa.table({"a": [1], "b": [2], "c": [3]}), _options())
    assert read_file(io, PATH, ["c", "z", "a"]).to_pydict() == {"c": [3], "a": [1]}


def test_size_is_reported_without_a_file() -> None:
    io, table = MemoryFileIO(), pa.table({"a": list(range(1000))})
    assert encoded_size(table, _options()) == write_file(io, PATH, table, _options())


@pytest.mark.parametrize("where", ["start", "page", "end"])
def test_damaged_file_is_a_format_error_that_names_it(where: str) -> None:
    io, table = MemoryFileIO(), pa.table({"a": [f"text {n}" for n in range(1000)]})
    write_file(io, PATH, table, _options())
    data = bytearray(io.read_bytes(PATH))
    middle = {"start": slice(0, 8), "page": slice(40, 200), "end": slice(-8, None)}[where]
    data[middle] = b"\xff" * len(data[middle])
    io.delete_quietly(PATH)
    if where == "start":
        data = data[:100]
    io.write_new(PATH, bytes(data))
    with pytest.raises(FormatError, match=PATH):
        read_file(io, PATH, None)


def test_missing_file_passes_as_it_is() -> None:
    with pytest.raises(FileNotFoundError):
        read_file(MemoryFileIO(), PATH, None)


def test_files_are_written_in_parts_and_read_in_batches() -> None:
    io = MemoryFileIO()
    table = native_table("/w", COLUMNS, io=io)
    rows = rows_table(table.schema, ROWS)
    with io.open_output(PATH) as stream:
        sink = open_sink(stream, rows.slice(0, 1), table.options)
        for start in range(rows.num_rows):
            sink.write(rows.slice(start, 1))
        sink.close()
    file = pq.ParquetFile(bytes_io.BytesIO(io.read_bytes(PATH)))
    assert file.metadata.num_row_groups == rows.num_rows
    whole = read_file(io, PATH, None)
    # Timestamps in INT96 are of one unit in a row group only, and NaN is no equal of itself.
    wide = [field.name for field in whole.schema if str(field.type).startswith("timestamp")]
    for size in (1, 2, 100):
        batches = list(read_batches(io, PATH, None, BatchSize(1 << 20, size)))
        assert all(batch.column_names == whole.column_names for batch in batches)
        found = pa.concat_tables([batch.drop(wide) for batch in batches])
        assert found.drop(["float"]).equals(whole.drop([*wide, "float"]))
