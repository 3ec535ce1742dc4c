"""How far tables follow their sources, and what becomes of records that they do not follow."""

from typing import Any

import pytest

from ingestd.errors import ConfigError, SchemaConflictError
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy, check_policy
from ingestd.paimon.spec.data_types import DataType, parse_type
from tests.support.ingest_rig import DEAD_LETTERS, Rig
from tests.support.json_changes import (
    DELETE,
    UNAVAILABLE,
    UPDATE_AFTER,
    Change,
    JsonChanges,
    record,
)


def grown(json_changes: JsonChanges, policy: EvolutionPolicy, **types: str) -> Rig:
    """A table with columns id INT, at TIMESTAMP(6) and n INT, one row; `types` are for later."""
    rig = Rig(settings={"orders": TableSettings(evolution=policy)})
    first = {"id": "INT", "at": "TIMESTAMP(6)", "n": "INT"}
    json_changes.types = {name: parse_type(text) for name, text in first.items()}
    rig.produce(record(Change({"id": 1, "at": 0, "n": 1})))
    rig.run()
    json_changes.types |= {name: parse_type(text) for name, text in types.items()}
    return rig


def types_of(rig: Rig) -> dict[str, str]:
    return {field.name: str(field.type) for field in rig.tables["lake.orders"].schema.fields[1:]}


def dead_letters(rig: Rig) -> list[tuple[Any, ...]]:
    found = rig.rows(DEAD_LETTERS.partition(".")[2])
    return sorted((one["offset"], one["stage"], one["reason"]) for one in found)


def test_all_changes_of_a_batch_are_one_version(json_changes: JsonChanges) -> None:
    rig = grown(json_changes, EvolutionPolicy(), m="BIGINT")
    policy = EvolutionPolicy(aliases={"m": "n"}, drop=("at",))
    rig.settings = {"orders": TableSettings(evolution=policy)}
    rig.produce(
        record(Change({"id": 2, "m": 2, "x": "a"})), record(Change({"id": 3, "m": 3, "y": True}))
    )
    rig.run()
    schema = rig.tables["lake.orders"].schema
    assert schema.id == 1
    assert types_of(rig) == {"m": "BIGINT", "x": "STRING", "y": "BOOLEAN"}
    assert schema.field("m").id == 2
    assert rig.rows("orders", "id", "m") == [
        {"id": 1, "m": 1},
        {"id": 2, "m": 2},
        {"id": 3, "m": 3},
    ]


def test_column_that_is_declared_gone_does_not_come_back(json_changes: JsonChanges) -> None:
    rig = grown(json_changes, EvolutionPolicy(drop=("at",)))
    assert list(types_of(rig)) == ["n"]
    rig.produce(record(Change({"id": 2, "at": 5, "n": 2})))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "n": 1}, {"id": 2, "n": 2}]


@pytest.mark.parametrize("mode", ["none", "add-columns"])
def test_types_that_may_not_follow_take_the_values_that_fit(
    json_changes: JsonChanges, mode: Any
) -> None:
    rig = grown(json_changes, EvolutionPolicy(mode, "dead-letter"), n="BIGINT")
    rig.produce(record(Change({"id": 2, "n": 2})), record(Change({"id": 3, "n": 1 << 40})))
    rig.run()
    assert rig.rows("orders", "id", "n") == [{"id": 1, "n": 1}, {"id": 2, "n": 2}]
    assert dead_letters(rig) == [(2, "schema", "refused-change")]
    assert rig.tables["lake.orders"].schema.id == 0


@pytest.mark.parametrize(("on_refused", "rows"), [("dead-letter", 2), ("ignore", 3)])
def test_new_columns_that_may_not_be(json_changes: JsonChanges, on_refused: Any, rows: int) -> None:
    rig = grown(json_changes, EvolutionPolicy("none", on_refused))
    rig.produce(record(Change({"id": 2, "x": 1})), record(Change({"id": 3, "x": None})))
    rig.run()
    assert len(rig.rows("orders")) == rows
    assert len(dead_letters(rig)) == 3 - rows
    assert list(types_of(rig)) == ["at", "n"]


def test_deletes_are_not_judged_by_columns_that_nobody_reads(json_changes: JsonChanges) -> None:
    rig = grown(json_changes, EvolutionPolicy("none", "dead-letter"))
    rig.produce(record(Change({"id": 1, "x": 1}, DELETE)))
    rig.run()
    assert rig.rows("orders") == []
    assert dead_letters(rig) == []


