"""Each rule that a change of files has to keep."""

from dataclasses import replace

import pytest

from ingestd.errors import CommitConflictError, SchemaConflictError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry
from ingestd.paimon.spec.schema_change import SetOption
from ingestd.paimon.table.commit.snapshot_changes import check_files, check_key_places, was_rescaled
from ingestd.paimon.table.metadata.table_state import load_state
from tests.support.metadata_tables import data_file, metadata_table
from tests.support.native_tables import alter, native_table, put

TABLE = metadata_table()
APPEND_TABLE = metadata_table(primary_keys=(), options={"bucket-key": "k"}, path="/w/db.db/a")


def add(name: str, *, level: int = 0, keys: tuple[int, int] = (1, 2), total: int = 2,
        bucket: int = 0) -> ManifestEntry:  # fmt: skip
    file = data_file(name, level=level, keys=keys)
    return ManifestEntry(FileKind.ADD, EMPTY_ROW, bucket, total, file)


def delete(entry: ManifestEntry) -> ManifestEntry:
    return replace(entry, kind=FileKind.DELETE)


def refused(live: list[ManifestEntry], delta: list[ManifestEntry], why: str) -> None:
    with pytest.raises(CommitConflictError, match=why):
        check_files(TABLE, live, delta)


def test_a_live_file_cannot_be_added_again() -> None:
    refused([add("a")], [add("a")], "file a .* is in the table already")


def test_a_file_that_is_gone_cannot_be_deleted() -> None:
    refused([add("b")], [delete(add("a"))], "file a .* was removed")


def test_a_file_at_another_level_is_another_file() -> None:
    refused([add("a", level=1)], [delete(add("a"))], "was removed")
    check_files(TABLE, [add("a")], [delete(add("a")), add("a", level=5)])


def test_a_change_cannot_add_and_delete_the_same() -> None:
    refused([add("a")], [delete(add("a")), add("a")], "both added and deleted")


def test_buckets_of_a_partition_agree_on_their_number() -> None:
    refused([add("a")], [delete(add("a")), add("c"), add("b", total=4)], "4 buckets where .* has 2")
    check_files(TABLE, [add("a")], [add("b", total=4)], same_buckets=False)
    check_files(TABLE, [add("a", total=-1)], [add("b", total=-1)])


@pytest.mark.parametrize("keys", [(5, 9), (1, 5), (2, 3), (0, 99)])
def test_files_of_a_level_must_not_overlap(keys: tuple[int, int]) -> None:
    live = [add("a", level=3, keys=(1, 5))]
    refused(live, [add("b", level=3, keys=keys)], "overlaps in key")
    check_files(TABLE, live, [add("b", level=4, keys=keys)])
    check_files(TABLE, live, [add("b", level=3, keys=keys, bucket=1)])
    check_files(TABLE, live, [delete(live[0]), add("b", level=3, keys=keys)])
    check_files(APPEND_TABLE, live, [add("b", level=3, keys=keys)])


def test_level_0_files_overlap_freely() -> None:
    check_files(TABLE, [add("a")], [add("b")])


def test_neighbouring_ranges_of_a_level_are_no_overlap() -> None:
    check_files(
        TABLE,
        [add("a", level=1, keys=(-7, -3)), add("c", level=1, keys=(6, 9))],
        [add("b", level=1, keys=(-2, 5))],
    )


def test_only_another_number_of_fixed_buckets_in_an_older_schema_is_a_rescale() -> None:
    table = native_table(
        "/w", [("k", "INT")], keys=["k"], options={"bucket": "2"}, io=MemoryFileIO()
    )
    renamed = alter(table, SetOption("owner", "x"))
    assert not was_rescaled(table)
    assert not was_rescaled(renamed)
    assert was_rescaled(alter(renamed, SetOption("bucket", "4")))


def test_rows_of_a_new_number_of_buckets_do_not_land_beside_those_of_the_old() -> None:
    table = native_table(
        "/w", [("k", "INT")], keys=["k"], options={"bucket": "2"}, io=MemoryFileIO()
    )
    put(table, [{"k": n} for n in range(8)])
    rescaled = alter(table, SetOption("bucket", "4"))
    way_out = r"in 2 buckets, .* `ingestd rescale /w db\.t --buckets 4`, or set .* back to 2"
    with pytest.raises(SchemaConflictError, match=way_out):
        put(rescaled, [{"k": 1}])
    back = alter(rescaled, SetOption("bucket", "2"))
    assert put(back, [{"k": 1}]).status == "committed"


def test_a_partition_that_another_writer_rescales_meanwhile_is_planned_again() -> None:
    live = [add("a", total=4)]
    with pytest.raises(CommitConflictError, match=r"has 1 bucket where its partition has 4"):
        check_files(TABLE, live, [add("b", total=1)])


def test_other_tables_do_not_mind_rows_of_another_writer() -> None:
    table = native_table("/w", [("k", "INT")], keys=["k"], io=MemoryFileIO())
    planned = load_state(table)
    put(table, [{"k": 1}])
    check_key_places(table, planned, load_state(table))
