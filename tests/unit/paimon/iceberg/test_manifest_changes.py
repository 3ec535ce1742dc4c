"""The manifests of the next snapshot: removed, moved, merged and split."""

from dataclasses import replace
from typing import Any

import pytest

from ingestd.paimon.iceberg.manifest_changes import (
    FileChanges,
    NewManifests,
    added_entries,
    next_manifests,
    with_row_ids,
)
from ingestd.paimon.iceberg.manifest_format import (
    DELETES,
    EntryStatus,
    IcebergEntry,
    IcebergManifest,
)
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.iceberg_rules import IcebergSettings

SETTINGS = IcebergSettings(
    in_catalog=False, format_version=2, codec="null", legacy_names=False, compact_min=100,
    compact_max=200, deletes_old=True, previous_versions=0,
)  # fmt: skip
FIELDS = (DataField(0, "dt", parse_type("STRING")),)
Listed = list[IcebergManifest]


def file(name: str, dt: str) -> dict[str, Any]:
    return {
        "content": 0, "file_path": f"/t/dt={dt}/{name}", "file_format": "parquet",
        "partition": {"dt": dt}, "record_count": 1, "file_size_in_bytes": 9,
        "null_value_counts": [], "lower_bounds": [], "upper_bounds": [],
        "referenced_data_file": None, "content_offset": None, "content_size_in_bytes": None,
    }  # fmt: skip


class Metadata:
    """Snapshots one after the other, and the manifests that were read for each."""

    def __init__(self, settings: IcebergSettings = SETTINGS, target_size: int = 1 << 20) -> None:
        self.listed: Listed = []
        self.opened: list[str] = []
        self._entries: dict[str, list[IcebergEntry]] = {}
        self._settings = settings
        self._target = target_size
        self._id = 0

    def commit(self, added: dict[str, str], removed: dict[str, str] | None = None) -> bool:
        """One snapshot of files and their partitions; whether it removed any."""
        self._id += 1
        gone = removed or {}
        parts = frozenset((dt,) for dt in (*added.values(), *gone.values()))
        changes = FileChanges(
            {name: file(name, dt) for name, dt in added.items()},
            {name: (dt,) for name, dt in gone.items()},
            parts,
            only_adds=removed is None,
        )
        new = NewManifests("/m", self._id, FIELDS, self._settings, self._target, {})
        self.opened = []
        self.listed, removes = next_manifests(self.listed, changes, new, self.read)
        self._entries |= {path: list(new.take(one) or ()) for path, one in self._of(new)}
        assert not new.files, "a manifest was encoded that the list does not have"
        return removes

    def _of(self, new: NewManifests) -> list[tuple[str, IcebergManifest]]:
        return [(one.manifest_path, one) for one in self.listed if one.manifest_path in new.files]

    def read(self, manifest: IcebergManifest) -> list[IcebergEntry]:
        self.opened.append(manifest.manifest_path)
        return self._entries[manifest.manifest_path]

    def entries(self) -> list[list[tuple[str, EntryStatus, int, int]]]:
        """Name, status, snapshot and sequence number of the files of each manifest."""
        return [
            [(e.name, e.status, e.snapshot_id, e.sequence_number) for e in own]
            for own in (self._entries[one.manifest_path] for one in self.listed)
        ]


def test_added_files_are_one_more_manifest_and_nothing_is_read() -> None:
    metadata = Metadata()
    assert not metadata.commit({"f1": "a", "f2": "b"})
    assert not metadata.commit({"f3": "a"})
    assert metadata.entries() == [
        [("f1", EntryStatus.ADDED, 1, 1), ("f2", EntryStatus.ADDED, 1, 1)],
        [("f3", EntryStatus.ADDED, 2, 2)],
    ]
    assert metadata.opened == []
    assert not metadata.commit({})
    assert len(metadata.listed) == 2


def test_a_removed_file_is_deleted_where_it_is_listed() -> None:
    metadata = Metadata()
    metadata.commit({"f1": "a", "f2": "b"})
    metadata.commit({"f3": "c"})
    before = metadata.listed
    assert metadata.commit({"f4": "a"}, {"f1": "a"})
    assert metadata.entries() == [
        [("f1", EntryStatus.DELETED, 3, 1), ("f2", EntryStatus.EXISTING, 1, 1)],
        [("f3", EntryStatus.ADDED, 2, 2)],
        [("f4", EntryStatus.ADDED, 3, 3)],
    ]
    assert metadata.opened == [before[0].manifest_path], "partition c cannot be in the other one"
    metadata.commit({}, {"f2": "b"})
    assert metadata.entries()[0] == [("f2", EntryStatus.DELETED, 4, 1)]


