"""Planning of batches against a cluster made of a dictionary."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from ingestd.errors import LogChangedError, SourceError
from ingestd.kafka.offset_ranges import BatchOffsets, Offsets
from ingestd.kafka.planner import Planner
from ingestd.kafka.properties import KafkaSource

SERVERS = {"bootstrap.servers": "a:9092"}


@dataclass
class FakeCluster:
    """First and end offset by topic and partition; the leader epoch, and where it diverges."""

    logs: dict[str, dict[int, tuple[int, int]]]
    epoch: int = 0
    diverges: dict[tuple[str, int], int] = field(default_factory=dict)
    source: KafkaSource | None = None
    asked: list[object] = field(default_factory=list)

    def connect(self, source: KafkaSource) -> "FakeCluster":
        return replace(self, source=source)

    def list_topic_partitions(self) -> Mapping[str, tuple[int, ...]]:
        assert self.source is not None
        return {topic: tuple(self.logs[topic]) for topic in self.source.selected(self.logs)}

    def beginning_offsets(
        self, partitions: Mapping[str, tuple[int, ...]]
    ) -> Mapping[str, Mapping[int, int]]:
        self.asked.append("beginning")
        return {t: {one: self.logs[t][one][0] for one in ones} for t, ones in partitions.items()}

    def end_offsets(
        self, partitions: Mapping[str, tuple[int, ...]]
    ) -> Mapping[str, Mapping[int, int]]:
        return {t: {one: self.logs[t][one][1] for one in ones} for t, ones in partitions.items()}

    def leader_epochs(
        self, ends: Mapping[str, Mapping[int, int]]
    ) -> Mapping[str, Mapping[int, int]]:
        return {topic: dict.fromkeys(ones, self.epoch) for topic, ones in ends.items()}

    def divergences(
        self, positions: Mapping[tuple[str, int], tuple[int, int]]
    ) -> Mapping[tuple[str, int], int]:
        self.asked.append(dict(positions))
        return {at: self.diverges[at] for at in positions if at in self.diverges}


def planner(
    cluster: FakeCluster,
    *topics: str,
    pattern: str | None = None,
    limit: int | None = None,
    epochs: Offsets | None = None,
    covered: Offsets | None = None,
) -> Planner:
    source = KafkaSource("s", topics, pattern, (), SERVERS)
    limits = {} if limit is None else {"s": limit}
    return Planner({"s": source}, limits, epochs or {}, covered or {}, cluster.connect)


def plan(one: Planner, reached: Offsets | None = None, *, bounded: bool = True) -> BatchOffsets:
    batch = one.next_batch(reached or {}, bounded=bounded)
    assert batch is not None
    return batch


def at(**topics: dict[int, int]) -> Offsets:
    return {"s": topics}


def test_what_nobody_has_read_starts_at_the_beginning_of_the_log() -> None:
    batch = plan(planner(FakeCluster({"t": {0: (3, 9), 1: (0, 0)}}), "t"))
    zero = at(t={0: 0, 1: 0})
    assert batch == BatchOffsets(at(t={0: 3, 1: 0}), at(t={0: 9, 1: 0}), zero)


def test_nothing_new_is_no_batch_and_asks_for_no_beginning() -> None:
    cluster = FakeCluster({"t": {0: (3, 9)}})
    assert planner(cluster, "t").next_batch(at(t={0: 9}), bounded=True) is None
    assert plan(planner(cluster, "t"), at(t={0: 8})).until == at(t={0: 9})


def test_new_topics_and_partitions_join_from_their_beginning() -> None:
    cluster = FakeCluster({"t1": {0: (0, 5), 1: (2, 4)}, "t2": {0: (1, 3)}, "other": {0: (0, 1)}})
    batch = plan(planner(cluster, pattern=r"t\d"), at(t1={0: 5}))
    assert batch.start == at(t1={0: 5, 1: 2}, t2={0: 1})
    assert batch.until == at(t1={0: 5, 1: 4}, t2={0: 3})


def test_the_limit_of_a_source_bounds_a_batch_unless_spark_wants_all() -> None:
    one = planner(FakeCluster({"t": {0: (0, 100)}}), "t", limit=30)
    assert one.limit == 30
    assert plan(one).until == at(t={0: 30})
    assert plan(one, bounded=False).until == at(t={0: 100})


def test_after_freezing_nothing_newer_is_planned() -> None:
    cluster = FakeCluster({"t": {0: (0, 10)}})
    one = planner(cluster, "t")
    one.freeze()
    cluster.logs["t"] = {0: (0, 20), 1: (0, 5)}
    assert plan(one).until == at(t={0: 10})
    assert one.next_batch(at(t={0: 10}), bounded=True) is None


def test_topics_no_longer_selected_are_let_go() -> None:
    cluster = FakeCluster({"t": {0: (0, 10)}})
    batch = plan(planner(cluster, "t"), at(t={0: 10}, old={0: 5}))
    assert batch.start == batch.until == at(t={0: 10})


@pytest.mark.parametrize(
    ("log", "reached", "text"),
    [
        ({0: (50, 90)}, 10, r"t/0 continues at 10, its log has 50 to 90"),
        ({0: (50, 50)}, 10, r"t/0 continues at 10, its log has 50 to 50"),
        ({0: (0, 5)}, 10, r"t/0 continues at 10, its log has 0 to 5"),
        ({1: (0, 5)}, 10, r"partitions \[0\] of topic t, read up to \[10\], no longer exist"),
    ],
)
def test_a_log_without_what_was_reached_ends_the_query(
    log: dict[int, tuple[int, int]], reached: int, text: str
) -> None:
    with pytest.raises(LogChangedError, match=text):
        planner(FakeCluster({"t": log}), "t").next_batch(at(t={0: reached}), bounded=True)


def test_a_deleted_topic_of_a_pattern_ends_the_query() -> None:
    cluster = FakeCluster({"t1": {0: (0, 1)}})
    with pytest.raises(LogChangedError, match=r"topic t2.*no longer exist"):
        planner(cluster, pattern=r"t\d").next_batch(at(t1={0: 1}, t2={0: 4}), bounded=True)


def test_a_new_leader_is_asked_whether_it_has_what_was_read() -> None:
    cluster = FakeCluster({"t": {0: (0, 90), 1: (0, 90)}})
    one = planner(cluster, "t", epochs=at(t={0: 2, 1: 3}))
    cluster.epoch = 3
    batch = plan(one, at(t={0: 10, 1: 10}))
    assert cluster.asked.pop() == {("t", 0): (10, 2)}
    assert batch.epochs == at(t={0: 3, 1: 3})
    plan(one, at(t={0: 20, 1: 20}))
    assert all(not isinstance(asked, dict) for asked in cluster.asked), "once is enough"


def test_a_new_leader_with_another_log_ends_the_query() -> None:
    cluster = FakeCluster({"t": {0: (0, 90)}}, epoch=1, diverges={("t", 0): 7})
    with pytest.raises(LogChangedError, match=r"t/0 was read up to 10.*other records from 7 on"):
        planner(cluster, "t", epochs=at(t={0: 0})).next_batch(at(t={0: 10}), bounded=True)


def test_a_new_leader_that_lacks_what_some_table_covers_ends_a_reading_from_before() -> None:
    cluster = FakeCluster({"t": {0: (0, 90)}}, epoch=1)
    reached = at(t={0: 4})
    one = planner(cluster, "t", epochs=at(t={0: 0}), covered=at(t={0: 10}))
    one.next_batch(reached, bounded=True)
    assert {("t", 0): (10, 0)} in cluster.asked


def test_explicit_topics_of_which_none_exists_are_an_error_and_patterns_wait() -> None:
    cluster = FakeCluster({})
    with pytest.raises(SourceError, match="none of its topics exists at a:9092: t, u"):
        planner(cluster, "t", "u").next_batch({}, bounded=True)
    assert planner(cluster, pattern="t.*").next_batch({"s": {}}, bounded=True) is None