@pytest.mark.parametrize(
    ("policy", "change", "message"),
    [
        (
            EvolutionPolicy("none", "fail"),
            {"x": 1},
            r"'x' as BIGINT, but it is new.*is none",
        ),
        (EvolutionPolicy("add-columns", "fail"), {"n": 1 << 40}, r"'n' as BIGINT.*is add-columns"),
        (EvolutionPolicy(on_refused="fail"), {"at": "soon"}, "no type holds both"),
    ],
)
def test_pipeline_stops_where_that_is_asked_for(
    json_changes: JsonChanges, policy: EvolutionPolicy, change: dict[str, Any], message: str
) -> None:
    rig = grown(json_changes, policy, n="BIGINT", at="STRING")
    rig.produce(record(Change({"id": 2, **change})))
    with pytest.raises(SchemaConflictError, match=message):
        rig.run()


def test_column_becomes_text_where_no_type_holds_both(json_changes: JsonChanges) -> None:
    rig = grown(json_changes, EvolutionPolicy(on_refused="string"), at="STRING")
    rig.produce(record(Change({"id": 2, "at": "soon"})))
    rig.run()
    assert types_of(rig) == {"at": "STRING", "n": "INT"}
    json_changes.types |= {"at": DataType("TIMESTAMP")}
    rig.produce(record(Change({"id": 3, "at": 0})))
    rig.run()
    assert [row["at"] for row in rig.rows("orders", "id", "at")] == [
        "1970-01-01 00:00:00.000000",
        "soon",
        "1970-01-01 00:00:00.000000",
    ]


def test_values_of_another_type_get_a_column_beside(json_changes: JsonChanges) -> None:
    rig = grown(json_changes, EvolutionPolicy(on_refused="new-column"), at="STRING")
    for identity in (2, 3):
        rig.produce(record(Change({"id": identity, "at": "soon"})))
        rig.run()
    assert types_of(rig) == {"at": "TIMESTAMP(6)", "n": "INT", "at_string": "STRING"}
    assert [row["at_string"] for row in rig.rows("orders", "id", "at_string")] == [
        None,
        "soon",
        "soon",
    ]
    assert rig.tables["lake.orders"].schema.id == 1


def test_unchanged_values_of_another_type_stay_in_the_column_beside(
    json_changes: JsonChanges,
) -> None:
    rig = grown(json_changes, EvolutionPolicy("add-columns", "new-column"), at="STRING")
    for at in ("soon", UNAVAILABLE):
        rig.produce(record(Change({"id": 1, "at": at}, UPDATE_AFTER)))
        rig.run()
    assert rig.rows("orders", "at", "at_string") == [{"at": None, "at_string": "soon"}]


def test_column_beside_never_takes_the_place_of_one_of_the_source(
    json_changes: JsonChanges,
) -> None:
    rig = grown(json_changes, EvolutionPolicy(on_refused="new-column"), at="STRING")
    rig.produce(record(Change({"id": 2, "at": "soon", "at_string": "own"})))
    rig.run()
    assert dead_letters(rig) == [(1, "schema", "refused-change")]


def test_types_of_one_batch_that_never_meet_do_not_stop_it(json_changes: JsonChanges) -> None:
    rig = grown(json_changes, EvolutionPolicy(on_refused="dead-letter"))
    json_changes.types |= {"x": DataType("TIMESTAMP")}
    rig.produce(record(Change({"id": 2, "x": 0})), record(Change({"id": 3, "n": 1})))
    rig.run()
    json_changes.types |= {"x": DataType("BOOLEAN")}
    rig.produce(record(Change({"id": 4, "x": True})))
    rig.run()
    assert [row["id"] for row in rig.rows("orders", "id")] == [1, 2, 3]
    assert dead_letters(rig) == [(3, "schema", "refused-change")]


def test_key_that_would_change_its_type_goes_by_the_policy(json_changes: JsonChanges) -> None:
    rig = grown(json_changes, EvolutionPolicy(on_refused="dead-letter"), id="BIGINT")
    rig.produce(record(Change({"id": 2, "n": 2})), record(Change({"id": 1 << 40, "n": 3})))
    rig.run()
    assert [row["id"] for row in rig.rows("orders", "id")] == [1, 2]
    assert dead_letters(rig) == [(2, "schema", "refused-change")]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (EvolutionPolicy("add-columns", "string"), "'string' requires"),
        (EvolutionPolicy("none", "new-column"), "adds columns"),
        (EvolutionPolicy(aliases={"a": "b", "b": "c"}), "'b' cannot be both a new name"),
        (EvolutionPolicy(aliases={"a": "b"}, drop=("a",)), "'a' cannot be"),
        (EvolutionPolicy(aliases={"a": "c", "b": "c"}), "'c' has two new names"),
    ],
)
def test_policies_that_mean_nothing_are_refused(policy: EvolutionPolicy, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_policy(policy)


def test_a_table_says_what_its_defaults_leave_open() -> None:
    defaults = EvolutionPolicy("add-columns", "dead-letter")
    assert EvolutionPolicy("none").over(defaults) == EvolutionPolicy("none", "dead-letter")
