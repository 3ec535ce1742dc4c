"""File indexes of files that are there already: written once, the data files stay."""

from typing import Any

import pytest

from ingestd.errors import CommitConflictError, ConfigError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.predicate_text import parse_predicate
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    RenameColumn,
    SetOption,
    UpdateColumnType,
)
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.files.data_file_indexes import indexes_may_match, read_file_indexes
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.rewrite import file_index_rewrite
from ingestd.paimon.table.rewrite.file_index_rewrite import rewrite_file_indexes
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, alter, native_table, put

BLOOM = SetOption("file-index.bloom-filter.columns", "v")
BESIDE = SetOption("file-index.in-manifest-threshold", "1 b")
ROWS = [{"p": n % 2, "k": n, "v": n * 2} for n in range(20)]


def new(**options: str) -> FileStoreTable:
    table = native_table(
        "/w", [("p", "INT"), ("k", "INT"), ("v", "INT")], keys=["p", "k"], partitions=["p"],
        options={"bucket": "1", **options}, io=MemoryFileIO(),
    )  # fmt: skip
    put(table, ROWS)
    put(table, [{"p": 0, "k": 0, "v": 7}])
    return table


def rewrite(table: FileStoreTable, **options: Any) -> list[tuple[int, int]]:
    done = list(rewrite_file_indexes(table, now_ms=NOW_MS, **options))
    return [(one.files, one.indexed) for one in done]


def entries(table: FileStoreTable) -> list[Any]:
    return list(live_files(table, latest_snapshot(table.io, table.paths)))


def opened(table: FileStoreTable, where: str) -> int:
    """How many files a filter opens by their indexes."""
    predicate = parse_predicate(where, table.schema.fields)
    found = [(e.file, read_file_indexes(table, e.partition, e.bucket, e.file)) for e in
             entries(table)]  # fmt: skip
    return sum(indexes_may_match(table, file, ix or {}, predicate) for file, ix in found)


@pytest.mark.parametrize("where", [(BLOOM,), (BLOOM, BESIDE)], ids=["embedded", "beside"])
def test_missing_indexes_are_written_once(where: tuple[SetOption, ...]) -> None:
    table = alter(new(), *where)
    rows, files = read_table(table), [e.file.file_name for e in entries(table)]
    assert opened(table, "v = 9999") == 3
    assert rewrite(table, dry_run=True) == [(2, 2), (1, 1)]
    assert opened(table, "v = 9999") == 3
    assert rewrite(table) == [(2, 2), (1, 1)]
    assert sorted(e.file.file_name for e in entries(table)) == sorted(files)
    assert opened(table, "v = 9999") == 0
    assert opened(table, "v = 7") == 1
    assert read_table(table) == rows
    assert rewrite(table) == []
    newest = latest_snapshot(table.io, table.paths)
    assert newest is not None
    assert (newest.id, newest.commit_kind) == (4, CommitKind.COMPACT)
    assert verify(table) == []


def test_indexes_are_replaced_by_those_that_the_options_require_now() -> None:
    table = alter(new(**{"file-index.bitmap.columns": "v"}), BESIDE)
    table = alter(table, SetOption("file-index.bitmap.columns", "k"), BLOOM)
    assert rewrite(table) == [(2, 2), (1, 1)]
    for entry in entries(table):
        indexes = read_file_indexes(table, entry.partition, entry.bucket, entry.file)
        assert {name: set(kinds) for name, kinds in (indexes or {}).items()} == {
            "k": {"bitmap"}, "v": {"bloom-filter"},
        }  # fmt: skip
    assert verify(table) == []


def test_files_of_older_schemas_have_indexes_under_their_own_names() -> None:
    table = alter(new(), RenameColumn("v", "w"), AddColumn("late", parse_type("INT")))
    table = alter(table, UpdateColumnType("w", parse_type("BIGINT")))
    table = alter(table, SetOption("file-index.bloom-filter.columns", "w,late"))
    put(table, [{"p": 1, "k": 50, "w": 2**40, "late": 5}])
    assert rewrite(table) == [(2, 2), (2, 1)]
    indexes = [
        set(read_file_indexes(table, e.partition, e.bucket, e.file) or {}) for e in entries(table)
    ]
    assert sorted(map(sorted, indexes)) == [["late", "w"], ["v"], ["v"], ["v"]]
    assert opened(table, "w = 9999") == 0
    assert opened(table, f"w = {2**40}") == 1
    assert rewrite(table) == []


def test_an_index_that_cannot_hold_the_values_is_left_out_and_no_file_is_rewritten_again() -> None:
    table = native_table("/w", [("v", "STRING"), ("d", "INT")], io=MemoryFileIO())
    put(table, [{"v": "x" * 10, "d": None}])
    table = alter(table, SetOption("file-index.bsi.columns", "d"), BLOOM)
    rewrite(table)
    assert rewrite(table) == []


def test_expired_snapshots_take_no_data_file_along() -> None:
    table = alter(new(), BLOOM, BESIDE)
    assert rewrite(table) == [(2, 2), (1, 1)]
    rows = read_table(table)
    settings = expire_settings({"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"})
    assert expire_snapshots(table, settings, NOW_MS).ids
    assert read_table(table) == rows
    assert verify(table) == []
    compact_table(table, full=True, now_ms=NOW_MS)
    expire_snapshots(table, settings, NOW_MS)
    assert read_table(table) == rows
    assert len(entries(table)) == 2


def test_a_partition_that_changes_meanwhile_is_planned_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = alter(new(), BLOOM, BESIDE)
    commit_rewrite, turns = file_index_rewrite.commit_rewrite, iter([True])

    def late(*arguments: Any, **named: Any) -> Any:
        if next(turns, False):
            compact_table(table, full=True, now_ms=NOW_MS)
        return commit_rewrite(*arguments, **named)

    monkeypatch.setattr(file_index_rewrite, "commit_rewrite", late)
    rows = read_table(table)
    # Of the other partition, a file got its indexes when it was compacted.
    assert rewrite(table) == [(1, 1)]
    assert opened(table, "v = 9999") == 0
    assert read_table(table) == rows
    assert verify(table) == []


def test_a_lost_rewrite_leaves_data_files_and_no_index_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = alter(new(), BLOOM, BESIDE)
    rows, files = read_table(table), set(table.io.list_names(f"{table.path}/p=0/bucket-0"))

    def refuse(*arguments: Any, **named: Any) -> Any:
        raise CommitConflictError("another writer")

    monkeypatch.setattr("ingestd.paimon.table.rewrite.rewrite_commit.commit", refuse)
    with pytest.raises(CommitConflictError, match="another writer"):
        rewrite(table)
    assert set(table.io.list_names(f"{table.path}/p=0/bucket-0")) == files
    assert read_table(table) == rows


def test_a_table_without_indexes_in_its_options_is_refused() -> None:
    with pytest.raises(ConfigError, match="name columns in an option"):
        rewrite(new())
