"""Iceberg metadata is written beside the commits, once for those that follow each other fast."""

import threading
from pathlib import Path

import pytest

from ingestd.ingest.tables import iceberg_threads
from ingestd.ingest.tables.iceberg_threads import IcebergThreads
from ingestd.paimon.table.commit.table_commit import CommitResult
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.native_tables import native_table, put

ON = {"metadata.iceberg.storage": "table-location", "bucket": "-1"}


@pytest.fixture
def table(tmp_path: Path) -> FileStoreTable:
    return native_table(tmp_path, [("id", "INT")], options=ON)


def test_what_was_requested_is_written_when_it_closes(table: FileStoreTable) -> None:
    threads = IcebergThreads()
    for number in range(3):
        threads.submit("db.t", table, put(table, [{"id": number}]))
    threads.close()
    assert table.io.read_bytes(f"{table.path}/metadata/version-hint.text") == b"3"
    assert threads.take_failures() == []


def test_a_table_is_worked_on_once_at_a_time_and_again_for_what_came_meanwhile(
    table: FileStoreTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go, calls = threading.Semaphore(0), threading.Event(), list[int]()

    def slow(of: FileStoreTable, *, committed: CommitResult) -> bool:
        calls.append(len(committed.deltas))
        begun.release()
        assert go.wait(120)
        return len(calls) > 1

    monkeypatch.setattr(iceberg_threads, "update_iceberg", slow)
    threads = IcebergThreads()
    threads.submit("db.t", table, put(table, [{"id": 0}]))
    assert begun.acquire(timeout=120)
    for number in range(12):
        threads.submit("db.t", table, put(table, [{"id": number}]))
    go.set()
    threads.close()
    assert calls == [1, 10], "the entries of few commits are kept"
    assert threads.take_failures() == ["db.t"]
    assert threads.take_failures() == []


def test_a_table_without_the_option_starts_no_thread(tmp_path: Path) -> None:
    plain = native_table(tmp_path, [("id", "INT")], options={"bucket": "-1"})
    before = threading.active_count()
    threads = IcebergThreads()
    threads.submit("db.t", plain, put(plain, [{"id": 1}]))
    assert threading.active_count() == before
    threads.close()


def test_a_request_after_closing_is_left_to_the_next_run(table: FileStoreTable) -> None:
    threads = IcebergThreads()
    threads.close()
    threads.submit("db.t", table, put(table, [{"id": 1}]))
    assert table.io.list_names(f"{table.path}/metadata") == []
