"""Bounds that lie ahead of the logs, without a broker."""

from collections.abc import Mapping
from typing import Any

import pytest

from ingestd.errors import ConfigError, LogChangedError
from ingestd.ingest.recovery.logs import TopicKeyCheck
from ingestd.ingest.settings.context import RoutingConfig, SourceSettings, TableSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.kafka.offset_ranges import OffsetRange, Offsets
from ingestd.kafka.properties import KafkaSource
from ingestd.spark import pipeline as module


class Ends:
    """Two logs, which end at 10."""

    def __init__(self, key: str = "id") -> None:
        self.key = key

    def list_topic_partitions(self) -> dict[str, tuple[int, ...]]:
        return {"t": (0, 1)}

    def end_offsets(self, partitions: Mapping[str, tuple[int, ...]]) -> dict[str, dict[int, int]]:
        return {topic: dict.fromkeys(ones, 10) for topic, ones in partitions.items()}

    def topic_keys(self, topics: list[str]) -> dict[str, str]:
        return {topic: self.key for topic in topics if topic == "t"}


def bounds_ahead(settings: PipelineSettings) -> Offsets:
    clusters: Any = {name: Ends() for name in settings.sources}
    return module.bounds_ahead(settings, clusters)


def pipeline(**sources: Mapping[str, Any]) -> PipelineSettings:
    return PipelineSettings(
        name="p",
        warehouse="/w",
        metastore="filesystem",
        database="db",
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


def test_a_topic_is_learnt_when_it_is_first_read_and_checked_before_each_commit() -> None:
    cluster: Any = Ends()
    topics = TopicKeyCheck({}, {"a": cluster})
    ranges = [OffsetRange("a", "t", 0, 0, 1)]
    topics.learn(ranges)
    assert topics.keys == {("a", "t"): "id"}
    topics.check(ranges)
    cluster.key = "another"
    with pytest.raises(LogChangedError, match="topic t was deleted and created again"):
        topics.check(ranges)
    with pytest.raises(LogChangedError, match="topic gone was deleted"):
        topics.learn([OffsetRange("a", "gone", 0, 0, 1)])
