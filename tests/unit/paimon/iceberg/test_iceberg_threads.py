"""Iceberg metadata is written beside the commits, once for those that follow each other fast."""

import multiprocessing
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import ingestd.paimon as paimon
from ingestd.paimon.iceberg import iceberg_threads
from ingestd.paimon.iceberg.iceberg_sync import update_iceberg
from ingestd.paimon.iceberg.iceberg_threads import IcebergThreads
from ingestd.paimon.table.commit.table_commit import CommitResult
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.native_tables import native_table, put

SCHEMA = pa.schema([("id", pa.int32())])
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


def test_an_unexpected_error_is_a_failure_and_the_next_commit_is_served(
    table: FileStoreTable, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: FileStoreTable, **__: object) -> bool:
        raise RuntimeError("no such thing")

    threads = IcebergThreads()
    with monkeypatch.context() as patched:
        patched.setattr(iceberg_threads, "update_iceberg", broken)
        threads.submit("db.t", table, put(table, [{"id": 0}]))
        threads.wait("db.t")
    assert threads.take_failures() == ["db.t"]
    assert "no such thing" in caplog.text
    threads.submit("db.t", table, put(table, [{"id": 1}]))
    threads.wait("db.t")
    assert table.io.read_bytes(f"{table.path}/metadata/version-hint.text") == b"2"
    threads.close()


def test_a_commit_of_the_library_does_not_wait_for_the_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()

    def slow(of: FileStoreTable, *, committed: CommitResult) -> bool:
        assert go.wait(120)
        return update_iceberg(of, committed=committed)

    monkeypatch.setattr(iceberg_threads, "update_iceberg", slow)
    opened = paimon.create(f"{tmp_path}/db.t", SCHEMA, options=ON)
    opened.write([{"id": 1}])
    hint = Path(opened.files.path, "metadata", "version-hint.text")
    assert not hint.exists()
    go.set()
    opened.wait_for_iceberg()
    assert hint.read_text() == "1"


def test_a_process_that_was_forked_has_threads_of_its_own(tmp_path: Path) -> None:
    opened = paimon.create(f"{tmp_path}/db.t", SCHEMA, options=ON)
    opened.write([{"id": 1}])
    opened.wait_for_iceberg()

    def child() -> None:
        opened.write([{"id": 2}])
        opened.wait_for_iceberg()

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert Path(opened.files.path, "metadata", "version-hint.text").read_text() == "2"


ENDS = """
import sys, atexit, pyarrow as pa
import ingestd.paimon as paimon

schema = pa.schema([("id", pa.int32())])
table = paimon.create(sys.argv[1], schema, options={"metadata.iceberg.storage": "table-location"})
table.write([{"id": 1}])
atexit.register(table.write, [{"id": 2}])  # when no thread can be started any more
"""


def test_a_process_that_ends_has_written_all_metadata(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", ENDS, f"{tmp_path}/db.t"], check=True, timeout=120)
    hint = tmp_path / "db.db" / "t" / "metadata" / "version-hint.text"
    assert hint.read_text() == "2"
