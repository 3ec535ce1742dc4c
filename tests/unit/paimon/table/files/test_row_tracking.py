"""Row ids: their assignment in commits, and files with columns of the same rows."""

from dataclasses import replace

import pytest

from ingestd.errors import ConfigError, FormatError
from ingestd.paimon.io.memory import MemoryFileIO
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.files.row_tracking import (
    column_sources,
    rewritten_files,
    row_groups,
    with_row_ids,
)
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.native_tables import NOW_MS, native_table, put, rows_table, write

TRACKED = {"bucket": "-1", "row-tracking.enabled": "true"}


def _table(**options: str) -> FileStoreTable:
    columns = [("a", "INT"), ("b", "INT")]
    return native_table("/w", columns, options={**TRACKED, **options}, io=MemoryFileIO())


def _files(table: FileStoreTable) -> list[DataFileMeta]:
    entries = live_files(table, latest_snapshot(table.io, table.paths))
    return sorted((entry.file for entry in entries), key=lambda file: file.first_row_id or 0)


def test_a_commit_that_lost_a_race_numbers_its_rows_after_those_of_the_winner() -> None:
    table = _table()
    put(table, [{"a": 1}, {"a": 2}])
    state = load_state(table)
    messages = tuple(write(table, state, rows_table(table.schema, [{"a": 5}])))
    put(table, [{"a": 3}])
    result = commit(table, "late", ManifestCommittable(1, messages), state=state, now_ms=NOW_MS)
    assert result.snapshot is not None
    assert result.snapshot.next_row_id == 4
    files = _files(table)
    assert [file.first_row_id for file in files] == [0, 2, 3]
    assert [file.max_sequence_number for file in files] == [1, 2, 3]
    (manifest,) = result.state.manifests[-1:]
    assert (manifest.min_row_id, manifest.max_row_id) == (3, 3)


def test_only_tables_without_key_and_buckets_have_row_ids() -> None:
    options = {"row-tracking.enabled": "true"}
    for keys, bucket in ((["a"], "-1"), ([], "2")):
        more = {"bucket": bucket, "bucket-key": "a"} if bucket == "2" else {"bucket": bucket}
        with pytest.raises(ConfigError, match=r"row-tracking\.enabled"):
            native_table("/w", [("a", "INT")], keys=keys, options={**options, **more})
    plain = native_table("/w", [("a", "INT")], io=MemoryFileIO())
    with pytest.raises(ConfigError, match="has no row ids"):
        with_row_ids(plain)
    assert rewritten_files(plain, ()) == ()


def _evolving() -> tuple[FileStoreTable, DataFileMeta]:
    table = _table(**{"data-evolution.enabled": "true"})
    plain = table.with_schema(replace(table.schema, options=TRACKED))
    put(plain, [{"a": 1}, {"a": 2}])
    return table, replace(_files(plain)[0], file_name="base.parquet")


def _file(
    base: DataFileMeta, name: str, first: int, rows: int, number: int, column: str
) -> DataFileMeta:
    return replace(
        base, file_name=name, first_row_id=first, row_count=rows, max_sequence_number=number,
        write_cols=(column,),
    )  # fmt: skip


def test_a_column_is_read_from_the_newest_file_that_has_it() -> None:
    table, base = _evolving()
    newer, newest = _file(base, "2", 0, 2, 2, "b"), _file(base, "3", 0, 2, 3, "b")
    (group,) = row_groups(table, [base, newest, newer])
    assert group == (newest, newer, base)
    sources = column_sources(table, group, table.schema.fields)
    assert sources == [([base], [table.schema.fields[0]]), ([newest], [table.schema.fields[1]])]
    assert column_sources(table, group, []) == [([newest], [])]


def test_blob_files_follow_each_other_and_the_newest_of_the_same_row_is_read() -> None:
    table, base = _evolving()
    only_a = replace(base, write_cols=("a",))
    old, new = _file(base, "1.blob", 0, 1, 1, "b"), _file(base, "2.blob", 0, 1, 2, "b")
    last = _file(base, "3.blob", 1, 1, 1, "b")
    (group,) = row_groups(table, [last, old, only_a, new])
    assert group[0] == only_a
    assert column_sources(table, group, table.schema.fields[1:]) == [
        ([new, last], [table.schema.fields[1]])
    ]
    (part,) = row_groups(table, [only_a, old])
    with pytest.raises(FormatError, match="do not have its rows"):
        column_sources(table, part, table.schema.fields)


def test_files_with_other_rows_or_without_row_ids_are_refused() -> None:
    table, base = _evolving()
    for other in (_file(base, "x", 1, 2, 2, "b"), _file(base, "x", 0, 1, 2, "b")):
        with pytest.raises(FormatError, match="not those of the other files"):
            row_groups(table, [base, other])
    with pytest.raises(FormatError, match="has no row ids"):
        row_groups(table, [replace(base, first_row_id=None)])
