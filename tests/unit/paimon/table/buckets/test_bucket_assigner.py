"""Fixed and dynamic buckets of rows."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW, serialize_row
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.index_manifest import IndexManifestEntry, decode_hash_index
from ingestd.paimon.table.buckets.bucket_assigner import (
    DynamicBucketAssigner,
    assign_among,
    assign_fixed,
)
from ingestd.paimon.table.buckets.hash_index import HASH_CACHE
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.format_vectors import vectors
from tests.support.native_tables import native_table, rows_table


def _table(**options: Any) -> FileStoreTable:
    given = {f"dynamic-bucket.{name.replace('_', '-')}": str(n) for name, n in options.items()}
    return native_table("/w", [("id", "INT")], keys=["id"], options=given, io=MemoryFileIO())


def _hashes(*values: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.array(values, np.int32)


def _assigner(
    table: FileStoreTable,
    entries: tuple[IndexManifestEntry, ...] = (),
    number: int = 0,
    of: int = 1,
) -> DynamicBucketAssigner:
    return DynamicBucketAssigner(table, EMPTY_ROW, entries, number, of)


def _contents(
    table: FileStoreTable, entries: tuple[IndexManifestEntry, ...]
) -> dict[int, set[int]]:
    files = {e.bucket: table.io.read_bytes(table.paths.index(e.file_name)) for e in entries}
    return {bucket: set(decode_hash_index(data, "i").tolist()) for bucket, data in files.items()}


@pytest.mark.parametrize("case", vectors("dynamic_bucket_sequences"))
@pytest.mark.parametrize("step", [1, 5, 100])
def test_sequences_of_java_in_batches_of_any_size(case: dict[str, Any], step: int) -> None:
    table = _table(target_row_num=case["targetRowNum"], max_buckets=case["maxBuckets"])
    assigner = _assigner(table, (), case["assignId"], case["numAssigners"])
    hashes = case["hashes"]
    parts = [hashes[start : start + step] for start in range(0, len(hashes), step)]
    found = [bucket for part in parts for bucket in assigner.assign(_hashes(*part)).tolist()]
    assert found == case["buckets"]


def test_known_hashes_stay_and_change_no_index() -> None:
    table = _table(target_row_num=2)
    entries = _first(table, 1, 2, 3)
    later = _assigner(table, entries)
    assert later.assign(_hashes(3, 1, 2, 3)).tolist() == [1, 0, 0, 1]
    assert later.prepare_commit() == ()


def _first(table: FileStoreTable, *hashes: int) -> tuple[IndexManifestEntry, ...]:
    assigner = _assigner(table)
    assigner.assign(_hashes(*hashes))
    return assigner.prepare_commit()


def test_only_buckets_that_gained_hashes_get_a_new_and_whole_index() -> None:
    table = _table(target_row_num=2)
    entries = _first(table, 1, 2, 3)
    assert _contents(table, entries) == {0: {1, 2}, 1: {3}}
    later = _assigner(table, entries)
    assert later.assign(_hashes(9, 1)).tolist() == [1, 0]
    gained = later.prepare_commit()
    assert _contents(table, gained) == {1: {3, 9}}
    (entry,) = gained
    assert (entry.index_type, entry.row_count, entry.file_size) == ("HASH", 2, 8)
    assert entry.partition == EMPTY_ROW


def test_buckets_are_filled_in_ascending_order_before_new_ones_are_made() -> None:
    table = _table(target_row_num=3)
    entries = _first(table, 1, 2, 3, 4, 5)
    assert _assigner(table, entries).assign(_hashes(10, 11, 12)).tolist() == [1, 2, 2]


def test_new_hashes_count_in_the_order_of_their_arrival() -> None:
    table = _table(target_row_num=1)
    assert _assigner(table).assign(_hashes(9, -4, 9, 5, -4)).tolist() == [0, 1, 0, 2, 1]


def test_a_hash_in_a_bucket_of_another_assigner_stays_there() -> None:
    table = _table(target_row_num=10)
    entries = _first(table, 7)
    other = _assigner(table, entries, 1, 2)
    assert other.assign(_hashes(7, 8)).tolist() == [0, 1]
    assert _contents(table, other.prepare_commit()) == {1: {8}}


def test_rows_of_buckets_of_other_assigners_do_not_count() -> None:
    table = _table(target_row_num=2)
    entries = _first(table, 1, 2)
    assert _assigner(table, entries, 0, 2).assign(_hashes(3)).tolist() == [2]
    assert _assigner(table, entries, 1, 2).assign(_hashes(3)).tolist() == [1]


def test_at_the_limit_full_buckets_take_more() -> None:
    table = _table(target_row_num=1, max_buckets=2)
    assigner = _assigner(table)
    found = assigner.assign(_hashes(*range(100)))
    assert found[:2].tolist() == [0, 1]
    assert set(found.tolist()) == {0, 1}
    assert assigner.assign(_hashes(*range(100))).tolist() == found.tolist()
    contents = _contents(table, assigner.prepare_commit())
    assert contents[0] | contents[1] == set(range(100))
    assert not contents[0] & contents[1]


def test_a_limit_below_the_number_of_assigners_is_refused() -> None:
    table = _table(target_row_num=1, max_buckets=1)
    with pytest.raises(UnsupportedError, match=r"dynamic-bucket\.max-buckets.*assigners \(2\)"):
        _assigner(table, (), 1, 2).assign(_hashes(1))


def test_index_files_of_other_partitions_are_left_out() -> None:
    table = native_table(
        "/w", [("p", "INT"), ("id", "INT")], keys=["p", "id"], partitions=["p"], io=MemoryFileIO()
    )
    one, two = (serialize_row([parse_type("INT")], [n]) for n in (1, 2))
    first = DynamicBucketAssigner(table, one, (), 0, 1)
    first.assign(_hashes(5))
    entries = first.prepare_commit()
    second = DynamicBucketAssigner(table, two, entries, 0, 1)
    second.assign(_hashes(6))
    (entry,) = second.prepare_commit()
    assert (entry.partition, entry.row_count) == (two, 1)


def test_a_new_index_takes_the_place_of_the_old_one_in_the_cache() -> None:
    table = _table(target_row_num=5)
    (old,) = _first(table, 1)
    later = _assigner(table, (old,))
    later.assign(_hashes(2))
    (new,) = later.prepare_commit()
    paths = [table.paths.index(entry.file_name) for entry in (old, new)]
    assert [HASH_CACHE.get(path) is not None for path in paths] == [False, True]


def test_an_assigner_goes_on_after_a_commit() -> None:
    table = _table(target_row_num=2)
    assigner = _assigner(table)
    assigner.assign(_hashes(1))
    assigner.prepare_commit()
    assert assigner.assign(_hashes(1, 2)).tolist() == [0, 0]
    assert _contents(table, assigner.prepare_commit()) == {0: {1, 2}}


def test_no_rows_need_no_bucket() -> None:
    table = _table()
    assigner = _assigner(table)
    assert assigner.assign(_hashes()).tolist() == []
    assert assigner.prepare_commit() == ()


def test_fixed_buckets_are_those_of_java_for_int_keys() -> None:
    # Hashes of INT keys 1 to 4, from the format's vectors.
    key_hashes = vectors("hash_index_file")["key_hashes"]
    table = native_table(
        "/w", [("id", "INT")], keys=["id"], options={"bucket": "5"}, io=MemoryFileIO()
    )
    rows = pa.table({"id": pa.array([1, 2, 3, 4], pa.int32())})
    expected = [abs(int(np.fmod(key_hashes[str(key)], 5))) for key in (1, 2, 3, 4)]
    assert assign_fixed(table, rows).tolist() == expected
    assert assign_among(table, rows, 1).tolist() == [0, 0, 0, 0]


def test_the_bucket_function_mod_takes_the_key_itself() -> None:
    options = {"bucket": "3", "bucket-function.type": "mod"}
    table = native_table("/w", [("id", "INT")], keys=["id"], options=options, io=MemoryFileIO())
    rows = pa.table({"id": pa.array([4, -1], pa.int32())})
    assert assign_fixed(table, rows).tolist() == [1, 2]


def test_the_bucket_function_hive_takes_the_hash_that_hive_has() -> None:
    options = {"bucket": "1024", "bucket-function.type": "hive"}
    table = native_table("/w", [("id", "BIGINT")], keys=["id"], options=options, io=MemoryFileIO())
    numbers = [(1 << 40) + 3, -1, 5]
    rows = pa.table({"id": pa.array(numbers, pa.int64())})
    hashes = [(n ^ n >> 32) & 0x7FFFFFFF for n in numbers]
    assert assign_fixed(table, rows).tolist() == [hash_ % 1024 for hash_ in hashes]


@pytest.mark.parametrize(("function", "kind"), [("sip", "INT"), ("hive", "TIMESTAMP(3)")])
def test_other_bucket_functions_are_refused_by_name(function: str, kind: str) -> None:
    options = {"bucket": "3", "bucket-function.type": function}
    table = native_table("/w", [("id", kind)], keys=["id"], options=options, io=MemoryFileIO())
    rows = rows_table(table.schema, [{"id": 1}])
    with pytest.raises(UnsupportedError, match=rf"bucket-function\.type.*{function}"):
        assign_fixed(table, rows)
