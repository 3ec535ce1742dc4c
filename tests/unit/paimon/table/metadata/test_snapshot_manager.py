"""Hints are used when they are right and forgiven when they are not."""

import pytest

from ingestd.errors import FormatError, StorageError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import (
    earliest_snapshot_id,
    latest_snapshot,
    latest_snapshot_id,
    read_snapshot,
    snapshots_from_latest,
)
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.lying_io import LyingFileIO
from tests.support.metadata_tables import append, message, metadata_table, with_io


def table_with_snapshots(count: int) -> FileStoreTable:
    table = metadata_table()
    for n in range(1, count + 1):
        append(table, f"user{n % 2}", n, message(f"f{n}"))
    return table


@pytest.mark.parametrize("hint", [b"3", b"1", b"2", b"0", b"", b"x", b"-1", None])
def test_the_newest_snapshot_is_found_whatever_the_hint_says(hint: bytes | None) -> None:
    table = table_with_snapshots(3)
    table.io.delete_quietly(table.paths.latest_hint)
    if hint is not None:
        table.io.overwrite(table.paths.latest_hint, hint)
    assert latest_snapshot_id(table.io, table.paths) == 3


def test_a_hint_ahead_of_all_snapshots_reveals_a_lost_one() -> None:
    table = table_with_snapshots(3)
    table.io.delete_quietly(table.paths.snapshot(3))
    with pytest.raises(FormatError, match=r"LATEST names snapshot 3, but .* is \S*/snapshot-2:"):
        latest_snapshot_id(table.io, table.paths)
    table.io.delete_quietly(table.paths.latest_hint)
    assert latest_snapshot_id(table.io, table.paths) == 2


@pytest.mark.parametrize("hint", [b"4", b"2", None])
def test_an_outdated_listing_hides_no_snapshot(hint: bytes | None) -> None:
    table = table_with_snapshots(4)
    table.io.delete_quietly(table.paths.latest_hint)
    if hint is not None:
        table.io.overwrite(table.paths.latest_hint, hint)
    behind = LyingFileIO(table.io, dict.fromkeys(range(1, 40), "stale"))
    behind.past[table.paths.snapshot_dir] = [["LATEST", "snapshot-1", "snapshot-2"]] * 9
    assert latest_snapshot_id(behind, table.paths) == 4


def test_a_snapshot_file_holds_the_snapshot_of_its_name() -> None:
    table = table_with_snapshots(2)
    table.io.overwrite(table.paths.snapshot(2), table.io.read_bytes(table.paths.snapshot(1)))
    with pytest.raises(FormatError, match=r"snapshot-2 contains snapshot 1"):
        read_snapshot(table.io, table.paths, 2)


@pytest.mark.parametrize("hint", [b"2", b"1", b"9", b"", None])
def test_the_oldest_snapshot_is_found_whatever_the_hint_says(hint: bytes | None) -> None:
    table = table_with_snapshots(3)
    table.io.delete_quietly(table.paths.snapshot(1))
    table.io.delete_quietly(table.paths.earliest_hint)
    if hint is not None:
        table.io.overwrite(table.paths.earliest_hint, hint)
    assert earliest_snapshot_id(table.io, table.paths) == 2


def test_a_hint_whose_snapshot_has_expired_is_not_believed() -> None:
    table = table_with_snapshots(5)
    for n in (1, 2, 3):
        table.io.delete_quietly(table.paths.snapshot(n))
    table.io.overwrite(table.paths.latest_hint, b"1")
    assert latest_snapshot_id(table.io, table.paths) == 5


def test_a_right_hint_spares_the_listing() -> None:
    table = table_with_snapshots(3)
    io = FaultyFileIO(table.io)
    assert latest_snapshot_id(io, table.paths) == 3
    assert io.operations("list_names") == []


def test_a_table_without_snapshots_has_none() -> None:
    table = metadata_table()
    assert latest_snapshot_id(table.io, table.paths) is None
    assert earliest_snapshot_id(table.io, table.paths) is None
    assert latest_snapshot(table.io, table.paths) is None


def test_temporary_and_strange_names_are_no_snapshots() -> None:
    table = table_with_snapshots(1)
    for name in (".snapshot-7.0a.tmp", "snapshot-8.tmp", "snapshot-", "snapshot-x", "tag-9"):
        table.io.write_new(f"{table.path}/snapshot/{name}", b"")
    table.io.delete_quietly(table.paths.latest_hint)
    assert latest_snapshot_id(table.io, table.paths) == 1


def test_the_walk_goes_back_to_the_first_missing_one() -> None:
    table = table_with_snapshots(4)
    table.io.delete_quietly(table.paths.snapshot(1))
    assert [s.id for s in snapshots_from_latest(table.io, table.paths)] == [4, 3, 2]


def test_a_missing_snapshot_is_named_with_those_that_exist() -> None:
    table = table_with_snapshots(3)
    with pytest.raises(FormatError, match="snapshot-7 does not exist; snapshots 1 to 3 exist"):
        read_snapshot(table.io, table.paths, 7)


def test_a_snapshot_that_vanishes_under_our_eyes_does_not_make_the_table_empty() -> None:
    table = table_with_snapshots(2)

    def roll_back() -> None:
        # As those who roll back do: the hint first.
        table.io.overwrite(table.paths.latest_hint, b"1")
        table.io.delete_quietly(table.paths.snapshot(2))

    io = FaultyFileIO(table.io, [ValidationIssue("read_bytes", "snapshot-2", action=roll_back)])
    snapshot = latest_snapshot(with_io(table, io).io, table.paths)
    assert snapshot is not None
    assert snapshot.id == 1


def test_a_newest_snapshot_that_cannot_be_found_at_all_is_an_error() -> None:
    table = table_with_snapshots(1)

    class Blind(MemoryFileIO):
        def read_bytes(self, path: str) -> bytes:
            raise FileNotFoundError(path)

    with pytest.raises(StorageError, match="cannot be found"):
        latest_snapshot(Blind(table.io.files), table.paths)  # type: ignore[attr-defined]
