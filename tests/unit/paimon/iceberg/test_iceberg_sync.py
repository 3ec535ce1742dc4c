"""Iceberg metadata follows the snapshots of a table, whatever stops it on the way."""

import json
import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ingestd.paimon as paimon
from ingestd.errors import UnsupportedError
from ingestd.paimon.iceberg.iceberg_sync import (
    metadata_folder,
    repair_iceberg,
    sync_iceberg,
    update_iceberg,
)
from ingestd.paimon.iceberg.metadata_store import MetadataStore
from ingestd.paimon.io.file_io import LocalFileIO, MemoryFileIO
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.iceberg_rules import iceberg_settings
from ingestd.paimon.spec.schema_change import SetOption, UpdateColumnType
from ingestd.paimon.table.commit.overwrite import truncate_table
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot, read_snapshot
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from ingestd.paimon.table.retention.tags import create_tag
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.native_tables import NOW_MS, alter, native_table, put

ON = {"metadata.iceberg.storage": "table-location", "bucket": "-1"}
COLUMNS = [("id", "INT"), ("dt", "STRING"), ("n", "INT")]


def new_table(
    io: Any = None, keys: Sequence[str] = (), place: str = "/w", **options: str
) -> FileStoreTable:
    return native_table(
        place, COLUMNS, keys=keys, partitions=["dt"], options={**ON, **options},
        io=MemoryFileIO() if io is None else io,
    )  # fmt: skip


def write(table: FileStoreTable, *ids: int) -> None:
    put(table, [{"id": number, "dt": "ab"[number % 2], "n": number} for number in ids])


def shown(table: FileStoreTable) -> tuple[list[int], int]:
    """Snapshots of the newest document, and its rows; every file that it needs is read."""
    settings = iceberg_settings(table.schema.options)
    assert settings is not None
    folder = metadata_folder(table, settings)
    store = MetadataStore(table.io, folder)
    version = store.newest_version()
    assert version is not None
    document, rows = store.read(version), 0
    needed = {f"v{version}.metadata.json" for version in store.versions()} | {"version-hint.text"}
    for snapshot in document["snapshots"]:
        needed.add(snapshot["manifest-list"].rpartition("/")[2])
        rows = 0
        for manifest in store.read_list(snapshot["manifest-list"]):
            needed.add(manifest.manifest_path.rpartition("/")[2])
            live = [e.data_file for e in store.read_manifest(manifest) if e.is_live]
            assert all(table.io.exists(str(one["file_path"])) for one in live)
            rows += sum(one["record_count"] for one in live)
    left = set(table.io.list_names(folder)) - needed
    assert not left, "files that no document names"
    assert table.io.read_bytes(f"{folder}/version-hint.text") == str(version).encode()
    return [snapshot["snapshot-id"] for snapshot in document["snapshots"]], rows


def test_without_the_option_nothing_is_written() -> None:
    table = native_table("/w", COLUMNS, options={"bucket": "-1"}, io=MemoryFileIO())
    put(table, [{"id": 1}])
    assert update_iceberg(table)
    assert not table.io.exists(f"{table.path}/metadata")


def test_a_table_without_a_snapshot_has_no_metadata() -> None:
    table = new_table()
    assert update_iceberg(table)
    assert not table.io.exists(f"{table.path}/metadata")


def test_each_commit_adds_a_snapshot() -> None:
    table = new_table()
    for number in range(1, 4):
        write(table, number)
        sync_iceberg(table)
        assert shown(table) == (list(range(1, number + 1)), number)
    sync_iceberg(table)
    assert shown(table) == ([1, 2, 3], 3)
    assert MetadataStore(table.io, f"{table.path}/metadata").versions() == [3]


def test_older_documents_stay_if_the_options_say_so() -> None:
    some = new_table(**{"metadata.iceberg.previous-versions-max": "1"})
    every = new_table(**{"metadata.iceberg.delete-after-commit.enabled": "false"}, place="/v")
    for table, versions in ((some, [3, 4]), (every, [1, 2, 3, 4])):
        for number in range(4):
            write(table, number)
            sync_iceberg(table)
        assert MetadataStore(table.io, f"{table.path}/metadata").versions() == versions


def test_missed_snapshots_are_caught_up_one_by_one() -> None:
    table = new_table()
    write(table, 1)
    sync_iceberg(table)
    for number in range(2, 6):
        write(table, number)
    sync_iceberg(table)
    assert shown(table) == ([1, 2, 3, 4, 5], 5)


