"""Which manifests are joined, when, and that nothing gets lost by it."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry, ManifestFileMeta
from ingestd.paimon.table.commit import manifest_writer
from ingestd.paimon.table.commit.manifest_writer import merge_manifests, write_manifests
from ingestd.paimon.table.metadata.file_store_scan import live_entries, read_manifest
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.faulty_file_io import FaultyFileIO
from tests.support.metadata_tables import data_file, metadata_table, with_io


def add(name: str) -> ManifestEntry:
    return ManifestEntry(FileKind.ADD, EMPTY_ROW, 0, 2, data_file(name))


def delete(name: str) -> ManifestEntry:
    return ManifestEntry(FileKind.DELETE, EMPTY_ROW, 0, 2, data_file(name))


def manifests(table: FileStoreTable, *groups: list[ManifestEntry]) -> list[ManifestFileMeta]:
    return [meta for group in groups for meta in write_manifests(table, group)]


def entries_of(table: FileStoreTable, meta: ManifestFileMeta) -> list[ManifestEntry]:
    return read_manifest(table.io, table.paths, meta.file_name)


def live(table: FileStoreTable, metas: Sequence[ManifestFileMeta]) -> list[str]:
    return sorted(e.file.file_name for e in live_entries(table, metas))


def test_few_small_manifests_stay_as_they_are() -> None:
    io = FaultyFileIO(metadata_table().io)
    table = with_io(metadata_table(options={"manifest.merge-min-count": "4"}), io)
    metas = manifests(table, [add("a")], [add("b")], [delete("a")])
    io.calls.clear()
    merged = merge_manifests(table, metas)
    assert list(merged.manifests) == metas
    assert merged.written == ()
    assert io.calls == []


def test_enough_small_manifests_become_one() -> None:
    table = metadata_table(options={"manifest.merge-min-count": "3"})
    metas = manifests(table, [add("a"), add("b")], [delete("a")], [add("c")])
    merged = merge_manifests(table, metas)
    assert len(merged.manifests) == 1
    assert merged.manifests == merged.written
    (meta,) = merged.manifests
    assert (meta.num_added_files, meta.num_deleted_files) == (2, 0)
    assert live(table, merged.manifests) == ["b", "c"]


def test_manifests_without_deletions_are_joined_without_being_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = metadata_table(options={"manifest.merge-min-count": "3"})
    metas = manifests(table, [add("a"), add("b")], [add("c")], [add("d")])
    expected = [entry for meta in metas for entry in entries_of(table, meta)]
    with monkeypatch.context() as patch:
        patch.setattr(manifest_writer, "read_manifest", None)
        merged = merge_manifests(table, metas)
    (joined,) = merged.manifests
    assert merged.written == (joined,)
    assert entries_of(table, joined) == expected
    (whole,) = write_manifests(table, expected)
    # Three blocks are packed as one, so only the name and the sync marker can differ.
    assert replace(joined, file_name="", file_size=0) == replace(whole, file_name="", file_size=0)
    assert joined.file_size == whole.file_size


def test_manifests_of_a_writer_with_another_schema_are_decoded() -> None:
    table = metadata_table(options={"manifest.merge-min-count": "2"})
    metas = manifests(table, [add("a")], [add("b")])
    path = table.paths.manifest(metas[0].file_name)
    data = table.io.read_bytes(path)
    other = data.replace(b'"_VERSION", "type": "int"}', b'"_VERSION","type": "int" }')
    other = other.replace(b"ingestd.crc32", b"another.crc32")
    assert other != data
    table.io.overwrite(path, other)
    merged = merge_manifests(table, metas)
    assert len(merged.manifests) == 1
    assert live(table, merged.manifests) == ["a", "b"]


def test_manifests_that_cancel_out_leave_nothing() -> None:
    table = metadata_table(options={"manifest.merge-min-count": "2"})
    merged = merge_manifests(table, manifests(table, [add("a")], [delete("a")]))
    assert merged.manifests == ()


def test_groups_that_reach_the_target_size_are_joined_before_the_count_does() -> None:
    table = metadata_table(options={"manifest.target-file-size": "5 kb"})
    metas = manifests(table, *([add(f"f{n}")] for n in range(4)))
    assert sum(meta.file_size for meta in metas[:3]) > 5 * 1024
    merged = merge_manifests(table, metas)
    assert len(merged.written) == 1
    assert merged.manifests[1:] == tuple(metas[3:])
    assert live(table, merged.manifests) == ["f0", "f1", "f2", "f3"]


def test_a_deletion_of_a_file_outside_its_group_is_kept() -> None:
    table = metadata_table(
        options={"manifest.target-file-size": "1 kb", "manifest.merge-min-count": "2"}
    )
    big = manifests(table, [add("a")])
    assert big[0].file_size >= 1024
    merged = merge_manifests(table, [*big, *manifests(table, [delete("a")])])
    assert live(table, merged.manifests) == []


def test_a_full_merge_drops_deleted_pairs_and_leaves_untouched_manifests_alone() -> None:
    options = {
        "manifest.target-file-size": "3 kb",
        "manifest.full-compaction-threshold-size": "1 kb",
    }
    table = metadata_table(options=options)
    chance = random.Random(1)
    names = [f"data-{chance.randbytes(16).hex()}" for _ in range(200)]
    touched = manifests(table, [add(name) for name in names[:100]])
    untouched = manifests(table, [add(name) for name in names[100:]])
    assert all(meta.file_size >= 3 * 1024 for meta in (*touched, *untouched))
    small = manifests(table, [delete(names[0])], [add("x")])
    merged = merge_manifests(table, [*touched, *untouched, *small])
    assert set(untouched) <= set(merged.manifests)
    assert not set(touched) & set(merged.manifests)
    assert not set(small) & set(merged.manifests)
    assert sum(meta.num_deleted_files for meta in merged.manifests) == 0
    assert live(table, merged.manifests) == sorted([*names[1:], "x"])
    kinds = {
        e.kind
        for meta in merged.manifests
        for e in read_manifest(table.io, table.paths, meta.file_name)
    }
    assert kinds == {FileKind.ADD}


def test_a_manifest_that_outweighs_the_younger_ones_is_left_alone() -> None:
    table = metadata_table(options={"manifest.merge-min-count": "3"})
    chance = random.Random(1)
    large = manifests(table, [add(chance.randbytes(40).hex()) for _ in range(400)])
    small = manifests(table, [add("a")], [add("b")])
    assert large[0].file_size > 2 * sum(meta.file_size for meta in small)
    assert merge_manifests(table, [*large, *small]).manifests == (*large, *small)
    small += manifests(table, [add("c")])
    merged = merge_manifests(table, [*large, *small])
    assert len(merged.written) == 1
    assert merged.manifests == (*large, *merged.written)
    assert {"a", "b", "c"} < set(live(table, merged.manifests))
    small += manifests(table, *([add(f"d{n}")] for n in range(12)))
    assert large[0].file_size <= 2 * sum(meta.file_size for meta in small)
    assert len(merge_manifests(table, [*large, *small]).manifests) == 1
