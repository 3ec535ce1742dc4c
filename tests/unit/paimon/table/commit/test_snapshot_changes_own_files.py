"""Commits look for their own files where these may have gone."""

from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.errors import CommitConflictError
from ingestd.paimon.table.commit.snapshot_changes import LONG_COMMIT_SECONDS
from ingestd.paimon.table.commit.table_commit import CommitResult, commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import snapshot_ids
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.metadata_tables import NOW_MS, live_names, message, metadata_table, with_io
from tests.support.native_tables import native_table


def append(table: FileStoreTable, user: str, number: int, one: CommitMessage,
           state: TableState | None = None) -> CommitResult:  # fmt: skip
    """Commit files as they are: perhaps they do not exist."""
    known = load_state(table) if state is None else state
    committable = ManifestCommittable(number, (one,))
    return commit(table, user, committable, state=known, now_ms=NOW_MS)


def faulty(table: FileStoreTable, *issues: ValidationIssue) -> FileStoreTable:
    return with_io(table, FaultyFileIO(table.io, list(issues)))


def ids(table: FileStoreTable) -> list[int]:
    return snapshot_ids(table.io, table.paths)


def manifests(table: FileStoreTable) -> set[str]:
    return set(table.io.list_names(f"{table.path}/manifest"))


def test_a_commit_that_took_long_looks_whether_its_files_are_there() -> None:
    table = metadata_table(options={"bucket": "-1"})
    long_ago = load_state(table).loaded_at - LONG_COMMIT_SECONDS
    young = append(faulty(table), "us", 1, message("a"), state=load_state(table))
    assert young.status == "committed"
    before = manifests(table)
    old = replace(young.state, loaded_at=long_ago)
    with pytest.raises(CommitConflictError, match="bucket-0/b was written for this commit and"):
        append(table, "us", 2, message("b"), state=old)
    assert (ids(table), manifests(table)) == ([1], before)
    table.io.write_new(f"{table.path}/bucket-0/b", b"rows")
    assert append(table, "us", 2, message("b"), state=old).status == "committed"


def test_a_file_that_is_on_another_disk_is_not_committed(tmp_path: Path) -> None:
    table = native_table(tmp_path, [("v", "INT")], options={"bucket": "-1"})
    with pytest.raises(CommitConflictError, match="or written to the disk of another machine"):
        append(table, "us", 1, message("a"))
    assert ids(table) == []


def test_files_that_go_while_a_commit_waits_for_its_turn_are_missed() -> None:
    table = metadata_table(options={"bucket": "-1"})
    table.io.write_new(f"{table.path}/bucket-0/a", b"rows")
    old = replace(load_state(table), loaded_at=load_state(table).loaded_at - LONG_COMMIT_SECONDS)

    def rival() -> None:
        append(table, "them", 1, message("r"))
        table.io.delete_quietly(f"{table.path}/bucket-0/a")

    racing = faulty(table, ValidationIssue("try_write_atomic", "snapshot-1", action=rival))
    with pytest.raises(CommitConflictError, match="bucket-0/a was written for this commit and"):
        append(racing, "us", 1, message("a"), state=old)
    assert live_names(table) == ["r"]


def test_a_compaction_always_looks_as_nobody_asks_its_process_who_leads() -> None:
    table = metadata_table(options={"bucket": "-1"})
    append(table, "us", 1, message("a"))
    before = manifests(table)
    compaction = CommitMessage(
        message().partition, 0, -1, compact_before=message("a").new_files,
        compact_after=message("b").new_files,
    )  # fmt: skip
    with pytest.raises(CommitConflictError, match="bucket-0/b was written for this commit and"):
        append(table, "maintenance", 1, compaction)
    assert (ids(table), manifests(table)) == ([1], before)
    table.io.write_new(f"{table.path}/bucket-0/b", b"rows")
    assert append(table, "maintenance", 1, compaction).status == "committed"
