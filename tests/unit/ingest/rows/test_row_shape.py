"""Columns are renamed, added, computed and left out before rows meet their table."""

from decimal import Decimal
from typing import Any

import pytest

from ingestd.cdc.base import SourceTable
from ingestd.errors import ConfigError, SchemaConflictError
from ingestd.ingest.computed.computed_columns import parse_computed
from ingestd.ingest.rows.router import Route
from ingestd.ingest.rows.targets import TargetColumns, Targets, row_shape
from ingestd.ingest.settings.context import (
    BatchContext,
    QualifiedSourceTable,
    RoutingConfig,
    TableSettings,
)
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.settings.routing_rules import RouteRule
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.paimon.spec.data_types import parse_type
from tests.support.ingest_rig import DEAD_LETTERS, Rig
from tests.support.json_changes import DELETE, UNAVAILABLE, UPDATE_AFTER, Change, record

pytestmark = pytest.mark.usefixtures("json_changes")

SHARDS = RoutingConfig(
    rules=(
        RouteRule(
            {"topic": r"inv_(?P<shard>\d+)\..*", "table": "(.*)"},
            "all_$2",
            {"shard": "${shard}"},
            key_columns=("shard",),
            merge_shards=True,
        ),
    )
)


def computed(**texts: str) -> ShapeSettings:
    return ShapeSettings(tuple(parse_computed(*item) for item in texts.items()))


FAIL = EvolutionPolicy(on_refused="fail")


def rig_with(shape: ShapeSettings = ShapeSettings(), **settings: Any) -> Rig:  # noqa: B008
    return Rig(settings={"orders": TableSettings(shape=shape, **settings)})


def test_shards_meet_in_one_table_distinguished_by_a_column_of_the_key() -> None:
    rig = Rig(routing=SHARDS)
    for shard in ("1", "2"):
        rig.produce(
            record(Change({"id": 7, "n": int(shard)}, schema=f"s{shard}")),
            record(Change({"id": 8, "n": 0}, schema=f"s{shard}")),
            topic=f"inv_{shard}.orders",
        )
    rig.run()
    rig.produce(record(Change({"id": 7}, DELETE, schema="s1")), topic="inv_1.orders")
    rig.run()
    assert rig.tables["lake.all_orders"].schema.primary_keys == ("shard", "id")
    assert rig.rows("all_orders") == [
        {"id": 7, "n": 2, "shard": "2"},
        {"id": 8, "n": 0, "shard": "1"},
        {"id": 8, "n": 0, "shard": "2"},
    ]


def test_table_of_another_key_never_mixes_up_shards() -> None:
    rig = Rig()
    rig.produce(record(Change({"id": 7}, table="all_orders")))
    rig.run()
    rig.routing = SHARDS
    rig.produce(record(Change({"id": 7})), topic="inv_1.orders")
    with pytest.raises(SchemaConflictError, match=r"'shard' in the primary key.*\['id'\]"):
        rig.run()
    rig.settings = {"all_orders": TableSettings(primary_keys=("id",))}
    rig.run()
    assert rig.rows("all_orders") == [{"id": 7, "shard": "1"}]


def test_computed_columns_are_made_in_order_of_need_and_may_partition_the_table() -> None:
    shape = computed(year="substring(day, 0, 4)", day="date_format(at, yyyy-MM-dd)")
    keys = {"primary_keys": ("day", "id"), "partition_keys": ("day",)}
    rig = rig_with(shape, options={"bucket": "1"}, **keys)
    rig.produce(
        record(Change({"id": 1, "at": "2025-06-15 10:00:00"})),
        record(Change({"id": 2, "at": "2025-06-16T00:00:00Z"})),
    )
    rig.run()
    assert rig.tables["lake.orders"].schema.partition_keys == ("day",)
    assert rig.rows("orders", "id", "day", "year") == [
        {"id": 1, "day": "2025-06-15", "year": "2025"},
        {"id": 2, "day": "2025-06-16", "year": "2025"},
    ]


