"""Other processes commit, expire and roll back while this one writes Iceberg metadata.

What a process remembers, and a commit that it made, save reads; they never decide what is true.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ingestd.paimon.iceberg.iceberg_sync import sync_iceberg
from ingestd.paimon.iceberg.metadata_store import MetadataStore
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.commit.table_commit import CommitResult
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from ingestd.paimon.table.retention.tags import create_tag
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.native_tables import NOW_MS, native_table, put

ON = {
    "metadata.iceberg.storage": "table-location",
    "bucket": "-1",
    "snapshot.num-retained.min": "9",
    "snapshot.num-retained.max": "9",
}


@pytest.fixture
def io() -> FaultyFileIO:
    return FaultyFileIO(MemoryFileIO())


@pytest.fixture
def table(io: FaultyFileIO) -> FileStoreTable:
    return native_table("/w", [("id", "INT")], options=ON, io=io)


def rival_of(table: FileStoreTable) -> FileStoreTable:
    """The table as another process has opened it, which remembers nothing of this one."""
    assert isinstance(table.io, FaultyFileIO)
    return replace(table, io=replace(table.io, issues=[], calls=[]))


def write(table: FileStoreTable, number: int) -> CommitResult:
    return put(table, [{"id": number}])


def shown(table: FileStoreTable) -> tuple[list[int], int]:
    """Snapshots and rows of the newest document, all of whose files can be read."""
    store = MetadataStore(table.io, f"{table.path}/metadata")
    newest = store.newest()
    assert newest is not None
    rows = 0
    for snapshot in newest[1]["snapshots"]:
        listed = store.read_list(snapshot["manifest-list"])
        live = [e for one in listed for e in store.read_manifest(one) if e.is_live]
        assert all(table.io.exists(str(entry.data_file["file_path"])) for entry in live)
        rows = sum(entry.data_file["record_count"] for entry in live)
    return [snapshot["snapshot-id"] for snapshot in newest[1]["snapshots"]], rows


def roll_back(table: FileStoreTable, target: int) -> None:
    rollback(table, plan_rollback(table, read_snapshot(table.io, table.paths, target)))


def test_a_commit_is_added_without_reading_what_it_wrote(
    table: FileStoreTable, io: FaultyFileIO
) -> None:
    sync_iceberg(table, committed=write(table, 1))
    committed = write(table, 2)
    io.calls.clear()
    sync_iceberg(table, committed=committed)
    assert io.operations("read_bytes", "/manifest/") == []
    assert io.operations("read_bytes", "LATEST") == []
    assert shown(table) == ([1, 2], 2)


def test_metadata_that_shows_a_later_commit_of_another_process_stays(
    table: FileStoreTable, io: FaultyFileIO
) -> None:
    sync_iceberg(table, committed=write(table, 1))
    committed = write(table, 2)
    rival = rival_of(table)
    write(rival, 3)
    sync_iceberg(rival)
    sync_iceberg(table, committed=committed)
    assert shown(table) == ([1, 2, 3], 3)
    sync_iceberg(table)
    assert shown(table) == ([1, 2, 3], 3)


def test_a_commit_between_the_look_at_the_table_and_the_look_at_the_metadata_stays(
    table: FileStoreTable, io: FaultyFileIO
) -> None:
    sync_iceberg(table, committed=write(table, 1))
    write(table, 2)
    rival = rival_of(table)

    def commits() -> None:
        write(rival, 3)
        sync_iceberg(rival)

    io.issues.append(ValidationIssue("read_bytes", "version-hint", action=commits))
    sync_iceberg(table)
    assert shown(table) == ([1, 2, 3], 3)


@pytest.mark.parametrize("again", [0, 1, 2, 3])
def test_a_commit_that_was_rolled_back_meanwhile_is_not_shown(
    table: FileStoreTable, again: int
) -> None:
    for number in (1, 2):
        sync_iceberg(table, committed=write(table, number))
    committed = write(table, 3)
    rival = rival_of(table)
    roll_back(rival, 2)
    sync_iceberg(rival)
    for number in range(again):
        write(rival, 10 + number)
    sync_iceberg(table, committed=committed)
    assert shown(table) == ([*range(1, 3 + again)], 2 + again)


def _expires(rival: FileStoreTable) -> None:
    fewer = dict.fromkeys(("snapshot.num-retained.min", "snapshot.num-retained.max"), "1")
    expire_snapshots(rival, expire_settings(fewer), NOW_MS)
    sync_iceberg(rival)


def _tags(rival: FileStoreTable) -> None:
    create_tag(rival, "t", read_snapshot(rival.io, rival.paths, 2), now_ms=NOW_MS)
    sync_iceberg(rival, tags=True)


def _rolls_back(rival: FileStoreTable) -> None:
    roll_back(rival, 1)
    write(rival, 10)
    write(rival, 11)
    sync_iceberg(rival)


def _damages(rival: FileStoreTable) -> None:
    rival.io.overwrite(f"{rival.path}/metadata/v3.metadata.json", b"{")


@pytest.mark.parametrize(
    ("act", "snapshots", "rows", "tags"),
    [
        (_expires, [3, 4], 4, []),
        (_tags, [1, 2, 3, 4], 4, ["t"]),
        (_rolls_back, [3, 4], 4, []),
        (_damages, [4], 4, []),
    ],
)
def test_what_another_process_has_done_to_the_same_document_is_seen(
    table: FileStoreTable, act: Callable[[Any], None], snapshots: list[int], rows: int, tags: Any
) -> None:
    for number in (1, 2, 3):
        sync_iceberg(table, committed=write(table, number))
    act(rival_of(table))
    sync_iceberg(table, committed=write(table, 4))
    assert shown(table) == (snapshots, rows)
    newest = MetadataStore(table.io, f"{table.path}/metadata").newest()
    assert newest is not None
    assert sorted(newest[1]["refs"]) == tags
