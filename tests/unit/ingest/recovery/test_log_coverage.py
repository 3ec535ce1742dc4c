"""What brokers are asked about positions, and what their answers mean."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from ingestd.ingest.recovery.log_coverage import LogComparison, compare_logs, find_losses
from ingestd.ingest.recovery.logs import LogPartition, Logs, LogState
from ingestd.ingest.settings.context import RoutingConfig
from ingestd.ingest.tables.log_positions import Position, TopicName, fingerprint_at
from ingestd.ingest.tables.progress import PipelineProgress
from ingestd.ingest.tables.registry_opening import OpenedTables
from ingestd.kafka.properties import KafkaSource

KEY, CHECKSUM = "id of t", 0xABCDEF12
At = tuple[str, int]


@dataclass
class Brokers:
    """Answers of one cluster by partition of its only topic, and what was asked."""

    diverging: Mapping[int, int] = field(default_factory=dict)
    checksums: Mapping[int, int] = field(default_factory=dict)
    epochs_asked: dict[At, tuple[int, int]] = field(default_factory=dict)
    records_asked: dict[At, int] = field(default_factory=dict)

    def divergences(self, positions: Mapping[At, tuple[int, int]]) -> dict[At, int]:
        self.epochs_asked.update(positions)
        return {at: self.diverging[at[1]] for at in positions if at[1] in self.diverging}

    def fingerprints(self, offsets: Mapping[At, int]) -> dict[At, int]:
        self.records_asked.update(offsets)
        return {at: self.checksums[at[1]] for at in offsets if at[1] in self.checksums}


def compare(brokers: Brokers, *positions: Position, **log: int) -> LogComparison:
    """The comparison of logs from 0 to 20 of epoch 3 with positions, by partition."""
    state = LogState(**{"begin": 0, "end": 20, "epoch": 3, **log})
    places = dict(enumerate(positions))
    logs = Logs(
        {LogPartition(KEY, partition): state for partition in places},
        {("s", "t"): KEY},
        {KEY: TopicName("t", "s")},
    )
    opened = OpenedTables({}, PipelineProgress(end={KEY: places}), (), {})
    clusters: Any = {"s": brokers}
    return compare_logs(opened, clusters, logs)


def at(offset: int, record: int, epoch: int = 3) -> Position:
    return Position(offset, epoch, fingerprint_at(offset, record, CHECKSUM))


def test_the_last_record_is_looked_for_where_it_was() -> None:
    brokers = Brokers(checksums={0: CHECKSUM, 1: CHECKSUM, 2: CHECKSUM + 1})
    found = compare(brokers, at(10, 9), at(10, 7), at(10, 9), at(10, 9))
    assert brokers.records_asked == {("t", 0): 10, ("t", 1): 8, ("t", 2): 10, ("t", 3): 10}
    assert brokers.epochs_asked == {}
    assert found.replaced == {(KEY, 2)}
    assert found.confirmed == {(KEY, 0): "record", (KEY, 1): "record", (KEY, 3): "epoch"}
    assert found.divergences == {}


def test_what_says_nothing_is_not_asked_for() -> None:
    brokers = Brokers()
    expired = compare(brokers, at(10, 9), begin=10)
    beyond = compare(brokers, at(30, 29))
    unknown = compare(brokers, Position(10, 3), Position(10))
    assert brokers == Brokers()
    assert expired.confirmed == unknown.confirmed == {(KEY, 0): "epoch"}
    assert beyond.confirmed == {}


def test_other_epochs_are_asked_about_before_records() -> None:
    brokers = Brokers(diverging={1: 4, 2: -1}, checksums={0: CHECKSUM})
    moved = [at(10, 9, epoch) for epoch in (2, 2, 5)]
    found = compare(brokers, *moved)
    assert brokers.epochs_asked == {("t", 0): (10, 2), ("t", 1): (10, 2), ("t", 2): (10, 5)}
    assert brokers.records_asked == {("t", 0): 10}
    assert found == LogComparison({(KEY, 1): 4}, frozenset({(KEY, 2)}), {(KEY, 0): "record"})


@pytest.mark.parametrize(("deleted", "other"), [("first", "second"), ("second", "first")])
def test_a_deleted_topic_is_lost_for_its_source_beside_one_of_its_name_in_another_cluster(
    deleted: str, other: str
) -> None:
    settings: Any = SimpleNamespace(
        sources={
            name: SimpleNamespace(kafka=KafkaSource(name, ("t",))) for name in ("first", "second")
        },
        routing=RoutingConfig(),
    )
    topics = {"old": TopicName("t", deleted), "there": TopicName("t", other)}
    progress = PipelineProgress(end={"old": {0: Position(9)}}, topics=topics)
    opened = OpenedTables({}, progress, (), {})
    logs = Logs({}, {(other, "t"): "there"}, {"there": topics["there"]})
    [lost] = find_losses(opened, settings, logs, LogComparison())
    assert (lost.name.source, lost.reason) == (deleted, "topic-deleted")
