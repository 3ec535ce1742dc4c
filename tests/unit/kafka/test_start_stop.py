"""Where sources begin and end, by their modes, with a cluster made of dictionaries."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from ingestd.errors import ConfigError, OffsetLostError
from ingestd.kafka.offset_ranges import BatchOffsets, Offsets, TopicOffsets
from ingestd.kafka.planner import Planner
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.start_stop import first_positions, last_positions

Partitions = Mapping[str, tuple[int, ...]]
BROKERS = {"bootstrap.servers": "a:9092", "group.id": "g"}


@dataclass
class FakeCluster:
    """First and end offset by topic and partition; first offsets from some time on; a group."""

    logs: dict[str, dict[int, tuple[int, int]]]
    at: dict[int, dict[str, dict[int, int]]] = field(default_factory=dict)
    group: dict[str, dict[int, int]] = field(default_factory=dict)

    def list_topic_partitions(self) -> Partitions:
        return {topic: tuple(partitions) for topic, partitions in self.logs.items()}

    def beginning_offsets(self, partitions: Partitions) -> TopicOffsets:
        return {t: {one: self.logs[t][one][0] for one in ones} for t, ones in partitions.items()}

    def end_offsets(self, partitions: Partitions) -> TopicOffsets:
        return {t: {one: self.logs[t][one][1] for one in ones} for t, ones in partitions.items()}

    def offsets_at(self, partitions: Partitions, millis: int) -> TopicOffsets:
        return {topic: self.at[millis].get(topic, {}) for topic in partitions}

    def leader_epochs(self, ends: TopicOffsets) -> TopicOffsets:
        return {topic: dict.fromkeys(ones, 0) for topic, ones in ends.items()}

    def divergences(self, positions: object) -> Mapping[tuple[str, int], int]:
        return {}

    def group_offsets(self, group: str, partitions: Partitions) -> TopicOffsets:
        assert group == "g"
        return {topic: self.group.get(topic, {}) for topic in partitions}


LOGS = {"t": {0: (10, 90), 1: (0, 50), 2: (5, 5)}}
ENDS = {"t": {0: 90, 1: 50, 2: 5}}


def source(**fields: Any) -> KafkaSource:
    return KafkaSource("s", ("t",), properties=BROKERS, **fields)


def planner(cluster: FakeCluster, **fields: Any) -> Planner:
    return Planner({"s": source(**fields)}, {}, {}, {}, lambda _: cluster)


def plan(one: Planner, reached: Offsets | None = None) -> BatchOffsets:
    batch = one.next_batch(reached or {}, bounded=True)
    assert batch is not None
    return batch


def test_a_time_is_the_first_record_that_is_not_older_or_the_end() -> None:
    cluster = FakeCluster(LOGS, at={7: {"t": {0: 44, 1: 60}}})
    found = first_positions(source(startup_mode="timestamp", startup_timestamp=7), cluster, ENDS)
    assert found == {"t": {0: 44, 1: 50, 2: 5}}, "60 is not stable yet"


def test_offsets_that_are_given_are_those_and_no_others() -> None:
    given = source(startup_mode="specific-offsets", startup_offsets={"t": {0: 42}})
    assert first_positions(given, FakeCluster(LOGS), ENDS) == {"t": {0: 42}}


NOWHERE: dict[str, dict[int, int]] = {"t": {7: 1}, "u": {0: 1}}


def test_a_start_at_what_does_not_exist_is_refused() -> None:
    given = source(startup_mode="specific-offsets", startup_offsets=NOWHERE)
    with pytest.raises(ConfigError, match=r"scan\.startup\.specific-offsets names t/7, u/0"):
        first_positions(given, FakeCluster(LOGS), ENDS)


def test_an_end_at_what_does_not_exist_is_refused() -> None:
    given = source(bounded_mode="specific-offsets", bounded_offsets=NOWHERE)
    with pytest.raises(ConfigError, match=r"scan\.bounded\.specific-offsets names t/7, u/0"):
        last_positions(given, FakeCluster(LOGS), ENDS)


def test_a_group_without_an_offset_of_a_log_with_records_goes_by_the_policy() -> None:
    cluster = FakeCluster(LOGS, group={"t": {0: 20}})
    fields: dict[str, Any] = {"startup_mode": "group-offsets"}
    with pytest.raises(OffsetLostError, match=r"group g has no offset in the log of t/1;"):
        first_positions(source(**fields), cluster, ENDS)
    earliest = source(**fields, on_offset_out_of_range="earliest")
    assert first_positions(earliest, cluster, ENDS) == {"t": {0: 20}}
    latest = source(**fields, on_offset_out_of_range="latest")
    assert first_positions(latest, cluster, ENDS) == {"t": {0: 20, 1: 50, 2: 5}}


def test_a_group_with_an_offset_beyond_the_end_of_a_log_goes_by_the_policy() -> None:
    """The topic was created again, or cut, since the group read it: its records are all unread."""
    cluster = FakeCluster(LOGS, group={"t": {0: 20, 1: 51, 2: 6}})
    fields: dict[str, Any] = {"startup_mode": "group-offsets"}
    with pytest.raises(OffsetLostError, match=r"log of t/1 \(51 is beyond its end 50\);"):
        first_positions(source(**fields), cluster, ENDS)
    earliest = source(**fields, on_offset_out_of_range="earliest")
    assert first_positions(earliest, cluster, ENDS) == {"t": {0: 20}}
    latest = source(**fields, on_offset_out_of_range="latest")
    assert first_positions(latest, cluster, ENDS) == {"t": {0: 20, 1: 50, 2: 5}}


def test_a_start_beyond_the_end_of_a_log_is_refused() -> None:
    given = source(startup_mode="specific-offsets", startup_offsets={"t": {0: 91, 1: 50}})
    with pytest.raises(ConfigError, match=r"names t/0 at 91, and its log ends at 90$"):
        first_positions(given, FakeCluster(LOGS), ENDS)


def test_an_unbounded_source_has_no_end() -> None:
    assert last_positions(source(), FakeCluster(LOGS), ENDS) is None


def test_the_latest_offsets_are_those_of_the_first_batch() -> None:
    logs = {"t": {0: (0, 10)}}
    one = planner(FakeCluster(logs), bounded_mode="latest-offset")
    assert plan(one).until == {"s": {"t": {0: 10}}}
    logs["t"] = {0: (0, 30), 1: (0, 5)}
    later = plan(one, {"s": {"t": {0: 10}}})
    assert later.ranges() == [], "a partition that appears later is not of it"
    assert one.next_batch(later.until, bounded=True) is None


def test_a_bound_in_time_is_the_first_record_that_is_not_older() -> None:
    cluster = FakeCluster(LOGS, at={7: {"t": {0: 44}}})
    one = planner(cluster, bounded_mode="timestamp", bounded_timestamp=7)
    assert plan(one).until == {"s": {"t": {0: 44, 1: 50, 2: 5}}}


def test_a_bound_ahead_is_reached_as_records_come() -> None:
    logs = {"t": {0: (0, 10), 1: (0, 4)}}
    fields: dict[str, Any] = {"bounded_mode": "specific-offsets", "bounded_offsets": {"t": {0: 15}}}
    one = planner(FakeCluster(logs), **fields)
    first = plan(one).until
    assert first == {"s": {"t": {0: 10, 1: 4}}}
    logs["t"] = {0: (0, 30), 1: (0, 9)}
    assert plan(one, first).until == {"s": {"t": {0: 15, 1: 4}}}


def test_a_bound_before_the_reached_offset_requests_nothing() -> None:
    fields: dict[str, Any] = {"bounded_mode": "specific-offsets", "bounded_offsets": {"t": {0: 15}}}
    reached = {"s": {"t": {0: 20, 1: 50, 2: 5}}}
    assert planner(FakeCluster(LOGS), **fields).next_batch(reached, bounded=True) is None
