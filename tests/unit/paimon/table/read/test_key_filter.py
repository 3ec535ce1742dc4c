"""Which files and rows may have given keys."""

import pyarrow as pa
import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW, serialize_row
from ingestd.paimon.table.read.key_filter import KeyFilter
from ingestd.paimon.table.read.table_read import read_table
from tests.support.moving_keys import Batch
from tests.support.native_tables import native_table

KEYS = [("a", "INT"), ("b", "STRING")]


def test_rows_match_by_all_columns_of_the_key() -> None:
    table = native_table("/w", KEYS, keys=["a", "b"], io=MemoryFileIO())
    wanted = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    rows = pa.table({"a": [1, 1, 2, 3, 4], "b": ["x", "y", "y", "zz", "x"], "v": [1, 2, 3, 4, 5]})
    mask = KeyFilter.of(table, wanted).mask(EMPTY_ROW, rows, ["a", "b"])
    assert mask.to_pylist() == [True, False, True, False, False]


def test_keys_are_distinguished_by_partition() -> None:
    table = native_table("/w", KEYS, keys=["a", "b"], partitions=["b"], io=MemoryFileIO())
    wanted = pa.table({"b": ["y", "x", "y"], "a": pa.array([1, 2, 3], pa.int32())})
    by_partition = KeyFilter.of(table, wanted).by_partition
    found = {
        table.partition_values(partition): keys.column("a").to_pylist()
        for partition, keys in by_partition.items()
    }
    assert found == {("x",): [2], ("y",): [1, 3]}


def test_a_key_column_that_is_missing_is_named() -> None:
    table = native_table("/w", KEYS, keys=["a", "b"], io=MemoryFileIO())
    with pytest.raises(ValueError, match="'b'"):
        KeyFilter.of(table, pa.table({"a": [1]}))


def test_an_append_table_has_no_keys_to_look_for() -> None:
    table = native_table("/w", KEYS, io=MemoryFileIO())
    with pytest.raises(ValueError, match="key"):
        KeyFilter.of(table, pa.table({"a": [1]}))


def test_keys_that_do_not_show_their_partition_may_be_anywhere() -> None:
    table = native_table("/w", KEYS, keys=["a"], partitions=["b"], io=MemoryFileIO())
    keys = KeyFilter.of(table, pa.table({"a": pa.array([1, 2], pa.int32())}))
    assert keys.partitions is None
    rows = pa.table({"a": pa.array([2, 3], pa.int32())})
    for value in ("x", None):
        partition = serialize_row(table.partition_types, [value])
        assert keys.mask(partition, rows, ["a"]).to_pylist() == [True, False]


def test_rows_of_such_keys_are_read_out_of_all_partitions() -> None:
    columns = [("a", "INT"), ("b", "STRING"), ("v", "INT")]
    table = native_table("/w", columns, keys=["a"], partitions=["b"], io=MemoryFileIO())
    days = ["x", "y", None]
    Batch(table).write([{"a": n, "b": days[n % 3], "v": n} for n in range(9)]).commit()
    wanted = pa.table({"a": pa.array([1, 5, 99], pa.int32())})
    found = read_table(table, columns=["a", "b"], key_filter=wanted).to_pylist()
    assert sorted(found, key=repr) == [{"a": 1, "b": "y"}, {"a": 5, "b": None}]
    partition = frozenset({serialize_row(table.partition_types, ["y"])})
    found = read_table(table, key_filter=wanted, partition_filter=partition).to_pylist()
    assert found == [{"a": 1, "b": "y", "v": 1}]
