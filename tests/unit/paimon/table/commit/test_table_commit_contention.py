"""Commits that others disturb: rivals, replays, fences and storage that lies."""

import pytest

from ingestd.errors import (
    CommitConflictError,
    CommitUnknownError,
    FencedError,
    StorageError,
)
from ingestd.paimon.spec.schema import encode_schema
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot, snapshot_ids
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.metadata_tables import (
    NOW_MS,
    append,
    data_file,
    hash_file,
    live_names,
    message,
    metadata_table,
    newest,
    with_io,
)
from tests.support.metadata_tables import commit_imagined as commit


def faulty(table: FileStoreTable, *issues: ValidationIssue) -> FileStoreTable:
    return with_io(table, FaultyFileIO(table.io, list(issues)))


def ids(table: FileStoreTable) -> list[int]:
    return snapshot_ids(table.io, table.paths)


def manifests(table: FileStoreTable) -> set[str]:
    return set(table.io.list_names(f"{table.path}/manifest"))


def test_a_commit_lands_on_top_of_what_others_committed() -> None:
    table = metadata_table(options={"bucket": "-1"})
    state = append(table, "us", 1, message("a", sequence=1)).state
    append(table, "them", 1, message("b", index=[hash_file("i", partition=b"other")], sequence=9))
    result = append(table, "us", 2, message("c", sequence=2), state=state)
    assert live_names(table) == ["a", "b", "c"]
    assert newest(table).total_record_count == 3
    assert result.state == load_state(table) or result.state.committed["them"] == 1
    assert result.state.max_sequence_number == 9
    assert len(result.state.index_entries) == 1


def test_the_loser_of_a_race_tries_again_and_removes_what_it_wrote_in_vain() -> None:
    table = metadata_table()
    rival = lambda: append(table, "them", 1, message("b"))  # noqa: E731
    racing = faulty(table, ValidationIssue("try_write_atomic", "snapshot-1", action=rival))
    result = append(racing, "us", 1, message("a"))
    assert (result.status, result.attempts, ids(table)) == ("committed", 2, [1, 2])
    assert live_names(table) == ["a", "b"]
    used = {
        name
        for n in (1, 2)
        for s in [read_snapshot(table.io, table.paths, n)]
        for name in (s.base_manifest_list, s.delta_manifest_list)
    }
    assert {name for name in manifests(table) if name.startswith("manifest-list")} == used


def test_who_loses_every_try_says_so_and_leaves_nothing() -> None:
    table = metadata_table(options={"commit.max-retries": "2"})
    count = iter(range(1, 100))

    def rival() -> None:
        number = next(count)
        append(table, "them", number, message(f"r{number}"))

    racing = faulty(table, ValidationIssue("try_write_atomic", "snapshot-", times=99, action=rival))
    with pytest.raises(CommitConflictError, match="3 tries"):
        append(racing, "us", 1, message("a"))
    assert "a" not in live_names(table)
    assert ids(table) == [1, 2, 3]
    assert len(manifests(table)) == 3 * 3


@pytest.mark.parametrize("identifier", [3, 2])
def test_an_identifier_that_was_committed_is_a_replay(identifier: int) -> None:
    table = metadata_table()
    state = append(table, "us", 3, message("a")).state
    append(table, "them", 9, message("b"))
    for known in (state, load_state(table)):
        result = append(table, "us", identifier, message("again"), state=known)
        assert result.status == "replayed"
        assert result.snapshot is not None
        assert (result.snapshot.id, result.snapshot.commit_identifier) == (1, 3)
    assert live_names(table) == ["a", "b"]


def test_our_own_identifier_in_a_snapshot_newer_than_the_state_is_a_replay() -> None:
    table = metadata_table()
    state = append(table, "us", 1, message("a")).state
    append(table, "us", 2, message("b"))
    result = append(table, "us", 2, message("b-again"), state=state)
    assert (result.status, ids(table)) == ("replayed", [1, 2])


def test_a_later_identifier_of_our_own_user_fences_us() -> None:
    table = metadata_table()
    state = append(table, "us", 1, message("a")).state
    append(table, "us", 3, message("b"))
    before = manifests(table)
    with pytest.raises(FencedError, match="identifier 3 while 2"):
        append(table, "us", 2, message("c"), state=state)
    assert manifests(table) == before


