"""The key index as the table itself has it: read whole, and carried over a snapshot."""

import numpy as np
import pyarrow as pa
import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import serialize_row
from ingestd.paimon.table.cross_partition.key_index import UNKNOWN, KeyIndex
from ingestd.paimon.table.cross_partition.load_key_index import (
    KeyShare,
    advanced_index,
    key_prints,
    load_index,
    primary_key_hashes,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from tests.support.moving_keys import WHOLE, Batch, load_buckets
from tests.support.native_tables import native_table

KEYS = list(range(12))
LARGE = 1 << 30


@pytest.fixture
def table() -> FileStoreTable:
    columns = [("id", "INT"), ("day", "STRING"), ("n", "INT")]
    options = {"dynamic-bucket.target-row-num": "2"}
    made = native_table(
        "/w", columns, keys=["id"], partitions=["day"], options=options, io=MemoryFileIO()
    )
    Batch(made).write([{"id": n, "day": "a" if n < 6 else None} for n in range(10)]).commit()
    Batch(made).write([{"id": 1, "day": "b"}, {"id": 2, "day": "a", "_kind": 3}]).commit()
    return made


def _keys(keys: list[int]) -> pa.Table:
    return pa.table({"id": pa.array(keys, pa.int32())})


def _load(
    table: FileStoreTable, share: KeyShare = WHOLE, limit: int = LARGE, needed: int = 0
) -> tuple[KeyIndex, bool]:
    snapshot = load_state(table).snapshot
    assert snapshot is not None
    return load_index(table, snapshot, share, limit, key_prints(table, _keys([needed])))


def _buckets(table: FileStoreTable, index: KeyIndex) -> dict[int, tuple[str | None, int]]:
    buckets = [index.dictionary.decode(n) for n in range(len(index.dictionary))]
    numbers = index.lookup(key_prints(table, _keys(KEYS))).tolist()
    partition = {p: _partition_value(table, p) for p, _ in buckets}
    return {
        key: (partition[buckets[n][0]], buckets[n][1])
        for key, n in zip(KEYS, numbers, strict=True)
        if n != UNKNOWN
    }


def _partition_value(table: FileStoreTable, partition: bytes) -> str | None:
    return next(value for value in ("a", "b", "c", None) if _serialized(table, value) == partition)


def _serialized(table: FileStoreTable, value: str | None) -> bytes:
    return serialize_row(table.partition_types, [value])


def test_every_live_key_is_known_where_it_is(table: FileStoreTable) -> None:
    index, whole = _load(table)
    assert whole
    assert _buckets(table, index) == {key: where for key, (where,) in load_buckets(table).items()}
    assert len(index) == 9


def test_shares_have_all_keys_between_them_and_none_twice(table: FileStoreTable) -> None:
    hashes = primary_key_hashes(table, _keys(KEYS))
    marks = np.array([KeyShare(n, 3).contains(hashes) for n in range(3)])
    assert marks.sum(axis=0).tolist() == [1] * len(KEYS)
    parts = [_buckets(table, _load(table, KeyShare(n, 3))[0]) for n in range(3)]
    assert sum(map(len, parts)) == 9
    assert {k: v for part in parts for k, v in part.items()} == _buckets(table, _load(table)[0])


def test_beyond_its_limit_it_knows_the_wanted_keys_and_counts_all(table: FileStoreTable) -> None:
    complete, _ = _load(table)
    index, whole = _load(table, limit=40, needed=7)
    assert not whole
    assert list(_buckets(table, index)) == [7]
    assert index.counts.tolist() == complete.counts.tolist()


def test_an_index_carried_over_a_snapshot_is_the_one_read_anew(table: FileStoreTable) -> None:
    before, _ = _load(table)
    changes = [
        {"id": 0, "day": "c"}, {"id": 1, "day": "b", "_kind": 3}, {"id": 7, "day": "a"},
        {"id": 11, "day": "b"}, {"id": 3, "day": "b"}, {"id": 3, "day": "a"},
    ]  # fmt: skip
    snapshot = Batch(table).write(changes).commit().snapshot
    assert snapshot is not None
    after = advanced_index(table, snapshot, WHOLE, before)
    renewed, _ = _load(table)
    assert _buckets(table, after) == _buckets(table, renewed)
    assert len(after) == len(renewed) == 9
    assert len(before) == 9


def test_rows_that_wait_for_compaction_are_known_too() -> None:
    columns = [("id", "INT"), ("day", "STRING"), ("n", "INT")]
    options = {"merge-engine": "first-row"}
    table = native_table(
        "/w", columns, keys=["id"], partitions=["day"], options=options, io=MemoryFileIO()
    )
    Batch(table).write([{"id": 1, "day": "a"}]).commit()
    assert _buckets(table, _load(table, needed=1)[0]) == {1: ("a", 0)}
