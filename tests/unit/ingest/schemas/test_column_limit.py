"""Tables get this many columns and no more; what becomes of the others is for the policy to say."""

from typing import Any

import pytest

from ingestd.errors import SchemaConflictError
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.evolution_policy import MAX_COLUMNS, EvolutionPolicy
from tests.support.ingest_rig import DEAD_LETTERS, Rig
from tests.support.json_changes import DELETE, Change, record

pytestmark = pytest.mark.usefixtures("json_changes")


def limited(on_refused: Any, **settings: Any) -> Rig:
    """A table of at most four columns."""
    policy = EvolutionPolicy(on_refused=on_refused, max_columns=4)
    return Rig(settings={"orders": TableSettings(evolution=policy, **settings)})


def names(rig: Rig) -> list[str]:
    return list(rig.tables["lake.orders"].schema.field_names)


def dead_letters(rig: Rig) -> list[tuple[Any, ...]]:
    found = rig.rows(DEAD_LETTERS.partition(".")[2], "offset", "stage", "reason")
    return sorted((one["offset"], one["stage"], one["reason"]) for one in found)


def grown(on_refused: Any) -> Rig:
    """The table with columns id and a, one row."""
    rig = limited(on_refused)
    rig.produce(record(Change({"id": 1, "a": 1})))
    rig.run()
    return rig


def test_a_table_is_filled_up_to_its_limit() -> None:
    rig = grown("fail")
    rig.produce(record(Change({"id": 2, "b": 1, "c": 1})))
    rig.run()
    assert names(rig) == ["id", "a", "b", "c"]


def test_too_many_columns_stop_the_pipeline_and_the_error_says_why_and_what_to_do() -> None:
    rig = grown("fail")
    rig.produce(record(Change({"id": 2, "b": 1})), record(Change({"id": 2, "c": 1, "d": 1})))
    with pytest.raises(SchemaConflictError) as caught:
        rig.run()
    said = str(caught.value)
    assert "table lake.orders has 2 columns" in said
    assert "offset 1" in said
    assert "3 new ones, such as 'd'" in said
    assert "schema.max-columns, 4" in said
    assert "select.exclude" in said
    assert "schema.on-incompatible-schema" in said
    assert names(rig) == ["id", "a"]


@pytest.mark.parametrize("on_refused", ["dead-letter", "string", "new-column"])
def test_records_that_have_more_are_put_aside(on_refused: Any) -> None:
    rig = grown(on_refused)
    rig.produce(
        record(Change({"id": 2, "b": 1, "c": None})),
        record(Change({"id": 3, "c": 1})),
        record(Change({"id": 4, "d": 1})),
        record(Change({"id": 5, "d": None, "a": 5})),
        record(Change({"id": 1, "d": 1}, DELETE)),
    )
    rig.run()
    assert names(rig) == ["id", "a", "b", "c"]
    assert dead_letters(rig) == [(3, "schema", "refused-change")]
    assert [row["id"] for row in rig.rows("orders", "id")] == [2, 3, 5]
    [row] = rig.rows("ingestd_dead_letters", "message")
    assert "column d " in row["message"]
    assert "schema.max-columns 4" in row["message"]


def test_more_columns_can_be_left_out() -> None:
    rig = grown("ignore")
    rig.produce(*(record(Change({"id": n, f"c{n}": n})) for n in range(2, 9)))
    rig.run()
    assert names(rig) == ["id", "a", "c2", "c3"]
    assert len(rig.rows("orders")) == 8
    assert dead_letters(rig) == []


def test_tasks_that_find_different_columns_do_not_break_the_limit_together() -> None:
    rig = grown("dead-letter")
    rig.produce(record(Change({"id": 2, "b": 1, "c": 1})))
    rig.produce(record(Change({"id": 3, "d": 1, "e": 1})), partition=1)
    rig.run()
    assert names(rig) == ["id", "a", "b", "c"]
    assert dead_letters(rig) == [(0, "schema", "refused-change")]
    assert [row["id"] for row in rig.rows("orders", "id")] == [1, 2]


def test_a_new_table_of_too_many_columns_stops_the_pipeline() -> None:
    rig = limited("fail")
    rig.produce(record(Change({"id": 1, **{f"c{n}": n for n in range(4)}})))
    with pytest.raises(SchemaConflictError, match=r"cannot be created: it would have 5 columns.*4"):
        rig.run()
    assert "lake.orders" not in rig.tables


def test_a_new_table_has_its_keys_and_what_its_settings_name_before_all_others() -> None:
    options = {"sequence.field": "f"}
    rig = limited("ignore", primary_keys=("id", "day"), partition_keys=("day",), options=options)
    columns = {f"c{n}": n for n in range(5)}
    rig.produce(record(Change({**columns, "f": 1, "day": 3, "id": 1})))
    rig.run()
    assert names(rig) == ["c0", "f", "day", "id"]
    assert rig.rows("orders") == [{"c0": 0, "f": 1, "day": 3, "id": 1}]


def test_a_table_whose_keys_alone_are_too_many_cannot_be() -> None:
    rig = limited("ignore", primary_keys=("a", "b", "c", "d", "e"))
    rig.produce(record(Change(dict.fromkeys("abcdef", 1))))
    rig.run()
    assert dead_letters(rig) == [(0, "schema", "impossible-table")]
    [row] = rig.rows("ingestd_dead_letters", "message")
    assert "schema.max-columns" in row["message"]


def test_a_table_that_has_more_columns_keeps_them() -> None:
    rig = grown("dead-letter")
    policy = EvolutionPolicy(on_refused="dead-letter", max_columns=1)
    rig.settings = {"orders": TableSettings(evolution=policy)}
    rig.produce(record(Change({"id": 2, "a": 1 << 40})), record(Change({"id": 3, "b": 1})))
    rig.run()
    assert names(rig) == ["id", "a"]
    assert dead_letters(rig) == [(2, "schema", "refused-change")]


def test_there_is_a_limit_where_none_is_given() -> None:
    assert EvolutionPolicy().column_limit == MAX_COLUMNS == 2000
    assert EvolutionPolicy().over(EvolutionPolicy(max_columns=7)).column_limit == 7
    assert EvolutionPolicy(max_columns=9).over(EvolutionPolicy(max_columns=7)).column_limit == 9
