import os
from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.long_lived_changelogs import keep_changelogs
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.retention.branches import create_branch
from ingestd.paimon.table.retention.orphans import find_orphans, remove_orphans
from ingestd.paimon.table.retention.tags import create_tag
from ingestd.paimon.table.verify.table_verify import verify
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.native_tables import NOW_MS, native_table, put, rows_table, write
from tests.support.stored_rows import stored_rows

OLD, BORDER = 1_000_000, 2_000_000
"""Milliseconds of the epoch: when everything was made, and before when things are old."""


@pytest.fixture
def table(tmp_path: Path) -> FileStoreTable:
    columns = [("id", "INT"), ("p", "INT")]
    made = native_table(tmp_path, columns, keys=["id", "p"], partitions=["p"])
    for number in range(3):
        put(made, [{"id": number, "p": number % 2}])
    age(tmp_path)
    return made


def age(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (OLD / 1000, OLD / 1000))


def lost(table: FileStoreTable, *names: str, old: bool = True) -> list[str]:
    paths = [f"{table.path}/{name}" for name in names]
    for path in paths:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(b"?")
        if old:
            os.utime(path, (OLD / 1000, OLD / 1000))
    return sorted(paths)


def found(table: FileStoreTable) -> list[str]:
    return [file.path for file in find_orphans(table, BORDER).files]


def test_a_sound_table_has_none(table: FileStoreTable) -> None:
    assert found(table) == []


def test_everything_that_nobody_names_is_found(table: FileStoreTable) -> None:
    paths = lost(
        table, "p=0/bucket-0/data-x-0.parquet", "p=7/bucket-1/changelog-x-1.parquet",
        "manifest/manifest-x-0", "index/index-x-0", "statistics/stat-x-0",
        "snapshot/.snapshot-9.x.tmp", "changelog/left.tmp",
    )  # fmt: skip
    assert found(table) == paths
    remove_orphans(table, find_orphans(table, BORDER))
    assert not any(map(os.path.exists, paths))
    assert not Path(f"{table.path}/p=7").exists()
    assert Path(f"{table.path}/p=0").exists()
    assert verify(table) == []
    assert len(stored_rows(table)) == 3


def test_what_is_young_may_yet_be_committed(table: FileStoreTable) -> None:
    lost(table, "p=0/bucket-0/data-x-0.parquet", "manifest/manifest-x", old=False)
    assert found(table) == []


def test_files_that_are_none_of_the_tables_stay(table: FileStoreTable) -> None:
    lost(table, "notes.txt", "p=0/notes.txt", "other/bucket-0/data-0.parquet", "schema/x")
    assert found(table) == []


def test_what_only_tags_branches_and_changelogs_name_stays(table: FileStoreTable) -> None:
    for one in (1, 2):
        create_tag(table, f"t{one}", read_snapshot(table.io, table.paths, one), now_ms=NOW_MS)
    create_branch(table, "b", "t2")
    table.io.delete_quietly(f"{table.paths.tag_dir}/tag-t2")
    keep_changelogs(table, [2])
    for one in (1, 2):
        table.io.delete_quietly(table.paths.snapshot(one))
    table.io.overwrite(table.paths.earliest_hint, b"3")
    age(Path(table.path))
    assert found(table) == []
    table.io.delete_tree(f"{table.path}/branch")
    assert all("/manifest/" in path for path in found(table)) or found(table) == []


def test_a_commit_that_lands_meanwhile_is_seen(table: FileStoreTable) -> None:
    name = "p=0/bucket-0/data-x-0.parquet"
    lost(table, name)

    def land() -> None:
        put(table, [{"id": 50, "p": 0}])
        for path in Path(table.path).rglob("*"):
            os.utime(path, (OLD / 1000, OLD / 1000))

    issue = ValidationIssue("list_names", "/snapshot", "after", action=land)
    busy = replace(table, io=FaultyFileIO(table.io, [issue]))
    assert found(busy) == [f"{table.path}/{name}"]
    assert verify(table) == []


def test_files_that_a_commit_meanwhile_refers_to_stay(table: FileStoreTable) -> None:
    state = load_state(table)
    rows = rows_table(table.schema, [{"id": 50, "p": 0}], state.max_sequence_number + 1)
    messages = tuple(write(table, state, rows))
    age(Path(table.path))

    def land() -> None:
        commit(table, "other", ManifestCommittable(9, messages), state=state, now_ms=NOW_MS)

    issue = ValidationIssue("list_names", "/snapshot", "after", action=land)
    busy = replace(table, io=FaultyFileIO(table.io, [issue]))
    assert found(busy) == []
    assert len(stored_rows(table)) == 4


def test_a_damaged_snapshot_stops_the_search(table: FileStoreTable) -> None:
    lost(table, "manifest/manifest-x-0")
    table.io.delete_quietly(
        table.paths.manifest(read_snapshot(table.io, table.paths, 2).delta_manifest_list)
    )
    with pytest.raises(FormatError, match="missing"):
        found(table)


def test_a_snapshot_that_expires_meanwhile_does_not(table: FileStoreTable) -> None:
    paths = lost(table, "manifest/manifest-x-0")
    first = read_snapshot(table.io, table.paths, 1)

    def expire() -> None:
        table.io.delete_quietly(table.paths.snapshot(1))
        table.io.delete_quietly(table.paths.manifest(first.base_manifest_list))

    issue = ValidationIssue("read_bytes", "snapshot-1", "after", action=expire)
    busy = replace(table, io=FaultyFileIO(table.io, [issue]))
    assert set(paths) <= set(found(busy))


def test_an_empty_bucket_goes_once_it_is_old(table: FileStoreTable) -> None:
    bucket = Path(f"{table.path}/p=5/bucket-0")
    bucket.mkdir(parents=True)
    assert find_orphans(table, BORDER).directories == ()
    os.utime(bucket, (OLD / 1000, OLD / 1000))
    orphans = find_orphans(table, BORDER)
    assert orphans.directories == (str(bucket),)
    remove_orphans(table, orphans)
    assert not bucket.parent.exists()


@pytest.mark.parametrize(
    "linked", ["p=0/bucket-1", "p=9", "p=9/bucket-0", "statistics", "changelog"]
)
def test_links_are_not_followed(table: FileStoreTable, tmp_path: Path, linked: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "bucket-0").mkdir(parents=True)
    for name in ("letter.txt", "bucket-0/data-x-0.parquet"):
        (elsewhere / name).write_bytes(b"precious")
        os.utime(elsewhere / name, (OLD / 1000, OLD / 1000))
    link = Path(table.path) / linked
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere, target_is_directory=True)
    orphans = find_orphans(table, BORDER)
    remove_orphans(table, orphans)
    assert orphans.files == ()
    assert (elsewhere / "letter.txt").exists()
    assert (elsewhere / "bucket-0/data-x-0.parquet").exists()
