"""Bounds that lie ahead of the logs, without a broker."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from ingestd.errors import ConfigError
from ingestd.ingest.settings.context import RoutingConfig, SourceSettings, TableSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import OffsetRange
from ingestd.spark import recovery
from ingestd.spark.recovery import TopicIdentity, bounds_ahead


class Ends:
    """Two logs, which end at 10."""

    closed: ClassVar[list[str]] = []

    def __init__(self, source: KafkaSource) -> None:
        self.source = source

    def list_topic_partitions(self) -> dict[str, tuple[int, ...]]:
        return {"t": (0, 1)}

    def end_offsets(self, partitions: Mapping[str, tuple[int, ...]]) -> dict[str, dict[int, int]]:
        return {topic: dict.fromkeys(ones, 10) for topic, ones in partitions.items()}

    def topic_ids(self, topics: list[str]) -> dict[str, str]:
        return dict.fromkeys(topics, "id")

    def close(self) -> None:
        self.closed.append(self.source.name)


@pytest.fixture(autouse=True)
def logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "OffsetClient", Ends)
    monkeypatch.setattr(Ends, "closed", [])


def pipeline(**sources: Mapping[str, Any]) -> PipelineSettings:
    return PipelineSettings(
        name="p",
        warehouse="/w",
        metastore="filesystem",
        database="db",
        checkpoint="/c",
        sources={
            name: SourceSettings(KafkaSource(name, ("t",), **fields), "json")
            for name, fields in sources.items()
        },
        routing=RoutingConfig(),
        defaults=TableSettings(),
        tables={},
        max_offsets_per_trigger={},
    )


def at(**offsets: int) -> dict[str, Any]:
    places = {"t": {int(name[1:]): offset for name, offset in offsets.items()}}
    return {"bounded_mode": "specific-offsets", "bounded_offsets": places}


def test_bounds_that_are_in_the_logs_need_no_waiting() -> None:
    assert bounds_ahead(pipeline(a=at(p0=10, p1=3))) == {}
    assert bounds_ahead(pipeline(a={"bounded_mode": "latest-offset"})) == {}


def test_all_given_bounds_are_to_be_reached_if_one_lies_ahead() -> None:
    found = bounds_ahead(pipeline(a=at(p0=4, p1=11), b={"bounded_mode": "latest-offset"}))
    assert found == {"a": {"t": {0: 4, 1: 11}}, "b": {"t": {0: 10, 1: 10}}}


def test_what_is_not_named_ends_where_its_log_ends_now() -> None:
    assert bounds_ahead(pipeline(a=at(p0=12))) == {"a": {"t": {0: 12, 1: 10}}}


def test_bounds_of_what_does_not_exist_are_refused() -> None:
    with pytest.raises(ConfigError, match="names t/7"):
        bounds_ahead(pipeline(a=at(p7=12)))


def test_a_source_without_end_keeps_the_pipeline_running() -> None:
    assert bounds_ahead(pipeline(a=at(p0=99), b={})) == {}
    assert not pipeline(a=at(p0=99), b={}).is_bounded
    assert not pipeline().is_bounded


def test_clients_are_closed_when_all_is_answered() -> None:
    settings = pipeline(a=at(p0=11), b=at(p0=10))
    bounds_ahead(settings)
    assert Ends.closed == ["a", "b"]
    topics = TopicIdentity(settings.sources)
    known = topics([OffsetRange("a", "t", 0, 0, 1)])
    topics.close()
    assert Ends.closed == ["a", "b", "a"]
    assert topics([OffsetRange("a", "t", 0, 1, 2)]) == known, "asked anew, of the same topic"
