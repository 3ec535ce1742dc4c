"""Deleting rows of append tables by a mark."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from ingestd.errors import CommitConflictError, ConfigError
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.rewrite import delete_rows as subject
from ingestd.paimon.table.rewrite.delete_rows import Deletion, delete_rows
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, native_table, put

Marks = Callable[[pa.Table], npt.NDArray[np.bool_]]


def new(folder: Path, commits: int = 3) -> FileStoreTable:
    table = native_table(folder, [("k", "INT"), ("v", "STRING")])
    for n in range(commits):
        put(table, [{"k": 10 * n + i, "v": f"v{n}"} for i in range(10)])
    return table


def keys(table: FileStoreTable) -> list[int]:
    return sorted(read_table(table).column("k").to_pylist())


def between(low: int, high: int) -> Marks:
    def doomed(rows: pa.Table) -> npt.NDArray[np.bool_]:
        found = rows.column("k").to_numpy()
        marks: npt.NDArray[np.bool_] = (found >= low) & (found < high)
        return marks

    return doomed


def delete(table: FileStoreTable, marks: Marks, *, dry_run: bool = False) -> Deletion:
    return delete_rows(table, marks, ("k",), now_ms=NOW_MS, dry_run=dry_run)


def names(table: FileStoreTable) -> set[str]:
    found = live_files(table, latest_snapshot(table.io, table.paths))
    return {entry.file.file_name for entry in found}


def test_marked_rows_go_and_only_files_that_had_them_are_written_anew(tmp_path: Path) -> None:
    table = new(tmp_path)
    before = names(table)
    done = delete(table, between(5, 14))
    assert (done.rows, done.files) == (9, 2)
    assert keys(table) == [*range(5), *range(14, 30)]
    assert len(before & names(table)) == 1
    assert done.snapshot is not None
    assert done.snapshot.commit_kind is CommitKind.COMPACT
    assert done.snapshot.total_record_count == 21
    assert verify(table) == []


def test_a_file_without_a_row_left_is_taken_out(tmp_path: Path) -> None:
    table = new(tmp_path)
    delete(table, between(0, 20))
    assert len(names(table)) == 1
    delete(table, between(0, 30))
    assert keys(table) == []
    assert verify(table) == []


def test_nothing_is_committed_for_nothing_or_for_a_rehearsal(tmp_path: Path) -> None:
    table = new(tmp_path)
    files = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert delete(table, between(100, 200)) == Deletion(0, 0)
    assert delete(table, between(5, 14), dry_run=True) == Deletion(9, 2)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == files


def planned_before(
    table: FileStoreTable, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]
) -> None:
    """Have something happen after a deletion has looked at the table."""

    def load(one: FileStoreTable) -> TableState:
        state = load_state(one)
        meanwhile()
        return state

    monkeypatch.setattr(subject, "load_state", load)


def test_rows_that_come_meanwhile_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new(tmp_path)
    planned_before(table, monkeypatch, lambda: put(table, [{"k": 7, "v": "late"}]))
    delete(table, between(5, 14))
    assert keys(table) == [*range(5), 7, *range(14, 30)]


def test_files_that_somebody_else_replaced_refuse_the_deletion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new(tmp_path, commits=6)
    compact = lambda: compact_table(table, now_ms=NOW_MS, full=True)  # noqa: E731
    planned_before(table, monkeypatch, compact)
    with pytest.raises(CommitConflictError):
        delete(table, between(5, 14))
    assert keys(table) == list(range(60))
    on_disk = {path.name for path in tmp_path.rglob("data-*")}
    assert len(on_disk) == 7, "six files, and the one that they became"


def test_an_interrupted_deletion_leaves_no_file(tmp_path: Path) -> None:
    table = new(tmp_path)
    files = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    calls = 0

    def interrupted(rows: pa.Table) -> npt.NDArray[np.bool_]:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise KeyboardInterrupt
        return between(5, 14)(rows)

    with pytest.raises(KeyboardInterrupt):
        delete(table, interrupted)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == files


def test_tables_with_keys_or_buckets_are_refused(tmp_path: Path) -> None:
    keyed = native_table(tmp_path / "a", [("k", "INT")], keys=["k"])
    with pytest.raises(ConfigError, match="needs an append table"):
        delete(keyed, between(0, 1))
    options = {"bucket": "2", "bucket-key": "k"}
    with pytest.raises(ConfigError, match="needs an append table"):
        delete(native_table(tmp_path / "b", [("k", "INT")], options=options), between(0, 1))
