"""Columns, places and rows of data files."""

from dataclasses import replace

import pytest

from ingestd.errors import FormatError, UnsupportedError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW, serialize_row
from ingestd.paimon.table.files.data_files import (
    data_file_fields,
    live_path,
    read_data_file,
    stored_rows,
)
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from tests.support.metadata_tables import data_file
from tests.support.native_tables import native_table, put


def test_an_append_table_stores_its_columns_only() -> None:
    table = native_table("/w", [("a", "INT")], io=MemoryFileIO())
    assert data_file_fields(table.schema) == table.schema.fields


def test_key_columns_leave_out_partition_columns() -> None:
    table = native_table(
        "/w", [("p", "INT"), ("k", "INT")], keys=["p", "k"], partitions=["p"], io=MemoryFileIO()
    )
    names = [field.name for field in data_file_fields(table.schema)]
    assert names == ["_KEY_k", "_SEQUENCE_NUMBER", "_VALUE_KIND", "p", "k"]


def test_a_file_lies_in_its_partition_or_where_its_entry_says() -> None:
    table = native_table("/w", [("p", "STRING"), ("v", "INT")], partitions=["p"], io=MemoryFileIO())
    partition = serialize_row(table.partition_types, ("a/b",))
    file = data_file("data-1.parquet")
    path = live_path(table, partition, 3, file)
    assert path == "/w/db.db/t/p=a%2Fb/bucket-3/data-1.parquet"
    moved = replace(file, external_path="/elsewhere/data-1.parquet")
    assert live_path(table, partition, 3, moved) == "/elsewhere/data-1.parquet"


def test_a_file_with_another_number_of_rows_than_promised_is_refused() -> None:
    table = native_table("/w", [("v", "INT")], io=MemoryFileIO())
    put(table, [{"v": 1}])
    (entry,) = live_files(table, latest_snapshot(table.io, table.paths))
    promised = replace(entry.file, row_count=2)
    with pytest.raises(FormatError, match="has 1 row, expected 2"):
        read_data_file(table, EMPTY_ROW, 0, promised, table.schema.fields)


def test_a_missing_file_is_named() -> None:
    table = native_table("/w", [("v", "INT")], io=MemoryFileIO())
    put(table, [{"v": 1}])
    (entry,) = live_files(table, latest_snapshot(table.io, table.paths))
    for name in ("gone.parquet", "gone.csv"):
        with pytest.raises(FormatError, match=rf"/w/{name} is missing"):
            stored_rows(table, f"/w/{name}", entry.file)


def test_a_file_of_a_format_that_is_not_supported_is_refused() -> None:
    table = native_table("/w", [("v", "INT")], io=MemoryFileIO())
    put(table, [{"v": 1}])
    (entry,) = live_files(table, latest_snapshot(table.io, table.paths))
    with pytest.raises(UnsupportedError, match="'lance'"):
        stored_rows(table, "/w/data-1.lance", entry.file)
