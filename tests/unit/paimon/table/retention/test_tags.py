import json
from dataclasses import replace

import pytest

from ingestd.errors import ConfigError, FormatError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.commit.overwrite import truncate_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.metadata.time_travel import tag_bytes, tag_names, tagged_snapshot
from ingestd.paimon.table.retention.tags import (
    check_name,
    create_tag,
    delete_tags,
    expired_tags,
    plan_tag_deletion,
)
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.native_tables import NOW_MS, native_table, put
from tests.support.stored_rows import forget_snapshots

HOUR = 3_600_000


@pytest.fixture
def table() -> FileStoreTable:
    table = native_table("/w", [("id", "INT"), ("v", "STRING")], keys=["id"], io=MemoryFileIO())
    for number in range(3):
        put(table, [{"id": number, "v": "x"}])
    return table


def tag(table: FileStoreTable, name: str, snapshot: int, **given: object) -> None:
    found = read_snapshot(table.io, table.paths, snapshot)
    create_tag(table, name, found, now_ms=NOW_MS, **given)  # type: ignore[arg-type]


def test_a_tag_is_the_snapshot_it_names(table: FileStoreTable) -> None:
    tag(table, "a", 2)
    assert tagged_snapshot(table, "a") == read_snapshot(table.io, table.paths, 2)
    document = json.loads(tag_bytes(table.io, table.paths, "a"))
    assert "tagCreateTime" not in document


def test_the_directory_of_success_files_is_no_tag() -> None:
    options = {"tag.create-success-file": "true"}
    table = native_table("/w", [("id", "INT")], options=options, io=MemoryFileIO())
    put(table, [{"id": 1}])
    tag(table, "a", 1)
    path = f"{table.path}/tag/tag-success-file/a_SUCCESS"
    first = {"creationTime": NOW_MS, "modificationTime": NOW_MS}
    assert json.loads(table.io.read_bytes(path)) == first
    assert tag_names(table.io, table.paths) == ["a"]
    table.io.delete_quietly(f"{table.path}/tag/tag-a")
    create_tag(table, "a", read_snapshot(table.io, table.paths, 1), now_ms=NOW_MS + 5)
    assert json.loads(table.io.read_bytes(path)) == {**first, "modificationTime": NOW_MS + 5}
    delete_tags(table, "a")
    assert not table.io.exists(path)
    with pytest.raises(ConfigError, match="directory of success files"):
        tag(table, "success-file", 1)


def test_a_time_to_live_says_when_it_began(table: FileStoreTable) -> None:
    tag(table, "a", 2, retained_ms=90_500)
    document = json.loads(tag_bytes(table.io, table.paths, "a"))
    assert document["tagTimeRetained"] == 90.5
    assert len(document["tagCreateTime"]) == 7
    assert tagged_snapshot(table, "a").id == 2


