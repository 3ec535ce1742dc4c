"""What a data file must agree in with its schema and its manifest entry."""

import dataclasses

import pyarrow as pa
import pytest

from ingestd.errors import FormatError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.table.files.data_files import check_columns, check_nulls
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from tests.support.native_tables import native_table, put

ROWS = pa.table({"id": [1, 2], "v": ["x", None]})


@pytest.fixture
def table() -> FileStoreTable:
    table = native_table("/w", [("id", "INT"), ("v", "STRING")], io=MemoryFileIO())
    put(table, [{"id": 1, "v": "x"}, {"id": 2}])
    return table


@pytest.fixture
def file(table: FileStoreTable) -> DataFileMeta:
    (entry,) = live_files(table, latest_snapshot(table.io, table.paths))
    return entry.file


def test_rows_as_promised_pass(table: FileStoreTable, file: DataFileMeta) -> None:
    check_columns("f", ROWS, file, ["id", "v"])
    check_nulls("f", ROWS, file, table.schema)


def test_a_column_that_the_schema_has_and_the_file_has_not_is_an_error(file: DataFileMeta) -> None:
    with pytest.raises(FormatError, match="data file f has no column w, which its schema 0 has"):
        check_columns("f", ROWS, file, ["id", "w"])
    partial = dataclasses.replace(file, write_cols=("id",))
    check_columns("f", ROWS, partial, ["id", "w"])


def test_other_nulls_than_promised_are_an_error(table: FileStoreTable, file: DataFileMeta) -> None:
    other = ROWS.set_column(1, "v", pa.array(["x", "y"]))
    with pytest.raises(FormatError, match="data file f has 0 nulls in column v, expected 1"):
        check_nulls("f", other, file, table.schema)


def test_without_counts_there_is_nothing_to_compare(
    table: FileStoreTable, file: DataFileMeta
) -> None:
    unknown = dataclasses.replace(file.value_stats, null_counts=(None, None))
    other = ROWS.set_column(1, "v", pa.array(["x", "y"]))
    check_nulls("f", other, dataclasses.replace(file, value_stats=unknown), table.schema)


def test_an_unknown_row_kind_is_an_error(file: DataFileMeta) -> None:
    kinds = pa.table({"_VALUE_KIND": pa.array([0, 3, None], pa.int8())})
    check_columns("/f", kinds, file, [])
    for wrong in (-1, 4):
        rows = pa.table({"_VALUE_KIND": pa.array([0, wrong], pa.int8())})
        with pytest.raises(FormatError, match=rf"/f has row kinds from .*{wrong}"):
            check_columns("/f", rows, file, [])
