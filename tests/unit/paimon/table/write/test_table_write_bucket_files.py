"""Rows in memory as files of a bucket: names, rolling, what the manifest says; see test_write."""

from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import StorageError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.write.file_metadata import retract_count
from ingestd.paimon.table.write.table_write import WrittenBucketFiles
from tests.support.native_tables import native_table, rows_table

ROWS = [{"id": 1, "v": "a"}, {"id": 2, "v": "b", "_kind": 1}, {"id": 3, "v": "b", "_kind": 3}]


def _table(**options: str) -> FileStoreTable:
    columns = [("id", "INT"), ("v", "STRING")]
    given = {"bucket": "2", **options}
    return native_table("/w", columns, keys=["id"], options=given, io=MemoryFileIO())


def _files(table: FileStoreTable, names: list[str], **more: Any) -> WrittenBucketFiles:
    left = iter(names)
    return WrittenBucketFiles(table, (), 1, table.options.at_level(0), lambda: next(left), **more)


def _rows(table: FileStoreTable) -> pa.Table:
    return rows_table(table.schema, ROWS, 7)


def test_all_rows_are_written_as_they_stand() -> None:
    table = _table()
    (file,) = _files(table, ["data-a-0.parquet"]).write(_rows(table))
    assert (file.file_name, file.row_count, file.delete_row_count) == ("data-a-0.parquet", 3, 2)
    assert (file.min_sequence_number, file.max_sequence_number, file.level) == (7, 9, 0)
    assert retract_count(_rows(table)) == 2


def test_files_have_the_indexes_of_the_table_unless_they_are_to_have_none() -> None:
    table = _table(**{"file-index.bloom-filter.columns": "v"})
    (plain,) = _files(table, ["a-0.parquet"], indexed=False).write(_rows(table))
    (file,) = _files(table, ["a-1.parquet"]).write(_rows(table))
    assert plain.embedded_index is None and file.embedded_index is not None


def test_files_that_nobody_saw_can_be_taken_back() -> None:
    table = _table(**{"target-file-size": "1 b", "file-index.in-manifest-threshold": "1 b",
                      "file-index.bloom-filter.columns": "v"})  # fmt: skip
    names = [f"a-{n}.parquet" for n in range(3)]
    files = _files(table, names)
    written = files.write(_rows(table))
    assert len(table.io.list_names("/w/db.db/t/bucket-1")) == 6
    files.delete(written)
    assert table.io.list_names("/w/db.db/t/bucket-1") == []
    with pytest.raises(StorageError):
        _files(table, ["b.parquet", "b.parquet"]).write(_rows(table))
    assert table.io.list_names("/w/db.db/t/bucket-1") == []
