"""Files that hold none of the keys looked for are not opened."""

from typing import Any

import pyarrow as pa
import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.predicate import And, Comparison, IsIn
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.key_filter import MOST_VALUES, keys_predicate
from ingestd.paimon.table.read.scan_plan import BY_KEYS
from ingestd.paimon.table.read.table_read import TableReader, read_table
from tests.support.native_tables import native_table, put

COLUMNS = [("a", "INT"), ("b", "STRING"), ("c", "DOUBLE")]


def _table(keys: list[str], **options: str) -> FileStoreTable:
    given = {"bucket": "1"} | options
    return native_table("/w", COLUMNS, keys=keys, options=given, io=MemoryFileIO())


def _keys(**columns: Any) -> pa.Table:
    types = {"a": pa.int32(), "b": pa.string(), "c": pa.float64()}
    return pa.table({name: pa.array(cells, types[name]) for name, cells in columns.items()})


def test_keys_have_values_of_their_columns() -> None:
    found = keys_predicate(_table(["a", "b"]), _keys(a=[2, 1, 2], b=["x", "y", "z"]))
    assert found == And((IsIn("a", (2, 1)), IsIn("b", ("x", "y", "z"))))


def test_many_values_are_known_by_their_bounds() -> None:
    numbers = [*range(5, MOST_VALUES + 6)]
    found = keys_predicate(_table(["a"]), _keys(a=numbers[::-1]))
    assert found == And((Comparison("a", ">=", 5), Comparison("a", "<=", numbers[-1])))


def test_of_other_types_nothing_is_said() -> None:
    assert keys_predicate(_table(["c"]), _keys(c=[1.0])) is None
    assert keys_predicate(_table(["a"]), pa.table({"a": pa.array([2**40])})) is None
    assert keys_predicate(_table(["a"]), _keys(a=[])) is None


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation"])
def test_files_whose_keys_are_others_are_not_opened(engine: str) -> None:
    table = _table(["a"], **{"merge-engine": engine})
    put(table, [{"a": n, "b": f"old {n}"} for n in range(10)])
    put(table, [{"a": n, "b": f"new {n}"} for n in range(8, 20)])
    put(table, [{"a": n, "b": f"far {n}"} for n in range(100, 120)])
    wanted = _keys(a=[9, 7, 50])
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    plan = TableReader(table, key_filter=wanted).plan(snapshot)
    assert plan.files_skipped == {BY_KEYS: 1}
    found = read_table(table, columns=["a", "b"], key_filter=wanted).to_pylist()
    assert found == [{"a": 7, "b": "old 7"}, {"a": 9, "b": "new 9"}]


def test_keys_and_a_condition_hold_together() -> None:
    table = _table(["a"])
    put(table, [{"a": n, "b": "x"} for n in range(10)])
    put(table, [{"a": 3, "b": "y"}])
    condition = Comparison("b", "=", "x")
    found = read_table(table, columns=["a"], key_filter=_keys(a=[3, 4]), predicate=condition)
    assert found.to_pylist() == [{"a": 4}]
