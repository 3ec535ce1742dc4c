"""What one event claims and cannot have costs its record, and neither neighbours nor a table."""

from dataclasses import replace
from typing import Any

import pytest

from ingestd.errors import PolicyStopError, SchemaConflictError
from ingestd.ingest.computed.computed_columns import parse_computed
from ingestd.ingest.settings.context import RoutingConfig, TableSettings
from ingestd.ingest.settings.error_policy import ErrorPolicy
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.settings.routing_rules import RouteRule, TableLimits
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.kafka.offset_ranges import OffsetRange
from tests.support.ingest_rig import DEAD_LETTERS, Rig
from tests.support.json_changes import UPDATE_AFTER, Change, record, statement

pytestmark = pytest.mark.usefixtures("json_changes")


def truncate(position: int, schema: str = "shop", table: str = "orders") -> bytes:
    return record(Change({}, truncate=True, position=position, schema=schema, table=table))


def dead_letters(rig: Rig) -> list[tuple[str, int, str, str]]:
    found = rig.rows(DEAD_LETTERS.partition(".")[2], "topic", "offset", "stage", "reason")
    return sorted((one["topic"], one["offset"], one["stage"], one["reason"]) for one in found)


def good(*identities: int, **columns: Any) -> list[bytes]:
    return [record(Change({"id": identity, **columns}, UPDATE_AFTER)) for identity in identities]


def ids(rig: Rig, table: str = "orders") -> list[int]:
    return [row["id"] for row in rig.rows(table, "id")]


def test_an_event_of_another_database_does_not_get_into_a_table() -> None:
    rig = Rig()
    rig.produce(*good(1, 2))
    rig.run()
    rig.produce(*good(3), record(Change({"id": 1}, schema="crm")), *good(4))
    result = rig.run()
    assert ids(rig) == [1, 2, 3, 4]
    assert dead_letters(rig) == [("orders", 3, "route", "table-taken")]
    assert result.counts.rejected == {("route", "table-taken"): 1}
    [row] = rig.rows("ingestd_dead_letters", "message", "table")
    assert row["table"] == "lake.orders"
    assert "src:db.crm.orders, src:db.shop.orders" in row["message"]
    assert "routing.table-mapping" in row["message"]


def test_a_new_table_belongs_to_the_source_table_with_most_rows() -> None:
    rig = Rig(slots=2)
    rig.produce(record(Change({"id": 9, "evil": 1}, schema="aaa")), topic="first")
    rig.produce(*good(1, 2), record(Change({"id": 8}, schema="aaa")), *good(3))
    result = rig.run()
    assert ids(rig) == [1, 2, 3]
    assert rig.tables["lake.orders"].schema.field_names == ("id",)
    assert dead_letters(rig) == [
        ("first", 0, "route", "table-taken"),
        ("orders", 2, "route", "table-taken"),
    ]
    assert {str(order) for order in result.source_tables["lake.orders"]} == {"src:db.shop.orders"}


def test_two_names_that_become_one_are_not_mixed() -> None:
    rig = Rig()
    rig.produce(
        record(Change({"id": 1}, table="it?em"), Change({"id": 2}, table="it?em")),
        record(Change({"id": 3}, table="it*em")),
    )
    rig.run()
    assert ids(rig, "it_em") == [1, 2]
    assert dead_letters(rig) == [("orders", 1, "route", "table-taken")]


def test_what_the_configuration_names_comes_before_what_has_most_rows() -> None:
    rig = Rig(routing=RoutingConfig(table_mapping={"crm.orders": "orders"}))
    rig.produce(*good(1, 2), record(Change({"id": 3}, schema="crm")))
    rig.run()
    assert ids(rig) == [3]
    assert len(dead_letters(rig)) == 2


def test_a_source_table_called_like_that_of_the_dead_letters() -> None:
    rig = Rig()
    rig.produce(
        *good(1),
        record(Change({"id": 1}, table="ingestd_dead_letters")),
        truncate(5, table="ingestd_dead_letters"),
        *good(2),
    )
    rig.run()
    rig.produce(*good(3))
    rig.run()
    assert ids(rig) == [1, 2, 3]
    assert dead_letters(rig) == [
        ("orders", 1, "route", "reserved-table"),
        ("orders", 2, "route", "reserved-table"),
    ]


def test_nobody_else_empties_a_table_or_renames_its_columns() -> None:
    policy = EvolutionPolicy(on_rename="rename")
    rig = Rig(defaults=TableSettings(evolution=policy))
    rig.produce(*good(1, n=5))
    rig.run()
    rig.produce(truncate(50, "crm"))
    rig.produce(statement(60, schema="crm", n="m"), topic="ddl")
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "n": 5}]
    assert dead_letters(rig) == [
        ("ddl", 0, "route", "table-taken"),
        ("orders", 1, "route", "table-taken"),
    ]


def test_a_truncate_of_a_stranger_in_the_first_batch_empties_nothing() -> None:
    rig = Rig()
    rig.produce(*good(1), truncate(50, "crm"), *good(2))
    rig.run()
    assert ids(rig) == [1, 2]
    assert dead_letters(rig) == [("orders", 1, "route", "table-taken")]


