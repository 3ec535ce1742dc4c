"""A commit that no one disturbs: the snapshot it makes and the work it does."""

from dataclasses import replace

import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.manifest import FileKind
from ingestd.paimon.spec.snapshot import (
    BASE_PROPERTY,
    BATCH_COMMIT_IDENTIFIER,
    CARRIED_PREFIX,
    CommitKind,
    encode_snapshot,
)
from ingestd.paimon.table.metadata.file_store_scan import (
    delta_entries,
    live_files,
    read_index_manifest,
    read_manifest_list,
)
from ingestd.paimon.table.metadata.schema_manager import publish_schema
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot_id, read_snapshot
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.metadata.time_travel import snapshot_as_of
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


def test_the_first_commit_makes_snapshot_one() -> None:
    table = metadata_table()
    result = append(table, "user", 7, message("a", "b"))
    assert result.status == "committed"
    assert result.attempts == 1
    snapshot = newest(table)
    assert result.snapshot == snapshot == result.state.snapshot
    assert (snapshot.id, snapshot.schema_id, snapshot.commit_kind) == (1, 0, CommitKind.APPEND)
    assert (snapshot.commit_user, snapshot.commit_identifier) == ("user", 7)
    assert (snapshot.total_record_count, snapshot.delta_record_count) == (2, 2)
    assert (snapshot.time_millis, snapshot.next_row_id) == (NOW_MS, 0)
    assert snapshot.changelog_manifest_list is None
    assert snapshot.index_manifest is None
    assert read_manifest_list(table.io, table.paths, snapshot.base_manifest_list) == []
    assert live_names(table) == ["a", "b"]


def test_sizes_in_the_snapshot_are_those_of_the_files() -> None:
    table = metadata_table()
    append(table, "user", 1, message("a"))
    append(table, "user", 2, message("b"))
    snapshot = newest(table)
    for name, size in (
        (snapshot.base_manifest_list, snapshot.base_manifest_list_size),
        (snapshot.delta_manifest_list, snapshot.delta_manifest_list_size),
    ):
        assert table.io.size(table.paths.manifest(name)) == size
        for meta in read_manifest_list(table.io, table.paths, name):
            assert table.io.size(table.paths.manifest(meta.file_name)) == meta.file_size


def test_hints_follow_the_snapshots() -> None:
    table = metadata_table()
    append(table, "user", 1, message("a"))
    append(table, "user", 2, message("b"))
    assert table.io.read_bytes(table.paths.latest_hint) == b"2"
    assert table.io.read_bytes(table.paths.earliest_hint) == b"1"


def test_a_commit_on_the_newest_state_reads_no_manifest() -> None:
    io = FaultyFileIO(MemoryFileIO())
    table = metadata_table(io, options={"bucket": "-1"})
    state = append(table, "user", 1, message("a", index=[hash_file("i-1")])).state
    io.calls.clear()
    state = append(table, "user", 2, message("b"), state=state).state
    append(table, "user", 3, message("c", index=[hash_file("i-2", bucket=1)]), state=state)
    assert io.operations("read_bytes", "manifest") == []
    assert io.operations("list_names") == []
    assert live_names(table) == ["a", "b", "c"]


def test_what_is_no_part_of_a_stream_looks_at_no_older_snapshot() -> None:
    io = FaultyFileIO(MemoryFileIO())
    table = metadata_table(io)
    for number in range(1, 6):
        append(table, "user", number, message(f"f{number}"))
    state = load_state(table)
    committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, (message("late"),))
    io.calls.clear()
    commit(table, "another user", committable, state=state, now_ms=NOW_MS)
    older = {table.paths.snapshot(number) for number in range(1, 5)}
    assert not older.intersection(io.operations("read_bytes", "snapshot-"))
    assert latest_snapshot_id(table.io, table.paths) == 6


def test_the_state_after_a_commit_is_the_one_that_is_stored() -> None:
    table = metadata_table(options={"bucket": "-1"})
    state = append(table, "user", 1, message("a", index=[hash_file("i-1")], sequence=5)).state
    state = append(
        table, "user", 2, message("b", bucket=1, index=[hash_file("i-2", bucket=1)], sequence=3),
        state=state,
    ).state  # fmt: skip
    assert state == load_state(table)
    assert state.max_sequence_number == 5
    assert len(state.index_entries) == 2


