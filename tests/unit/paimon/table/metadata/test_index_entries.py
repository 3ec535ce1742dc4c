"""Index files by key: changing them, and what of them goes to another process."""

import pickle

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.index_manifest import (
    IndexManifestEntry,
    decode_index_manifest,
    pack_index_records,
)
from ingestd.paimon.spec.manifest import FileKind
from ingestd.paimon.table.metadata import index_entries
from ingestd.paimon.table.metadata.index_entries import (
    IndexEntries,
    index_key,
    read_index_entries,
    split_index_entries,
)

KEPT = MemoryFileIO()


class SameIO:
    """The memory file system above, in whichever process: here it is one."""

    def __reduce__(self) -> str:
        return "SHARED"

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(KEPT, name)


SHARED = SameIO()


def _entry(partition: int, name: str, bucket: int = 0) -> IndexManifestEntry:
    row = partition.to_bytes(2, "big")
    return IndexManifestEntry(FileKind.ADD, row, bucket, "HASH", name, 8, 2)


def _written(path: str, count: int) -> IndexEntries:
    """Entries of this many partitions, as they stand in the index manifest at `path`."""
    made = IndexEntries().with_changes(_entry(n, f"old-{n}") for n in range(count))
    KEPT.write_new(path, pack_index_records(made.records()))
    return made.written(SHARED, path)  # type: ignore[arg-type]  # passes everything on


def _names(entries: IndexEntries) -> set[str]:
    return {entry.file_name for entry in entries.values()}


def test_a_change_replaces_the_entry_of_its_key_and_leaves_the_older_set_alone() -> None:
    before = _written("/a1", 3)
    after = before.with_changes([_entry(1, "new"), _entry(7, "more")])
    assert _names(before) == {"old-0", "old-1", "old-2"}
    assert _names(after) == {"old-0", "new", "old-2", "more"}
    assert (len(before), len(after)) == (3, 4)
    assert after[index_key(_entry(1, ""))].file_name == "new"
    assert index_key(_entry(9, "")) not in after


def test_records_are_the_index_manifest_of_all_entries() -> None:
    after = _written("/a2", 3).with_changes([_entry(1, "new", bucket=4), _entry(2, "newer")])
    found = decode_index_manifest(pack_index_records(after.records()), "m")
    assert {index_key(entry): entry for entry in found} == dict(after)


def test_entries_of_a_partition_are_those_of_the_base_with_the_changes() -> None:
    after = _written("/a3", 3).with_changes([_entry(1, "new"), _entry(1, "other", bucket=1)])
    assert [e.file_name for e in after.of_partition(b"\0\1")] == ["new", "other"]
    assert [e.file_name for e in after.of_partition(b"\0\2")] == ["old-2"]
    assert after.of_partition(b"\0\11") == []


def test_another_process_gets_changes_and_reads_the_rest_from_the_manifest() -> None:
    entries = _written("/a4", 2_000).with_changes([_entry(5, "new")])
    sent = pickle.dumps(entries)
    assert len(sent) < 1_000
    received = pickle.loads(sent)
    assert dict(received) == dict(entries)
    assert [e.file_name for e in received.of_partition(b"\0\5")] == ["new"]


def test_a_base_is_read_once_in_a_process() -> None:
    sent = pickle.dumps(_written("/a5", 3))
    assert len(pickle.loads(sent)) == 3
    KEPT.delete_quietly("/a5")
    assert len(pickle.loads(sent)) == 3


def test_when_the_base_has_expired_the_newest_manifest_is_read() -> None:
    entries = _written("/a6", 600).with_changes([_entry(0, "new")])
    KEPT.write_new("/a6-newer", pack_index_records(entries.records()))
    entries = entries.written(SHARED, "/a6-newer")  # type: ignore[arg-type]  # as above
    KEPT.delete_quietly("/a6")
    assert _names(pickle.loads(pickle.dumps(entries))) == _names(entries)
    KEPT.delete_quietly("/a6-newer")
    sent = pickle.dumps(_written("/a6-other", 1))
    KEPT.delete_quietly("/a6-other")
    with pytest.raises(FormatError, match="a6-other is missing"):
        len(pickle.loads(sent))


def test_entries_that_are_in_no_file_yet_travel_themselves() -> None:
    entries = IndexEntries().with_changes([_entry(1, "a")])
    assert dict(pickle.loads(pickle.dumps(entries))) == dict(entries)


def test_many_changes_become_a_new_base_so_that_what_is_sent_stays_small() -> None:
    entries = _written("/a7", 1_000)
    largest = 0
    for batch in range(40):
        entries = entries.with_changes(_entry(n, f"{batch}-{n}") for n in range(100))
        path = f"/a7-{batch}"
        KEPT.write_new(path, pack_index_records(entries.records()))
        entries = entries.written(SHARED, path)  # type: ignore[arg-type]  # as above
        largest = max(largest, len(pickle.dumps(entries)))
        assert dict(pickle.loads(pickle.dumps(entries))) == dict(entries)
    assert largest < len(pickle.dumps(IndexEntries(dict(entries)))) * 0.6


def test_the_cache_gives_up_the_base_that_was_not_used_for_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index_entries, "_BASES", index_entries._BaseCache(5))
    sent = [pickle.dumps(_written(f"/a8-{n}", 3)) for n in range(2)]
    for one in sent:
        len(pickle.loads(one))
    KEPT.delete_quietly("/a8-0")
    KEPT.delete_quietly("/a8-1")
    assert len(pickle.loads(sent[1])) == 3
    with pytest.raises(FormatError, match="a8-0 is missing"):
        len(pickle.loads(sent[0]))


def test_entries_with_a_key_that_was_there_are_kept_apart() -> None:
    first, second = _entry(1, "a"), _entry(1, "b")
    by_key, repeated = split_index_entries([first, second])
    assert (list(by_key.values()), repeated) == ([first], (second,))
    KEPT.write_new("/a9", pack_index_records(IndexEntries(by_key).records()))
    read, others = read_index_entries(KEPT, "/a9")
    assert (dict(read), others) == (by_key, ())