def test_value_that_a_function_does_not_take_costs_its_record_alone() -> None:
    rig = rig_with(computed(year="year(at)"))
    rig.produce(
        record(Change({"id": 1, "at": "2025-01-01"})),
        record(Change({"id": 2, "at": "someday"})),
        record(Change({"id": 3, "at": None})),
    )
    rig.run()
    assert rig.rows("orders", "id", "year") == [{"id": 1, "year": 2025}, {"id": 3, "year": None}]
    (dead_letter,) = rig.rows(DEAD_LETTERS.partition(".")[2])
    assert (dead_letter["offset"], dead_letter["stage"], dead_letter["reason"]) == (
        1,
        "cast",
        "computed",
    )
    assert "computed column 'year' = year(at)" in dead_letter["message"]


def test_sql_makes_columns_of_several_others_with_a_type_of_their_own() -> None:
    shape = computed(
        gross="cast(net as decimal(10, 2)) * 1.19",
        label="= concat(lower(name), ' ', n)",
        share="case when n > 0 then 100 div n else 0 end",
        day="date_format(cast(at as timestamp), 'yyyy-MM-dd')",
    )
    keys = {"primary_keys": ("day", "id"), "partition_keys": ("day",)}
    rig = rig_with(shape, options={"bucket": "1"}, **keys)
    at = "2025-06-15 10:00:00"
    rig.produce(
        record(Change({"id": 1, "net": "10.50", "name": "Ä", "n": 3, "at": at})),
        record(Change({"id": 2, "net": "x", "name": "B", "n": 0, "at": at})),
        record(Change({"id": 3, "net": None, "name": None, "n": 0, "at": at})),
    )
    rig.run()
    names = ("id", "gross", "label", "share", "day")
    assert rig.rows("orders", *names) == [
        {"id": 1, "gross": Decimal("12.4950"), "label": "ä 3", "share": 33, "day": "2025-06-15"},
        {"id": 3, "gross": None, "label": None, "share": 0, "day": "2025-06-15"},
    ]
    schema = rig.tables["lake.orders"].schema
    assert str(schema.field("gross").type) == "DECIMAL(14, 4)"
    assert schema.partition_keys == ("day",)
    (dead_letter,) = rig.rows(DEAD_LETTERS.partition(".")[2])
    assert (dead_letter["offset"], dead_letter["stage"], dead_letter["reason"]) == (
        1,
        "cast",
        "computed",
    )


def test_sql_over_types_that_it_does_not_take_is_refused_with_them() -> None:
    rig = rig_with(computed(x="n + name"), evolution=FAIL)
    rig.produce(record(Change({"id": 1, "n": 1, "name": "a"})))
    with pytest.raises(SchemaConflictError, match=r"'x' = n \+ name: at character 1.*name STRING"):
        rig.run()


def test_computed_column_of_a_value_left_out_keeps_its_older_value() -> None:
    rig = rig_with(computed(short="truncate(note, 2)"))
    rig.produce(record(Change({"id": 1, "note": "abc", "n": 1})))
    rig.run()
    rig.produce(record(Change({"id": 1, "note": UNAVAILABLE, "n": 2}, UPDATE_AFTER)))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "note": "abc", "n": 2, "short": "ab"}]


def test_expression_over_a_column_that_is_not_there_is_refused_with_both() -> None:
    rig = rig_with(computed(year="year(atx)"), evolution=FAIL)
    rig.produce(record(Change({"id": 1, "at": "2025-01-01"})))
    with pytest.raises(SchemaConflictError, match=r"'year' = year\(atx\).*'atx'.*not among"):
        rig.run()


def test_metadata_columns_say_where_a_record_is_from() -> None:
    names = ("topic", "partition", "offset", "timestamp", "key", "database_name", "schema_name",
             "table_name")  # fmt: skip
    rig = rig_with(ShapeSettings(metadata=names, metadata_prefix="m_"))
    rig.produce(record(Change({"id": 1})), record(Change({"id": 2})), partition=3)
    rig.run()
    found = rig.rows("orders")[1]
    assert found.pop("m_timestamp").timestamp() == 1.001
    assert found == {
        "id": 2,
        "m_topic": "orders",
        "m_partition": 3,
        "m_offset": 1,
        "m_key": b"k",
        "m_database_name": "db",
        "m_schema_name": "shop",
        "m_table_name": "orders",
    }


