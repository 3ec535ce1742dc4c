import contextlib
from dataclasses import replace
from functools import partial

import pytest

from ingestd.errors import CommitConflictError, ConfigError, FormatError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.snapshot import encode_snapshot
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.long_lived_changelogs import changelog_ids, keep_changelogs
from ingestd.paimon.table.metadata.snapshot_manager import (
    latest_snapshot,
    latest_snapshot_id,
    read_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.metadata.time_travel import tag_names, tagged_snapshot
from ingestd.paimon.table.read.incremental_read import read_changelog
from ingestd.paimon.table.retention.branches import create_branch
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.retention.rollback import Rollback, plan_rollback, rollback
from ingestd.paimon.table.retention.tags import create_tag
from ingestd.paimon.table.verify.table_verify import verify
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.native_tables import NOW_MS, native_table, put
from tests.support.stored_rows import stored_rows


@pytest.fixture
def table() -> FileStoreTable:
    made = native_table("/w", [("id", "INT")], keys=["id"], io=MemoryFileIO())
    for number in range(1, 6):
        put(made, [{"id": number}])
    return made


def plan_to(table: FileStoreTable, snapshot: int) -> Rollback:
    return plan_rollback(table, read_snapshot(table.io, table.paths, snapshot))


def tag(table: FileStoreTable, name: str, snapshot: int) -> None:
    create_tag(table, name, read_snapshot(table.io, table.paths, snapshot), now_ms=NOW_MS)


def test_what_came_after_is_forgotten(table: FileStoreTable) -> None:
    tag(table, "old", 2)
    tag(table, "new", 4)
    keep_changelogs(table, [1, 2, 3, 4])
    plan = plan_to(table, 3)
    assert (plan.snapshots, plan.tags, plan.changelogs) == ((4, 5), ("new",), (4,))
    assert latest_snapshot_id(table.io, table.paths) == 5
    rollback(table, plan)
    assert snapshot_ids(table.io, table.paths) == [1, 2, 3]
    assert tag_names(table.io, table.paths) == ["old"]
    assert changelog_ids(table) == [1, 2, 3]
    assert sorted(row["id"] for row in stored_rows(table)) == [1, 2, 3]
    assert verify(table) == []
    put(table, [{"id": 9}])
    assert verify(table) == []


def test_an_expired_snapshot_comes_back_by_its_tag(table: FileStoreTable) -> None:
    tag(table, "old", 2)
    settings = expire_settings({"snapshot.num-retained.min": "1", "snapshot.time-retained": "0 ms"})
    expire_snapshots(table, settings, NOW_MS + 1)
    plan = plan_rollback(table, tagged_snapshot(table, "old"))
    assert (plan.snapshots, plan.restored) == ((5,), True)
    rollback(table, plan)
    assert snapshot_ids(table.io, table.paths) == [2]
    assert sorted(row["id"] for row in stored_rows(table)) == [1, 2]
    assert verify(table) == []


@pytest.mark.parametrize("on_branch", [False, True])
def test_an_expired_snapshot_comes_back_without_the_changes_that_expired_with_it(
    on_branch: bool,
) -> None:
    options = {"changelog-producer": "input"}
    table = native_table("/w", [("id", "INT")], keys=["id"], options=options, io=MemoryFileIO())
    for number in range(1, 4):
        put(table, [{"id": number}])
    tag(table, "old", 2)
    retention = {"snapshot.num-retained.min": "1", "snapshot.time-retained": "0 ms"}
    expire_snapshots(table, expire_settings({**retention, **options}), NOW_MS + 1)
    if on_branch:
        table = create_branch(table, "fix", "old")
    else:
        rollback(table, plan_rollback(table, tagged_snapshot(table, "old")))
    put(table, [{"id": 9}])
    assert read_changelog(table).column("_snapshot").to_pylist() == [3]


def test_the_newest_snapshot_may_be_the_target(table: FileStoreTable) -> None:
    plan = plan_to(table, 5)
    rollback(table, plan)
    assert plan.snapshots == ()
    assert snapshot_ids(table.io, table.paths) == [1, 2, 3, 4, 5]


def test_whether_a_record_is_left(table: FileStoreTable) -> None:
    for number in (1, 2):
        record = ManifestCommittable(number, (), properties={"ingestd.table.p": str(number)})
        commit(table, "p", record, state=load_state(table), now_ms=NOW_MS, allow_empty=True)
    plan = plan_to(table, 6)
    assert plan.record is not None
    assert (plan.record.id, plan.forgets_record) == (6, False)
    plan = plan_to(table, 5)
    assert (plan.record, plan.forgets_record) == (None, True)


def test_a_writer_at_work_is_reported(table: FileStoreTable) -> None:
    newest = latest_snapshot(table.io, table.paths)
    assert newest is not None

    def commit_meanwhile() -> None:
        late = encode_snapshot(replace(newest, id=6))
        table.io.overwrite(table.paths.snapshot(6), late)

    issue = ValidationIssue("delete_quietly", "snapshot-4", "after", action=commit_meanwhile)
    busy = replace(table, io=FaultyFileIO(table.io, [issue]))
    with pytest.raises(CommitConflictError, match="snapshot 6 appeared"):
        rollback(busy, plan_to(busy, 3))


def test_a_target_that_an_expiry_deletes_meanwhile_is_put_back(table: FileStoreTable) -> None:
    settings = expire_settings({"snapshot.num-retained.min": "1", "snapshot.time-retained": "0 ms"})
    rows = sorted(row["id"] for row in stored_rows(table))[:2]
    # The expiry is planned, and then the table is rolled back, wholly or in part.
    for operation, part in (("delete_quietly", "snapshot-2"), ("overwrite", "EARLIEST")):
        copy = replace(table, io=MemoryFileIO(dict(table.io.files)))  # type: ignore[attr-defined]
        issue = ValidationIssue(operation, part, action=partial(_back, copy, 2))
        expire_snapshots(replace(copy, io=FaultyFileIO(copy.io, [issue])), settings, NOW_MS + 1)
        if operation == "delete_quietly":
            assert snapshot_ids(copy.io, copy.paths) == [2]
            assert sorted(row["id"] for row in stored_rows(copy)) == rows
        else:
            assert snapshot_ids(copy.io, copy.paths) == [5], "it was too late"
        assert verify(copy) == []
        assert tag_names(copy.io, copy.paths) == []


def _back(table: FileStoreTable, snapshot: int) -> None:
    with contextlib.suppress(FormatError):
        rollback(table, plan_to(table, snapshot))


def test_a_target_that_expires_meanwhile_stops_it(table: FileStoreTable) -> None:
    plan = plan_to(table, 1)
    table.io.delete_quietly(table.paths.snapshot(1))
    with pytest.raises(ConfigError, match="expired meanwhile"):
        rollback(table, plan)
    assert snapshot_ids(table.io, table.paths) == [2, 3, 4, 5]


@pytest.mark.parametrize("deletions", range(4))
def test_one_that_is_cut_off_can_be_done_again(table: FileStoreTable, deletions: int) -> None:
    tag(table, "new", 5)
    issue = ValidationIssue("delete_quietly", first=deletions + 1, action=_die)
    dying = replace(table, io=FaultyFileIO(table.io, [issue]))
    with pytest.raises(KeyboardInterrupt):
        rollback(dying, plan_to(dying, 2))
    assert {one.code for one in verify(table)} <= {"hint", "missing-file"}
    assert tag_names(table.io, table.paths) == ["new", "rollback-to-2"]
    rollback(table, plan_to(table, 2))
    assert snapshot_ids(table.io, table.paths) == [1, 2]
    assert tag_names(table.io, table.paths) == []
    assert verify(table) == []


def _die() -> None:
    raise KeyboardInterrupt
