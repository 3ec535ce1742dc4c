"""A configuration that would send source tables elsewhere is judged by what the tables hold."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.errors import ConfigError, SchemaConflictError
from ingestd.ingest.recovery.start import check_routing, recover
from ingestd.ingest.settings.context import (
    QualifiedSourceTable,
    RoutingConfig,
    SourceSettings,
)
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.routing_rules import RouteRule
from ingestd.ingest.tables.progress import TableProgress
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema import new_schema
from tests.support.registries import open_registry, pipeline_of
from tests.support.truth_rig import Topic, Truth

EU, US = (
    QualifiedSourceTable("shop", "eu", None, "item"),
    QualifiedSourceTable("shop", "us", None, "item"),
)
OWN = QualifiedSourceTable("shop", "us", None, "us_item")


def sources(**topics: str) -> dict[str, SourceSettings]:
    return {
        name: SourceSettings(KafkaSource(name, (), topic_pattern=pattern), "debezium-json")
        for name, pattern in topics.items()
    }


@pytest.fixture
def settings(tmp_path: Path) -> PipelineSettings:
    return pipeline_of(tmp_path, sources=sources(shop=".*"))


def fed(
    settings: PipelineSettings,
    table: str,
    topics: Iterable[str],
    *source_tables: QualifiedSourceTable,
) -> TableRegistry:
    """The pipeline's tables, one of which has rows of source tables out of topics."""
    registry = open_registry(settings)
    name = f"db.{table}"
    registry.ensure(name, new_schema([("id", DataType("INT"))], ("id",), (), {"bucket": "1"}, 1))
    add(registry, name, topics, *source_tables)
    return registry


def add(
    registry: TableRegistry, name: str, topics: Iterable[str], *source_tables: QualifiedSourceTable
) -> None:
    """Let a table have rows of source tables out of topics."""
    keys = {("shop", topic): f"id-{topic}" for topic in topics}
    registry.keys = {**registry.keys, **keys}
    progress = TableProgress(registry.progress, frozenset(keys.values()), frozenset(source_tables))
    registry.ensure(name, new_schema([("id", DataType("INT"))], ("id",), (), {"bucket": "1"}, 1))
    registry.tables[name] = replace(registry.tables[name], progress=progress)


def test_what_has_not_changed_is_fine(settings: PipelineSettings) -> None:
    check_routing(settings, fed(settings, "item", ["eu.item"], EU))


def test_shards_that_may_meet_no_more(settings: PipelineSettings) -> None:
    registry = fed(settings, "item", ["eu.item", "us.item"], EU, US)
    with pytest.raises(SchemaConflictError, match="merge-shards"):
        check_routing(settings, registry)
    check_routing(replace(settings, routing=RoutingConfig(merge_shards=True)), registry)


def test_a_route_that_leads_into_another_table(settings: PipelineSettings) -> None:
    registry = fed(settings, "item", ["eu.item"], EU)
    add(registry, "db.us_item", ["us.item"], OWN)
    check_routing(settings, registry)
    mixing = RoutingConfig(table_mapping={"eu.item": "us_item"})
    with pytest.raises(SchemaConflictError, match=r"db\.us_item.*shop:eu\.item"):
        check_routing(replace(settings, routing=mixing), registry)
    apart = RouteRule({"database": "eu"}, "eu_item")
    check_routing(replace(settings, routing=RoutingConfig(rules=(apart,))), registry)


def test_a_topic_that_is_read_no_more_claims_nothing(settings: PipelineSettings) -> None:
    registry = fed(settings, "item", ["eu.item"], EU)
    add(registry, "db.us_item", ["us.item"], OWN)
    mixing = RoutingConfig(table_mapping={"eu.item": "us_item"})
    check_routing(replace(settings, routing=mixing, sources=sources(shop="us.*")), registry)


def test_the_dead_letters_get_no_table_that_has_rows(settings: PipelineSettings) -> None:
    registry = fed(settings, "item", ["eu.item"], EU)
    to_letters = RoutingConfig(table_mapping={"eu.item": settings.dead_letter_table})
    with pytest.raises(ConfigError, match=r"errors\.dead-letter-table.*shop:eu\.item"):
        check_routing(replace(settings, routing=to_letters), registry)


def test_source_tables_are_matched_to_their_topic_if_there_is_only_one(
    settings: PipelineSettings,
) -> None:
    routing = RoutingConfig(
        table_mapping={"eu.item": settings.dead_letter_table}, merge_shards=True
    )
    routed = replace(settings, routing=routing)
    with pytest.raises(ConfigError, match=r"shop:eu\.item"):
        check_routing(routed, fed(settings, "item", ["all"], EU, US))


def test_source_tables_of_several_topics_are_not_matched_to_each_of_them(
    settings: PipelineSettings,
) -> None:
    by_topic = RouteRule({"topic": "left"}, settings.dead_letter_table)
    routed = replace(settings, routing=RoutingConfig(rules=(by_topic,), merge_shards=True))
    check_routing(routed, fed(settings, "item", ["left", "right"], EU, US))


def test_source_tables_that_no_topic_routes_to_their_table_are_named(
    settings: PipelineSettings, caplog: pytest.LogCaptureFixture
) -> None:
    """Also if it is unknown which of the topics contains which of them."""
    routing = RoutingConfig(excluding_tables="us.*", merge_shards=True)
    check_routing(replace(settings, routing=routing), fed(settings, "item", ["a", "b"], EU, US))
    (problem,) = [str(record.__dict__["ctx"]) for record in caplog.records]
    assert "table db.item gets no more rows of shop:us.item" in problem


def test_dead_letters_of_another_pipeline_need_no_other_table(tmp_path: Path) -> None:
    """Both read one topic into tables of their own, and one has rejected a record."""
    ours = Truth(tmp_path, name="ours", dead_letter_table="our_letters")
    ours.kafka.topics["shop.orders"] = Topic("one")
    ours.kafka.produce("shop.orders", 1, -1)
    ours.live()
    assert len(ours.dead_letters()) == 1
    other = replace(
        ours, name="other", dead_letter_table="others", mapping={"shop.orders": "copies"}
    )
    other.live()
    ours.live()
    assert (other.ids("copies"), len(other.dead_letters())) == ([1], 1)


def test_source_tables_of_another_pipeline_need_no_route(tmp_path: Path) -> None:
    other = Truth(tmp_path, name="other")
    other.kafka.add_topics("shop.orders", "copy.orders", numbers=range(3))
    other.live()
    ours = Truth(tmp_path, other.kafka, name="ours", pattern=r"shop\.orders")
    routing = RoutingConfig(including_tables=r"shop\.orders", unmatched="fail", table_prefix="o_")
    settings = replace(ours.settings, routing=routing)
    clusters = {name: ours.kafka.of(source.kafka) for name, source in settings.sources.items()}
    registry = TableRegistry(settings, ours.catalog, ours.io, ours.now_ms)
    registry.open()
    start = recover(registry, settings, clusters)  # type: ignore[arg-type]
    assert start.offsets == {"src": {"shop.orders": {0: 0}}}
    shared = replace(settings, routing=RoutingConfig(table_mapping={"shop.orders": "orders"}))
    with pytest.raises(SchemaConflictError, match=r"route one of the two to other tables"):
        recover(registry, shared, clusters)  # type: ignore[arg-type]
