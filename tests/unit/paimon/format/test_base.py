"""Choice of the file format."""

import gc

import pyarrow as pa
import pytest

from ingestd.errors import FormatError, UnsupportedError
from ingestd.paimon.format.base import FORMATS, BatchSize, format_of, load_format, read_batches
from ingestd.paimon.io.memory import MemoryFileIO
from ingestd.paimon.table.write.table_write import write_file
from tests.support.every_type import COLUMNS, ROWS
from tests.support.native_tables import native_table, rows_table


@pytest.mark.parametrize("name", FORMATS)
def test_every_registered_format_has_the_functions_of_one(name: str) -> None:
    module = load_format(name)
    assert all(callable(getattr(module, f)) for f in ("open_sink", "read_file", "read_batches"))


def test_an_unknown_format_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"'csv'.*file\.format.*parquet"):
        load_format("csv")


def test_the_format_follows_the_last_dot() -> None:
    assert format_of("data-1.2-0.zstd.parquet") == "parquet"


PLAIN = [(name, t) for name, t in COLUMNS if name in ("int", "string", "double", "bigint")]


@pytest.mark.parametrize("name", FORMATS)
def test_batches_are_the_rows_of_the_file_in_order(name: str) -> None:
    io = MemoryFileIO()
    table = native_table("/w", PLAIN, io=io)
    rows = rows_table(table.schema, [*ROWS, *ROWS, *ROWS])
    path = f"/t/data-1.{name}"
    write_file(io, path, rows, table.options)
    names = [rows.column_names[1], rows.column_names[0]]
    for size in (1, 4, rows.num_rows, 1000):
        batches = list(read_batches(io, path, names, BatchSize(1 << 20, size)))
        assert all(batch.num_rows <= size for batch in batches)
        assert all(batch.column_names == names for batch in batches)
        cells = [row for batch in batches for row in batch.to_pylist()]
        assert repr(cells) == repr(rows.select(names).to_pylist())


@pytest.mark.parametrize("name", FORMATS)
def test_wide_rows_are_read_a_few_at_a_time(name: str) -> None:
    io = MemoryFileIO()
    table = native_table("/w", [("k", "INT"), ("v", "STRING")], io=io)
    rows = rows_table(table.schema, [{"k": n, "v": f"{n:05}" * 2000} for n in range(300)])
    path = f"/t/data-1.{name}"
    write_file(io, path, rows, table.options)
    batches = list(read_batches(io, path, None, BatchSize(50_000)))
    assert pa.concat_tables(batches).column("k").to_pylist() == list(range(300))
    assert {batch.num_rows for batch in batches[:-1]} <= set(range(1, 6))
    keys = list(read_batches(io, path, ["k"], BatchSize(50_000)))
    assert max(batch.num_rows for batch in keys) >= 50


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_written_in_parts_is_the_same_as_one_written_at_once(name: str) -> None:
    io, module = MemoryFileIO(), load_format(name)
    table = native_table("/w", PLAIN, io=io)
    rows = rows_table(table.schema, ROWS * 50)
    with io.open_output(f"/t/data-1.{name}") as stream:
        sink = module.open_sink(stream, rows.slice(0, 10), table.options)
        for start in range(0, rows.num_rows, 10):
            sink.write(rows.slice(start, 10))
        assert sink.size is None or sink.size > 0
        sink.close()
    write_file(io, f"/t/data-2.{name}", rows, table.options)
    one, two = (module.read_file(io, f"/t/data-{n}.{name}", None) for n in (1, 2))
    assert repr(one.to_pylist()) == repr(two.to_pylist())
    assert one.schema == two.schema


@pytest.mark.parametrize("name", FORMATS)
def test_batches_of_damaged_files_are_errors_that_name_them(name: str) -> None:
    io = MemoryFileIO()
    io.write_new(f"/t/data-1.{name}", b"PAR1 nothing of the kind")
    with pytest.raises(FormatError, match=r"/t/data-1\."):
        list(read_batches(io, f"/t/data-1.{name}", None, BatchSize(1 << 20)))
    with pytest.raises(FileNotFoundError):
        list(read_batches(io, f"/t/data-2.{name}", None, BatchSize(1 << 20)))


@pytest.mark.parametrize("name", ["orc", "avro"])
def test_a_stream_that_fails_is_an_error_and_not_the_end_of_the_process(name: str) -> None:
    io = MemoryFileIO()
    table = native_table("/w", PLAIN, io=io)
    rows = rows_table(table.schema, ROWS)
    with io.open_output(f"/t/data-1.{name}") as stream:
        sink = load_format(name).open_sink(stream, rows, table.options)
        sink.write(rows)
        stream.close()
        with pytest.raises((OSError, ValueError)):
            sink.close()
        sink.abort()
        del sink
        gc.collect()
