"""Waiting rows moved into buckets: which number of them, in which order, in one snapshot."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ingestd.errors import CommitConflictError, ConfigError, UnsupportedError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import serialize_row
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.predicate import Comparison
from ingestd.paimon.spec.schema_change import AddColumn, SetOption
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.commit.table_commit import CommitResult, commit
from ingestd.paimon.table.metadata.file_store_scan import live_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.read.scan_plan import OTHER_BUCKET
from ingestd.paimon.table.read.table_read import TableReader, read_table
from ingestd.paimon.table.rewrite import postpone_move
from ingestd.paimon.table.rewrite.postpone_move import move_postponed
from ingestd.paimon.table.verify.table_verify import verify
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from tests.support.java_fixtures import unpack
from tests.support.native_tables import NOW_MS, alter, native_table, put, rows_table, write

Rows = Sequence[Mapping[str, Any]]
COLUMNS = [("k", "INT"), ("day", "STRING"), ("v", "INT")]


def _table(buckets: int = 3) -> FileStoreTable:
    options = {"bucket": "-2", "postpone.default-bucket-num": str(buckets)}
    return native_table(
        "/w", COLUMNS, keys=["k", "day"], partitions=["day"], options=options, io=MemoryFileIO()
    )


def _move(table: FileStoreTable, state: TableState | None = None, **more: Any) -> CommitResult:
    state = load_state(table) if state is None else state
    return move_postponed(table, "mover", state=state, now_ms=NOW_MS, **more)


def _live(table: FileStoreTable) -> list[ManifestEntry]:
    return live_entries(table, load_state(table).manifests)


def _files(table: FileStoreTable) -> list[str]:
    assert isinstance(table.io, MemoryFileIO)
    return [path for path in table.io.files if "/bucket-" in path]


def _rows(table: FileStoreTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in read_table(table).to_pylist())


def _row(key: int, value: int, kind: int = 0, day: str = "a") -> dict[str, Any]:
    return {"k": key, "day": day, "v": value, "_kind": kind}


def test_rows_become_readable_in_the_order_in_which_they_came() -> None:
    table = _table()
    put(table, [_row(n, 0) for n in range(10)])
    put(table, [_row(1, 1, 3), _row(2, 1), _row(2, 2), _row(2, 3, 3), _row(3, 1), _row(3, 2)])
    put(table, [_row(4, 5, day="b")])
    assert _rows(table) == []
    result = _move(table)
    assert result.snapshot is not None
    assert result.snapshot.commit_kind == CommitKind.COMPACT
    rest = [(n, "a", 0) for n in range(4, 10)]
    assert _rows(table) == sorted([(0, "a", 0), (3, "a", 2), *rest, (4, "b", 5)])
    assert {(e.total_buckets, e.bucket >= 0) for e in _live(table)} == {(3, True)}
    assert _move(table).status == "empty"


def test_rows_are_moved_in_the_order_of_commits_whatever_the_clocks_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, seconds = _table(), NOW_MS // 1000
    for value, clock in enumerate((seconds, seconds - 7200, seconds + 3600, seconds - 60)):
        monkeypatch.setattr(time, "time_ns", lambda clock=clock: clock * 10**9)
        put(table, [_row(1, value), _row(2, value)], now_ms=clock * 1000)
    created = [entry.file.creation_time_ms for entry in _live(table)]
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    assert created == sorted(set(created))
    assert snapshot.time_millis == created[-1] == (seconds + 3600) * 1000 + 1
    _move(table)
    assert _rows(table) == [(1, "a", 3), (2, "a", 3)]


def test_files_of_one_commit_are_moved_in_its_order() -> None:
    table = _table()
    state = load_state(table)
    rows = [rows_table(table.schema, [_row(1, value)]) for value in range(3)]
    messages = tuple(message for part in rows for message in write(table, state, part))
    commit(table, "one", ManifestCommittable(1, messages), state=state, now_ms=NOW_MS)
    put(table, [_row(2, 0)])
    created = [entry.file.creation_time_ms for entry in _live(table)]
    assert created == [NOW_MS, NOW_MS + 1, NOW_MS + 2, NOW_MS + 3]
    _move(table)
    assert _rows(table) == [(1, "a", 2), (2, "a", 0)]


def test_later_rows_win_over_what_is_in_buckets_already() -> None:
    table = _table()
    for value in range(4):
        put(table, [_row(n, value, 3 if n == value else 0) for n in range(6)])
        _move(table)
    assert _rows(table) == [(n, "a", 3) for n in (0, 1, 2, 4, 5)]
    for bucket in range(3):
        own = [e.file for e in _live(table) if e.bucket == bucket]
        spans = sorted((file.min_sequence_number, file.max_sequence_number) for file in own)
        assert all(high < low for (_, high), (low, _) in pairwise(spans))


def test_a_partition_keeps_its_number_of_buckets() -> None:
    table = _table()
    put(table, [_row(n, 0) for n in range(20)])
    _move(table)
    table = alter(table, SetOption("postpone.default-bucket-num", "5"))
    put(table, [_row(n, 1) for n in range(20)] + [_row(n, 1, day="b") for n in range(20)])
    _move(table)
    found = {table.partition_values(e.partition): e.total_buckets for e in _live(table)}
    assert found == {("a",): 3, ("b",): 5}
    assert _rows(table) == sorted((n, day, 1) for n in range(20) for day in "ab")


def test_many_files_are_moved_in_chunks_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postpone_move, "MAX_CHUNK_BYTES", 1)
    table = _table()
    for value in range(4):
        put(table, [_row(n, value) for n in range(5)])
    _move(table)
    assert _rows(table) == [(n, "a", 3) for n in range(5)]
    assert len(_live(table)) > 4


def test_only_the_wanted_partitions_are_moved() -> None:
    table = _table()
    put(table, [_row(1, 0), _row(1, 0, day="b")])
    _move(table, partition_filter=frozenset({serialize_row(table.partition_types, ["b"])}))
    assert _rows(table) == [(1, "b", 0)]


def test_rows_written_before_a_column_was_added_are_moved_with_it() -> None:
    table = _table()
    put(table, [_row(1, 0)])
    wider = alter(table, AddColumn("extra", DataType("STRING")))
    _move(wider)
    assert _rows(wider) == [(1, "a", 0, None)]


def test_of_two_who_move_the_same_rows_one_loses() -> None:
    table = _table()
    put(table, [_row(1, 0)])
    planned = load_state(table)
    assert _move(table).status == "committed"
    there = set(_files(table))
    with pytest.raises(CommitConflictError, match="was removed by another commit"):
        _move(table, planned)
    assert set(_files(table)) == there
    assert _rows(table) == [(1, "a", 0)]


def test_rows_that_come_meanwhile_wait_for_the_next_move() -> None:
    table = _table()
    put(table, [_row(1, 0)])
    planned = load_state(table)
    put(table, [_row(1, 1), _row(2, 1)])
    assert _move(table, planned).status == "committed"
    assert _rows(table) == [(1, "a", 0)]
    _move(table)
    assert _rows(table) == [(1, "a", 1), (2, "a", 1)]


def test_tables_of_another_kind_have_nothing_waiting() -> None:
    table = native_table("/w", [("k", "INT")], keys=["k"], io=MemoryFileIO())
    assert _move(table).status == "empty"


def test_a_number_of_buckets_below_one_is_refused() -> None:
    table = _table(buckets=0)
    put(table, [_row(1, 0)])
    with pytest.raises(ConfigError, match=r"postpone\.default-bucket-num.*above 0"):
        _move(table)


def test_rows_of_java_are_moved_after_those_that_java_has_moved(tmp_path: Path) -> None:
    fixture = unpack("postpone_compacted", tmp_path)
    before = {row["k"]: row for row in fixture.rows}
    waiting = [row for row in fixture.changelog if row["_snapshot"] == 4]
    assert waiting
    _move(fixture.table)
    for change in waiting:
        row = {name: cell for name, cell in change.items() if name not in {"_snapshot", "rowkind"}}
        before.pop(row["k"], None)
        if change["rowkind"] in ("+I", "+U"):
            before[row["k"]] = row
    found = read_table(fixture.table).to_pylist()
    assert sorted(found, key=lambda row: row["k"]) == [before[k] for k in sorted(before)]
    assert {entry.total_buckets for entry in _live(fixture.table)} == {3}


def test_deletions_that_the_merge_engine_cannot_take_are_refused_and_stay() -> None:
    table = _table()
    put(table, [_row(1, 0, day="b"), _row(1, 0, 3)])
    options = {**table.schema.options, "merge-engine": "first-row"}
    strict = table.with_schema(replace(table.schema, options=options))
    with pytest.raises(UnsupportedError, match="takes no deleted rows"):
        _move(strict)
    assert [entry.bucket for entry in _live(table)] == [-2, -2]
    assert all("/bucket-postpone/" in path for path in _files(table))


def test_a_wanted_key_is_looked_for_in_its_bucket_only() -> None:
    table = _table()
    put(table, [_row(n, 0) for n in range(20)])
    snapshot = _move(table).snapshot
    assert snapshot is not None
    reader = TableReader(table, predicate=Comparison("k", "=", 7))
    assert reader.plan(snapshot).files_skipped[OTHER_BUCKET] == 2
    assert [row for part in reader.rows(snapshot) for row in part.to_pylist()] == [
        {"k": 7, "day": "a", "v": 0}
    ]


def test_rows_in_another_bucket_than_theirs_are_found_by_verify() -> None:
    table = _table()
    put(table, [_row(n, 0) for n in range(6)])
    _move(table)
    assert verify(table) == []
    entry = next(entry for entry in _live(table) if entry.bucket == 0)
    directory = "/w/db.db/t/day=a"
    data = table.io.read_bytes(f"{directory}/bucket-0/{entry.file.file_name}")
    table.io.write_new(f"{directory}/bucket-7/{entry.file.file_name}", data)
    away = CommitMessage(entry.partition, 0, 3, compact_before=(entry.file,))
    there = CommitMessage(entry.partition, 7, 3, compact_after=(entry.file,))
    state = load_state(table)
    commit(table, "x", ManifestCommittable(9, (away, there)), state=state, now_ms=NOW_MS)
    assert {finding.code for finding in verify(table)} == {"bucket"}
