"""Which keys lie in the files of dynamic buckets, and which of them in several."""

import numpy as np
import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.bucket import hash_row
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.table.buckets.hash_index import Hashes
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.rewrite import bucket_keys
from ingestd.paimon.table.rewrite.bucket_keys import SharedHash, shared_hashes, stored_hashes
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket
from tests.support.native_tables import native_table, rows_table

Files = dict[int, tuple[DataFileMeta, ...]]
DELETE = 3


def new_table() -> FileStoreTable:
    columns = [("id", "INT"), ("v", "STRING")]
    return native_table("/w", columns, keys=["id"], io=MemoryFileIO())


def written(table: FileStoreTable, bucket: int, first: int, *keys: tuple[int, int]) -> Files:
    """A file of a bucket with keys and their kinds, numbered from `first`."""
    rows = rows_table(table.schema, [{"id": key, "_kind": kind} for key, kind in keys], first)
    names = data_file_names(table)
    return {bucket: write_bucket(table, EMPTY_ROW, bucket, rows, new_name=names).new_files}


def hashes_of(table: FileStoreTable, files: Files) -> dict[int, Hashes]:
    return {n: stored_hashes(table, EMPTY_ROW, n, own) for n, own in files.items()}


def shared(table: FileStoreTable, files: Files) -> list[SharedHash]:
    return shared_hashes(table, EMPTY_ROW, files, hashes_of(table, files))


def number(table: FileStoreTable, key: int) -> int:
    return hash_row([field.type for field in table.schema.key_fields], (key,))


@pytest.mark.parametrize("held", [1, bucket_keys._HELD])
def test_all_keys_of_all_files_are_found_once_deleted_ones_too(
    held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_keys, "_HELD", held)
    table = new_table()
    one = written(table, 0, 0, (1, 0), (2, 0), (3, DELETE))
    two = written(table, 0, 9, (2, 0), (4, 0))
    found = stored_hashes(table, EMPTY_ROW, 0, one[0] + two[0])
    assert found.tolist() == sorted(number(table, key) for key in (1, 2, 3, 4))
    assert len(stored_hashes(table, EMPTY_ROW, 0, ())) == 0


def test_keys_of_one_bucket_each_are_not_reported() -> None:
    table = new_table()
    assert shared(table, written(table, 0, 0, (1, 0)) | written(table, 1, 1, (2, 0))) == []


def test_a_key_in_two_buckets_is_named_and_belongs_where_the_newest_row_is() -> None:
    table = new_table()
    files = written(table, 0, 0, (1, 0), (2, 0)) | written(table, 3, 5, (2, 0), (7, 0))
    assert shared(table, files) == [SharedHash(number(table, 2), 3, (0, 3), ((2,),), (3,))]


def test_a_key_that_was_deleted_in_one_bucket_is_in_the_other() -> None:
    table = new_table()
    files = written(table, 0, 0, (2, 0)) | written(table, 1, 5, (2, DELETE))
    assert shared(table, files) == [SharedHash(number(table, 2), 0, (0, 1), (), ())]


def test_different_keys_of_one_hash_are_no_doubled_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        bucket_keys, "key_hashes", lambda _, rows: np.zeros(rows.num_rows, np.int32)
    )
    table = new_table()
    files = written(table, 0, 0, (1, 0)) | written(table, 1, 5, (2, 0))
    assert shared(table, files) == [SharedHash(0, 1, (0, 1), (), ())]


def test_each_of_several_keys_of_one_hash_has_a_keeper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        bucket_keys, "key_hashes", lambda _, rows: np.zeros(rows.num_rows, np.int32)
    )
    table = new_table()
    both = ((1, 0), (2, 0))
    files = written(table, 0, 0, *both) | written(table, 1, 5, *both)
    later = written(table, 2, 9, (1, 0))
    (found,) = shared(table, files | later)
    assert (found.owner, dict(zip(found.keys, found.keepers, strict=True))) == (
        2,
        {(1,): 2, (2,): 1},
    )