def test_a_rival_under_our_name_in_the_middle_of_the_commit_fences_us() -> None:
    table = metadata_table()
    state = append(table, "us", 1, message("a")).state
    rival = lambda: append(table, "us", 5, message("b"))  # noqa: E731
    racing = faulty(table, ValidationIssue("try_write_atomic", "snapshot-2", action=rival))
    with pytest.raises(FencedError):
        append(racing, "us", 2, message("c"), state=state)
    assert live_names(table) == ["a", "b"]


def test_batch_commits_are_no_replays_and_hide_no_identifier() -> None:
    table = metadata_table()
    append(table, "us", 1, message("a"))
    for name in "bc":
        assert append(table, "us", BATCH_COMMIT_IDENTIFIER, message(name)).status == "committed"
    assert append(table, "us", 1, message("x")).status == "replayed"
    assert append(table, "us", 2, message("d")).status == "committed"
    assert live_names(table) == ["a", "b", "c", "d"]


def test_a_batch_commit_is_not_fenced_by_a_stream_of_its_user() -> None:
    table = metadata_table()
    state = append(table, "us", 1, message("a")).state
    append(table, "us", 2, message("b"))
    result = append(table, "us", BATCH_COMMIT_IDENTIFIER, message("c"), state=state)
    assert (result.status, live_names(table)) == ("committed", ["a", "b", "c"])


def test_an_unclear_answer_after_the_snapshot_appeared_is_a_success() -> None:
    table = metadata_table()
    lying = faulty(table, ValidationIssue("try_write_atomic", "snapshot-1", when="after"))
    result = append(lying, "us", 1, message("a"))
    assert (result.status, result.attempts, ids(table)) == ("committed", 1, [1])


def test_an_unclear_answer_before_the_snapshot_appeared_is_tried_again() -> None:
    table = metadata_table()
    failing = faulty(table, ValidationIssue("try_write_atomic", "snapshot-1", times=2))
    result = append(failing, "us", 1, message("a"))
    assert (result.status, ids(table), live_names(table)) == ("committed", [1], ["a"])


def test_an_unclear_answer_about_a_snapshot_of_a_rival_is_a_lost_try() -> None:
    table = metadata_table()

    def rival() -> None:
        append(table, "them", 1, message("b"))
        raise StorageError("connection reset")

    racing = faulty(table, ValidationIssue("try_write_atomic", "snapshot-1", action=rival))
    result = append(racing, "us", 1, message("a"))
    assert (result.status, ids(table), live_names(table)) == ("committed", [1, 2], ["a", "b"])


def test_storage_that_never_answers_leaves_the_outcome_open_and_all_files() -> None:
    table = metadata_table(options={"commit.max-retries": "2"})
    mute = faulty(
        table,
        ValidationIssue("try_write_atomic", "snapshot-1", when="after", times=99),
        ValidationIssue("read_bytes", "snapshot-1", times=99),
    )
    with pytest.raises(CommitUnknownError, match="snapshot 1"):
        append(mute, "us", 1, message("a"))
    assert ids(table) == [1]
    assert live_names(table) == ["a"]
    assert append(table, "us", 1, message("a")).status == "replayed"


def test_a_write_that_fails_before_publishing_commits_nothing() -> None:
    table = metadata_table()
    with pytest.raises(StorageError):
        append(
            faulty(table, ValidationIssue("write_new", "manifest-list", first=2)),
            "us",
            1,
            message("a"),
        )
    assert ids(table) == []
    assert manifests(table) == set()


def test_a_foreign_change_of_the_hash_index_is_a_conflict() -> None:
    table = metadata_table(options={"bucket": "-1"})
    state = append(table, "us", 1, message("a", index=[hash_file("i-1")])).state
    append(table, "them", 1, message("b", index=[hash_file("i-2")]))
    for index in ([], [hash_file("i-3", bucket=1)]):
        with pytest.raises(CommitConflictError, match="hash index"):
            append(table, "us", 2, message("c", index=index), state=state)
    assert append(table, "us", 2, message("c")).status == "committed"


def test_a_changed_bucket_count_is_a_conflict() -> None:
    table = metadata_table()
    schema = table.schema
    changed = type(schema)(
        1, schema.fields, schema.highest_field_id, (), ("k",), {**schema.options, "bucket": "4"}
    )
    table.io.write_new(table.paths.schema(1), encode_schema(changed))
    with pytest.raises(CommitConflictError, match="from 2 to 4"):
        append(table, "us", 1, message("a"))