def test_a_file_that_only_moves_to_another_level_is_listed_once() -> None:
    metadata = Metadata()
    metadata.commit({"f1": "a"})
    assert not metadata.commit({"f1": "a"}, {})
    assert metadata.entries() == [[("f1", EntryStatus.ADDED, 1, 1)]]


def test_a_file_that_was_never_shown_changes_nothing() -> None:
    metadata = Metadata()
    metadata.commit({"f1": "a"})
    before = metadata.listed
    assert not metadata.commit({}, {"hidden": "a"})
    assert metadata.listed == before


def test_many_small_manifests_are_merged() -> None:
    metadata = Metadata(replace(SETTINGS, compact_min=3, compact_max=3))
    metadata.commit({"f1": "a"})
    metadata.commit({"f2": "a"})
    assert len(metadata.listed) == 2
    metadata.commit({"f3": "b"})
    assert metadata.entries() == [
        [
            ("f1", EntryStatus.EXISTING, 1, 1),
            ("f2", EntryStatus.EXISTING, 2, 2),
            ("f3", EntryStatus.ADDED, 3, 3),
        ]
    ]
    assert metadata.listed[0].min_sequence_number == 1
    assert metadata.listed[0].sequence_number == 3


def test_merging_waits_for_the_target_size_or_for_the_most_files() -> None:
    metadata = Metadata(replace(SETTINGS, compact_min=2, compact_max=4))
    for number in range(3):
        metadata.commit({f"f{number}": "a"})
    assert len(metadata.listed) == 3
    metadata.commit({"f9": "a"})
    assert len(metadata.listed) == 1


def test_a_manifest_of_many_files_is_merged_when_the_others_have_grown() -> None:
    metadata = Metadata(replace(SETTINGS, compact_min=3, compact_max=3))
    metadata.commit({f"f{number}": "a" for number in range(500)})
    heavy = metadata.listed[0].manifest_path
    for number in range(4):
        metadata.commit({f"g{number}": "a"})
        assert heavy not in metadata.opened
    assert [len(own) for own in metadata.entries()] == [500, 3, 1]
    metadata.commit({f"h{number}": "a" for number in range(246)})
    assert heavy in metadata.opened
    assert [len(own) for own in metadata.entries()] == [750]
    deleted = replace(metadata.listed[0], added_files_count=0, existing_files_count=0)
    metadata.listed = [deleted]
    metadata.commit({"i1": "a"})
    metadata.commit({"i2": "a"})
    assert len(metadata.listed) == 1, "deleted files do not count"


def test_what_an_older_snapshot_deleted_is_forgotten_by_merging() -> None:
    metadata = Metadata(replace(SETTINGS, compact_min=3, compact_max=3))
    metadata.commit({"f1": "a", "f2": "a"})
    metadata.commit({}, {"f1": "a"})
    metadata.commit({"f3": "a"})
    metadata.commit({"f4": "a"})
    assert [name for name, *_ in metadata.entries()[0]] == ["f2", "f3", "f4"]


@pytest.mark.parametrize("count", [1, 40])
def test_a_large_manifest_is_split(count: int) -> None:
    metadata = Metadata(target_size=2500)
    metadata.commit({f"f{number:02}": "a" for number in range(count)})
    assert (len(metadata.listed) > 1) is (count > 1)
    names = [name for own in metadata.entries() for name, *_ in own]
    assert names == [f"f{number:02}" for number in range(count)]


def test_added_entries_belong_to_their_snapshot() -> None:
    (entry,) = added_entries([file("f", "a")], 5)
    assert (entry.status, entry.snapshot_id, entry.file_sequence_number) == (
        EntryStatus.ADDED,
        5,
        5,
    )


def test_row_ids_are_reserved_for_the_live_rows_of_data_manifests_that_have_none() -> None:
    metadata = Metadata()
    metadata.commit({"f1": "a", "f2": "a"})
    metadata.commit({"f3": "b"})
    first, second = metadata.listed
    vectors = replace(first, content=DELETES)
    listed, following = with_row_ids([replace(first, first_row_id=2), vectors, second], 7)
    assert [one.first_row_id for one in listed] == [2, None, 7]
    assert following == 8
