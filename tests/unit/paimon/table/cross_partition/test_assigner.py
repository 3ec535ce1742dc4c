"""Rows assigned over the partitions of a table, batch after batch, without a pipeline around it."""

from collections.abc import Mapping
from typing import Any

import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.arrow import column_values
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.moving_keys import Batch, load_buckets
from tests.support.native_tables import native_table


def _table(options: Mapping[str, str] | None = None) -> FileStoreTable:
    columns = [("id", "INT"), ("day", "STRING"), ("n", "INT")]
    return native_table(
        "/w", columns, keys=["id"], partitions=["day"], options=options, io=MemoryFileIO()
    )


def _row(key: int, day: str | None, n: int = 0, kind: int = 0) -> dict[str, Any]:
    return {"id": key, "day": day, "n": n, "_kind": kind}


def _written(table: FileStoreTable, *batches: list[dict[str, Any]]) -> None:
    for rows in batches:
        assert Batch(table).write(rows).commit().status in ("committed", "empty")


def test_a_key_is_in_one_partition_whatever_its_rows_say() -> None:
    table = _table()
    _written(table, [_row(1, "a"), _row(2, "a"), _row(3, None)])
    _written(table, [_row(1, "b"), _row(3, "b"), _row(3, "a")])
    assert load_buckets(table) == {1: [("b", 0)], 2: [("a", 0)], 3: [("a", 0)]}
    _written(table, [_row(1, None), _row(2, "b", kind=3)])
    assert load_buckets(table) == {1: [(None, 0)], 3: [("a", 0)]}


def test_the_deletion_of_a_moved_row_has_the_old_partition_and_the_new_values() -> None:
    table = _table()
    _written(table, [_row(1, "a", 5)])
    assigned = Batch(table).assign([_row(1, "b", 6)])
    at = [deserialize_row(table.partition_types, assigned.partitions[c]) for c in assigned.codes]
    rows = assigned.rows.to_pylist()
    assert [(row["day"], row["n"], row["_VALUE_KIND"]) for row in rows] == [
        ("b", 6, 0),
        ("a", 6, 3),
    ]
    assert at == [("b",), ("a",)]
    assert rows[0]["_SEQUENCE_NUMBER"] == rows[1]["_SEQUENCE_NUMBER"]


@pytest.mark.parametrize("engine", ["partial-update", "aggregation", "first-row"])
def test_other_engines_keep_a_key_where_it_was_first(engine: str) -> None:
    table = _table({"merge-engine": engine})
    _written(table, [_row(1, "a", 1)], [_row(1, "b", 2)], [_row(2, "b"), _row(2, "c")])
    assert load_buckets(table) == {1: [("a", 0)], 2: [("b", 0)]}
    assigned = Batch(table).assign([_row(1, "b", 9)])
    assert column_values(assigned.rows.column("day")) == ([] if engine == "first-row" else ["a"])


def test_keys_fill_bucket_after_bucket_of_each_partition_and_stay_there() -> None:
    table = _table({"dynamic-bucket.target-row-num": "2"})
    _written(table, [_row(n, "a" if n < 5 else "b") for n in range(8)])
    before = load_buckets(table)
    per_bucket = [sum(value == [("a", b)] for value in before.values()) for b in range(3)]
    assert per_bucket == [2, 2, 1]
    _written(table, [_row(n, "a" if n < 5 else "b", 1) for n in range(7, -1, -1)])
    assert load_buckets(table) == before


def test_room_that_a_moved_key_leaves_is_used_again() -> None:
    table = _table({"dynamic-bucket.target-row-num": "2"})
    _written(table, [_row(n, "a") for n in range(4)])
    (left,) = [bucket for _, bucket in load_buckets(table)[0]]
    _written(table, [_row(0, "b")], [_row(9, "a")])
    assert load_buckets(table)[9] == [("a", left)]


def test_nothing_written_means_nothing_changed() -> None:
    table = _table({"merge-engine": "first-row"})
    _written(table, [_row(1, "a")])
    assert Batch(table).write([_row(1, "b")]).messages == ()
