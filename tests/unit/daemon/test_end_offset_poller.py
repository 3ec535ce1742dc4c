import logging
import time

import pytest

from ingestd.daemon.end_offset_poller import EndOffsetPoller
from ingestd.daemon.status import Status
from ingestd.errors import SourceError
from ingestd.kafka.offset_ranges import TopicOffsets
from ingestd.kafka.properties import KafkaSource


class Cluster:
    def __init__(self, ends: TopicOffsets) -> None:
        self.ends = ends
        self.answers = True

    def list_topic_partitions(self) -> dict[str, tuple[int, ...]]:
        if not self.answers:
            raise SourceError("no broker answers")
        return {topic: tuple(partitions) for topic, partitions in self.ends.items()}

    def end_offsets(self, partitions: object) -> TopicOffsets:
        return self.ends


SOURCES = {name: KafkaSource(name, ("t",)) for name in ("good", "bad")}


@pytest.fixture
def clusters() -> dict[str, Cluster]:
    return {name: Cluster({"t": {0: 9}}) for name in SOURCES}


@pytest.fixture
def status() -> Status:
    return Status("p", "1", SOURCES)


def monitor(clusters: dict[str, Cluster], status: Status, calls: list[str]) -> EndOffsetPoller:
    def connect(source: KafkaSource) -> Cluster:
        calls.append(source.name)
        return clusters[source.name]

    return EndOffsetPoller(SOURCES, status, connect)


def test_ends_of_all_sources_reach_the_status(clusters: dict[str, Cluster], status: Status) -> None:
    monitor(clusters, status, []).poll_all()
    sources = status.document()["sources"]
    assert {name: one["reachable"] for name, one in sources.items()} == {"good": True, "bad": True}
    assert sources["good"]["topics"]["t"]["0"]["end"] == 9


def test_a_silent_source_costs_the_others_nothing_and_is_reported_once(
    clusters: dict[str, Cluster], status: Status, caplog: pytest.LogCaptureFixture
) -> None:
    clusters["bad"].answers = False
    one = monitor(clusters, status, [])
    with caplog.at_level(logging.WARNING):
        one.poll_all()
        one.poll_all()
    sources = status.document()["sources"]
    assert (sources["good"]["reachable"], sources["bad"]["reachable"]) == (True, False)
    assert [record.getMessage() for record in caplog.records] == ["source_unreachable"]


def test_a_source_that_failed_is_connected_to_anew(
    clusters: dict[str, Cluster], status: Status
) -> None:
    calls: list[str] = []
    one = monitor(clusters, status, calls)
    one.poll_all()
    clusters["bad"].answers = False
    one.poll_all()
    clusters["bad"].answers = True
    one.poll_all()
    assert sorted(calls) == ["bad", "bad", "good"]
    assert status.document()["sources"]["bad"]["reachable"] is True


def test_the_thread_asks_and_stops(clusters: dict[str, Cluster], status: Status) -> None:
    calls: list[str] = []
    one = monitor(clusters, status, calls)
    one.start()
    end = time.monotonic() + 120
    while len(calls) < len(SOURCES):
        assert time.monotonic() < end
        time.sleep(0.01)
    one.stop()
    one._thread.join(120)
    assert not one._thread.is_alive()
