"""Rows filled in column by column."""

from typing import Any

import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.merge.base import merge_rows
from ingestd.paimon.spec.merge_rules import FieldFunction, MergeRules, SequenceGroup
from tests.support.merge_cases import MAP
from tests.support.merges import merge, rows_of

AB = {"a": "INT", "b": "STRING"}
GROUPED = {"a": "INT", "g": "INT", "b": "STRING"}
GROUP = SequenceGroup(("g",), ("a",))
DELETE = 3


def update(rows: list[dict[str, Any]], types: Any = GROUPED, **rules: Any) -> list[dict[str, Any]]:
    return merge(rows, types, engine="partial-update", **rules)


def test_values_that_are_no_null_replace_older_ones() -> None:
    rows = [{"k": 1, "a": 1}, {"k": 1, "b": "x"}, {"k": 1, "a": 2}]
    assert update(rows, AB) == [{"k": 1, "a": 2, "b": "x"}]


def test_deletions_are_refused_if_nothing_says_what_they_do() -> None:
    rows = [{"k": 1, "a": 1}, {"k": 1, "_kind": DELETE}]
    with pytest.raises(UnsupportedError, match=r"'ignore-delete' or, .*remove-record-on-delete"):
        update(rows, AB)
    assert update(rows, AB, ignore_delete=True) == [{"k": 1, "a": 1, "b": None}]


def test_a_deletion_can_remove_the_record() -> None:
    rows = [{"k": 1, "a": 1, "b": "x"}, {"k": 1, "a": 2, "_kind": DELETE}]
    removed = [{"k": 1, "a": 2, "b": None, "_kind": DELETE}]
    assert update(rows, AB, remove_on_delete=True) == removed
    rows += [{"k": 1, "b": "y", "_kind": 2}, {"k": 1, "a": 9, "_kind": 1}]
    assert update(rows, AB, remove_on_delete=True) == [{"k": 1, "a": 2, "b": "y"}]


def test_a_group_follows_its_sequence_nulls_included() -> None:
    rows = [
        {"k": 1, "a": 1, "g": 5, "b": "x"},
        {"k": 1, "a": 2, "g": 4, "b": "y"},
        {"k": 1, "a": 3, "g": None},
    ]
    assert update(rows, groups=(GROUP,)) == [{"k": 1, "a": 1, "g": 5, "b": "y"}]
    rows += [{"k": 1, "a": None, "g": 5}]
    assert update(rows, groups=(GROUP,)) == [{"k": 1, "a": None, "g": 5, "b": "y"}]


def test_a_deletion_empties_the_group_it_is_newest_in() -> None:
    rows = [{"k": 1, "a": 1, "g": 5, "b": "x"}, {"k": 1, "g": 6, "_kind": DELETE}]
    assert update(rows, groups=(GROUP,)) == [{"k": 1, "a": None, "g": 6, "b": "x"}]
    rows[1] = {"k": 1, "g": 4, "_kind": DELETE}
    assert update(rows, groups=(GROUP,)) == [{"k": 1, "a": 1, "g": 5, "b": "x"}]


def test_a_leading_deletion_gives_the_other_columns_its_values() -> None:
    rows = [{"k": 1, "a": 1, "g": 5, "b": "x", "_kind": DELETE}, {"k": 1, "g": None, "a": 4}]
    assert update(rows, groups=(GROUP,)) == [{"k": 1, "a": None, "g": 5, "b": "x"}]
    alone = [rows[0], rows[0]]
    deleted = {"k": 1, "a": None, "g": 5, "b": "x", "_kind": DELETE}
    assert update(alone, groups=(GROUP,)) == [deleted]


def test_functions_in_a_group_take_in_older_rows_too() -> None:
    rows = [{"k": 1, "a": n, "g": g} for n, g in ((1, 5), (2, 3), (3, 6))]
    for name, value in (("sum", 6), ("last_value", 3), ("first_value", 2), ("max", 3)):
        functions = {"a": FieldFunction(name)}
        (found,) = update(rows, groups=(GROUP,), functions=functions)
        assert (name, found["a"]) == (name, value)
    rows[0]["a"] = rows[1]["a"] = None
    functions = {"a": FieldFunction("first_non_null_value")}
    (found,) = update(rows, groups=(GROUP,), functions=functions)
    assert found["a"] == 3


def test_a_deletion_in_a_removing_group_starts_the_row_anew() -> None:
    groups = (SequenceGroup(("g",), ("a",), removes=True), SequenceGroup(("h",), ("b",)))
    types = {**GROUPED, "h": "INT"}
    rows: list[dict[str, Any]] = [
        {"k": 1, "a": 1, "g": 5, "b": "x", "h": 9},
        {"k": 1, "g": 4, "_kind": DELETE},
        {"k": 1, "g": 6, "h": 2, "_kind": DELETE},
    ]
    removed = {"k": 1, "a": None, "g": 6, "b": None, "h": 2}
    assert update(rows, types, groups=groups) == [{**removed, "_kind": DELETE}]
    rows += [{"k": 1, "b": "y", "h": 3}]
    assert update(rows, types, groups=groups) == [{**removed, "b": "y", "h": 3}]
    rows += [{"k": 1, "g": 6, "_kind": DELETE}, {"k": 1, "a": 7, "g": 6}]
    assert update(rows, types, groups=groups) == [{"k": 1, "a": 7, "g": 6, "b": None, "h": None}]


def test_several_sequence_columns_compare_one_after_the_other() -> None:
    group = SequenceGroup(("g", "b"), ("a",))
    rows = [
        {"k": 1, "a": 1, "g": 5, "b": "m"},
        {"k": 1, "a": 2, "g": 5, "b": None},
        {"k": 1, "a": 3, "g": 5, "b": "n"},
    ]
    assert update(rows, groups=(group,)) == [{"k": 1, "a": 3, "g": 5, "b": "n"}]


def test_the_sequence_number_is_that_of_the_last_row_that_is_not_ignored() -> None:
    rows = rows_of([{"k": 1, "a": 1}, {"k": 1, "_kind": DELETE}], AB)
    rules = MergeRules(engine="partial-update", ignore_delete=True)
    assert merge_rows(rows, ["k"], rules).column("_SEQUENCE_NUMBER").to_pylist() == [0]


def test_older_maps_do_not_replace_newer_entries_beside_a_retraction() -> None:
    rows = [
        {"k": 1, "a": [("x", 1), ("y", 2)], "g": 1},
        {"k": 1, "a": [("x", 1)], "g": 2, "_kind": DELETE},
        {"k": 2, "a": [("x", 1)], "g": 5},
        {"k": 2, "a": [("x", 9), ("y", 2)], "g": 3},
    ]
    functions = {"a": FieldFunction("merge_map")}
    found = update(rows, {**GROUPED, "a": MAP}, groups=(GROUP,), functions=functions)
    assert [dict(one["a"]) for one in found] == [{"y": 2}, {"x": 1, "y": 2}]
