"""collect, merge_map, nested_update and nested_partial_update."""

from typing import Any

import pytest

from tests.support.merge_cases import INTS, MAP, ROWS
from tests.support.merges import aggregate, merge

BYTES: Any = {"type": "ARRAY", "element": "BYTES"}
NESTED: Any = {"type": "ARRAY", "element": {"type": "ARRAY", "element": "INT"}}


def row(number: int | None, text: str | None) -> dict[str, Any]:
    return {"id": number, "v": text}


def test_collect_concatenates_arrays() -> None:
    assert aggregate("collect", INTS, [[1], None, [], [None, 1]]) == [1, None, 1]
    assert aggregate("collect", INTS, [None, None]) is None
    assert aggregate("collect", INTS, [[], None]) == []


def test_collect_distinct_has_every_element_once() -> None:
    cells: list[Any] = [[1, None], [2, 1], [None]]
    assert aggregate("collect", INTS, cells, distinct=True) == [1, None, 2]
    lists: list[Any] = [[[1], [2]], [[1], [3]]]
    assert aggregate("collect", NESTED, lists, distinct=True) == [[1], [2], [3]]
    assert aggregate("collect", INTS, [[1], [1, 2], ([2],)], distinct=True) == [1]


def test_binary_elements_are_never_the_same() -> None:
    assert aggregate("collect", BYTES, [[b"a"], [b"a"]], distinct=True) == [b"a", b"a"]


def test_what_collect_takes_back_is_gone_once() -> None:
    assert aggregate("collect", INTS, [[1, 1, 2], ([1, 3],)]) == [1, 2]
    assert aggregate("collect", INTS, [None, ([1],), [4]]) == [4]


def test_the_newest_entry_of_a_map_key_stays() -> None:
    merged = aggregate("merge_map", MAP, [[("a", 1), ("b", 2)], None, [("a", None)]])
    assert dict(merged) == {"a": None, "b": 2}
    assert dict(aggregate("merge_map", MAP, [[("a", 1), ("b", 2)], ([("a", 9)],)])) == {"b": 2}


def test_nested_rows_are_replaced_by_key() -> None:
    cells: list[Any] = [[row(1, "a"), row(2, "b")], [row(1, "c"), None]]
    found = aggregate("nested_update", ROWS, cells, nested_key=("id",))
    assert sorted(found, key=str) == [row(1, "c"), row(2, "b")]
    assert aggregate("nested_update", ROWS, cells) == [row(1, "a"), row(2, "b"), row(1, "c")]


def test_nested_rows_are_taken_back() -> None:
    cells: list[Any] = [[row(1, "a"), row(2, "b")], ([row(1, "x")],)]
    assert aggregate("nested_update", ROWS, cells, nested_key=("id",)) == [row(2, "b")]
    assert aggregate("nested_update", ROWS, cells) == [row(1, "a"), row(2, "b")]


@pytest.mark.parametrize(("limit", "kept"), [(1, ["a", "b"]), (3, ["a", "b", "c"]), (9, "abcd")])
def test_nested_rows_stop_at_a_limit(limit: int, kept: Any) -> None:
    cells: list[Any] = [[row(1, "a"), row(2, "b")], [row(3, "c"), row(4, "d")]]
    found = aggregate("nested_update", ROWS, cells, count_limit=limit)
    assert [one["v"] for one in found] == list(kept)


def test_fields_of_nested_rows_are_filled_in() -> None:
    cells: list[Any] = [[row(1, "a"), row(2, None)], [row(1, None), row(2, "b"), row(None, "c")]]
    found = aggregate("nested_partial_update", ROWS, cells, nested_key=("id",))
    assert sorted(found, key=str) == [row(1, "a"), row(2, "b"), row(None, "c")]


def test_a_single_row_keeps_its_array_as_it_is() -> None:
    cells = [{"k": 1, "v": [row(1, "a"), row(1, "b"), None]}, {"k": 2, "v": None}]
    assert merge(cells, {"v": ROWS}, engine="aggregation") == cells


def test_collect_of_nothing_but_retracted_elements_is_empty() -> None:
    assert not aggregate("collect", INTS, [([1],), ([2],)])
