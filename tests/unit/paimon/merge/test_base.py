"""The order of rows, and levels that hold what is above them."""

import numpy as np
import pyarrow as pa
import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.merge.base import merge_rows
from ingestd.paimon.merge.merged_rows import LEVEL
from ingestd.paimon.spec.merge_rules import FieldFunction, MergeRules
from tests.support.merges import merge, rows_of

ST = {"s": "INT", "t": "STRING", "v": "INT"}


@pytest.mark.parametrize(
    ("rules", "newest"),
    [
        ({}, 4), ({"sequence_fields": ("s",)}, 3), ({"sequence_fields": ("s", "t")}, 2),
        ({"sequence_fields": ("s",), "descending": True}, 4),
        ({"sequence_fields": ("t",), "descending": True}, 3),
    ],
)  # fmt: skip
def test_sequence_fields_say_which_row_is_newest(rules: dict[str, object], newest: int) -> None:
    rows = [
        {"k": 1, "s": None, "t": None, "v": 0},
        {"k": 1, "s": 9, "t": None, "v": 1},
        {"k": 1, "s": 9, "t": "b", "v": 2},
        {"k": 1, "s": 9, "t": "a", "v": 3},
        {"k": 1, "s": -3, "t": "b", "v": 4},
    ]
    assert [row["v"] for row in merge(rows, ST, **rules)] == [newest]


def test_ignored_deletions_leave_the_newest_other_row() -> None:
    rows = [{"k": 1, "v": 1}, {"k": 1, "v": 2, "_kind": 3}, {"k": 2, "v": 3, "_kind": 1}]
    assert merge(rows, ST, ignore_delete=True) == [{"k": 1, "s": None, "t": None, "v": 1}]


def test_of_the_upper_levels_the_lowest_counts() -> None:
    rows = rows_of([{"k": 1, "v": n} for n in (1, 10, 100, 1000)], {"v": "INT"})
    rows = rows.append_column(LEVEL, pa.array(np.array([5, 3, 0, 0], np.int32)))
    rules = MergeRules("aggregation", functions={"v": FieldFunction("sum")})
    merged = merge_rows(rows, ["k"], rules)
    assert merged.column("v").to_pylist() == [1110]
    assert LEVEL not in merged.column_names


def test_no_rows_stay_no_rows() -> None:
    for engine in ("aggregation", "deduplicate", "first-row", "partial-update"):
        assert merge([], ST, engine=engine, ignore_delete=True) == []


def test_the_newest_row_of_each_key_stays_in_key_order_deletions_included() -> None:
    rows = rows_of(
        [{"k": 2, "v": 1}, {"k": 1, "v": 2}, {"k": 2, "v": 3, "_kind": 3}, {"k": 1, "v": None}],
        {"v": "INT"},
    )
    newest = merge_rows(rows, ["k"], MergeRules("deduplicate"))
    assert newest.column("k").to_pylist() == [1, 2]
    assert newest.column("v").to_pylist() == [None, 3]
    assert newest.column("_VALUE_KIND").to_pylist() == [0, 3]


def test_sequence_numbers_decide_what_is_newest_unless_rows_are_given_oldest_first() -> None:
    rows = rows_of([{"k": 1, "v": n} for n in (1, 2)], {"v": "INT"})
    place = rows.column_names.index("_SEQUENCE_NUMBER")
    rows = rows.set_column(place, "_SEQUENCE_NUMBER", pa.array([5, 4]))
    rules = MergeRules("deduplicate")
    assert merge_rows(rows, ["k"], rules).column("v").to_pylist() == [1]
    assert merge_rows(rows, ["k"], rules, oldest_first=True).column("v").to_pylist() == [2]


def test_an_unknown_merge_engine_is_refused_by_name() -> None:
    rows = rows_of([{"k": 1, "v": 1}], {"v": "INT"})
    with pytest.raises(UnsupportedError, match="partial-update"):
        merge_rows(rows, ["k"], MergeRules("newest-wins"))
