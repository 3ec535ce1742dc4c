"""Columns that no table can have, and tables of no name, cost their records and nothing else."""

import dataclasses
from typing import Any

import pytest

from ingestd.errors import PolicyStopError
from ingestd.ingest.settings.context import RoutingConfig, TableSettings
from ingestd.ingest.settings.error_policy import ErrorPolicy
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.settings.shape_settings import ShapeSettings
from tests.support.ingest_rig import DEAD_LETTERS, Rig
from tests.support.json_changes import (
    DELETE,
    UNAVAILABLE,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    Change,
    record,
)

pytestmark = pytest.mark.usefixtures("json_changes")
REASON = ("schema", "invalid-column-name")
ALIASES = EvolutionPolicy(aliases={"row_kind": "rowkind"})


def dead_letters(rig: Rig) -> list[tuple[Any, ...]]:
    rows = rig.rows("ingestd_dead_letters", "offset", "stage", "reason", "table")
    return sorted((row["offset"], row["stage"], row["reason"], row["table"]) for row in rows)


@pytest.mark.parametrize("name", ["rowkind", "_KEY_id", "_ROW_ID", "_VALUE_KIND", "_LEVEL"])
def test_a_reserved_name_costs_the_records_that_have_a_value_there(name: str) -> None:
    rig = Rig()
    rig.produce(
        record(Change({"id": 1, name: "x"})),
        record(Change({"id": 2, "a": 1, name: None})),
        record(Change({"id": 3, "a": 2})),
    )
    rig.run()
    assert rig.rows("orders") == [{"id": 2, "a": 1}, {"id": 3, "a": 2}]
    assert dead_letters(rig) == [(0, *REASON, "lake.orders")]
    [row] = rig.rows("ingestd_dead_letters", "message")
    assert f"column '{name}'" in row["message"]
    assert "schema.aliases" in row["message"]


def test_a_reserved_name_that_comes_later_costs_its_records_too() -> None:
    rig = Rig()
    rig.produce(record(Change({"id": 1, "a": 1})), record(Change({"id": 2, "a": 1})))
    rig.run()
    rig.produce(
        record(Change({"id": 1, "a": 2, "rowkind": "x"}, UPDATE_AFTER)),
        record(Change({"id": 2, "rowkind": "x"}, DELETE)),
        record(Change({"id": 3, "a": 3, "b": 3}, UPDATE_AFTER)),
    )
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "a": 1, "b": None}, {"id": 3, "a": 3, "b": 3}]
    assert dead_letters(rig) == [(2, *REASON, "lake.orders")]


def test_the_rows_of_a_record_fail_together() -> None:
    rig = Rig(defaults=TableSettings(options={"changelog-producer": "input"}))
    rig.produce(record(Change({"id": 1, "a": 1})))
    rig.run()
    rig.produce(
        record(
            Change({"id": 1, "a": 1, "rowkind": "x"}, UPDATE_BEFORE),
            Change({"id": 1, "a": 2, "rowkind": "x"}, UPDATE_AFTER),
        )
    )
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "a": 1}]
    assert dead_letters(rig) == [(1, *REASON, "lake.orders")]


def test_no_table_is_made_for_rejected_rows_alone() -> None:
    rig = Rig()
    rig.produce(*(record(Change({"id": n, "rowkind": "x"})) for n in (1, 2)))
    result = rig.run()
    assert list(rig.tables) == [DEAD_LETTERS]
    assert result.source_tables == {}
    assert dead_letters(rig) == [(0, *REASON, "lake.orders"), (1, *REASON, "lake.orders")]


@pytest.mark.parametrize("kind", [UPDATE_AFTER, DELETE])
def test_a_reserved_name_in_the_key_costs_every_record(kind: int) -> None:
    rig = Rig()
    rig.produce(record(Change({"_LEVEL": 1, "a": 1}, kind, keys=("_LEVEL",))))
    rig.run()
    assert list(rig.tables) == [DEAD_LETTERS]
    assert dead_letters(rig) == [(0, *REASON, "lake.orders")]


