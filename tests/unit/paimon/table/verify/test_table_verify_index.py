"""Checking the hash index."""

from dataclasses import replace

import numpy as np
import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.index_manifest import (
    IndexManifestEntry,
    decode_hash_index,
    encode_hash_index,
    encode_index_records,
    pack_index_records,
)
from ingestd.paimon.spec.manifest import FileKind
from ingestd.paimon.table.metadata.file_store_scan import read_index_manifest
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import native_table, put


@pytest.fixture
def table() -> FileStoreTable:
    options = {"dynamic-bucket.target-row-num": "5"}
    made = native_table("/w", [("id", "INT")], keys=["id"], options=options, io=MemoryFileIO())
    put(made, [{"id": n} for n in range(8)])
    return made


def _manifest(table: FileStoreTable) -> str:
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    assert snapshot.index_manifest is not None
    return snapshot.index_manifest


def _entries(table: FileStoreTable) -> list[IndexManifestEntry]:
    return read_index_manifest(table.io, table.paths, _manifest(table))


def _replace(table: FileStoreTable, *entries: IndexManifestEntry) -> None:
    table.io.overwrite(
        table.paths.manifest(_manifest(table)), pack_index_records(encode_index_records(entries))
    )


def _hashes(table: FileStoreTable, number: int) -> list[int]:
    path = table.paths.index(_entries(table)[number].file_name)
    return decode_hash_index(table.io.read_bytes(path), path).tolist()


def _rewrite(table: FileStoreTable, number: int, hashes: list[int]) -> None:
    entries = _entries(table)
    data = encode_hash_index(np.array(hashes, np.int32))
    table.io.overwrite(table.paths.index(entries[number].file_name), data)
    entries[number] = replace(entries[number], file_size=len(data), row_count=len(hashes))
    _replace(table, *entries)


def _messages(table: FileStoreTable) -> set[str]:
    findings = verify(table)
    assert {finding.code for finding in findings} <= {"hash-index", "index-entry", "unreadable"}
    return {finding.message for finding in findings}


def test_a_key_that_the_index_does_not_know_is_found(table: FileStoreTable) -> None:
    _rewrite(table, 0, _hashes(table, 0)[1:])
    assert _messages(table) == {"1 key hashes of bucket 0 are not in its index"}


def test_a_bucket_without_index_is_found(table: FileStoreTable) -> None:
    _replace(table, _entries(table)[0])
    assert _messages(table) == {"3 key hashes of bucket 1 are not in its index"}


def test_a_hash_twice_in_a_file_is_found(table: FileStoreTable) -> None:
    hashes = _hashes(table, 0)
    _rewrite(table, 0, [*hashes, hashes[0]])
    assert _messages(table) == {"holds a hash twice"}


def test_a_hash_in_two_buckets_is_found(table: FileStoreTable) -> None:
    _rewrite(table, 1, [*_hashes(table, 1), _hashes(table, 0)[0]])
    assert _messages(table) == {
        "1 hashes of one partition are in the index of more than one bucket"
    }


def test_two_index_files_of_a_bucket_are_found(table: FileStoreTable) -> None:
    first, second = _entries(table)
    _replace(table, first, replace(second, bucket=first.bucket))
    assert "is the second index of bucket 0" in _messages(table)


def test_wrong_counts_are_found(table: FileStoreTable) -> None:
    first, second = _entries(table)
    _replace(table, replace(first, row_count=4), second)
    assert _messages(table) == {"has 20 bytes, expected 20 bytes and 4 hashes"}


def test_hashes_that_are_not_used_yet_are_fine(table: FileStoreTable) -> None:
    _rewrite(table, 1, [*_hashes(table, 1), 12345])
    assert _messages(table) == set()


def test_a_missing_index_file_is_found_by_its_name(table: FileStoreTable) -> None:
    name = _entries(table)[0].file_name
    table.io.delete_quietly(table.paths.index(name))
    assert ("missing-file", name) in {(finding.code, finding.where) for finding in verify(table)}


def test_a_torn_index_manifest_is_found_by_its_name(table: FileStoreTable) -> None:
    name = _manifest(table)
    table.io.overwrite(table.paths.manifest(name), b"nonsense")
    assert ("unreadable", name) in {(finding.code, finding.where) for finding in verify(table)}


def test_entries_that_delete_are_found(table: FileStoreTable) -> None:
    first, second = _entries(table)
    _replace(table, replace(first, kind=FileKind.DELETE), second)
    assert _messages(table) == {"is deleted in an index manifest"}


def test_other_index_types_are_named_and_left_alone(table: FileStoreTable) -> None:
    first, second = _entries(table)
    _replace(table, first, second, replace(second, index_type="BTREE", file_name="index-x"))
    assert _messages(table) == {"index type BTREE is not checked"}
