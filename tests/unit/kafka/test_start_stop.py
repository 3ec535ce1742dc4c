"""Where sources begin and end, by their modes, with a cluster made of dictionaries."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from ingestd.errors import ConfigError, OffsetLostError
from ingestd.kafka.planner import Planner
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import BatchOffsets, OffsetRange, Offsets, TopicOffsets
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

    def group_offsets(self, group: str, partitions: Partitions) -> TopicOffsets:
        assert group == "g"
        return {topic: self.group.get(topic, {}) for topic in partitions}


LOGS = {"t": {0: (10, 90), 1: (0, 50), 2: (5, 5)}}
ENDS = {"t": {0: 90, 1: 50, 2: 5}}


def source(**fields: Any) -> KafkaSource:
    return KafkaSource("s", ("t",), properties=BROKERS, **fields)


def planner(cluster: FakeCluster, seed: Offsets | None = None, **fields: Any) -> Planner:
    return Planner({"s": source(**fields)}, {}, seed or {}, lambda _: cluster)


def plan(one: Planner, reached: Offsets | None = None) -> BatchOffsets:
    batch = one.next_batch(reached or {}, bounded=True)
    assert batch is not None
    return batch


def test_a_time_is_the_first_record_that_is_not_older_or_the_end() -> None:
    cluster = FakeCluster(LOGS, at={7: {"t": {0: 44, 1: 60}}})
    found = first_positions(source(startup_mode="timestamp", startup_timestamp=7), cluster, ENDS)
    assert found == {"t": {0: 44, 1: 50, 2: 5}}, "60 is not stable yet"


def test_offsets_left_out_begin_where_the_log_begins() -> None:
    fields = {"startup_mode": "specific-offsets", "startup_offsets": {"t": {0: 42}}}
    assert plan(planner(FakeCluster(LOGS), **fields)).start == {"s": {"t": {0: 42, 1: 0, 2: 5}}}


@pytest.mark.parametrize("key", ["startup", "bounded"])
def test_offsets_of_what_does_not_exist_are_refused(key: str) -> None:
    fields = {f"{key}_mode": "specific-offsets", f"{key}_offsets": {"t": {7: 1}, "u": {0: 1}}}
    with pytest.raises(ConfigError, match=rf"scan\.{key}\.specific-offsets names t/7, u/0"):
        planner(FakeCluster(LOGS), **fields).next_batch({}, bounded=True)


def test_an_offset_that_the_log_does_not_have_goes_by_the_policy() -> None:
    fields: dict[str, Any] = {
        "startup_mode": "specific-offsets",
        "startup_offsets": {"t": {0: 3}},
    }
    with pytest.raises(OffsetLostError, match="t/0 goes on at 3, its log has 10 to 90"):
        planner(FakeCluster(LOGS), **fields).next_batch({}, bounded=True)
    batch = plan(planner(FakeCluster(LOGS), **fields, on_offset_out_of_range="earliest"))
    assert batch.start["s"]["t"][0] == 10
    assert batch.lost == (OffsetRange("s", "t", 0, 3, 10),)


def test_a_group_without_an_offset_of_a_log_with_records_goes_by_the_policy() -> None:
    cluster = FakeCluster(LOGS, group={"t": {0: 20}})
    fields: dict[str, Any] = {"startup_mode": "group-offsets"}
    with pytest.raises(OffsetLostError, match=r"group g has no offset of t/1;"):
        planner(cluster, **fields).next_batch({}, bounded=True)
    earliest = plan(planner(cluster, **fields, on_offset_out_of_range="earliest"))
    assert earliest.start == {"s": {"t": {0: 20, 1: 0, 2: 5}}}
    latest = plan(planner(cluster, **fields, on_offset_out_of_range="latest"))
    assert latest.start == {"s": {"t": {0: 20, 1: 50, 2: 5}}}


def test_modes_do_not_speak_of_what_tables_or_checkpoints_know() -> None:
    fields: dict[str, Any] = {"startup_mode": "specific-offsets", "startup_offsets": {"t": {1: 9}}}
    seeded = plan(planner(FakeCluster(LOGS), {"s": {"t": {0: 33}}}, **fields))
    assert seeded.start == {"s": {"t": {0: 33, 1: 0, 2: 5}}}
    reached = plan(planner(FakeCluster(LOGS), **fields), {"s": {"t": {0: 33, 1: 40, 2: 5}}})
    assert reached.start == {"s": {"t": {0: 33, 1: 40, 2: 5}}}


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


def test_a_bound_behind_what_was_reached_asks_for_nothing() -> None:
    fields: dict[str, Any] = {"bounded_mode": "specific-offsets", "bounded_offsets": {"t": {0: 15}}}
    reached = {"s": {"t": {0: 20, 1: 50, 2: 5}}}
    assert planner(FakeCluster(LOGS), **fields).next_batch(reached, bounded=True) is None


def test_a_batch_tells_what_was_lost_before_it_only_once() -> None:
    one = planner(FakeCluster(LOGS), on_offset_out_of_range="latest")
    batch = plan(one, {"s": {"t": {0: 4, 1: 50, 2: 5}}})
    assert batch.lost == (OffsetRange("s", "t", 0, 4, 90),)
    assert batch.ranges() == []
    assert one.next_batch(batch.until, bounded=True) is None