@pytest.mark.parametrize("fixed", [None, ("id",)])
def test_a_reserved_name_that_comes_into_the_key_costs_every_record(
    fixed: tuple[str, ...] | None,
) -> None:
    rig = Rig(defaults=TableSettings(primary_keys=fixed))
    rig.produce(record(Change({"id": 1, "a": 1})))
    rig.run()
    rig.produce(record(Change({"id": 2, "_LEVEL": 1, "a": 1}, keys=("id", "_LEVEL"))))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "a": 1}]
    assert dead_letters(rig) == [(1, *REASON, "lake.orders")]


def test_a_row_without_another_column_is_rejected() -> None:
    rig = Rig(defaults=TableSettings(evolution=EvolutionPolicy(on_refused="ignore")))
    rig.produce(record(Change({"rowkind": "x"}, keys=())))
    rig.run()
    assert dead_letters(rig) == [(0, *REASON, "lake.orders")]


@pytest.mark.parametrize(
    ("settings", "row"),
    [
        (TableSettings(evolution=ALIASES), {"id": 1, "row_kind": "x"}),
        (TableSettings(shape=ShapeSettings(exclude=("rowkind",))), {"id": 1}),
        (TableSettings(evolution=EvolutionPolicy(on_refused="ignore")), {"id": 1}),
    ],
    ids=["another name", "left out", "ignored"],
)
def test_the_ways_out_lead_out(settings: TableSettings, row: dict[str, Any]) -> None:
    rig = Rig(settings={"orders": settings})
    for _ in range(2):
        rig.produce(record(Change({"id": 1, "rowkind": "x"}, UPDATE_AFTER)))
        rig.run()
    assert rig.rows("orders") == [row]
    assert dead_letters(rig) == []


def test_a_value_left_out_by_the_source_is_none() -> None:
    rig = Rig()
    rig.produce(record(Change({"id": 1, "a": 1})))
    rig.run()
    rig.produce(record(Change({"id": 1, "a": 2, "rowkind": UNAVAILABLE}, UPDATE_AFTER)))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "a": 2}]
    assert dead_letters(rig) == []


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"file.format": "avro"}, "a b"),
        ({"file.format": "avro"}, 'a"b'),
        ({"file.format": "orc"}, "a`b"),
    ],
)
def test_a_name_that_the_file_format_lacks_costs_its_records(
    options: dict[str, str], name: str
) -> None:
    rig = Rig(defaults=TableSettings(options=options))
    rig.produce(record(Change({"id": 1, name: "x"})), record(Change({"id": 2})))
    rig.run()
    assert rig.rows("orders") == [{"id": 2}]
    assert dead_letters(rig) == [(0, *REASON, "lake.orders")]


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_names_that_json_has_to_escape_are_names(file_format: str) -> None:
    row = {"id": 1, 'a"b': "x", "c\\d": "y", "e\nf": "z", "\x01": "q"}
    rig = Rig(defaults=TableSettings(options={"file.format": file_format}))
    rig.produce(record(Change(row)), record(Change({**row, "id": 2, "c\\d": None})))
    rig.run()
    assert rig.rows("orders") == [{**row, "id": 2, "c\\d": None}, row][::-1]
    assert dead_letters(rig) == []


@pytest.mark.parametrize("table", ["t" * 300, "$", " ", "."])
def test_a_table_that_can_have_no_name_costs_its_records(table: str) -> None:
    rig = Rig(routing=RoutingConfig(table_prefix="p" * 251 if table in "$ ." else ""))
    rig.routing = dataclasses.replace(rig.routing, table_mapping={"orders": "orders"})
    rig.produce(record(Change({"id": 1})), record(Change({"id": 2}, table=table)))
    rig.run()
    assert rig.rows("orders") == [{"id": 1}]
    assert dead_letters(rig) == [(1, "route", "invalid-table-name", None)]


@pytest.mark.parametrize(
    ("stage", "change"),
    [("schema", Change({"id": 1, "rowkind": 1})), ("route", Change({"id": 1}, table="t" * 300))],
)
def test_the_policy_of_the_stage_holds(stage: str, change: Change) -> None:
    stopping = Rig(overrides={"error_policy": ErrorPolicy({stage: "fail"})})
    stopping.produce(record(change))
    with pytest.raises(PolicyStopError, match="invalid-"):
        stopping.run()
    dropping = Rig(overrides={"error_policy": ErrorPolicy({stage: "drop"})})
    dropping.produce(record(change))
    assert sum(dropping.run().counts.dropped.values()) == 1
    assert dead_letters(dropping) == []
