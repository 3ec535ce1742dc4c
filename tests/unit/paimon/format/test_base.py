"""Choice of the file format."""

import pytest

from ingestd.errors import FormatError, UnsupportedError
from ingestd.paimon.format.base import FORMATS, format_of, load_format, read_batches
from ingestd.paimon.io.memory import MemoryFileIO
from tests.support.every_type import COLUMNS, ROWS
from tests.support.native_tables import native_table, rows_table


@pytest.mark.parametrize("name", FORMATS)
def test_every_registered_format_has_the_functions_of_one(name: str) -> None:
    module = load_format(name)
    assert all(callable(getattr(module, f)) for f in ("write_file", "encoded_size", "read_file"))


def test_an_unknown_format_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"'csv'.*file\.format.*parquet"):
        load_format("csv")


def test_the_format_stands_behind_the_last_dot() -> None:
    assert format_of("data-1.2-0.zstd.parquet") == "parquet"


PLAIN = [(name, t) for name, t in COLUMNS if name in ("int", "string", "double", "bigint")]


@pytest.mark.parametrize("name", FORMATS)
def test_batches_are_the_rows_of_the_file_in_order(name: str) -> None:
    io = MemoryFileIO()
    table = native_table("/w", PLAIN, io=io)
    rows = rows_table(table.schema, [*ROWS, *ROWS, *ROWS])
    path = f"/t/data-1.{name}"
    load_format(name).write_file(io, path, rows, table.options)
    names = [rows.column_names[1], rows.column_names[0]]
    for size in (1, 4, rows.num_rows, 1000):
        batches = list(read_batches(io, path, names, size))
        assert all(batch.num_rows <= size for batch in batches)
        assert all(batch.column_names == names for batch in batches)
        cells = [row for batch in batches for row in batch.to_pylist()]
        assert repr(cells) == repr(rows.select(names).to_pylist())


@pytest.mark.parametrize("name", FORMATS)
def test_batches_of_damaged_files_are_errors_that_name_them(name: str) -> None:
    io = MemoryFileIO()
    io.write_new(f"/t/data-1.{name}", b"PAR1 nothing of the kind")
    with pytest.raises(FormatError, match=r"/t/data-1\."):
        list(read_batches(io, f"/t/data-1.{name}", None, 10))
    with pytest.raises(FileNotFoundError):
        list(read_batches(io, f"/t/data-2.{name}", None, 10))
