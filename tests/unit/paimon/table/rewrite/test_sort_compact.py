"""Sorted compaction of append tables: the same rows in order, and nothing lost beside it."""

from typing import Any

import pytest

from ingestd.errors import CommitConflictError, ConfigError, StorageError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.rewrite import sort_compact as subject
from ingestd.paimon.table.rewrite.sort_compact import (
    SortedPartition,
    plan_sort,
    sort_compact,
    sort_fields,
)
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.native_tables import NOW_MS, native_table, put

MAP = {"type": "MAP", "key": "INT", "value": "INT"}
COLUMNS = [("p", "INT"), ("a", "INT"), ("s", "STRING"), ("m", MAP)]


def filled(**options: str) -> FileStoreTable:
    table = native_table("/w", COLUMNS, partitions=["p"], options=options, io=MemoryFileIO())
    for turn in range(3):
        put(table, [{"p": n % 2, "a": (n * 7) % 11, "s": f"{turn}"} for n in range(20)])
    return table


def run(table: FileStoreTable, *columns: str, strategy: str = "order") -> list[SortedPartition]:
    return list(sort_compact(table, columns, strategy, clock_ms=lambda: NOW_MS))


def cells(table: FileStoreTable, partition: int) -> list[tuple[int, str]]:
    found = read_table(table).to_pylist()
    return [(row["a"], row["s"]) for row in found if row["p"] == partition]


def files(table: FileStoreTable) -> int:
    return len(live_files(table, latest_snapshot(table.io, table.paths)))


def test_each_partition_becomes_sorted_by_a_snapshot_of_its_own() -> None:
    table = filled()
    before = [sorted(cells(table, p)) for p in (0, 1)]
    done = run(table, "a", "s")
    assert [cells(table, p) for p in (0, 1)] == before
    assert [one.snapshot.commit_kind for one in done if one.snapshot] == [CommitKind.COMPACT] * 2
    assert files(table) == 2
    assert verify(table) == []
    assert [row[1] for row in cells(filled_by(table, "s"), 0)] == ["0"] * 10 + ["1"] * 10 + [
        "2"
    ] * 10


def filled_by(table: FileStoreTable, column: str) -> FileStoreTable:
    run(table, column)
    return table


def test_z_order_keeps_all_rows() -> None:
    table = filled()
    before = [sorted(cells(table, p)) for p in (0, 1)]
    run(table, "a", "s", strategy="zorder")
    assert [sorted(cells(table, p)) for p in (0, 1)] == before
    assert verify(table) == []


def test_what_is_appended_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled()
    before, done = subject._in_order, list[object]()

    def and_somebody_appends(*arguments: Any) -> Any:
        yield from before(*arguments)
        done.append(put(table, [{"p": 0, "a": 100 + len(done), "s": "new"}]))

    monkeypatch.setattr(subject, "_in_order", and_somebody_appends)
    run(table, "a")
    assert [row for row in cells(table, 0) if row[1] == "new"] == [(100, "new"), (101, "new")]
    assert len(cells(table, 0)) == 32
    assert verify(table) == []


def test_files_that_somebody_compacts_meanwhile_refuse_it(monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled(**{"compaction.min.file-num": "2"})
    before = subject._in_order
    kept = sorted(cells(table, 0))

    def and_somebody_compacts(*arguments: Any) -> Any:
        yield from before(*arguments)
        compact_table(table, now_ms=NOW_MS)

    monkeypatch.setattr(subject, "_in_order", and_somebody_compacts)
    with pytest.raises(CommitConflictError, match="removed by another commit"):
        run(table, "a")
    assert sorted(cells(table, 0)) == kept
    assert verify(table) == []


def test_nothing_is_left_of_a_partition_that_cannot_be_written() -> None:
    table = filled()
    there = set(table.io.files)  # type: ignore[attr-defined]
    io = FaultyFileIO(table.io, [ValidationIssue("try_write_atomic", "snapshot-4", times=99),
                                 ValidationIssue("open_output", "p=1/", first=1)])  # fmt: skip
    broken = FileStoreTable(table.path, table.schema, io, table.name)
    with pytest.raises(StorageError, match="injected"):
        run_only(broken, 1)
    assert set(table.io.files) == there  # type: ignore[attr-defined]


def run_only(table: FileStoreTable, partition: int) -> list[SortedPartition]:
    wanted = [p.bucket.partition for p in plan_sort(table, lambda values: values[0] == partition)]
    found = sort_compact(table, ["a"], clock_ms=lambda: NOW_MS, partition_filter=frozenset(wanted))
    return list(found)


@pytest.mark.parametrize(
    ("columns", "strategy", "problem"),
    [
        (["a"], "hilbert", "'hilbert' is not supported"),
        (["m"], "order", "by m of type MAP"),
        (["a", "a"], "order", "each once"),
        ([], "order", "name the columns"),
        (["x"], "order", "has no column x"),
    ],
)
def test_what_cannot_be_sorted_is_named(columns: list[str], strategy: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        sort_fields(filled(), columns, strategy)


@pytest.mark.parametrize(
    "options", [{"bucket": "2", "bucket-key": "a"}, {}, {"clustering.incremental": "true"}]
)
def test_other_tables_are_refused(options: dict[str, str]) -> None:
    keys = [] if options else ["a"]
    table = native_table("/w", [("a", "INT")], keys=keys, options=options, io=MemoryFileIO())
    with pytest.raises(ConfigError, match=r"db\.t cannot be sorted"):
        sort_fields(table, ["a"], "order")


def test_columns_count_in_the_order_given() -> None:
    assert [field.name for field in sort_fields(filled(), ["s", "a"], "order")] == ["s", "a"]
