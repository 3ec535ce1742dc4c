"""Planning of batches against a cluster made of a dictionary."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from ingestd.errors import OffsetLostError, SourceError
from ingestd.kafka.planner import Planner
from ingestd.kafka.properties import KafkaSource, OutOfRangePolicy, StartupMode
from ingestd.kafka.ranges import BatchOffsets, OffsetRange, Offsets

SERVERS = {"bootstrap.servers": "a:9092"}


@dataclass
class FakeCluster:
    """First and end offset by topic and partition."""

    logs: dict[str, dict[int, tuple[int, int]]]
    source: KafkaSource | None = None
    asked: list[str] = field(default_factory=list)

    def connect(self, source: KafkaSource) -> "FakeCluster":
        return FakeCluster(self.logs, source, self.asked)

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


def planner(
    cluster: FakeCluster,
    *topics: str,
    pattern: str | None = None,
    limit: int | None = None,
    seed: Offsets | None = None,
    mode: StartupMode = "earliest-offset",
    policy: OutOfRangePolicy = "fail",
) -> Planner:
    source = KafkaSource("s", topics, pattern, (), SERVERS, mode, policy)
    limits = {} if limit is None else {"s": limit}
    return Planner({"s": source}, limits, seed or {}, cluster.connect)


def plan(one: Planner, reached: Offsets | None = None, *, bounded: bool = True) -> BatchOffsets:
    batch = one.next_batch(reached or {}, bounded=bounded)
    assert batch is not None
    return batch


def at(**topics: dict[int, int]) -> Offsets:
    return {"s": topics}


def test_a_first_batch_starts_at_the_beginning_of_the_log() -> None:
    batch = plan(planner(FakeCluster({"t": {0: (3, 9), 1: (0, 0)}}), "t"))
    assert batch == BatchOffsets(at(t={0: 3, 1: 0}), at(t={0: 9, 1: 0}))


def test_a_start_at_the_latest_is_kept_by_a_batch_without_records() -> None:
    cluster = FakeCluster({"t": {0: (3, 9)}})
    one = planner(cluster, "t", mode="latest-offset")
    assert plan(one) == BatchOffsets(at(t={0: 9}), at(t={0: 9}))
    cluster.logs["t"][0] = (3, 12)
    assert plan(one, at(t={0: 9})) == BatchOffsets(at(t={0: 9}), at(t={0: 12}))


def test_nothing_new_is_no_batch_and_asks_for_no_beginning() -> None:
    cluster = FakeCluster({"t": {0: (3, 9)}})
    assert planner(cluster, "t").next_batch(at(t={0: 9}), bounded=True) is None
    assert plan(planner(cluster, "t"), at(t={0: 8})).until == at(t={0: 9})


def test_a_seed_is_where_an_unknown_partition_goes_on() -> None:
    cluster = FakeCluster({"t": {0: (0, 9), 1: (0, 5)}})
    one = planner(cluster, "t", seed=at(t={0: 4}), mode="latest-offset")
    assert plan(one).start == at(t={0: 4, 1: 0})
    assert plan(one, at(t={0: 6, 1: 1})).start == at(t={0: 6, 1: 1})


def test_new_topics_and_partitions_join_from_their_beginning() -> None:
    cluster = FakeCluster({"t1": {0: (0, 5), 1: (2, 4)}, "t2": {0: (1, 3)}, "other": {0: (0, 1)}})
    batch = plan(planner(cluster, pattern=r"t\d", mode="latest-offset"), at(t1={0: 5}))
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
    assert batch == BatchOffsets(at(t={0: 10}), at(t={0: 10}))


@pytest.mark.parametrize(
    ("log", "reached", "text"),
    [
        ({0: (50, 90)}, 10, r"t/0 goes on at 10, its log has 50 to 90"),
        ({0: (50, 50)}, 10, r"t/0 goes on at 10, its log has 50 to 50"),
        ({0: (0, 5)}, 10, r"t/0 goes on at 10, its log has 0 to 5"),
        ({1: (0, 5)}, 10, r"partitions \[0\] of topic t, read up to \[10\], exist no more"),
    ],
)
def test_lost_offsets_stop_the_pipeline(
    log: dict[int, tuple[int, int]], reached: int, text: str
) -> None:
    with pytest.raises(OffsetLostError, match=text):
        planner(FakeCluster({"t": log}), "t").next_batch(at(t={0: reached}), bounded=True)


def test_a_deleted_topic_of_a_pattern_stops_the_pipeline() -> None:
    cluster = FakeCluster({"t1": {0: (0, 1)}})
    with pytest.raises(OffsetLostError, match=r"topic t2.*sources\.s\.on-offset-out-of-range"):
        planner(cluster, pattern=r"t\d").next_batch(at(t1={0: 1}, t2={0: 4}), bounded=True)


@pytest.mark.parametrize(("policy", "start"), [("earliest", 50), ("latest", 90)])
def test_a_policy_says_where_to_go_on_after_a_loss(policy: OutOfRangePolicy, start: int) -> None:
    one = planner(FakeCluster({"t": {0: (50, 90)}}), "t", policy=policy)
    lost = (OffsetRange("s", "t", 0, 10, start),)
    assert plan(one, at(t={0: 10})) == BatchOffsets(at(t={0: start}), at(t={0: 90}), lost)


def test_explicit_topics_of_which_none_exists_are_an_error_and_patterns_wait() -> None:
    cluster = FakeCluster({})
    with pytest.raises(SourceError, match="none of its topics exists at a:9092: t, u"):
        planner(cluster, "t", "u").next_batch({}, bounded=True)
    assert planner(cluster, pattern="t.*").next_batch({"s": {}}, bounded=True) is None
