"""merge_map_with_keytime."""

from typing import Any

from tests.support.merge_cases import TIMED
from tests.support.merges import aggregate


def entry(number: int, time: str | None) -> dict[str, Any]:
    return {"a": number, "ts": time}


def test_the_latest_entry_of_each_map_key_stays() -> None:
    cells: list[Any] = [
        [("x", entry(1, "2")), ("y", entry(1, "5"))],
        [("x", entry(2, "3")), ("y", entry(2, "4")), ("z", entry(2, None))],
        [("x", entry(3, "3"))],
    ]
    found = dict(aggregate("merge_map_with_keytime", TIMED, cells))
    assert found == {"x": entry(2, "3"), "y": entry(1, "5")}


def test_a_null_removes_its_key_and_any_time_beats_none() -> None:
    cells: list[Any] = [[("x", entry(1, "2")), ("y", entry(1, None))], [("x", None)]]
    later: list[Any] = [*cells, [("y", entry(2, "1"))]]
    assert dict(aggregate("merge_map_with_keytime", TIMED, cells)) == {"y": entry(1, None)}
    assert dict(aggregate("merge_map_with_keytime", TIMED, later)) == {"y": entry(2, "1")}


def test_the_time_is_in_the_named_field_or_the_last() -> None:
    cells: list[Any] = [[("x", entry(9, "2"))], [("x", entry(1, "3"))]]
    found = aggregate("merge_map_with_keytime", TIMED, cells, time_field="ts")
    assert dict(found) == {"x": entry(1, "3")}
