"""The hash index of a partition, and what is kept of it in the process."""

import uuid

import numpy as np
import pytest

from ingestd.errors import FormatError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.index_manifest import IndexManifestEntry, encode_hash_index
from ingestd.paimon.spec.manifest import FileKind
from ingestd.paimon.table.buckets import hash_index
from ingestd.paimon.table.buckets.hash_index import HASH_CACHE, HashCache, PartitionIndex, is_among
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.native_tables import native_table


def _table() -> FileStoreTable:
    return native_table("/w", [("id", "INT")], keys=["id"], io=MemoryFileIO())


def _file(
    table: FileStoreTable, bucket: int, hashes: list[int], count: int | None = None
) -> IndexManifestEntry:
    name, data = f"index-{uuid.uuid4()}-0", encode_hash_index(np.array(hashes, np.int32))
    table.io.write_new(table.paths.index(name), data)
    rows = len(hashes) if count is None else count
    return IndexManifestEntry(FileKind.ADD, EMPTY_ROW, bucket, "HASH", name, len(data), rows)


def test_every_hash_is_found_in_its_bucket() -> None:
    table = _table()
    entries = [_file(table, 3, [7, -5]), _file(table, 0, [2**31 - 1, -(2**31), 0])]
    index = PartitionIndex.load(table, entries)
    asked = np.array([0, 7, 8, -5, -(2**31), 7, 2**31 - 1], np.int32)
    assert index.lookup(asked).tolist() == [0, 3, -1, 3, 0, 3, 0]


def test_an_empty_index_knows_nothing() -> None:
    index = PartitionIndex.load(_table(), [])
    assert index.lookup(np.array([1, 1], np.int32)).tolist() == [-1, -1]


def test_an_index_file_is_read_once_in_a_process() -> None:
    table = _table()
    entry = _file(table, 0, [1])
    PartitionIndex.load(table, [entry])
    table.io.delete_quietly(table.paths.index(entry.file_name))
    again = PartitionIndex.load(table, [entry])
    assert again.lookup(np.array([1], np.int32)).tolist() == [0]


def test_missing_index_file_is_a_format_error_that_names_it() -> None:
    table = _table()
    entry = _file(table, 0, [1])
    table.io.delete_quietly(table.paths.index(entry.file_name))
    with pytest.raises(FormatError, match=entry.file_name):
        PartitionIndex.load(table, [entry])


def test_an_index_with_another_number_of_hashes_than_promised_is_refused() -> None:
    table = _table()
    with pytest.raises(FormatError, match="2 hashes, expected 3"):
        PartitionIndex.load(table, [_file(table, 0, [1, 2], count=3)])


def test_two_indexes_of_one_bucket_are_refused() -> None:
    table = _table()
    with pytest.raises(FormatError, match="bucket 0 has several files"):
        PartitionIndex.load(table, [_file(table, 0, [1]), _file(table, 0, [2])])


def test_cache_gives_up_what_was_not_used_for_longest() -> None:
    cache, hashes = HashCache(24), np.zeros(2, np.int32)
    for path in "abc":
        cache.put(path, hashes)
    assert cache.get("a") is not None
    cache.put("d", hashes)
    assert [cache.get(path) is not None for path in "abcd"] == [True, False, True, True]
    assert cache.nbytes == 24


def test_cache_never_holds_more_than_its_limit() -> None:
    cache = HashCache(8)
    cache.put("large", np.zeros(3, np.int32))
    assert (cache.get("large"), cache.nbytes) == (None, 0)


def test_cache_counts_a_path_once() -> None:
    cache = HashCache(100)
    cache.put("a", np.zeros(2, np.int32))
    cache.put("a", np.zeros(2, np.int32))
    assert cache.nbytes == 8


def test_cache_forgets_what_it_is_asked_to() -> None:
    cache = HashCache(100)
    cache.put("a", np.zeros(2, np.int32))
    cache.discard("a")
    cache.discard("b")
    assert (cache.get("a"), cache.nbytes) == (None, 0)


def test_the_cache_of_the_process_has_a_limit() -> None:
    assert HASH_CACHE.nbytes <= 512 << 20


def test_membership_at_the_ends_of_a_sorted_array() -> None:
    known = np.array([2, 4], np.int32)
    asked = np.array([1, 2, 3, 4, 5], np.int32)
    assert is_among(asked, known).tolist() == [False, True, False, True, False]
    assert is_among(asked, known[:0]).tolist() == [False] * 5


LARGE = np.arange(1 << 15, dtype=np.int32)


def test_what_memory_has_no_room_for_is_kept_on_disk() -> None:
    cache = HashCache(LARGE.nbytes)
    assert cache.put("a", LARGE) is LARGE
    kept = cache.put("b", LARGE + 1)
    assert (cache.nbytes, cache.mapped_bytes) == (LARGE.nbytes, LARGE.nbytes)
    assert not kept.flags.writeable
    assert cache.get("b") is kept
    assert kept.tolist() == (LARGE + 1).tolist()
    cache.discard("b")
    assert (cache.get("b"), cache.mapped_bytes) == (None, 0)


def test_small_arrays_are_not_worth_a_file() -> None:
    cache = HashCache(8)
    for path in "abc":
        cache.put(path, np.zeros(2, np.int32))
    assert (cache.nbytes, cache.mapped_bytes) == (8, 0)
    assert cache.get("a") is None


def test_the_disk_is_bounded_as_well() -> None:
    cache = HashCache(0, max_mapped=2 * LARGE.nbytes)
    for path in "abc":
        cache.put(path, LARGE)
    assert [cache.get(path) is not None for path in "abc"] == [False, True, True]
    assert cache.mapped_bytes == 2 * LARGE.nbytes


def test_a_full_disk_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hash_index, "memory_mapped", lambda _: None)
    cache = HashCache(LARGE.nbytes)
    cache.put("a", LARGE)
    assert cache.put("b", LARGE) is LARGE
    assert (cache.get("a"), cache.mapped_bytes) == (None, 0)
    assert cache.get("b") is LARGE


def test_an_index_on_disk_answers_as_one_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hash_index, "HASH_CACHE", HashCache(0))
    table = _table()
    entries = [_file(table, 0, list(range(0, 60_000, 2))), _file(table, 1, list(range(1, 9, 2)))]
    index = PartitionIndex.load(table, entries)
    assert hash_index.HASH_CACHE.mapped_bytes == 4 * 30_000
    asked = np.array([59_998, 3, 59_999, 0, 3], np.int32)
    assert index.lookup(asked).tolist() == [0, 1, -1, 0, 1]
