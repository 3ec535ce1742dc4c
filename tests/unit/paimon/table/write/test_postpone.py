"""How rows are written that wait for their bucket: as Java's writer does it."""

import re
from typing import Any

import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW, deserialize_row
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND
from ingestd.paimon.table.files.data_files import stored_rows
from ingestd.paimon.table.metadata.file_store_scan import live_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import CommitMessage
from ingestd.paimon.table.write.postpone import postponed_table
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket
from tests.support.java_fixtures import unpack
from tests.support.native_tables import native_table, rows_table

ROWS = [
    {"k": 26, "v": "x", "_kind": 0},
    {"k": 4, "v": None, "_kind": 3},
    {"k": 26, "v": "y", "_kind": 2},
]


def _table(*columns: tuple[str, str], **options: str) -> FileStoreTable:
    named = {name.replace("_", "."): value for name, value in options.items()}
    found = [("k", "INT"), ("v", "STRING"), *columns]
    options = {"bucket": "-2", **named}
    return native_table("/w", found, keys=["k"], options=options, io=MemoryFileIO())


def _write(table: FileStoreTable, rows: list[dict[str, Any]]) -> CommitMessage:
    room = postponed_table(table, "someone")
    new_name = data_file_names(room)
    return write_bucket(room, EMPTY_ROW, -2, rows_table(table.schema, rows, 7), new_name=new_name)


def test_rows_stay_as_they_came_without_numbers() -> None:
    table = _table()
    (file,) = _write(table, ROWS).new_files
    rows = stored_rows(table, f"/w/db.db/t/bucket-postpone/{file.file_name}", file).to_pylist()
    assert [(row["k"], row["v"], row[VALUE_KIND]) for row in rows] == [
        (26, "x", 0), (4, None, 3), (26, "y", 2),
    ]  # fmt: skip
    assert {row[SEQUENCE_NUMBER] for row in rows} == {-1}
    assert list(rows[0]) == ["_KEY_k", SEQUENCE_NUMBER, VALUE_KIND, "k", "v"]


def test_files_are_described_as_java_describes_them(tmp_path: Any) -> None:
    java = unpack("postpone", tmp_path).table
    theirs = _live(java)[0].file
    message = _write(_table(), ROWS)
    (ours,) = message.new_files
    assert (message.bucket, message.total_buckets) == (-2, -2)
    pattern = r"data--u-[a-z]+-s-\d+-w-[0-9a-f-]{36}-0\.avro"
    for file in (ours, theirs):
        assert re.fullmatch(pattern, file.file_name)
        assert (file.min_sequence_number, file.max_sequence_number, file.level) == (-1, -1, 0)
        assert file.value_stats_cols == ()
        assert file.key_stats.null_counts == (None,)
    assert ours.key_stats == theirs.key_stats
    assert ours.value_stats == theirs.value_stats
    assert ours.delete_row_count == 1
    types = [java.schema.field("k").type]
    ends = [deserialize_row(types, key) for key in (ours.min_key, ours.max_key)]
    assert ends == [(26,), (26,)]


@pytest.mark.parametrize(
    ("column", "extension"),
    [
        (("t", "TIMESTAMP(9)"), "orc"),
        (("t", "TIMESTAMP(3)"), "avro"),
        (("a b", "INT"), "orc"),
    ],
)
def test_a_type_or_a_name_that_avro_does_not_know_keeps_the_format_of_the_table(
    column: tuple[str, str], extension: str
) -> None:
    (file,) = _write(_table(column, file_format="orc"), ROWS[:1]).new_files
    assert file.file_name.endswith(f".{extension}")


def _live(table: FileStoreTable) -> list[Any]:
    return live_entries(table, load_state(table).manifests)