def test_a_compaction_of_files_that_are_gone_is_a_conflict() -> None:
    table = metadata_table()
    state = append(table, "us", 1, message("a")).state
    compaction = CommitMessage(
        message().partition, 0, 2,
        compact_before=(data_file("a"),), compact_after=(data_file("b", level=5),),
    )  # fmt: skip
    append(table, "compactor", 1, compaction)
    before = manifests(table)
    rival = CommitMessage(
        message().partition, 0, 2,
        compact_before=(data_file("a"),), compact_after=(data_file("c", level=5),),
    )  # fmt: skip
    with pytest.raises(CommitConflictError, match=r"file a \(bucket 0, level 0\) was removed"):
        append(table, "us", 2, rival, state=state)
    assert manifests(table) == before


def test_overwriting_takes_along_what_others_added_meanwhile() -> None:
    table = metadata_table()
    state = append(table, "us", 1, message("a")).state
    rival = lambda: append(table, "them", 1, message("b"))  # noqa: E731
    racing = faulty(table, ValidationIssue("try_write_atomic", "snapshot-2", action=rival))
    committable = ManifestCommittable(2, (message("c"),), overwrite=True)
    commit(racing, "us", committable, state=state, now_ms=NOW_MS)
    assert live_names(table) == ["c"]
    assert newest(table).total_record_count == 1


def test_a_rolled_back_table_refuses_what_was_planned_on_it() -> None:
    table = metadata_table()
    append(table, "us", 1, message("a"))
    state = append(table, "us", 2, message("b")).state
    table.io.delete_quietly(table.paths.snapshot(2))
    table.io.overwrite(table.paths.latest_hint, b"1")
    with pytest.raises(CommitConflictError, match="rolled back"):
        append(table, "us", 3, message("c"), state=state)
    append(table, "them", 1, message("d"))
    with pytest.raises(CommitConflictError, match="rolled back"):
        append(table, "us", 3, message("c"), state=state)


def test_expired_snapshots_between_state_and_newest_are_no_obstacle() -> None:
    table = metadata_table()
    state = append(table, "us", 1, message("a", sequence=4)).state
    for n in range(1, 5):
        append(table, "them", n, message(f"b{n}", sequence=n * 10))
    for n in (1, 2, 3):
        table.io.delete_quietly(table.paths.snapshot(n))
    result = append(table, "us", 2, message("c"), state=state)
    assert (result.status, result.state.max_sequence_number) == ("committed", 40)
    assert live_names(table) == ["a", "b1", "b2", "b3", "b4", "c"]
    assert append(table, "us", 2, message("c"), state=state).status == "replayed"


def roll_back(table: FileStoreTable, snapshot: int) -> None:
    rollback(table, plan_rollback(table, read_snapshot(table.io, table.paths, snapshot)))


@pytest.mark.parametrize(
    "at", [("try_write_atomic", "/snapshot-4"), ("overwrite", "/LATEST")], ids=["before", "after"]
)
def test_a_commit_on_a_snapshot_that_is_rolled_back_meanwhile_does_not_take_effect(
    at: tuple[str, str],
) -> None:
    table = metadata_table()
    for number in (1, 2, 3):
        state = append(table, "us", number, message(f"{number}")).state
    rival = ValidationIssue(*at, action=lambda: roll_back(table, 1))
    with pytest.raises(CommitUnknownError, match="rolled back below snapshot 3"):
        append(faulty(table, rival), "us", 4, message("4"), state=state)
    assert (ids(table), newest(table).id) == ([1], 1)
    with pytest.raises(CommitConflictError, match="rolled back"):
        append(table, "us", 4, message("4"), state=state)
    append(table, "us", 4, message("5"))
    assert live_names(table) == ["1", "5"]


def test_a_commit_stays_if_its_base_expires_or_cannot_be_looked_at() -> None:
    table = metadata_table()
    for number in (1, 2, 3):
        state = append(table, "us", number, message(f"{number}")).state
    silent = ValidationIssue("read_bytes", "/snapshot-3", first=2)
    state = append(faulty(table, silent), "us", 4, message("4"), state=state).state
    assert silent.seen == 2

    def expire() -> None:
        for number in ids(table)[:-1]:
            table.io.delete_quietly(table.paths.snapshot(number))

    expiry = ValidationIssue("overwrite", "/LATEST", action=expire)
    assert append(faulty(table, expiry), "us", 5, message("5"), state=state).status == "committed"
    assert ids(table) == [5]