def test_after_many_missed_snapshots_the_newest_is_shown_alone() -> None:
    table = new_table()
    write(table, 1)
    sync_iceberg(table)
    before = document(table)["table-uuid"]
    for number in range(2, 13):
        write(table, number)
    sync_iceberg(table)
    assert shown(table) == ([12], 12)
    assert document(table)["table-uuid"] == before


def document(table: FileStoreTable) -> Any:
    store = MetadataStore(table.io, f"{table.path}/metadata")
    return store.read(store.newest_version() or 0)


def test_a_snapshot_that_has_expired_meanwhile_ends_the_chain() -> None:
    options = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
    table = new_table(**options)
    for number in range(3):
        write(table, number)
        if number == 0:
            sync_iceberg(table)
    expire_snapshots(table, expire_settings(table.schema.options), NOW_MS)
    assert find_snapshot(table.io, table.paths, 2) is None
    sync_iceberg(table)
    assert shown(table) == ([3], 3)


def test_snapshots_of_iceberg_expire_with_those_of_the_table() -> None:
    table = new_table(**{"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "2"})
    for number in range(5):
        write(table, number)
        sync_iceberg(table)
        truncate_table(table, now_ms=NOW_MS)
        sync_iceberg(table)
    assert shown(table) == ([9, 10], 0)


@pytest.mark.parametrize("keys", [(), ("id", "dt")])
def test_a_compaction_replaces_files(keys: tuple[str, ...]) -> None:
    table = new_table(keys=keys, bucket="1" if keys else "-1")
    for number in (1, 3, 5):
        write(table, number)
        sync_iceberg(table)
    assert shown(table)[1] == (0 if keys else 3), "files of level 0 are not shown"
    compact_table(table, now_ms=NOW_MS, full=True)
    sync_iceberg(table)
    assert shown(table) == ([1, 2, 3, 4], 3)
    write(table, 3)
    sync_iceberg(table)
    assert shown(table)[1] == (3 if keys else 4)


def test_a_compaction_replaces_files_of_a_partition_that_is_not_a_number() -> None:
    columns = [("id", "INT"), ("p", "DOUBLE")]
    table = native_table("/w", columns, partitions=["p"], options=ON, io=MemoryFileIO())
    values = [1.5, float("nan"), -2.0]
    for number in range(6):
        put(table, [{"id": number, "p": values[number % 3]}])
        sync_iceberg(table)
    compact_table(table, now_ms=NOW_MS, full=True)
    sync_iceberg(table)
    assert shown(table)[1] == 6
    assert not repair_iceberg(table).restarted


def test_a_rollback_is_followed() -> None:
    table = new_table()
    for number in range(1, 5):
        write(table, number)
        sync_iceberg(table)
    target = read_snapshot(table.io, table.paths, 2)
    rollback(table, plan_rollback(table, target))
    sync_iceberg(table)
    assert shown(table) == ([2], 2)
    write(table, 9)
    sync_iceberg(table)
    assert shown(table) == ([2, 3], 3)


def test_other_snapshots_with_the_ids_of_those_rolled_back_are_noticed() -> None:
    table = new_table()
    for number in range(1, 5):
        write(table, number)
        sync_iceberg(table)
    rollback(table, plan_rollback(table, read_snapshot(table.io, table.paths, 2)))
    for rows in ((10, 11), (12, 13), (14,)):
        write(table, *rows)
    sync_iceberg(table)
    assert shown(table) == ([5], 7)


def test_another_table_of_the_same_name_begins_again() -> None:
    io = MemoryFileIO()
    options = {"metadata.iceberg.storage": "hadoop-catalog"}
    table = new_table(io, **options)
    for number in range(3):
        write(table, number)
        sync_iceberg(table)
    assert io.list_names("/w/iceberg/db/t/metadata")
    first = json.loads(io.read_bytes("/w/iceberg/db/t/metadata/v3.metadata.json"))
    io.delete_tree(table.path)
    again = new_table(io, **options)
    write(again, 1)
    sync_iceberg(again)
    assert shown(again) == ([1], 1)
    second = json.loads(io.read_bytes("/w/iceberg/db/t/metadata/v1.metadata.json"))
    assert first["table-uuid"] != second["table-uuid"]


def test_the_layout_of_a_catalog_needs_a_database() -> None:
    table = replace(new_table(**{"metadata.iceberg.storage": "hadoop-catalog"}), path="/w/t")
    settings = iceberg_settings(table.schema.options)
    assert settings is not None
    with pytest.raises(UnsupportedError, match="table-location"):
        metadata_folder(table, settings)


def test_tags_are_shown_when_they_are_made_and_kept_with_their_snapshots() -> None:
    table = new_table(**{"snapshot.num-retained.min": "3", "snapshot.num-retained.max": "3"})
    write(table, 1)
    sync_iceberg(table)
    create_tag(table, "first", read_snapshot(table.io, table.paths, 1), now_ms=NOW_MS)
    sync_iceberg(table)
    assert document(table)["refs"] == {}, "a commit does not read all tags"
    sync_iceberg(table, tags=True)
    for number in range(2, 5):
        assert document(table)["refs"]["first"]["snapshot-id"] == 1
        write(table, number)
        sync_iceberg(table)
    assert document(table)["refs"] == {}
    sync_iceberg(table, tags=True)
    assert document(table)["refs"] == {}


def test_a_branch_has_no_metadata_of_its_own() -> None:
    table = new_table()
    write(table, 1)
    assert update_iceberg(replace(table, branch="dev"))
    assert not table.io.exists(f"{table.path}/metadata")


def test_an_invalid_option_is_logged_and_not_raised(caplog: pytest.LogCaptureFixture) -> None:
    table = new_table()
    write(table, 1)
    options = {**table.schema.options, "metadata.iceberg.format-version": "two"}
    with caplog.at_level(logging.WARNING):
        assert not update_iceberg(table.with_schema(replace(table.schema, options=options)))
    assert "metadata.iceberg.format-version" in str(caplog.records[-1].__dict__["ctx"])
    assert update_iceberg(table)
    assert shown(table) == ([1], 1)


def test_a_change_that_readers_cannot_follow_waits_for_a_compaction(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = new_table(**{"compaction.min.file-num": "2"})
    write(table, 1, 3)
    sync_iceberg(table)
    table = alter(table, UpdateColumnType("n", parse_type("STRING")))
    put(table, [{"id": 5, "dt": "b", "n": "x"}])
    with caplog.at_level(logging.WARNING):
        assert not update_iceberg(table)
    assert "column 'n': Iceberg readers cannot read" in str(caplog.records[-1].__dict__["ctx"])
    assert shown(table) == ([1], 2)
    compact_table(table, now_ms=NOW_MS, full=True)
    assert update_iceberg(table)
    assert shown(table) == ([3], 3)


def test_a_damaged_document_is_replaced() -> None:
    table = new_table()
    for number in (1, 2):
        write(table, number)
        sync_iceberg(table)
    table.io.overwrite(f"{table.path}/metadata/v2.metadata.json", b"{")
    assert update_iceberg(table)
    store = MetadataStore(table.io, f"{table.path}/metadata")
    assert [snapshot["snapshot-id"] for snapshot in store.read(2)["snapshots"]] == [2]


def test_snapshots_that_expire_after_the_last_commit_leave_the_metadata() -> None:
    table = new_table(**{"snapshot.num-retained.min": "3", "snapshot.num-retained.max": "3"})
    for number in range(3):
        write(table, number)
        sync_iceberg(table)
    create_tag(table, "t", read_snapshot(table.io, table.paths, 1), now_ms=NOW_MS)
    sync_iceberg(table, tags=True)
    assert shown(table) == ([1, 2, 3], 3)
    fewer = dict.fromkeys(("snapshot.num-retained.min", "snapshot.num-retained.max"), "1")
    expire_snapshots(table, expire_settings(fewer), NOW_MS)
    sync_iceberg(table)
    assert shown(table) == ([3], 3)
    assert document(table)["refs"] == {}


def test_a_storage_that_is_refused_gets_no_metadata() -> None:
    table = new_table()
    write(table, 1)
    options = {**table.schema.options, "metadata.iceberg.storage": "glue-catalog"}
    rest = table.with_schema(replace(table.schema, options=options))
    with pytest.raises(UnsupportedError, match="'glue-catalog' is not supported"):
        sync_iceberg(rest)
    assert not table.io.exists(f"{table.path}/metadata")


@pytest.mark.parametrize("writes", [True, False])
def test_a_renamed_table_begins_again_because_documents_name_full_paths(*, writes: bool) -> None:
    table = new_table()
    write(table, 1)
    sync_iceberg(table)
    table.io.rename_directory("/w/db.db/t", "/w/db.db/u")
    table = replace(table, path="/w/db.db/u", name="db.u")
    if writes:
        write(table, 2)
        sync_iceberg(table)
    else:
        assert repair_iceberg(table).restarted
    assert shown(table)[1] == 1 + writes
    store = MetadataStore(table.io, f"{table.path}/metadata")
    (manifest,) = store.read_list(document(table)["snapshots"][0]["manifest-list"])
    assert {entry.data_file["file_path"][:11] for entry in store.read_manifest(manifest)} == {
        "/w/db.db/u/"
    }


def test_lost_manifests_are_made_again() -> None:
    table = new_table()
    write(table, 1)
    sync_iceberg(table)
    for name in table.io.list_names(f"{table.path}/metadata"):
        if name.endswith(".avro"):
            table.io.delete_quietly(f"{table.path}/metadata/{name}")
    write(table, 2)
    assert update_iceberg(table)
    assert shown(table) == ([2], 2)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 8))
@pytest.mark.parametrize("operation", ["write_new", "try_write_atomic", "overwrite", "read_bytes"])
def test_a_failure_anywhere_leaves_whole_metadata_and_is_caught_up(
    operation: str, number: int, when: Any, caplog: pytest.LogCaptureFixture
) -> None:
    io = FaultyFileIO(MemoryFileIO())
    table = new_table(io, **{"metadata.iceberg.compaction.min.file-num": "2"})
    for one in (1, 2):
        write(table, one)
        sync_iceberg(table)
    truncate_table(table, now_ms=NOW_MS)
    write(table, 3)
    io.issues.append(ValidationIssue(operation, "/metadata/", when, first=number))
    failed = not update_iceberg(table)
    assert failed is ("iceberg_metadata_failed" in caplog.text)
    io.issues.clear()
    store = MetadataStore(io, f"{table.path}/metadata")
    newest = store.read(store.newest_version() or 0)
    for snapshot in newest["snapshots"]:
        for manifest in store.read_list(snapshot["manifest-list"]):
            store.read_manifest(manifest)
    write(table, 4)
    assert update_iceberg(table)
    assert document(table)["current-snapshot-id"] == 5
    assert sum(one.added_rows_count + one.existing_rows_count for one in store.read_list(
        document(table)["snapshots"][-1]["manifest-list"])) == 2  # fmt: skip


def test_of_two_processes_one_writes_a_version(tmp_path: Path) -> None:
    io = FaultyFileIO(LocalFileIO(sync=False))
    table = new_table(io, place=str(tmp_path))
    write(table, 1)
    sync_iceberg(table)
    write(table, 2)
    rival = replace(table, io=io.inner)
    io.issues.append(ValidationIssue("try_write_atomic", "v2", action=lambda: sync_iceberg(rival)))
    sync_iceberg(table)
    assert shown(table) == ([1, 2], 2)


VECTORS = {
    "metadata.iceberg.format-version": "3",
    "deletion-vectors.enabled": "true",
    "deletion-vectors.bitmap64": "true",
    "snapshot.num-retained.min": "2",
    "snapshot.num-retained.max": "2",
    "bucket": "1",
}


def deletes_by_vector(table: FileStoreTable, number: int) -> None:
    """A row of many is replaced, and a small compaction deletes the older one by a vector."""
    write(table, number)
    compact_table(table, now_ms=NOW_MS)


def test_unchanged_vectors_stay_in_their_puffin_file_which_expires_with_them() -> None:
    table = new_table(keys=("id", "dt"), **VECTORS)
    write(table, *range(2000))
    compact_table(table, now_ms=NOW_MS, full=True)
    sync_iceberg(table)
    names = []
    for number in (2, 4, 3):
        deletes_by_vector(table, number)
        sync_iceberg(table)
        assert not repair_iceberg(table).restarted
        names.append({name for name in table.io.list_names(f"{table.path}/metadata")
                      if name.endswith(".puffin")})  # fmt: skip
    assert [len(found) for found in names] == [1, 2, 2]
    assert not names[0] & names[2], "vectors of expired snapshots are left"
    assert names[1] & names[2], "vectors of another bucket were written again"


@pytest.mark.parametrize("number", range(1, 5))
def test_a_failure_of_a_commit_with_vectors_is_caught_up(number: int) -> None:
    io = FaultyFileIO(MemoryFileIO())
    table = new_table(io, keys=("id", "dt"), **VECTORS)
    write(table, *range(2000))
    compact_table(table, now_ms=NOW_MS, full=True)
    sync_iceberg(table)
    deletes_by_vector(table, 2)
    io.issues.append(ValidationIssue("write_new", "/metadata/", "before", first=number))
    update_iceberg(table)
    io.issues.clear()
    deletes_by_vector(table, 4)
    assert update_iceberg(table)
    assert not repair_iceberg(table).restarted


def test_a_lost_puffin_file_is_made_again() -> None:
    table = new_table(keys=("id", "dt"), **VECTORS)
    write(table, *range(2000))
    compact_table(table, now_ms=NOW_MS, full=True)
    deletes_by_vector(table, 2)
    sync_iceberg(table)
    folder = f"{table.path}/metadata"
    (lost,) = (name for name in table.io.list_names(folder) if name.endswith(".puffin"))
    table.io.delete_quietly(f"{folder}/{lost}")
    assert repair_iceberg(table).restarted
    assert not repair_iceberg(table).restarted


@pytest.mark.parametrize("version", ["2", "3"])
def test_another_version_of_the_format_begins_again_under_the_same_identity(version: str) -> None:
    name = "metadata.iceberg.format-version"
    table = new_table(**{name: {"2": "3", "3": "2"}[version]})
    for number in (1, 2):
        write(table, number)
        sync_iceberg(table)
    before = document(table)
    table = alter(table, SetOption(name, version))
    write(table, 3)
    sync_iceberg(table)
    after = document(table)
    assert (after["format-version"], shown(table)) == (int(version), ([3], 3))
    assert after["table-uuid"] == before["table-uuid"]
    assert after.get("next-row-id") == {"2": None, "3": 3}[version]


def test_metadata_that_another_process_deleted_meanwhile_is_read_again(tmp_path: Path) -> None:
    io = FaultyFileIO(LocalFileIO(sync=False))
    table = new_table(io, place=str(tmp_path))
    write(table, 1)
    sync_iceberg(table)
    write(table, 2)
    rival = replace(table, io=io.inner)
    io.issues.append(
        ValidationIssue("read_bytes", "v1.metadata", action=lambda: sync_iceberg(rival))
    )
    sync_iceberg(table)
    assert shown(table) == ([1, 2], 2)


def test_a_repair_beside_a_writer_follows_it(tmp_path: Path) -> None:
    io = FaultyFileIO(LocalFileIO(sync=False))
    table = new_table(io, place=str(tmp_path))
    write(table, 1)
    sync_iceberg(table)
    rival = replace(table, io=io.inner)

    def commits() -> None:
        write(rival, 2)
        sync_iceberg(rival)

    io.issues.append(ValidationIssue("read_bytes", "v1.metadata", first=3, action=commits))
    result = repair_iceberg(table)
    assert (result.before, result.after, result.restarted) == (1, 2, False)
    assert shown(table) == ([1, 2], 2)


def test_a_writer_of_the_library_keeps_the_metadata(tmp_path: Path) -> None:
    table = paimon.open_warehouse(str(tmp_path)).create(
        "db.t", pa.schema([("id", pa.int32()), ("dt", pa.string())]), options=ON
    )
    table.write([{"id": 1, "dt": "a"}])
    table.write([{"id": 2, "dt": "a"}])
    table.wait_for_iceberg()
    assert shown(table.files) == ([1, 2], 2)


def test_a_file_is_flushed_before_it_has_its_name_and_no_directory_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(LocalFileIO(), place=str(tmp_path))
    write(table, 1)
    done: list[tuple[str, str]] = []
    flush, link, rename = os.fsync, os.link, Path.replace

    def fsync(descriptor: int) -> None:
        done.append(("flush", os.readlink(f"/proc/self/fd/{descriptor}").rpartition("/")[2]))
        flush(descriptor)

    def linked(old: Path, new: Path) -> None:
        done.append((old.name, new.name))
        link(old, new)

    def renamed(old: Path, new: Path) -> Path:
        done.append((old.name, new.name))
        return rename(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr(Path, "replace", renamed)
    sync_iceberg(table)
    monkeypatch.undo()
    manifest, manifest_list, document, published, hint, named = done
    assert manifest[1].endswith("-m1.avro")
    assert manifest_list[1].startswith("snap-1-")
    assert [document[0], hint[0]] == ["flush", "flush"]
    assert published == (document[1], "v1.metadata.json")
    assert named == (hint[1], "version-hint.text")
