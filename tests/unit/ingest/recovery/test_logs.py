"""The state of all logs at a start."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingestd.errors import ConfigError, LogChangedError
from ingestd.ingest.recovery.logs import LogState, ask_logs
from ingestd.kafka.properties import KafkaSource
from tests.support.truth_rig import Kafka, Topic, Truth


class Restless(Kafka):
    """Brokers on which a topic is created again while its end is asked for."""

    def end_offsets(self, partitions: Mapping[str, tuple[int, ...]]) -> Any:
        ends = super().end_offsets(partitions)
        self.topics["shop.orders"] = Topic("another id")
        return ends


def test_offsets_are_of_the_topics_whose_keys_were_asked_for(tmp_path: Path) -> None:
    kafka = Kafka({"shop.orders": Topic("one id"), "shop.users": Topic("an id")})
    kafka.produce("shop.orders", 1, 2)
    clusters: Any = {"src": kafka}
    logs = ask_logs(clusters)
    assert logs.states["one id", 0] == LogState(0, 2, 0)
    assert logs.keys == {("src", "shop.orders"): "one id", ("src", "shop.users"): "an id"}

    restless = Restless(dict(kafka.topics))
    clusters = {"src": restless}
    with pytest.raises(LogChangedError, match=r"source src: topics shop\.orders were deleted or"):
        ask_logs(clusters)
    truth = Truth(tmp_path, Restless(dict(kafka.topics)))
    with pytest.raises(LogChangedError):
        truth.live()
    truth.kafka = Kafka(truth.kafka.topics)  # the next start finds it settled
    truth.live()


def test_a_topic_of_two_sources_is_taken_out_of_one_as_the_refusal_says() -> None:
    kafka = Kafka({"shop.orders": Topic("one id"), "shop.users": Topic("an id")})
    listed = KafkaSource("listed", ("shop.orders", "shop.users"))
    matched = KafkaSource("matched", (), topic_pattern=r"shop\.users")
    clusters: Any = {"listed": kafka.of(listed), "matched": kafka.of(matched)}
    with pytest.raises(ConfigError, match="remove it from the 'topics' of one of them, or name it"):
        ask_logs(clusters)
    for ours, theirs in (
        (replace(listed, topics=("shop.orders",)), matched),
        (listed, replace(matched, topic_exclude=("shop.users",))),
    ):
        clusters = {"listed": kafka.of(ours), "matched": kafka.of(theirs)}
        assert len(ask_logs(clusters).keys) == 2
