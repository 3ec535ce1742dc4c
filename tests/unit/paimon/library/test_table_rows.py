"""Rows in whatever form become the columns of a table."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.library.table_rows import arrow_rows
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.native_tables import native_table

ROW = {"id": 1, "price": Decimal("1.50"), "name": "a"}


@pytest.fixture
def table() -> FileStoreTable:
    columns = [("id", "INT"), ("price", "DECIMAL(9, 2)"), ("name", "STRING")]
    return native_table("/w", columns, io=MemoryFileIO())


class Frame:
    """A data frame of some package that speaks Arrow."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.table({"id": [1], "price": ["1.50"], "name": ["a"]}).__arrow_c_stream__()


@pytest.mark.parametrize(
    "data",
    [
        [ROW],
        ROW,
        pa.Table.from_pylist([ROW]),
        pa.RecordBatch.from_pylist([ROW]),
        pa.Table.from_pylist([ROW]).to_reader(),
        pa.table({"name": ["a"], "price": [1.5], "id": pa.array([1], pa.int64())}),
        Frame(),
    ],
    ids=["dictionaries", "one", "table", "batch", "reader", "other types", "frame"],
)
def test_every_form_is_the_same_rows(table: FileStoreTable, data: Any) -> None:
    assert arrow_rows(table, data).to_pylist() == [ROW]


def test_whole_numbers_of_any_type_are_accepted(table: FileStoreTable) -> None:
    rows = arrow_rows(table, [{"id": 1.0}, {"id": Decimal(2)}, {"id": 3}])
    assert rows["id"].to_pylist() == [1, 2, 3]


def test_columns_that_are_left_out_are_null(table: FileStoreTable) -> None:
    assert arrow_rows(table, [{"id": 1}]).to_pylist() == [{"id": 1, "price": None, "name": None}]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([{"id": 1, "nmae": "a"}], "no column nmae"),
        ([{"id": "x"}], "do not fit"),
        ([{"id": 1 << 70}], "do not fit"),
        ([{"name": "\ud800"}], "do not fit"),
        ([{"id": 1}, {"id": 1.5}], "do not fit"),
        ([{"id": Decimal("1.5")}], "do not fit"),
        ([{"id": Decimal("1e60")}], "do not fit"),
        ([{"id": float("nan")}], "do not fit"),
        (pa.table({"id": [1 << 40]}), "column id is int32"),
        (pa.table({"price": ["1.555"]}), "column price is decimal"),
        ([1], "not int"),
        (7, "from int"),
        ("text", "from str"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    table: FileStoreTable, data: Any, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        arrow_rows(table, data)
