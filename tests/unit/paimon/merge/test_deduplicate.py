"""The newest row of a key wins."""

import pyarrow as pa

from ingestd.paimon.merge.deduplicate import merge
from ingestd.paimon.merge.key_order import sort_keys


def test_the_last_row_of_each_key_stays_in_key_order() -> None:
    rows = pa.table({"k": ["b", "a", "b", "a"], "v": [1, 2, 3, None]})
    assert merge(rows, ["k"]).to_pylist() == [{"k": "a", "v": None}, {"k": "b", "v": 3}]


def test_given_order_decides_what_is_newest() -> None:
    rows = pa.table({"k": [1, 1, 2], "s": [5, 4, 6]})
    keys = sort_keys(rows, ["k"], rows.column("s").to_numpy())
    assert merge(rows, ["k"], keys).column("s").to_pylist() == [5, 6]


def test_a_delete_is_a_row_like_any_other() -> None:
    rows = pa.table({"k": [1, 1], "_VALUE_KIND": pa.array([0, 3], pa.int8())})
    assert merge(rows, ["k"]).column("_VALUE_KIND").to_pylist() == [3]


def test_no_rows_stay_no_rows() -> None:
    rows = pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.string())})
    assert merge(rows, ["k"]).equals(rows)
