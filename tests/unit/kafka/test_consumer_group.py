"""Offsets of a group, by a consumer with scripted answers."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from ingestd.errors import ConfigError, SourceError, SourceSilentError
from ingestd.kafka import consumer_group
from ingestd.kafka.consumer_group import ConsumerGroup
from ingestd.kafka.properties import KafkaSource

SOURCE = KafkaSource("shop", ("t",), properties={"bootstrap.servers": "a:1"})
PLACE = TopicPartition("t", 0, 7)


class Scripted:
    """Meets questions with these outcomes: errors, or nothing wrong."""

    outcomes: list[KafkaError | None]
    name: str
    properties: dict[str, Any]

    def __init__(self, properties: dict[str, Any], **_: object) -> None:
        type(self).name = properties["group.id"]
        type(self).properties = properties
        self._on_commit: Callable[..., None] = properties["on_commit"]
        self._waiting: list[tuple[KafkaError | None, list[TopicPartition]]] = []

    def poll(self, _: float) -> None:
        for answer in self._waiting:
            self._on_commit(*answer)
        self._waiting.clear()

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert asynchronous
        if self.outcomes:
            self._waiting.append((self.outcomes.pop(0), offsets))

    def committed(self, places: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        error = self.outcomes.pop(0)
        if error is not None:
            raise KafkaException(error)
        return places


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> type[Scripted]:
    class Fresh(Scripted):
        """One of its own for each test."""

    Fresh.outcomes = []
    monkeypatch.setattr(consumer_group, "Consumer", Fresh)
    monkeypatch.setattr(consumer_group, "_PAUSE_SECONDS", 0.0)
    return Fresh


def test_a_group_without_a_coordinator_yet_is_asked_again(scripted: type[Scripted]) -> None:
    away = KafkaError(KafkaError.NOT_COORDINATOR)
    scripted.outcomes = [away, None, away, None]
    one = ConsumerGroup(SOURCE, "readers", 30.0)
    assert scripted.name == "readers"
    one.commit([PLACE])
    assert one.committed([PLACE]) == [PLACE]
    assert scripted.outcomes == []


def test_silence_ends_with_the_time(scripted: type[Scripted]) -> None:
    with pytest.raises(SourceSilentError, match="group readers: no response"):
        ConsumerGroup(SOURCE, "readers", 0.0).commit([PLACE])
    scripted.outcomes = [KafkaError(KafkaError._TIMED_OUT)]
    with pytest.raises(SourceSilentError, match="a:1 did not report group readers"):
        ConsumerGroup(SOURCE, "readers", 0.0).committed([PLACE])


def test_a_refusal_is_reported_at_once(scripted: type[Scripted]) -> None:
    denied = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)
    scripted.outcomes = [denied, denied]
    one = ConsumerGroup(SOURCE, "readers", 30.0)
    for ask in (one.commit, one.committed):
        with pytest.raises(SourceError, match="group readers") as told:
            ask([PLACE])
        assert not isinstance(told.value, SourceSilentError)


def test_the_end_of_a_client_waits_for_a_lost_answer_for_seconds_alone(
    scripted: type[Scripted],
) -> None:
    # The client waits for a session's time, 45 s by itself: more than a pod gets to end.
    given = {"session.timeout.ms": "45000", "group.protocol": "consumer", "client.id": "x"}
    source = KafkaSource("shop", ("t",), properties={**SOURCE.properties, **given})
    ConsumerGroup(source, "readers", 1.0)
    assert int(scripted.properties["session.timeout.ms"]) < 5_000
    assert "group.protocol" not in scripted.properties
    assert scripted.properties["client.id"] == "x"


def test_properties_that_do_not_do_are_the_configurations_fault() -> None:
    wrong = KafkaSource("shop", ("t",), properties={"bootstrap.servers": "a:1", "no.such": "1"})
    with pytest.raises(ConfigError, match=r"sources\.shop\.kafka: .*no\.such"):
        ConsumerGroup(wrong, "readers", 1.0)
