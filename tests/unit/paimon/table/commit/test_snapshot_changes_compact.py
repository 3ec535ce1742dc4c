"""What a compaction relies on beside the files that it replaces."""

from dataclasses import replace

import pytest

from ingestd.errors import CommitConflictError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.index_manifest import DELETION_VECTORS_INDEX, IndexManifestEntry
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from tests.support.metadata_tables import (
    append,
    data_file,
    hash_file,
    live_names,
    message,
    metadata_table,
    newest,
)
from tests.support.metadata_tables import commit_imagined as commit

UPPER = data_file("upper", level=5, keys=(1, 9))
NEWER = data_file("newer", level=0, keys=(1, 2), sequence=9)


def table_with_two_levels() -> FileStoreTable:
    table = metadata_table(MemoryFileIO())
    append(table, "w", 1, replace(message(), new_files=(UPPER, NEWER)))
    return table


def vectors(name: str, bucket: int = 0) -> IndexManifestEntry:
    return replace(hash_file(name, bucket=bucket), index_type=DELETION_VECTORS_INDEX)


def compaction(**changes: object) -> CommitMessage:
    """`newer` moves to level 4; `upper` is what it relies on."""
    moved = replace(NEWER, level=4, file_name="moved")
    plain = replace(
        message(),
        new_files=(),
        compact_before=(NEWER,),
        compact_after=(moved,),
        compact_expected=frozenset({"upper"}),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_a_compaction_lands_over_appends_and_other_buckets() -> None:
    table = table_with_two_levels()
    state = load_state(table)
    append(table, "w", 2, message("more"))
    append(table, "w", 3, replace(message(), bucket=1, new_files=(data_file("b", level=5),)))
    append(table, "c", 1, compaction(), state=state)
    assert newest(table).commit_kind == CommitKind.COMPACT
    assert live_names(table) == ["b", "more", "moved", "upper"]


@pytest.mark.parametrize(
    "other",
    [
        {"compact_before": (UPPER,), "compact_after": (), "compact_expected": None},
        {
            "compact_before": (),
            "compact_after": (data_file("side", level=3, keys=(5, 6)),),
            "compact_expected": None,
        },
    ],
)
def test_changes_above_level_0_of_its_bucket_are_a_conflict(other: dict[str, object]) -> None:
    table = table_with_two_levels()
    state = load_state(table)
    append(table, "other", 1, compaction(**other))
    before = newest(table)
    with pytest.raises(CommitConflictError, match="compacted by another commit"):
        append(table, "c", 1, compaction(), state=state)
    assert newest(table) == before


def test_its_own_view_of_deletion_vectors_has_to_be_the_newest() -> None:
    table = table_with_two_levels()
    append(table, "c", 1, compaction(new_index_files=(vectors("dv-1"),)))
    state: TableState = load_state(table)
    again = {
        "compact_before": (replace(NEWER, level=4, file_name="moved"),),
        "compact_after": (replace(NEWER, level=4, file_name="again"),),
    }
    # Those of another bucket may change, and so may hash indexes.
    far = replace(message(), bucket=1, new_files=(), new_index_files=(vectors("far", 1),),
                  compact_after=(data_file("far", level=5),))  # fmt: skip
    append(table, "other", 1, far)
    append(table, "other", 2, message("x", index=[hash_file("hash")]))
    append(table, "c", 2, compaction(**again, new_index_files=(vectors("dv-2"),)), state=state)
    assert {entry.file_name for entry in load_state(table).index_entries.values()} == {
        "dv-2", "far", "hash",
    }  # fmt: skip
    late = compaction(
        compact_before=(replace(NEWER, level=4, file_name="again"),),
        compact_after=(replace(NEWER, level=4, file_name="late"),),
    )
    with pytest.raises(CommitConflictError, match="changed deletion vectors"):
        append(table, "d", 3, late, state=state)


def test_changes_that_a_compaction_shows_are_in_its_snapshot() -> None:
    table = table_with_two_levels()
    told = data_file("changes", rows=7, level=4)
    append(table, "c", 1, compaction(compact_changelog=(told,)))
    found = newest(table)
    assert (found.commit_kind, found.changelog_record_count) == (CommitKind.COMPACT, 7)


def rewrite(table: FileStoreTable) -> ManifestCommittable:
    """An overwrite of everything by one file, made of the files that are there."""
    files = live_files(table, load_state(table).snapshot)
    made = (replace(message(), new_files=(data_file("made", level=5),)),)
    rewrites = frozenset(entry.identifier for entry in files)
    return ManifestCommittable(7, made, overwrite=True, rewrites=rewrites)


def test_an_overwrite_made_of_what_it_replaces_refuses_other_files() -> None:
    table = table_with_two_levels()
    state, change = load_state(table), rewrite(table)
    append(table, "w", 2, message("more"))
    with pytest.raises(CommitConflictError, match="changed 1 file of what was rewritten"):
        commit(table, "r", change, state=state, now_ms=1)
    assert live_names(table) == ["more", "newer", "upper"]
    commit(table, "r", replace(change, rewrites=None), state=state, now_ms=1)
    assert live_names(table) == ["made"]


def test_an_overwrite_made_of_what_it_replaces_refuses_other_deletion_vectors() -> None:
    table = table_with_two_levels()
    append(table, "c", 1, compaction(new_index_files=(vectors("dv-1"),)))
    state, change = load_state(table), rewrite(table)
    others = replace(
        message(), new_files=(), new_index_files=(vectors("dv-2"),), removed_index_files=("dv-1",)
    )
    append(table, "c", 2, others)
    with pytest.raises(CommitConflictError, match="changed deletion vectors"):
        commit(table, "r", change, state=state, now_ms=1)


def test_a_hash_index_made_anew_relies_on_the_one_it_was_made_of() -> None:
    table = table_with_two_levels()
    append(table, "w", 2, message("x", index=[hash_file("hash")]))
    state = load_state(table)
    renewed = CommitMessage(
        message().partition,
        0,
        -1,
        new_index_files=(hash_file("renewed"),),
        removed_index_files=("hash",),
    )
    append(table, "w", 3, message("y", index=[hash_file("other", bucket=1)]))
    with pytest.raises(CommitConflictError, match="changed the hash index"):
        append(table, "r", 1, renewed, state=state)
    append(table, "r", 1, renewed)
    assert newest(table).commit_kind == CommitKind.COMPACT
    names = {entry.file_name for entry in load_state(table).index_entries.values()}
    assert names == {"renewed", "other"}