def test_only_tags_whose_time_is_over_expire(table: FileStoreTable) -> None:
    tag(table, "for ever", 1)
    tag(table, "short", 1, retained_ms=HOUR)
    tag(table, "long", 1, retained_ms=3 * HOUR)
    assert expired_tags(table, NOW_MS + HOUR // 2) == []
    assert expired_tags(table, NOW_MS + 2 * HOUR) == ["short"]


def test_a_name_is_given_once_and_moved_only_if_it_is_there(table: FileStoreTable) -> None:
    tag(table, "a", 1)
    with pytest.raises(ConfigError, match="tag 'a' already"):
        tag(table, "a", 2)
    assert tagged_snapshot(table, "a").id == 1
    tag(table, "a", 2, must_exist=True)
    assert tagged_snapshot(table, "a").id == 2
    with pytest.raises(ConfigError, match="no tag 'b'"):
        tag(table, "b", 2, must_exist=True)


def test_a_snapshot_that_expires_meanwhile_gets_no_tag_and_a_tag_is_not_moved_to_it(
    table: FileStoreTable,
) -> None:
    tag(table, "a", 3)
    for number, must_exist in ((1, False), (2, True)):
        at = read_snapshot(table.io, table.paths, number)
        forget_snapshots(table, number)
        with pytest.raises(ConfigError, match=f"snapshot {number} has expired meanwhile"):
            create_tag(table, "a" if must_exist else "b", at, now_ms=0, must_exist=must_exist)
    assert tag_names(table.io, table.paths) == ["a"]
    assert tagged_snapshot(table, "a").id == 3


def test_a_tag_that_is_deleted_meanwhile_has_not_expired_and_a_damaged_one_is_named(
    table: FileStoreTable,
) -> None:
    for name in ("a", "b"):
        tag(table, name, 1, retained_ms=1)
    path = f"{table.paths.tag_dir}/tag-b"
    issue = ValidationIssue("read_bytes", "tag-a", action=lambda: table.io.delete_quietly(path))
    busy = replace(table, io=FaultyFileIO(table.io, [issue]))
    assert expired_tags(busy, NOW_MS + HOUR) == ["a"]
    table.io.overwrite(path, b"{")
    with pytest.raises(FormatError, match="tag-b cannot be read"):
        expired_tags(table, NOW_MS + HOUR)


@pytest.mark.parametrize("name", ["", " ", "a/b", "..", ".x", "a\\b", "a\nb"])
def test_a_name_cannot_lead_out_of_its_folder(name: str) -> None:
    with pytest.raises(ConfigError):
        check_name("tag", name)


def test_deleting_the_tag_of_a_living_snapshot_deletes_nothing_else(table: FileStoreTable) -> None:
    tag(table, "a", 2)
    assert delete_tags(table, "a") == []
    assert tag_names(table.io, table.paths) == []
    assert verify(table) == []


def test_files_that_only_a_tag_kept_go_with_it(table: FileStoreTable) -> None:
    tag(table, "a", 3)
    truncate_table(table, now_ms=NOW_MS)
    put(table, [{"id": 9, "v": "y"}])
    forget_snapshots(table, 1, 2, 3)
    assert verify(table) == []
    gone = delete_tags(table, "a")
    assert sum("/data-" in path for path in gone) == 3
    assert not any(table.io.exists(path) for path in gone)
    assert verify(table) == []


def test_files_that_another_tag_or_a_snapshot_needs_stay(table: FileStoreTable) -> None:
    tag(table, "a", 2)
    tag(table, "b", 1)
    forget_snapshots(table, 1, 2)
    gone = delete_tags(table, "a")
    assert gone
    assert not any("/data-" in path for path in gone)
    assert verify(table) == []


def test_files_that_only_several_tags_need_go_when_all_of_them_are_deleted(
    table: FileStoreTable,
) -> None:
    for number in (1, 2, 3):
        tag(table, f"t{number}", number)
    truncate_table(table, now_ms=NOW_MS)
    forget_snapshots(table, 1, 2, 3)
    assert not any("/data-" in path for path in plan_tag_deletion(table, "t1"))
    planned = plan_tag_deletion(table, "t1", "t2", "t3")
    assert sum("/data-" in path for path in planned) == 3
    assert tag_names(table.io, table.paths) == ["t1", "t2", "t3"]
    assert delete_tags(table, "t1", "t2", "t3") == planned
    assert not any(table.io.exists(path) for path in planned)
    assert verify(table) == []


def test_a_damaged_snapshot_is_found_before_a_tag_is_deleted(table: FileStoreTable) -> None:
    tag(table, "a", 1)
    forget_snapshots(table, 1)
    table.io.overwrite(table.paths.snapshot(2), b"{")
    with pytest.raises(FormatError, match="snapshot-2"):
        delete_tags(table, "a")
    assert tag_names(table.io, table.paths) == ["a"]


def test_a_tag_without_its_manifests_can_be_deleted(table: FileStoreTable) -> None:
    tag(table, "a", 3)
    snapshot = tagged_snapshot(table, "a")
    truncate_table(table, now_ms=NOW_MS)
    put(table, [{"id": 9, "v": "y"}])
    forget_snapshots(table, 1, 2, 3)
    table.io.delete_quietly(table.paths.manifest(snapshot.base_manifest_list))
    assert delete_tags(table, "a") == []
    assert tag_names(table.io, table.paths) == []
    assert verify(table) == []


def test_the_second_tag_of_a_snapshot_keeps_its_files(table: FileStoreTable) -> None:
    tag(table, "a", 1)
    tag(table, "b", 1)
    forget_snapshots(table, 1)
    assert delete_tags(table, "a") == []
    assert verify(table) == []


def test_a_tag_that_does_not_exist_cannot_be_deleted(table: FileStoreTable) -> None:
    with pytest.raises(ConfigError, match="no tag 'zzz'; its tags: none"):
        delete_tags(table, "zzz")
