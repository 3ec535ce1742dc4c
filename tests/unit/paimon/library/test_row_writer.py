"""Rows into the files of their partitions and buckets."""

import pyarrow as pa
import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.library.row_writer import RowWriter
from ingestd.paimon.table.metadata.table_state import TableState
from tests.support.native_tables import native_table, rows_table

COLUMNS = [("id", "INT"), ("a", "STRING"), ("b", "INT")]


def test_each_partition_gets_its_rows_nulls_being_equal() -> None:
    table = native_table("/w", COLUMNS, partitions=["a", "b"], io=MemoryFileIO())
    pairs = [("x", 1), (None, 1), ("x", 2), (None, 1), ("x", 1), (None, None)]
    rows = [{"id": n, "a": a, "b": b} for n, (a, b) in enumerate(pairs)]
    row_writer = RowWriter(table, TableState(None), "user", fresh=False)
    written = list(row_writer.write(rows_table(table.schema, rows)))
    counts = {table.partition_values(one.partition): one.new_files[0].row_count for one in written}
    assert counts == {("x", 1): 2, (None, 1): 2, ("x", 2): 1, (None, None): 1}
    assert not row_writer.takes_all_at_once


def test_keys_that_are_known_stay_in_their_bucket_from_one_write_to_the_next() -> None:
    options = {"dynamic-bucket.target-row-num": "2"}
    table = native_table("/w", COLUMNS, keys=["id"], options=options, io=MemoryFileIO())
    row_writer = RowWriter(table, TableState(None), "user", fresh=False)
    rows = rows_table(table.schema, [{"id": n} for n in range(5)])
    first = {one.bucket: one.new_files[0].row_count for one in row_writer.write(rows)}
    assert first == {one.bucket: one.new_files[0].row_count for one in row_writer.write(rows)}
    assert len(first) == 3
    index = [
        entry.row_count
        for index_file in row_writer.index_files()
        for entry in index_file.new_index_files
    ]
    assert sum(index) == 5


@pytest.mark.parametrize("rows", [0, 1])
def test_no_rows_make_no_files(rows: int) -> None:
    table = native_table("/w", COLUMNS, keys=["id"], options={"bucket": "3"}, io=MemoryFileIO())
    row_writer = RowWriter(table, TableState(None), "user", fresh=False)
    found: pa.Table = rows_table(table.schema, [{"id": 1}][:rows])
    assert len(list(row_writer.write(found))) == rows
