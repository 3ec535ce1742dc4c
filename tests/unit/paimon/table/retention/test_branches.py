from dataclasses import replace

import pytest

from ingestd.errors import ArgumentError, ConfigError, StorageError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn
from ingestd.paimon.table.commit.overwrite import truncate_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.long_lived_changelogs import changelog_ids
from ingestd.paimon.table.metadata.schema_manager import schema_ids
from ingestd.paimon.table.metadata.snapshot_manager import (
    latest_snapshot_id,
    read_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.metadata.time_travel import (
    branch_names,
    on_branch,
    tag_names,
    tagged_snapshot,
)
from ingestd.paimon.table.read.table_read import TableReader
from ingestd.paimon.table.retention.branches import create_branch, drop_branch, fast_forward
from ingestd.paimon.table.retention.expire_changelogs import expire_changelogs
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.retention.referenced_files import all_branches, files_of
from ingestd.paimon.table.retention.tags import create_tag, delete_tags
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.native_tables import NOW_MS, alter, native_table, put
from tests.support.stored_rows import forget_snapshots, stored_rows

LATER = NOW_MS + 10_000_000


@pytest.fixture
def table() -> FileStoreTable:
    """Three snapshots, the second tagged, a new column after the third."""
    table = native_table("/w", [("id", "INT"), ("v", "STRING")], keys=["id"], io=MemoryFileIO())
    for number in range(3):
        put(table, [{"id": number, "v": "main"}])
    create_tag(table, "two", read_snapshot(table.io, table.paths, 2), now_ms=NOW_MS)
    return alter(table, AddColumn("w", parse_type("INT")))


def ids(table: FileStoreTable) -> set[int]:
    return {row["id"] for row in stored_rows(table)}


def test_a_branch_begins_with_what_its_tag_keeps(table: FileStoreTable) -> None:
    branch = create_branch(table, "fix", "two")
    assert branch.schema.id == 0
    assert ids(branch) == {0, 1}
    assert tag_names(branch.io, branch.paths) == ["two"]
    assert branch_names(table.io, table.paths) == ["fix"]


def test_a_branch_may_begin_with_a_tag_whose_snapshot_has_expired(table: FileStoreTable) -> None:
    forget_snapshots(table, 1, 2)
    assert ids(create_branch(table, "fix", "two")) == {0, 1}
    assert verify(table) == []


def test_a_branch_whose_tag_is_deleted_meanwhile_is_not_created(table: FileStoreTable) -> None:
    gone = ValidationIssue(
        "try_write_atomic", "branch-fix/schema", action=lambda: delete_tags(table, "two")
    )
    with pytest.raises(ConfigError, match=r"tag 'two' .* was deleted meanwhile"):
        create_branch(replace(table, io=FaultyFileIO(table.io, [gone])), "fix", "two")
    assert branch_names(table.io, table.paths) == []


def test_an_interrupted_creation_of_a_branch_stops_no_expiry_and_is_named(
    table: FileStoreTable,
) -> None:
    issue = ValidationIssue("try_write_atomic", "branch-fix/schema")
    with pytest.raises(StorageError):
        create_branch(replace(table, io=FaultyFileIO(table.io, [issue])), "fix", "two")
    delete_tags(table, "two")
    truncate_table(table, now_ms=NOW_MS)
    settings = expire_settings({"snapshot.num-retained.min": "1", "snapshot.time-retained": "0 ms"})
    assert expire_snapshots(table, settings, NOW_MS + 1).ids == (1, 2, 3)
    with pytest.raises(ArgumentError, match=r"no schema.*`ingestd branch delete /w db.t fix`"):
        on_branch(table, "fix")
    line = next(line for line in all_branches(table) if line.branch == "fix")
    snapshot = read_snapshot(line.io, line.paths, 2)
    assert all(table.io.exists(path) for path in files_of(line, snapshot))
    drop_branch(table, "fix")
    assert branch_names(table.io, table.paths) == []


def test_a_branch_without_a_tag_is_empty_and_has_the_newest_columns(table: FileStoreTable) -> None:
    branch = create_branch(table, "empty")
    assert stored_rows(branch) == []
    assert branch.schema == table.schema


def test_what_a_branch_writes_the_table_does_not_see(table: FileStoreTable) -> None:
    branch = create_branch(table, "fix", "two")
    put(branch, [{"id": 50, "v": "branch"}])
    put(table, [{"id": 60, "v": "main"}])
    assert (ids(branch), ids(table)) == ({0, 1, 50}, {0, 1, 2, 60})
    assert (verify(branch), verify(table)) == ([], [])
    assert latest_snapshot_id(branch.io, branch.paths) == 3


@pytest.mark.parametrize("name", ["main", "12", "", "a/b", "fix"])
def test_names_that_no_new_branch_can_have(table: FileStoreTable, name: str) -> None:
    create_branch(table, "fix", "two")
    with pytest.raises(ConfigError):
        create_branch(table, name)


def test_a_dropped_branch_is_gone_and_the_table_is_not(table: FileStoreTable) -> None:
    put(create_branch(table, "fix", "two"), [{"id": 50}])
    drop_branch(table, "fix")
    assert branch_names(table.io, table.paths) == []
    assert ids(table) == {0, 1, 2}
    with pytest.raises(ConfigError, match="no branch 'fix'"):
        drop_branch(table, "fix")


def test_a_branch_that_the_table_reads_from_is_not_dropped(table: FileStoreTable) -> None:
    create_branch(table, "fix", "two")
    options = {**table.schema.options, "scan.fallback-branch": "fix"}
    table = table.with_schema(replace(table.schema, options=options))
    with pytest.raises(ConfigError, match=r"scan\.fallback-branch"):
        drop_branch(table, "fix")


def test_forwarding_makes_the_table_what_the_branch_is(table: FileStoreTable) -> None:
    branch = alter(create_branch(table, "fix", "two"), AddColumn("b", parse_type("STRING")))
    put(branch, [{"id": 50, "b": "new"}])
    create_tag(branch, "after", read_snapshot(branch.io, branch.paths, 3), now_ms=NOW_MS)
    assert fast_forward(table, "fix") == [2, 3]
    forwarded = on_branch(table, "main")
    assert ids(forwarded) == {0, 1, 50}
    assert [field.name for field in forwarded.schema.fields] == ["id", "v", "b"]
    assert snapshot_ids(table.io, table.paths) == [1, 2, 3]
    assert tag_names(table.io, table.paths) == ["after", "two"]
    assert verify(forwarded) == []
    put(forwarded, [{"id": 51}])
    assert ids(forwarded) == {0, 1, 50, 51}


def test_schemas_after_those_of_the_branch_are_deleted(table: FileStoreTable) -> None:
    put(create_branch(table, "fix", "two"), [{"id": 50}])
    fast_forward(table, "fix")
    assert schema_ids(table.io, table.paths) == [0]


def test_forwarding_again_changes_nothing(table: FileStoreTable) -> None:
    put(create_branch(table, "fix", "two"), [{"id": 50}])
    fast_forward(table, "fix")
    assert fast_forward(on_branch(table, "main"), "fix") == [2, 3]
    assert ids(on_branch(table, "main")) == {0, 1, 50}


def test_only_a_branch_with_snapshots_can_be_forwarded_to(table: FileStoreTable) -> None:
    branch = create_branch(table, "empty")
    for name, problem in (("empty", "no snapshot"), ("none", "no branch"), ("main", "itself")):
        with pytest.raises(ConfigError, match=problem):
            fast_forward(table, name)
    with pytest.raises(ConfigError, match="itself"):
        fast_forward(branch, "empty")
    assert ids(table) == {0, 1, 2}


def test_files_that_a_branch_needs_outlive_the_tag(table: FileStoreTable) -> None:
    branch = create_branch(table, "fix", "two")
    forget_snapshots(table, 1, 2)
    delete_tags(table, "two")
    assert ids(branch) == {0, 1}
    assert verify(table) == []


def test_snapshots_that_do_not_connect_with_those_of_the_branch_are_deleted(
    table: FileStoreTable,
) -> None:
    branch = create_branch(table, "fix", "two")
    for number in range(3):
        put(branch, [{"id": 50 + number}])
    forget_snapshots(branch, 2, 3, 4)
    delete_tags(branch, "two")
    assert fast_forward(table, "fix") == [1, 2, 3]
    forwarded = on_branch(table, "main")
    assert snapshot_ids(table.io, table.paths) == [5]
    assert tag_names(table.io, table.paths) == ["two"]
    assert ids(forwarded) == {0, 1, 50, 51, 52}
    assert verify(forwarded) == []


KEEPS_CHANGES = {
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "1",
    "changelog.num-retained.min": "2",
    "changelog.num-retained.max": "3",
}


@pytest.mark.parametrize("expired_on_branch", [False, True])
def test_changes_that_the_branch_does_not_continue_are_not_kept(expired_on_branch: bool) -> None:
    """Their expiry would delete the files that these changes have removed and the branch has."""
    table = native_table("/w", [("id", "INT")], keys=["id"], io=MemoryFileIO())
    settings = expire_settings(KEEPS_CHANGES)
    for number in range(3):
        put(table, [{"id": number}])
    create_tag(table, "two", read_snapshot(table.io, table.paths, 2), now_ms=NOW_MS)
    branch = create_branch(table, "fix", "two")
    truncate_table(table, now_ms=NOW_MS)
    for number in range(10, 13):
        put(table, [{"id": number}])
    put(branch, [{"id": 20}])
    put(branch, [{"id": 21}])
    if expired_on_branch:
        expire_snapshots(branch, expire_settings({"snapshot.num-retained.min": "1"}), LATER)
    expire_snapshots(table, settings, LATER)
    assert changelog_ids(table) == [1, 2, 3, 4, 5, 6]
    fast_forward(table, "fix")
    assert changelog_ids(table) == ([] if expired_on_branch else [1])
    drop_branch(table, "fix")
    delete_tags(table, "two")
    for number in range(30, 36):
        put(table, [{"id": number}])
    # The table keeps changes as long as snapshots from now on.
    settings = expire_settings({"snapshot.num-retained.min": "1"})
    expire_snapshots(table, settings, LATER)
    expire_changelogs(table, settings, LATER)
    assert ids(table) == {0, 1, 20, 21, *range(30, 36)}
    assert verify(table) == []


@pytest.mark.parametrize("diverged", [False, True])
def test_a_branch_that_states_no_base_continues_snapshots_whose_files_it_has(
    diverged: bool,
) -> None:
    table = native_table("/w", [("id", "INT")], keys=["id"], io=MemoryFileIO())
    for number in range(2):
        put(table, [{"id": number}])
    create_tag(table, "two", read_snapshot(table.io, table.paths, 2), now_ms=NOW_MS)
    branch = create_branch(table, "fix", "two")
    for number in range(20, 22):
        put(branch, [{"id": number}])
    if diverged:
        truncate_table(table, now_ms=NOW_MS)
    else:
        fast_forward(table, "fix")
    few = expire_settings({"snapshot.num-retained.min": "1", "snapshot.time-retained": "0 ms"})
    expire_snapshots(branch, few, LATER)
    replaced = fast_forward(table, "fix")
    assert replaced == ([1, 2, 3] if diverged else [4])
    drop_branch(table, "fix")
    delete_tags(table, "two")
    put(table, [{"id": 30}])
    expire_snapshots(table, few, LATER)
    assert ids(table) == {0, 1, 20, 21, 30}
    assert verify(table) == []


def test_tags_that_the_branch_does_not_continue_hide_none_that_it_does() -> None:
    """An expiry looks for the files that it deletes in the nearest older tag only."""
    table = native_table("/w", [("id", "INT")], keys=["id"], io=MemoryFileIO())
    for number in range(2):
        put(table, [{"id": number}])
    create_tag(table, "two", read_snapshot(table.io, table.paths, 2), now_ms=NOW_MS)
    branch = create_branch(table, "fix", "two")
    truncate_table(table, now_ms=NOW_MS)
    create_tag(table, "own", read_snapshot(table.io, table.paths, 3), now_ms=NOW_MS)
    for number in range(20, 22):
        put(branch, [{"id": number}])
    few = expire_settings({"snapshot.num-retained.min": "1", "snapshot.time-retained": "0 ms"})
    expire_snapshots(branch, few, LATER)
    assert fast_forward(table, "fix") == [1, 2, 3]
    drop_branch(table, "fix")
    truncate_table(table, now_ms=NOW_MS)
    put(table, [{"id": 30}])
    expire_snapshots(table, few, LATER)
    assert {row["id"] for row in tagged_rows(table, "two")} == {0, 1}
    assert verify(table) == []
    assert tag_names(table.io, table.paths) == ["fast-forward-4", "own", "two"]


def tagged_rows(table: FileStoreTable, tag: str) -> list[dict[str, int]]:
    parts = TableReader(table).rows(tagged_snapshot(table, tag))
    return [row for part in parts for row in part.to_pylist()]
