"""Rules match whole names, in order, and hand on what their patterns captured."""

import pytest

from ingestd.cdc.base import SourceTable
from ingestd.errors import ConfigError, SchemaConflictError
from ingestd.ingest.rows.router import Route, Router, check_sharing
from ingestd.ingest.settings.context import QualifiedSourceTable, RoutingConfig
from ingestd.ingest.settings.routing_rules import CompiledRule, RouteRule
from tests.support.ingest_rig import DEAD_LETTERS, Rig
from tests.support.json_changes import Change, record

ORDERS = SourceTable("inv_7", "public", "orders")


def routed(*rules: RouteRule, topic: str = "shop.inv_7.orders", **routing: object) -> Route | None:
    config = RoutingConfig(rules=rules, **routing)  # type: ignore[arg-type]
    return Router(config, "lake").route_of(topic, ORDERS)


def target(*rules: RouteRule, **routing: str) -> str:
    found = routed(*rules, **routing)
    assert found is not None
    return found.table


def test_groups_of_all_patterns_are_numbered_in_order_and_named() -> None:
    match = {"topic": r"(\w+)\..*", "database": r"inv_(?P<n>\d)", "table": "(.*)"}
    rule = RouteRule(match, "$1_${n}_$2_$3_${schema}", {"where": "${topic}/$$${n}"}, ("where",))
    found = routed(rule)
    assert found is not None
    assert found.table == "lake.shop_7_7_orders_public"
    assert found.columns == {"where": "shop.inv_7.orders/$7"}
    assert found.key_columns == ("where",)


def test_first_rule_that_matches_counts_and_gets_no_prefix() -> None:
    rules = (
        RouteRule({"database": "inv"}, "a"),
        RouteRule({"table": "orders", "schema": "public"}, "b"),
        RouteRule({"table": ".*"}, "c"),
    )
    assert target(*rules, table_prefix="ods_") == "lake.b"
    assert target(rules[0], table_prefix="ods_") == "lake.ods_orders"


def test_rule_without_a_target_leaves_the_naming_to_the_rest() -> None:
    rule = RouteRule({"database": "(.*)"}, add_columns={"shard": "$1"})
    found = routed(rule, table_prefix="ods_")
    assert found == Route("lake.ods_orders", {"shard": "inv_7"})


def test_tables_that_are_left_out_stay_out() -> None:
    assert routed(RouteRule({"table": ".*"}, "all"), excluding_tables="orders") is None


@pytest.mark.usefixtures("json_changes")
def test_tables_without_a_route_may_become_dead_letters_unless_they_are_excluded() -> None:
    routing = RoutingConfig(including_tables="orders|x", excluding_tables="junk",
                            unmatched="dead-letter")  # fmt: skip
    rig = Rig(routing=routing)
    tables = ("orders", "junk", "stray")
    rig.produce(*(record(Change({"id": 1}, table=table)) for table in tables))
    result = rig.run()
    (dead_letter,) = rig.rows(DEAD_LETTERS.partition(".")[2])
    assert (dead_letter["offset"], dead_letter["stage"], dead_letter["reason"]) == (
        2,
        "route",
        "no-route",
    )
    assert "no route for table db.shop.stray" in dead_letter["message"]
    assert result.counts.skipped["", "excluded"] == 1
    assert result.counts.rejected["route", "no-route"] == 1


def test_databases_have_patterns_prefixes_and_suffixes_of_their_own() -> None:
    assert routed(including_dbs="crm") is None
    assert routed(excluding_dbs=r"inv_\d") is None
    assert target(table_prefix="x_", table_suffix="_y", table_prefix_db={"inv_7": "i_"}) == (  # type: ignore[arg-type]
        "lake.i_orders_y"
    )
    assert target(table_suffix_db={"inv_7": "_i", "b": "_b"}) == "lake.orders_i"  # type: ignore[arg-type]


def test_one_source_table_may_go_apart_by_topic() -> None:
    rules = (RouteRule({"topic": r"(\w)\..*"}, "$1_${table}"),)
    router = Router(RoutingConfig(rules=rules), "lake")
    assert router.route("a.orders", ORDERS) == "lake.a_orders"
    assert router.route("b.orders", ORDERS) == "lake.b_orders"


def test_captured_names_become_fit_for_a_directory_but_not_for_columns() -> None:
    rule = RouteRule({"topic": "(.*)"}, "t_$1", {"topic_name": "$1"})
    found = routed(rule, topic="a.b/c")
    assert found == Route("lake.t_a_b_c", {"topic_name": "a.b/c"})


def test_groups_that_took_no_part_are_empty() -> None:
    rule = RouteRule({"table": "(orders)|(items)"}, "t_$1$2", {"c": "$2"})
    assert routed(rule) == Route("lake.t_orders", {"c": ""})


def test_a_name_that_comes_out_empty_is_one_for_the_dead_letters() -> None:
    rules = (RouteRule({"table": "orders(.*)"}, "$1"),)
    router = Router(RoutingConfig(rules=rules), "lake")
    assert router.route("t", ORDERS) is None
    complaint = router.complaint("t", ORDERS)
    assert complaint is not None
    assert complaint.reason == "invalid-table-name"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (RouteRule({}, "t"), "give patterns for some of topic"),
        (RouteRule({"table": "("}, "t"), r"match\.table: '\(' is not a regular expression"),
        (RouteRule({"table": ".*"}), "has no effect: set 'to'"),
        (RouteRule({"table": ".*"}, "$1"), r"'\$1' is not one of"),
        (RouteRule({"table": ".*"}, "a$"), r"'\$' is not one of.*\$\$ for a dollar"),
        (RouteRule({"table": ".*"}, "a.b"), "is not a valid table name"),
        (RouteRule({"table": ".*"}, ""), "is not a valid table name"),
        (
            RouteRule({"table": ".*"}, "t", {"c": "${x}"}),
            r"add-columns\.c: .*not one of the groups",
        ),
        (RouteRule({"table": ".*"}, "t", {"c": ""}, ("d",)), r"\['d'\] are not in add-columns"),
        (
            RouteRule({"table": "(?P<a>.)", "topic": "(?P<a>.)"}, "t"),
            "two groups have the name 'a'",
        ),
        (RouteRule({"table": "(?P<topic>.)"}, "t"), "two groups have the name 'topic'"),
    ],
)
def test_rules_that_cannot_be_are_refused_by_their_place(rule: RouteRule, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"routing\.rules\[3\].*{message}"):
        CompiledRule(rule, "routing.rules[3]")


def test_sources_meet_in_a_target_only_where_a_rule_lets_them() -> None:
    source_tables = frozenset(
        {
            QualifiedSourceTable("s", "inv_1", None, "t"),
            QualifiedSourceTable("s", "inv_2", None, "t"),
        }
    )
    match = {"topic": "any", "database": r"inv_\d"}
    merging = RoutingConfig(rules=(RouteRule(match, "all", merge_shards=True),))
    check_sharing(merging, "lake.all", source_tables)
    other = RouteRule({"database": "inv_1"}, "all", merge_shards=True)
    for rule in (RouteRule(match, "all"), other):
        with pytest.raises(SchemaConflictError, match=r"inv_1\.t, s:inv_2\.t.*set merge-shards"):
            check_sharing(RoutingConfig(rules=(rule,)), "lake.all", source_tables)
