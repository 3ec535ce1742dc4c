import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.paths import TablePaths
from ingestd.paimon.table.commit.overwrite import truncate_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.retention.branches import create_branch
from ingestd.paimon.table.retention.referenced_files import files_of
from ingestd.paimon.table.retention.tags import create_tag
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, native_table, put
from tests.support.stored_rows import forget_snapshots


@pytest.fixture
def table() -> FileStoreTable:
    """The first snapshot has expired, its file is kept by a tag, and by a branch of that tag."""
    table = native_table("/w", [("id", "INT")], keys=["id"], io=MemoryFileIO())
    put(table, [{"id": 1}])
    create_tag(table, "one", read_snapshot(table.io, table.paths, 1), now_ms=NOW_MS)
    create_branch(table, "fix", "one")
    truncate_table(table, now_ms=NOW_MS)
    forget_snapshots(table, 1)
    assert verify(table) == []
    return table


def found(table: FileStoreTable) -> set[tuple[str, str]]:
    return {(one.code, one.where) for one in verify(table)}


def test_a_file_that_a_tag_and_a_branch_need_is_missed(table: FileStoreTable) -> None:
    snapshot = read_snapshot(table.io, TablePaths(table.path, "fix"), 1)
    data = next(path for path in files_of(table, snapshot) if "/data-" in path)
    table.io.delete_quietly(data)
    assert found(table) == {("missing-file", "tag-one"), ("missing-file", "branch-fix")}


def test_damaged_tags_branches_and_consumers_are_found(table: FileStoreTable) -> None:
    table.io.overwrite("/w/db.db/t/tag/tag-one", b"{}")
    table.io.delete_tree("/w/db.db/t/branch/branch-fix/schema")
    table.io.overwrite("/w/db.db/t/consumer/consumer-c", b"nothing")
    assert found(table) == {
        ("unreadable", "tag-one"),
        ("branch", "branch-fix"),
        ("unreadable", "consumer"),
    }