def test_nothing_to_commit_makes_no_snapshot_unless_asked() -> None:
    table = metadata_table()
    state = load_state(table)
    empty = ManifestCommittable(1, (message(),), properties={"offset": "9"})
    result = commit(table, "user", empty, state=state, now_ms=NOW_MS)
    assert (result.status, latest_snapshot_id(table.io, table.paths)) == ("empty", None)
    result = commit(table, "user", empty, state=state, now_ms=NOW_MS, allow_empty=True)
    assert result.status == "committed"
    assert newest(table).properties == {"offset": "9"}
    assert delta_entries(table, newest(table)) == []


def test_carried_properties_are_repeated_until_removed_and_name_what_they_follow() -> None:
    """Also before the first snapshot, where the name is empty."""
    table = metadata_table()
    carried, own = f"{CARRIED_PREFIX}x", f"{CARRIED_PREFIX}y"
    below = ""
    for identifier, given, repeated in (
        (1, {carried: "1", "plain": ""}, {carried: "1"}),
        (2, {own: "2"}, {carried: "1", own: "2"}),
        (3, {carried: "", own: "3"}, {own: "3"}),
    ):
        committable = ManifestCommittable(identifier, (message(f"{identifier}"),), properties=given)
        commit(table, "user", committable, state=load_state(table), now_ms=NOW_MS)
        assert newest(table).properties == {**repeated, BASE_PROPERTY: below}
        below = newest(table).delta_manifest_list
    append(table, "user", 4, message("4"))
    assert newest(table).properties == {own: "3"}


def test_the_watermark_never_goes_back() -> None:
    table = metadata_table()
    for identifier, watermark in ((1, None), (2, 50), (3, 40), (4, None)):
        committable = ManifestCommittable(identifier, (message(str(identifier)),), watermark)
        commit(table, "user", committable, state=load_state(table), now_ms=NOW_MS)
    marks = [read_snapshot(table.io, table.paths, n).watermark for n in (1, 2, 3, 4)]
    assert marks == [None, 50, 50, 50]


def test_an_index_file_replaces_the_one_of_its_bucket_only() -> None:
    table = metadata_table(options={"bucket": "-1"})
    append(table, "user", 1, message("a", index=[hash_file("i-1"), hash_file("j-1", bucket=1)]))
    first = newest(table).index_manifest
    append(table, "user", 2, message("b"))
    assert newest(table).index_manifest == first
    append(table, "user", 3, message("c", index=[hash_file("i-2")]))
    name = newest(table).index_manifest
    assert name is not None
    entries = read_index_manifest(table.io, table.paths, name)
    assert sorted(entry.file_name for entry in entries) == ["i-2", "j-1"]


def test_changelog_files_have_a_list_of_their_own() -> None:
    table = metadata_table()
    files = CommitMessage(
        message().partition, 0, 2, (data_file("d", rows=2),), (data_file("c", rows=3),)
    )
    append(table, "user", 1, files)
    snapshot = newest(table)
    assert snapshot.changelog_record_count == 3
    name = snapshot.changelog_manifest_list
    assert name is not None
    assert table.io.size(table.paths.manifest(name)) == snapshot.changelog_manifest_list_size
    assert live_names(table) == ["d"]


def test_compaction_results_follow_in_a_snapshot_of_their_own() -> None:
    """The index of buckets has the keys of the new rows, and is part of their snapshot."""
    table = metadata_table(options={"bucket": "-1"})
    append(table, "user", 1, message("old"))
    both = CommitMessage(
        message().partition, 0, 2,
        new_files=(data_file("new"),),
        compact_before=(data_file("old"),),
        compact_after=(data_file("big", level=5),),
        new_index_files=(hash_file("i-1"),),
    )  # fmt: skip
    result = append(table, "user", 2, both)
    appended, compacted = (read_snapshot(table.io, table.paths, n) for n in (2, 3))
    kinds = [appended.commit_kind, compacted.commit_kind]
    assert kinds == [CommitKind.APPEND, CommitKind.COMPACT]
    assert appended.index_manifest == compacted.index_manifest is not None
    assert (newest(table).commit_identifier, newest(table).delta_record_count) == (2, 0)
    assert (result.attempts, live_names(table)) == (2, ["big", "new"])