def test_added_column_never_takes_the_place_of_one_of_the_source_unasked() -> None:
    rig = rig_with(ShapeSettings(metadata=("offset",)), evolution=FAIL)
    rig.produce(record(Change({"id": 1, "offset": 5})))
    with pytest.raises(SchemaConflictError, match=r"'offset' is to be added.*prefix.*exclude"):
        rig.run()
    rig = rig_with(ShapeSettings(metadata=("offset",), exclude=("offset",)))
    rig.produce(record(Change({"id": 1, "offset": 5})))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "offset": 0}]


def test_columns_are_selected_and_what_is_left_out_can_still_be_computed_from() -> None:
    shape = ShapeSettings((parse_computed("domain", "substring(mail, 2)"),), exclude=("mail",))
    rig = rig_with(shape)
    rig.produce(record(Change({"id": 1, "mail": "a@b"})))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "domain": "b"}]
    rig = rig_with(ShapeSettings(include=("id", "n")))
    rig.produce(record(Change({"id": 1, "n": 2, "x": 3})))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "n": 2}]


def test_key_column_cannot_be_left_out() -> None:
    rig = rig_with(ShapeSettings(exclude=("id",)), evolution=FAIL)
    rig.produce(record(Change({"id": 1, "n": 2})))
    with pytest.raises(SchemaConflictError, match="'id' of the message key is excluded"):
        rig.run()


def test_both_names_of_a_renamed_column_are_one_column() -> None:
    rig = Rig()
    rig.produce(record(Change({"id": 1, "old": 5, "n": 1})))
    rig.run()
    rig.settings = {"orders": TableSettings(evolution=EvolutionPolicy(aliases={"new": "old"}))}
    rig.produce(
        record(Change({"id": 2, "old": 6, "n": 1})), record(Change({"id": 3, "new": 7, "n": 1}))
    )
    rig.run()
    schema = rig.tables["lake.orders"].schema
    assert [(field.id, field.name) for field in schema.fields] == [(0, "id"), (1, "new"), (2, "n")]
    assert schema.id == 1
    assert rig.rows("orders", "id", "new") == [
        {"id": 1, "new": 5},
        {"id": 2, "new": 6},
        {"id": 3, "new": 7},
    ]


def test_decoders_get_the_columns_as_the_source_has_them() -> None:
    policy = EvolutionPolicy(aliases={"new": "old"})
    shape = computed(day="truncate(at, 10)")
    rig = rig_with(shape, evolution=policy, primary_keys=("id", "day"), options={"bucket": "1"})
    change = Change({"id": 1, "at": "2025-06-15 10:00", "old": 2})
    rig.produce(record(change))
    rig.run()
    context: BatchContext = rig.context()
    columns = TargetColumns(context, Targets(context), "src", "orders")
    known = columns[SourceTable("db", "shop", "orders")]
    assert {name: str(data_type) for name, data_type in known.items()} == {
        "id": "BIGINT NOT NULL",
        "at": "STRING NOT NULL",
        "new": "BIGINT",
        "old": "BIGINT",
    }


def test_tables_that_ask_for_nothing_have_no_shape() -> None:
    assert row_shape(Route("lake.t"), TableSettings()) is None
    target = Targets(Rig().context()).of("t", QualifiedSourceTable("src", "db", None, "t"))
    assert target is not None
    assert target.shape is None


def test_columns_made_from_one_another_are_refused() -> None:
    with pytest.raises(ConfigError, match="depends on itself"):
        row_shape(Route("lake.t"), TableSettings(shape=computed(a="upper(b)", b="upper(a)")))


def test_declared_type_of_a_computed_column_is_its_type() -> None:
    rig = rig_with(
        computed(day="date_format(at, yyyy-MM-dd)"), column_types={"day": parse_type("DATE")}
    )
    rig.produce(record(Change({"id": 1, "at": "2025-06-15 10:00:00"})))
    rig.run()
    assert str(rig.tables["lake.orders"].schema.field("day").type) == "DATE"
    assert str(rig.rows("orders")[0]["day"]) == "2025-06-15"
