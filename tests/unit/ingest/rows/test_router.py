"""Names decide where rows go."""

import pytest

from ingestd.cdc.base import SourceTable
from ingestd.errors import ConfigError, PolicyStopError, SchemaConflictError
from ingestd.ingest.rows.router import Router, check_sharing
from ingestd.ingest.settings.context import QualifiedSourceTable, RoutingConfig
from ingestd.ingest.settings.routing_rules import RouteRule, sanitize

ORDERS = SourceTable("db", "shop", "orders")


def route(source_table: SourceTable, **routing: object) -> str | None:
    return Router(RoutingConfig(**routing), "lake").route("topic", source_table)  # type: ignore[arg-type]


def test_default_target_has_the_name_of_the_table() -> None:
    assert route(ORDERS) == "lake.orders"


def test_prefix_and_suffix_surround_the_name() -> None:
    assert route(ORDERS, table_prefix="ods_", table_suffix="_v1") == "lake.ods_orders_v1"


def test_longest_form_of_a_name_is_mapped_first_and_gets_no_prefix() -> None:
    mapping = {"orders": "a", "shop.orders": "b", "db.shop.orders": "c"}
    assert route(ORDERS, table_mapping=mapping, table_prefix="ods_") == "lake.c"
    assert route(SourceTable("x", "shop", "orders"), table_mapping=mapping) == "lake.b"
    assert route(SourceTable(None, None, "orders"), table_mapping=mapping) == "lake.a"


@pytest.mark.parametrize("pattern", ["orders", r"shop\.orders", r"db\.shop\..*"])
def test_patterns_match_any_form_of_the_name(pattern: str) -> None:
    assert route(ORDERS, including_tables=pattern) == "lake.orders"
    assert route(ORDERS, excluding_tables=pattern) is None
    assert route(SourceTable("db", "crm", "customers"), including_tables=pattern) is None


def test_patterns_must_match_the_whole_name() -> None:
    assert route(ORDERS, excluding_tables="order") == "lake.orders"


@pytest.mark.parametrize(
    "source_table",
    [
        SourceTable("db", None, "_orders_gho"),
        SourceTable("db", None, "_orders_ghc"),
        SourceTable("db", None, "_orders_new"),
        SourceTable("db", "dbz", "signal_json"),
        SourceTable("db", "public", "debezium_signal"),
    ],
)
def test_working_copies_and_signal_tables_are_left_out_unless_told_otherwise(
    source_table: SourceTable,
) -> None:
    assert route(source_table) is None
    assert route(source_table, excluding_tables="") is not None


def test_unmatched_table_may_stop_the_pipeline() -> None:
    with pytest.raises(PolicyStopError, match=r"topic topic.*db\.shop\.orders"):
        route(ORDERS, including_tables="x", unmatched="fail")


def test_a_table_that_is_excluded_by_name_does_not_stop_the_pipeline() -> None:
    """Since that is what the error proposes, and temporary tables are excluded by default."""
    assert (
        route(ORDERS, including_tables="x", excluding_tables=r".*orders", unmatched="fail") is None
    )
    assert route(ORDERS._replace(table="_orders_gho"), unmatched="fail") is None


def test_broken_pattern_is_named() -> None:
    with pytest.raises(ConfigError, match=r"routing\.including-tables"):
        Router(RoutingConfig(including_tables="("), "lake")


@pytest.mark.parametrize(
    ("name", "fit"),
    [("Result Set", "Result_Set"), ("a.b/c", "a_b_c"), ("näme-1", "näme-1"), ("..", "__")],
)
def test_names_become_fit_for_a_directory(name: str, fit: str) -> None:
    assert sanitize(name) == fit


def test_sharing_needs_a_mapping_of_every_source_table() -> None:
    source_tables = frozenset(
        {QualifiedSourceTable("s", "db", "eu", "t"), QualifiedSourceTable("s", "db", "us", "t")}
    )
    check_sharing(RoutingConfig(), "lake.t", frozenset(list(source_tables)[:1]))
    check_sharing(RoutingConfig(merge_shards=True), "lake.t", source_tables)
    check_sharing(RoutingConfig(table_mapping={"eu.t": "t", "us.t": "t"}), "lake.t", source_tables)
    with pytest.raises(SchemaConflictError, match=r"s:db\.us\.t a target"):
        check_sharing(RoutingConfig(table_mapping={"eu.t": "t"}), "lake.t", source_tables)


@pytest.mark.parametrize("unmatched", ["skip", "fail", "dead-letter"])
def test_a_name_that_no_table_can_have_is_no_route_and_a_complaint(unmatched: str) -> None:
    long = SourceTable("db", "shop", "t" * 300)
    router = Router(RoutingConfig(unmatched=unmatched), "lake")  # type: ignore[arg-type]
    assert router.route("topic", long) is None
    complaint = router.complaint("topic", long)
    assert complaint is not None
    assert complaint.reason == "invalid-table-name"
    assert "longer than 250 bytes" in complaint.message
    assert "routing.table-mapping" in complaint.message
    mapped = Router(RoutingConfig(table_mapping={"t" * 300: "t"}), "lake")
    assert mapped.route("topic", long) == "lake.t"


def test_an_excluded_table_of_a_name_that_no_table_can_have_is_left_out() -> None:
    long = SourceTable("db", "shop", "t" * 300)
    router = Router(RoutingConfig(excluding_tables="t+", unmatched="dead-letter"), "lake")
    assert router.route("topic", long) is None
    assert router.complaint("topic", long) is None


def test_the_name_of_a_target_is_set_where_the_complaint_says() -> None:
    long = SourceTable("db", "shop", "t" * 300)

    def target(to: str, mapping: dict[str, str]) -> tuple[str | None, str]:
        rule = RouteRule({"table": "t+"}, to=to)
        router = Router(RoutingConfig(rules=(rule,), table_mapping=mapping), "lake")
        complaint = router.complaint("topic", long)
        return router.route("topic", long), "" if complaint is None else complaint.message

    mapping = {"t" * 300: "t"}
    name, complaint = target("${table}", mapping)
    assert name is None
    assert "set another in 'to' of the first rule of routing.rules that matches it" in complaint
    assert target("short", mapping) == ("lake.short", "")
    assert "or in routing.table-mapping if none does" in complaint
    assert route(long, table_mapping=mapping) == "lake.t"


def test_a_branch_is_a_target_only_where_the_mapping_names_it() -> None:
    branch = "orders$branch_fix"
    assert route(ORDERS, table_mapping={"orders": branch}) == f"lake.{branch}"
    assert route(SourceTable("db", "shop", branch)) == "lake.orders_branch_fix"
    assert route(ORDERS, table_suffix="$branch_fix") is None


def test_a_source_table_that_stops_the_pipeline_has_no_possible_target() -> None:
    router = Router(RoutingConfig(including_tables="users", unmatched="fail"), "lake")
    assert router.possible_target("topic", ORDERS) is None
    assert router.possible_target("topic", SourceTable(None, None, "users")) == "lake.users"
