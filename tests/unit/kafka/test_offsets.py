"""Questions to a cluster whose brokers do not know everything at once."""

import gc
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition

from ingestd.errors import SourceError, SourceSilentError
from ingestd.kafka import admin_client, offsets
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource

SOURCE = KafkaSource("shop", ("a", "b"), properties={"bootstrap.servers": "127.0.0.1:1"})


class Answer:
    """The outcome of a request: an offset, or the code of an error."""

    def __init__(self, outcome: int) -> None:
        self.outcome = outcome

    def result(self, timeout: float) -> Any:
        if -1001 < self.outcome < 100:
            raise KafkaException(KafkaError(self.outcome))
        return SimpleNamespace(offset=self.outcome, leader_epoch=7)


class Cluster:
    """An admin client that answers each question about a topic with the next outcome."""

    def __init__(self, outcomes: Mapping[str, Sequence[int]]) -> None:
        self._outcomes = {topic: list(ones) for topic, ones in outcomes.items()}
        self.asked: list[list[str]] = []

    def poll(self, timeout: float) -> int:
        return 0

    def list_offsets(self, places: Mapping[TopicPartition, Any], **_: Any) -> dict[Any, Answer]:
        self.asked.append([place.topic for place in places])
        return {place: Answer(self._outcomes[place.topic].pop(0)) for place in places}


def client(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> OffsetClient:
    monkeypatch.setattr(admin_client, "AdminClient", lambda *_, **__: cluster)
    monkeypatch.setattr(offsets, "PAUSE_SECONDS", 0.0)
    return OffsetClient(SOURCE)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    ],
)
def test_a_partition_without_a_leader_yet_is_asked_again_and_no_other(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    cluster = Cluster({"a": [200], "b": [code, code, 300]})
    found = client(monkeypatch, cluster).end_offsets({"a": (0,), "b": (0,)})
    assert found == {"a": {0: 200}, "b": {0: 300}}
    assert cluster.asked == [["a", "b"], ["b"], ["b"]]


def test_an_answer_without_an_offset_is_none_and_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster({"a": [OFFSET_INVALID, 200]})
    asking = client(monkeypatch, cluster)
    assert asking.end_offsets({"a": (0,)}) == {"a": {0: 200}}
    assert asking.leader_epochs({"a": {0: 200, 1: 5}}) == {"a": {0: 7, 1: -1}}
    never = client(monkeypatch, Cluster({"a": [OFFSET_INVALID]}))
    never._admin.seconds = -1.0
    with pytest.raises(SourceSilentError, match="offsets of a/0"):
        never.end_offsets({"a": (0,)})


def test_other_errors_and_leaders_that_never_come_are_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    denied = Cluster({"a": [KafkaError.TOPIC_AUTHORIZATION_FAILED]})
    with pytest.raises(SourceError, match=r"offsets of a/0: .*[Aa]uthoriz"):
        client(monkeypatch, denied).end_offsets({"a": (0,)})
    never = Cluster({"a": [KafkaError.NOT_LEADER_FOR_PARTITION] * 9})
    patient = client(monkeypatch, never)
    patient._admin.seconds = -1.0
    with pytest.raises(SourceError, match="offsets of a/0"):
        patient.end_offsets({"a": (0,)})


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads as Linux does")
def test_a_client_that_is_closed_leaves_no_thread_before_garbage_is_collected() -> None:
    def threads() -> int:
        """Those of librdkafka: other libraries start theirs when they like."""
        count = 0
        for path in Path("/proc/self/task").glob("*/comm"):
            with suppress(OSError):  # it has ended
                count += path.read_text().startswith("rdk:")
        return count

    gone = KafkaSource("shop", ("a",), properties={"bootstrap.servers": "127.0.0.1:1"})
    gc.disable()
    try:
        before = threads()
        made = OffsetClient(gone, request_seconds=0.1)
        with pytest.raises(SourceSilentError):
            made.commit_group_offsets("g", {"a": {0: 1}})
        assert threads() > before
        made.close()
        assert threads() <= before
    finally:
        gc.enable()
    with pytest.raises(SourceError, match="its client is closed"):
        made.list_topic_partitions()
