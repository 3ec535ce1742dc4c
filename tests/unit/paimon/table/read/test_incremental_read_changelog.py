"""The changes that snapshots brought."""

import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn
from ingestd.paimon.table.read.incremental_read import change_fields, iter_changelog, read_changelog
from tests.support.native_tables import alter, native_table, put


def test_changes_are_the_written_rows_with_their_kinds() -> None:
    table = native_table("/w", [("id", "INT")], keys=["id"], io=MemoryFileIO())
    put(table, [{"id": 2}, {"id": 1}])
    put(table, [{"id": 1, "_kind": 3}, {"id": 2, "_kind": 2}, {"id": 3, "_kind": 1}])
    found = read_changelog(table).to_pylist()
    assert [(row["_snapshot"], row["rowkind"], row["id"]) for row in found] == [
        (1, "+I", 1), (1, "+I", 2), (2, "-D", 1), (2, "+U", 2), (2, "-U", 3),
    ]  # fmt: skip


def test_changes_of_a_span_of_snapshots() -> None:
    table = native_table("/w", [("v", "INT")], io=MemoryFileIO())
    for number in range(1, 5):
        put(table, [{"v": number}])
    assert read_changelog(table, 2, 3).column("v").to_pylist() == [2, 3]
    assert read_changelog(table, 3).column("_snapshot").to_pylist() == [3, 4]
    assert read_changelog(table, 5).num_rows == 0


def test_partitions_and_buckets_come_in_order() -> None:
    table = native_table(
        "/w", [("p", "STRING"), ("id", "INT")], keys=["p", "id"], partitions=["p"],
        options={"bucket": "2"}, io=MemoryFileIO(),
    )  # fmt: skip
    put(table, [{"p": p, "id": n} for p in ("b", "a") for n in range(6)])
    parts = list(iter_changelog(table))
    assert [part.column("p")[0].as_py() for part in parts] == ["a", "a", "b", "b"]


def test_old_changes_come_in_the_columns_of_the_handle() -> None:
    table = native_table("/w", [("v", "INT")], io=MemoryFileIO())
    put(table, [{"v": 1}])
    newer = alter(table, AddColumn("w", parse_type("STRING")))
    found = read_changelog(newer)
    assert found.column_names == [field.name for field in change_fields(newer)]
    assert found.column("w").to_pylist() == [None]


def test_changes_of_a_snapshot_that_has_expired_are_an_error() -> None:
    table = native_table("/w", [("v", "INT")], io=MemoryFileIO())
    put(table, [{"v": 1}])
    put(table, [{"v": 2}])
    table.io.delete_quietly(table.paths.snapshot(1))
    with pytest.raises(ConfigError, match="snapshots 2 to 2 exist"):
        read_changelog(table, 1)
    assert read_changelog(table).column("_snapshot").to_pylist() == [2]


def test_changes_of_an_expired_snapshot_are_read_from_what_is_kept_of_it() -> None:
    table = native_table("/w", [("v", "INT")], io=MemoryFileIO())
    for number in (1, 2):
        put(table, [{"v": number}])
    kept = table.io.read_bytes(table.paths.snapshot(1))
    table.io.write_new(f"{table.path}/changelog/changelog-1", kept)
    table.io.delete_quietly(table.paths.snapshot(1))
    assert read_changelog(table).column("v").to_pylist() == [1, 2]
