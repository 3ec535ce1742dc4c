"""Changelog files of producer `input`, beside the data files of the same rows."""

from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import StorageError
from ingestd.paimon.format.base import format_of, load_format
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW, serialize_row
from ingestd.paimon.spec.changelog_checks import writes_input
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.write.commit_message import CommitMessage
from ingestd.paimon.table.write.table_write import (
    changelog_file_names,
    data_file_names,
    write_bucket,
)
from tests.support.native_tables import native_table, rows_table

COLUMNS = [("id", "INT"), ("v", "STRING")]
ROWS = [
    {"id": 3, "v": "a"}, {"id": -1, "v": "b", "_kind": 1}, {"id": 3, "v": "c", "_kind": 2},
    {"id": 3, "v": "c", "_kind": 3}, {"id": -1, "v": "d", "_kind": 2},
]  # fmt: skip


def _table(**options: str) -> FileStoreTable:
    given = {"bucket": "2", "changelog-producer": "input", **options}
    return native_table("/w", COLUMNS, keys=["id"], options=given, io=MemoryFileIO())


def _write(table: FileStoreTable, rows: list[dict[str, Any]], first: int = 5) -> CommitMessage:
    data = rows_table(table.schema, rows, first)
    return write_bucket(table, EMPTY_ROW, 1, data, new_name=data_file_names(table))


def _stored(table: FileStoreTable, name: str) -> pa.Table:
    return load_format(format_of(name)).read_file(table.io, f"{table.path}/bucket-1/{name}", None)


def test_all_rows_are_reported_by_key_and_age_with_their_kinds() -> None:
    table = _table()
    message = _write(table, ROWS)
    (told,), (data,) = message.changelog_files, message.new_files
    rows = _stored(table, told.file_name)
    assert rows.column("id").to_pylist() == [-1, -1, 3, 3, 3]
    assert rows.column("v").to_pylist() == ["b", "d", "a", "c", "c"]
    assert rows.column("_VALUE_KIND").to_pylist() == [1, 2, 0, 2, 3]
    assert rows.column("_SEQUENCE_NUMBER").to_pylist() == [6, 9, 5, 7, 8]
    assert rows.schema == _stored(table, data.file_name).schema
    assert _stored(table, data.file_name).column("v").to_pylist() == ["d", "c"]


def test_metadata_is_that_of_a_data_file_of_level_0_with_these_rows() -> None:
    table = _table()
    (told,) = _write(table, ROWS).changelog_files
    types = [table.schema.field("id").type]
    assert (told.row_count, told.delete_row_count, told.level, told.file_source) == (5, 2, 0, 0)
    assert (told.min_sequence_number, told.max_sequence_number) == (5, 9)
    assert told.min_key == serialize_row(types, [-1]) and told.max_key == serialize_row(types, [3])
    assert told.file_size == table.io.size(f"{table.path}/bucket-1/{told.file_name}")


def test_files_are_named_and_encoded_as_the_options_for_changelogs_say() -> None:
    options = {"changelog-file.prefix": "told-", "changelog-file.format": "orc"}
    options |= {"changelog-file.stats-mode": "none", "file-index.bloom-filter.columns": "v"}
    message = _write(_table(**options), ROWS)
    (told,), (data,) = message.changelog_files, message.new_files
    assert told.file_name.startswith("told-") and PurePosixPath(told.file_name).suffix == ".orc"
    assert data.file_name.startswith("data-")
    assert told.value_stats_cols == () and data.value_stats_cols is None
    assert told.embedded_index is None and told.extra_files == ()
    assert data.embedded_index is not None
    assert changelog_file_names(_table())().startswith("changelog-")


def test_rows_that_writers_leave_out_are_not_reported() -> None:
    (told,) = _write(_table(**{"ignore-delete": "true"}), ROWS).changelog_files
    assert told.row_count == 3
    (told,) = _write(_table(**{"ignore-update-before": "true"}), ROWS).changelog_files
    assert told.row_count == 4
    assert _write(_table(**{"ignore-delete": "true"}), ROWS[1:2]).is_empty


def test_no_rows_make_no_files() -> None:
    assert _write(_table(), []).is_empty


def test_only_the_producer_input_is_written_by_whoever_writes_rows() -> None:
    assert writes_input(_table().schema)
    for producer in ("none", "lookup", "full-compaction"):
        table = _table(**{"changelog-producer": producer})
        assert not writes_input(table.schema)
        assert _write(table, ROWS).changelog_files == ()
    appended = native_table("/w2", COLUMNS, io=MemoryFileIO())
    assert not writes_input(appended.schema)


def test_files_roll_at_the_target_size_and_go_together_if_one_cannot_be_written() -> None:
    table = _table(**{"target-file-size": "1 b"})
    assert [file.row_count for file in _write(table, ROWS).changelog_files] == [1] * 5
    before = sorted(table.io.list_names(f"{table.path}/bucket-1"))
    names, rows = iter(["data-1-0.parquet"] * 2), rows_table(table.schema, ROWS)
    with pytest.raises(StorageError):
        write_bucket(table, EMPTY_ROW, 1, rows, new_name=lambda: next(names))
    assert next(names, None) is None
    assert sorted(table.io.list_names(f"{table.path}/bucket-1")) == before
