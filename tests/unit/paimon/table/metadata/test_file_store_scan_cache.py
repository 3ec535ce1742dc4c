"""Manifests that are read once: how many are kept, and what a scan then reads."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.io.file_io import FileIO, MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.data_file import SimpleStats
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry
from ingestd.paimon.table.commit.manifest_writer import write_manifests
from ingestd.paimon.table.metadata import file_store_scan
from ingestd.paimon.table.metadata.file_store_scan import (
    MANIFEST_CACHE,
    ManifestCache,
    live_entries,
    read_listed_manifest,
)
from tests.support.metadata_tables import data_file, metadata_table
from tests.support.watched_file_io import WatchedFileIO


class Counting(WatchedFileIO):
    """Counts reads by path."""

    def __init__(self, inner: FileIO) -> None:
        self.inner = inner
        self.reads: Counter[str] = Counter()

    @contextmanager
    def _call(self, operation: str, path: str) -> Iterator[None]:
        if operation == "read_bytes":
            self.reads[path] += 1
        yield


def entries(*names: str) -> tuple[ManifestEntry, ...]:
    return tuple(ManifestEntry(FileKind.ADD, EMPTY_ROW, 0, 2, data_file(name)) for name in names)


def test_nothing_is_kept_unless_a_process_asks_for_it() -> None:
    MANIFEST_CACHE.put("a", entries("x"))
    assert MANIFEST_CACHE.get("a") is None
    assert MANIFEST_CACHE.entries == 0


def test_the_longest_unused_go_first_and_a_limit_holds_at_once() -> None:
    kept = ManifestCache(5)
    kept.put("a", entries("1", "2"))
    kept.put("b", entries("3", "4"))
    assert kept.get("a") == entries("1", "2")
    kept.put("c", entries("5", "6"))
    assert (kept.get("a"), kept.get("b"), kept.entries) == (entries("1", "2"), None, 4)
    kept.put("a", entries("1", "2"))
    assert kept.entries == 4
    kept.limit(3)
    assert (kept.get("c"), kept.entries) == (None, 2)
    kept.limit(0)
    assert (kept.get("a"), kept.entries) == (None, 0)


def test_a_manifest_above_the_limit_pushes_nothing_out() -> None:
    kept = ManifestCache(2)
    kept.put("a", entries("1"))
    kept.put("large", entries("2", "3", "4"))
    assert (kept.get("a"), kept.get("large")) == (entries("1"), None)


def test_an_entry_with_much_to_say_counts_as_several() -> None:
    wide = SimpleStats(b"a" * 3000, b"z" * 3000, (0,) * 500)
    one = replace(entries("wide")[0], file=replace(data_file("wide"), value_stats=wide))
    kept = ManifestCache(15)
    kept.put("a", (one,))
    assert kept.entries == 1 + (6000 + 500 * 8) // 1024
    kept.put("b", (one, one))
    assert kept.get("b") is None


def test_what_no_newest_snapshot_lists_is_dropped_folder_by_folder() -> None:
    kept = ManifestCache(9)
    for path in ("t/manifest/a", "t/manifest/b", "t/manifest2/a", "u/manifest/a"):
        kept.put(path, entries("1", "2"))
    kept.retain("t/manifest", {"t/manifest/b", "t/manifest/c"})
    assert kept.entries == 6
    assert kept.get("t/manifest/a") is None
    kept.retain("t/manifest2", ())
    assert kept.get("t/manifest2/a") is None
    assert kept.get("t/manifest/b") == kept.get("u/manifest/a") == entries("1", "2")


def test_a_scan_reads_only_the_manifests_that_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_store_scan, "MANIFEST_CACHE", ManifestCache(100))
    io = Counting(MemoryFileIO())
    table = metadata_table(io)
    metas = [*write_manifests(table, entries("a", "b")), *write_manifests(table, entries("c"))]
    for _ in range(3):
        assert [live_entry.file.file_name for live_entry in live_entries(table, metas)] == [
            "a",
            "b",
            "c",
        ]
    metas += write_manifests(table, entries("d"))
    assert [live_entry.file.file_name for live_entry in live_entries(table, metas)] == [
        "a",
        "b",
        "c",
        "d",
    ]
    assert [io.reads[table.paths.manifest(meta.file_name)] for meta in metas] == [1, 1, 1]


def test_what_is_kept_is_held_against_what_a_list_promises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_store_scan, "MANIFEST_CACHE", ManifestCache(100))
    table = metadata_table()
    (meta,) = write_manifests(table, entries("a", "b"))
    assert len(read_listed_manifest(table.io, table.paths, meta)) == 2
    with pytest.raises(FormatError, match="has 2 entries, expected 3"):
        read_listed_manifest(table.io, table.paths, replace(meta, num_added_files=3))
