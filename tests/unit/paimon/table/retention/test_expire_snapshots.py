import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.snapshot import Snapshot, encode_snapshot
from ingestd.paimon.table.commit.overwrite import truncate_table
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.long_lived_changelogs import changelog_ids
from ingestd.paimon.table.metadata.snapshot_manager import (
    earliest_snapshot_id,
    latest_snapshot,
    read_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.metadata.time_travel import tagged_snapshot, tagged_snapshots
from ingestd.paimon.table.read.incremental_read import read_changelog
from ingestd.paimon.table.read.table_read import TableReader
from ingestd.paimon.table.retention.branches import create_branch
from ingestd.paimon.table.retention.consumers import consumers, reset_consumer
from ingestd.paimon.table.retention.expire_changelogs import expire_changelogs
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import (
    Expiry,
    expire_snapshots,
    plan_snapshot_expiry,
)
from ingestd.paimon.table.retention.orphans import find_orphans
from ingestd.paimon.table.retention.tags import create_tag
from ingestd.paimon.table.verify.table_verify import verify
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.native_tables import NOW_MS, native_table, put
from tests.support.stored_rows import stored_rows

LATER = NOW_MS + 10_000_000
DAY = 86_400_000


def table_of(snapshots: int, **options: str) -> FileStoreTable:
    columns = [("id", "INT"), ("v", "STRING")]
    table = native_table("/w", columns, keys=["id"], options=options, io=MemoryFileIO())
    for number in range(snapshots):
        put(table, [{"id": number, "v": "x"}])
    return table


def expired(table: FileStoreTable, **options: object) -> Expiry:
    return expire_snapshots(table, settings(**options), LATER)


def settings(**options: object) -> Any:
    named = {name.replace("__", ".").replace("_", "-"): str(v) for name, v in options.items()}
    return expire_settings({"snapshot.num-retained.min": "1", **named})


def left(table: FileStoreTable) -> list[int]:
    assert verify(table) == []
    return snapshot_ids(table.io, table.paths)


def tag(table: FileStoreTable, name: str, snapshot: int) -> None:
    create_tag(table, name, read_snapshot(table.io, table.paths, snapshot), now_ms=NOW_MS)


def nothing_is_orphaned(table: FileStoreTable) -> bool:
    return find_orphans(table, LATER).files == ()


def test_old_snapshots_expire_with_all_of_their_files() -> None:
    table = table_of(6)
    gone = expired(table, snapshot__num_retained__min=2)
    assert (gone.ids, gone.end) == ((1, 2, 3, 4), 5)
    assert left(table) == [5, 6]
    assert earliest_snapshot_id(table.io, table.paths) == 5
    assert len(stored_rows(table)) == 6
    assert nothing_is_orphaned(table)


def test_data_files_go_when_a_snapshot_that_goes_had_them_last() -> None:
    table = table_of(3)
    truncate_table(table, now_ms=NOW_MS)
    put(table, [{"id": 9, "v": "y"}])
    gone = expired(table, snapshot__num_retained__min=2)
    assert sum("/data-" in path for path in gone.files) == 3
    assert left(table) == [4, 5]
    assert nothing_is_orphaned(table)


def test_a_plan_changes_nothing() -> None:
    table = table_of(5)
    plan = plan_snapshot_expiry(table, settings(), LATER)
    assert plan.ids == (1, 2, 3, 4)
    assert plan.files
    assert left(table) == [1, 2, 3, 4, 5]
    assert expired(table) == plan


def test_young_snapshots_stay() -> None:
    table = table_of(5)
    assert expired(table, snapshot__time_retained="100 d").ids == ()
    assert left(table) == [1, 2, 3, 4, 5]


def test_what_a_tag_keeps_stays_readable() -> None:
    table = table_of(3)
    tag(table, "a", 2)
    truncate_table(table, now_ms=NOW_MS)
    put(table, [{"id": 9, "v": "y"}])
    gone = expired(table)
    assert left(table) == [5]
    assert sum("/data-" in path for path in gone.files) == 1
    assert nothing_is_orphaned(table)


def test_what_a_branch_shares_stays_even_if_its_tag_is_gone() -> None:
    table = table_of(2)
    tag(table, "a", 2)
    branch = create_branch(table, "b", "a")
    table.io.delete_quietly(f"{table.paths.tag_dir}/tag-a")
    truncate_table(table, now_ms=NOW_MS)
    put(table, [{"id": 9, "v": "y"}])
    expired(table)
    assert left(table) == [4]
    assert len(stored_rows(branch)) == 2
    assert left(branch) == [2]
    assert nothing_is_orphaned(table)


def test_what_a_consumer_has_not_read_stays_until_it_is_forgotten() -> None:
    table = table_of(5)
    reset_consumer(table, "slow", 3)
    assert expired(table).ids == (1, 2)
    assert left(table) == [3, 4, 5]
    assert expired(table, consumer__expiration_time="1 d").consumers == ("slow",)
    assert consumers(table) == {}
    assert left(table) == [5]


MARK = {"ingestd.pipelines": "p"}


def with_record(table: FileStoreTable, number: int) -> None:
    record = ManifestCommittable(number, (), properties={"ingestd.table.p": str(number)})
    commit(table, "p", record, state=load_state(table), now_ms=NOW_MS, allow_empty=True)


def foreign(table: FileStoreTable) -> None:
    """A commit by a program that does not carry the record."""
    newest = latest_snapshot(table.io, table.paths)
    assert newest is not None
    bare = replace(newest, id=newest.id + 1, commit_user="java", properties={})
    assert table.io.try_write_atomic(table.paths.snapshot(bare.id), encode_snapshot(bare))
    table.io.overwrite(table.paths.latest_hint, str(bare.id).encode())


def test_the_oldest_snapshot_that_stays_has_a_record_so_that_each_rollback_has_one() -> None:
    table = table_of(2)
    table = table.with_schema(replace(table.schema, options={**table.schema.options, **MARK}))
    with_record(table, 1)
    with_record(table, 2)
    foreign(table)
    foreign(table)
    assert expired(table).end == 4
    assert left(table) == [4, 5, 6]
    put(table, [{"id": 8, "v": "x"}])
    assert expired(table).end == 7, "a commit of ours carries the record"


def test_an_expiry_that_is_cut_off_leaves_garbage_and_no_hole() -> None:
    table = table_of(3)
    truncate_table(table, now_ms=NOW_MS)
    put(table, [{"id": 9, "v": "y"}])
    whole = plan_snapshot_expiry(table, settings(), LATER)
    files = table.io
    for step in range(len(whole.ids) + 4):
        copy = MemoryFileIO(dict(files.files))  # type: ignore[attr-defined]
        faulty = _Stopping(copy, step)
        broken = FileStoreTable(table.path, table.schema, faulty, table.name)
        with pytest.raises(KeyboardInterrupt):
            expire_snapshots(broken, settings(), LATER)
        mended = FileStoreTable(table.path, table.schema, copy, table.name)
        for one in (None, *snapshot_ids(copy, mended.paths)):
            assert {finding.code for finding in verify(mended, one)} <= {"hint"}
        expire_snapshots(mended, settings(), LATER)
        assert left(mended) == [5]


class _Stopping(FaultyFileIO):
    """Dies instead of deleting, after some deletions."""

    def __init__(self, inner: MemoryFileIO, after: int) -> None:
        super().__init__(inner)
        self._after = after

    def delete_quietly(self, path: str) -> None:
        if self._after == 0:
            raise KeyboardInterrupt
        self._after -= 1
        super().delete_quietly(path)


def test_a_tag_that_is_made_meanwhile_keeps_what_it_needs() -> None:
    table = table_of(3)
    truncate_table(table, now_ms=NOW_MS)
    put(table, [{"id": 9, "v": "y"}])
    issue = ValidationIssue("delete_quietly", "snapshot-1", action=lambda: tag(table, "late", 2))
    busy = replace(table, io=FaultyFileIO(table.io, [issue]))
    gone = expire_snapshots(busy, settings(), LATER)
    assert sum("/data-" in path for path in gone.files) == 1
    assert left(table) == [5]
    assert tagged_snapshot(table, "late").id == 2


def test_a_tag_that_is_moved_meanwhile_keeps_what_it_needs(tmp_path: Path) -> None:
    table = native_table(tmp_path, [("id", "INT"), ("v", "STRING")], keys=["id"])
    for number in range(3):
        put(table, [{"id": number, "v": "x"}])
    truncate_table(table, now_ms=NOW_MS)
    put(table, [{"id": 9, "v": "y"}])
    tag(table, "moved", 5)

    def move() -> None:
        at = read_snapshot(table.io, table.paths, 2)
        create_tag(table, "moved", at, now_ms=NOW_MS, must_exist=True)

    issue = ValidationIssue("delete_quietly", "snapshot-1", action=move)
    expire_snapshots(replace(table, io=FaultyFileIO(table.io, [issue])), settings(), LATER)
    assert left(table) == [5]
    kept = tagged_snapshot(table, "moved")
    assert sum(part.num_rows for part in TableReader(table).rows(kept)) == 2


def test_changes_of_snapshots_that_another_expiry_has_deleted_are_not_kept_again() -> None:
    table = table_of(6)
    options = {"changelog.num-retained.max": "5", "snapshot.num-retained.max": "1"}
    ours = settings(**{name.replace(".", "__"): n for name, n in options.items()})
    issue = ValidationIssue("overwrite", "changelog-1", action=lambda: expired(table))
    busy = replace(table, io=FaultyFileIO(table.io, [issue]))
    expire_snapshots(busy, ours, LATER)
    assert changelog_ids(table) == [1]
    assert left(table) == [6]


@pytest.mark.parametrize("number", [1, 2, 5])
def test_a_damaged_snapshot_file_stops_the_expiry_until_it_is_deleted(number: int) -> None:
    table = table_of(6)
    truncate_table(table, now_ms=NOW_MS)
    table.io.overwrite(table.paths.snapshot(number), b"{")
    before = sorted(path for path in table.io.files if "/snapshot/" not in path)
    with pytest.raises(FormatError, match=f"snapshot-{number} cannot be read"):
        expired(table)
    assert snapshot_ids(table.io, table.paths) == [1, 2, 3, 4, 5, 6, 7]
    assert sorted(path for path in table.io.files if "/snapshot/" not in path) == before
    table.io.delete_quietly(table.paths.snapshot(number))
    expired(table)
    assert left(table) == [7]


def test_a_damaged_snapshot_that_stays_stops_the_expiry() -> None:
    table = table_of(4)
    last = read_snapshot(table.io, table.paths, 4)
    table.io.delete_quietly(table.paths.manifest(last.base_manifest_list))
    with pytest.raises(FormatError, match="missing"):
        expired(table)
    assert snapshot_ids(table.io, table.paths) == [1, 2, 3, 4]


def test_changes_outlive_their_snapshots() -> None:
    table = table_of(6)
    truncate_table(table, now_ms=NOW_MS)
    put(table, [{"id": 9, "v": "y"}])
    options = {
        "snapshot__num_retained__min": 1,
        "changelog__num_retained__min": 5,
        "changelog__num_retained__max": 5,
        "snapshot__num_retained__max": 1,
    }
    changes = read_changelog(table, 4)
    gone = expired(table, **options)
    assert gone.kept_as_changelogs == gone.ids == (1, 2, 3, 4, 5, 6, 7)
    assert read_changelog(table, 4) == changes
    went = expire_changelogs(table, settings(**options), LATER)
    assert (went.ids, went.end) == ((1, 2, 3), 4)
    assert read_changelog(table, 4) == changes
    assert left(table) == [8]
    hints = {name: table.io.read_bytes(f"{table.paths.changelog_dir}/{name}") for name in HINTS}
    assert {name: json.loads(text) for name, text in hints.items()} == HINTS


HINTS: Mapping[str, int] = {"EARLIEST": 4, "LATEST": 7}


def test_an_expiry_that_another_one_overtakes_goes_on_from_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = table_of(8)
    faster: list[Expiry] = []

    def look_late(*of: Any) -> dict[str, Snapshot]:
        monkeypatch.undo()
        faster.append(expired(table, snapshot__num_retained__min=3))
        return tagged_snapshots(*of)

    # Tags are looked for once all that goes has been chosen.
    module = "ingestd.paimon.table.retention.expire_snapshots"
    monkeypatch.setattr(f"{module}.tagged_snapshots", look_late)
    late = plan_snapshot_expiry(table, settings(snapshot__num_retained__min=6), LATER)
    assert (faster[0].end, late.ids) == (6, ())
    assert left(table) == [6, 7, 8]
    assert nothing_is_orphaned(table)


def test_what_is_committed_between_two_looks_goes_too_or_stays_whole() -> None:
    table = table_of(3)

    def commits() -> None:
        put(table, [{"id": 7, "v": "y"}])
        truncate_table(table, now_ms=NOW_MS)

    listing = ValidationIssue("list_names", "/snapshot", when="after", action=commits)
    expired(replace(table, io=FaultyFileIO(table.io, [listing])))
    assert left(table) == [5]
    assert nothing_is_orphaned(table)


def test_a_hint_that_a_killed_expiry_left_is_mended() -> None:
    table = table_of(3)
    expired(table)
    table.io.overwrite(table.paths.earliest_hint, b"1")
    assert [finding.code for finding in verify(table)] == ["hint"]
    assert expired(table).ids == ()
    assert left(table) == [3]


def test_a_tag_needs_no_changelog_of_its_expired_snapshot() -> None:
    producer = "input"
    table = table_of(3, **{"changelog-producer": producer})
    tag(table, "kept", 1)
    assert expired(table, changelog_producer=producer).ids == (1, 2)
    # The manifests of the changelog of snapshot 1 are deleted.
    assert nothing_is_orphaned(table)
    branch = create_branch(table, "fix", "kept")
    put(table, [{"id": 9, "v": "x"}])
    assert expired(table, changelog_producer=producer).ids == (3,)
    assert len(stored_rows(branch)) == 1
    assert left(table) == [4]
