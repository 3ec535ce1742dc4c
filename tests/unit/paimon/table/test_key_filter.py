"""Which files and rows may have given keys."""

import pyarrow as pa
import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW, deserialize_row
from ingestd.paimon.table.key_filter import KeyFilter
from tests.support.native_tables import native_table

KEYS = [("a", "INT"), ("b", "STRING")]


def test_rows_match_by_all_columns_of_the_key() -> None:
    table = native_table("/w", KEYS, keys=["a", "b"], io=MemoryFileIO())
    wanted = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    rows = pa.table({"a": [1, 1, 2, 3, 4], "b": ["x", "y", "y", "zz", "x"], "v": [1, 2, 3, 4, 5]})
    mask = KeyFilter.of(table, wanted).mask(EMPTY_ROW, rows, ["a", "b"])
    assert mask.to_pylist() == [True, False, True, False, False]


def test_keys_are_told_apart_by_partition() -> None:
    table = native_table("/w", KEYS, keys=["a", "b"], partitions=["b"], io=MemoryFileIO())
    wanted = pa.table({"b": ["y", "x", "y"], "a": pa.array([1, 2, 3], pa.int32())})
    by_partition = KeyFilter.of(table, wanted).by_partition
    found = {
        deserialize_row(table.partition_types, partition): keys.column("a").to_pylist()
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