def test_overwriting_deletes_all_live_files_and_index_files_first() -> None:
    table = metadata_table(options={"bucket": "-1"})
    append(table, "user", 1, message("a", "b", index=[hash_file("i-1")]))
    committable = ManifestCommittable(2, (message("c"),), overwrite=True)
    result = commit(table, "user", committable, state=load_state(table), now_ms=NOW_MS)
    snapshot = newest(table)
    assert snapshot.commit_kind == CommitKind.OVERWRITE
    assert (snapshot.total_record_count, snapshot.delta_record_count) == (1, -1)
    kinds = [(entry.kind, entry.file.file_name) for entry in delta_entries(table, snapshot)]
    assert kinds == [(FileKind.DELETE, "a"), (FileKind.DELETE, "b"), (FileKind.ADD, "c")]
    assert snapshot.index_manifest is None
    assert result.state.index_entries == {}
    assert live_names(table) == ["c"]


def test_a_table_can_be_emptied() -> None:
    table = metadata_table()
    append(table, "user", 1, message("a"))
    nothing = ManifestCommittable(2, (), overwrite=True)
    commit(table, "user", nothing, state=load_state(table), now_ms=NOW_MS)
    assert live_files(table, newest(table)) == []
    assert newest(table).total_record_count == 0


def test_the_snapshot_names_the_newest_schema_even_if_the_files_are_older() -> None:
    table = metadata_table()
    for schema_id in (1, 2):
        assert publish_schema(table.io, table.paths, replace(table.schema, id=schema_id))
    append(table, "user", 1, message("a"))
    assert newest(table).schema_id == 2


def test_what_a_foreign_snapshot_says_about_the_table_is_handed_on() -> None:
    table = metadata_table()
    append(table, "user", 1, message("a"))
    analyzed = replace(
        newest(table), id=2, commit_user="them", commit_kind=CommitKind.ANALYZE,
        statistics="stat-1", next_row_id=40,
    )  # fmt: skip
    table.io.write_new(table.paths.snapshot(2), encode_snapshot(analyzed))
    append(table, "user", 2, message("b"))
    assert (newest(table).statistics, newest(table).next_row_id) == ("stat-1", 40)
    publish_schema(table.io, table.paths, replace(table.schema, id=1))
    append(table, "user", 3, message("c"))
    assert newest(table).statistics is None


def test_an_index_of_another_type_is_refused_before_anything_is_written() -> None:
    io = FaultyFileIO(MemoryFileIO())
    table = metadata_table(io)
    vector = type(hash_file("x"))(
        FileKind.ADD, message().partition, 0, "DELETION_VECTORS", "x", 1, 1
    )
    io.calls.clear()
    with pytest.raises(UnsupportedError, match="DELETION_VECTORS"):
        append(table, "user", 1, message("a", index=[vector]), state=TableState(None))
    assert io.calls == []


def test_a_failed_hint_does_not_fail_the_commit() -> None:
    io = FaultyFileIO(MemoryFileIO())
    table = metadata_table(io)
    io.issues.append(ValidationIssue("overwrite", times=100))
    assert append(with_io(table, io), "user", 1, message("a")).status == "committed"
    io.issues.clear()
    assert live_names(table) == ["a"]


def test_times_of_snapshots_never_go_back_with_the_clock() -> None:
    table = metadata_table()
    for number, now_ms in enumerate((NOW_MS, NOW_MS - 3_600_000, NOW_MS + 5), start=1):
        committable = ManifestCommittable(number, (message(f"f{number}"),))
        commit(table, "us", committable, state=load_state(table), now_ms=now_ms)
    found = [read_snapshot(table.io, table.paths, one).time_millis for one in (1, 2, 3)]
    assert found == [NOW_MS, NOW_MS, NOW_MS + 5]
    assert snapshot_as_of(table, NOW_MS).id == 2