def test_columns_that_a_table_cannot_have_cost_no_neighbour() -> None:
    """A column of the name that one of ours is to have, and a type that no function takes."""
    shape = ShapeSettings(
        computed=(parse_computed("day", "date_format(placed, yyyy-MM-dd, 3)"),),
        metadata=("offset",),
    )
    rig = Rig(settings={"orders": TableSettings(shape=shape)})
    placed = 1_750_000_000_000
    rig.produce(
        *good(1, 2, placed=placed),
        *good(3, placed=placed, offset=9),
        *good(4),
        *good(5, placed={"a": 1}),
        *good(6),
    )
    result = rig.run()
    assert rig.rows("orders", "id", "day", "offset") == [
        {"id": 1, "day": "2025-06-15", "offset": 0},
        {"id": 2, "day": "2025-06-15", "offset": 1},
        {"id": 4, "day": None, "offset": 3},
        {"id": 6, "day": None, "offset": 5},
    ]
    assert [dead_letter[1:] for dead_letter in dead_letters(rig)] == [
        (2, "schema", "impossible-columns"),
        (4, "schema", "impossible-columns"),
    ]
    assert result.counts.rejected.total() == 2
    covered = {"lake.orders": {"covered": {"src": {"orders": {0: 6}}}}}
    wanted = [OffsetRange("src", "orders", 0, 0, 6)]
    again = rig.round(rig.context(table_changes=covered), wanted).counts
    assert again.skipped == {("lake.orders", "covered"): 6}, "judged again, and counted once"
    assert again.rejected.total() == 2


def test_a_table_that_cannot_be_created_is_left_out() -> None:
    rig = Rig(defaults=TableSettings(partition_keys=("day",), primary_keys=("id", "day")))
    rig.produce(*good(1, day=1), record(Change({"id": 1}, table="items")), *good(2, day=2))
    rig.run()
    assert ids(rig) == [1, 2]
    assert dead_letters(rig) == [("orders", 1, "schema", "impossible-table")]
    assert "lake.items" not in rig.tables
    rig.produce(record(Change({"id": 1, "day": 1}, table="items")))
    rig.run()
    assert ids(rig, "items") == [1], "it is created once a record has what it needs"


def test_more_tables_than_the_limit_are_left_out() -> None:
    rig = Rig(routing=RoutingConfig(limits=TableLimits(in_all=2)))
    rig.produce(*(record(Change({"id": 1}, table=f"t{n}")) for n in range(4)))
    rig.run()
    assert {name for name in rig.tables if name != DEAD_LETTERS} == {"lake.t0", "lake.t1"}
    assert [dead_letter[1:] for dead_letter in dead_letters(rig)] == [
        (2, "route", "too-many-tables"),
        (3, "route", "too-many-tables"),
    ]
    rig.produce(*(record(Change({"id": 2}, table=f"t{n}")) for n in range(4)))
    rig.run()
    assert ids(rig, "t0") == [1, 2]
    assert len(dead_letters(rig)) == 4


def test_tables_of_another_day_do_not_count_for_this_one() -> None:
    rig = Rig(routing=RoutingConfig(limits=TableLimits(per_day=1)))
    rig.produce(record(Change({"id": 1}, table="old")))
    rig.run()
    day = 86_400_000
    old = rig.tables["lake.old"]
    rig.tables["lake.old"] = replace(old, schema=replace(old.schema, time_millis=1 - day - 1))
    rig.produce(*(record(Change({"id": 1}, table=f"t{n}")) for n in range(2)))
    rig.run()
    assert {"lake.old", "lake.t0"} == {name for name in rig.tables if name != DEAD_LETTERS}
    [dead_letter] = rig.rows("ingestd_dead_letters", "message")
    assert "routing.max-new-tables-per-day, 1" in dead_letter["message"]


def test_names_with_capitals_where_the_catalog_folds_them() -> None:
    rig = Rig(routing=RoutingConfig(case_sensitive=False))
    rig.produce(*good(1), record(Change({"id": 2}, table="Items")), *good(3, Evil=1), *good(4))
    rig.run()
    assert ids(rig) == [1, 4]
    assert dead_letters(rig) == [
        ("orders", 1, "route", "invalid-table-name"),
        ("orders", 2, "schema", "invalid-column-name"),
    ]


@pytest.mark.parametrize("action", ["fail", "drop"])
def test_the_policy_of_the_stage_decides(action: Any) -> None:
    policy = ErrorPolicy({"route": action})
    rig = Rig(overrides={"error_policy": policy})
    rig.produce(*good(1), record(Change({"id": 2}, table="ingestd_dead_letters")))
    if action == "fail":
        with pytest.raises(PolicyStopError, match=r"offset 1 \(route, reserved-table\)"):
            rig.run()
        return
    rig.run()
    assert ids(rig) == [1]
    assert dead_letters(rig) == []


def test_a_change_of_a_schema_stops_where_that_is_asked_for() -> None:
    rig = Rig(defaults=TableSettings(evolution=EvolutionPolicy(on_refused="fail")))
    rig.produce(*good(1, n=1))
    rig.run()
    rig.produce(record(Change({"id": "x", "n": 1}, UPDATE_AFTER)))
    with pytest.raises(SchemaConflictError, match="id"):
        rig.run()


def test_a_key_that_does_not_fit_is_put_aside() -> None:
    rig = Rig()
    rig.produce(*good(1, 2))
    rig.run()
    rig.produce(*good(3))
    rig.produce(record(Change({"id": "x"}, UPDATE_AFTER)), partition=1)
    rig.run()
    assert ids(rig) == [1, 2, 3]
    assert len(dead_letters(rig)) == 1


def test_rules_may_send_rows_to_a_table_that_is_not_theirs_only_by_name() -> None:
    rule = RouteRule({"schema": "crm"}, "orders")
    rig = Rig(routing=RoutingConfig(rules=(rule,)))
    rig.produce(*good(1, 2))
    rig.run()
    rig.produce(record(Change({"id": 7}, schema="crm", table="other")))
    rig.run()
    assert ids(rig) == [1, 2]
    assert dead_letters(rig) == [("orders", 2, "route", "table-taken")]
