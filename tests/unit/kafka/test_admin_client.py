"""Requests to an admin client with scripted answers."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from ingestd.errors import ConfigError, SourceError, SourceSilentError
from ingestd.kafka import admin_client
from ingestd.kafka.admin_client import AdminConnection
from ingestd.kafka.properties import KafkaSource

SOURCE = KafkaSource("shop", ("t",), properties={"bootstrap.servers": "a:1"})


class Scripted:
    """Answers questions about topics with these outcomes, and says these errors when polled."""

    outcomes: list[object]
    says: list[KafkaError]

    def __init__(self, properties: dict[str, Any], **_: object) -> None:
        self._tell = properties["error_cb"]

    def poll(self, _: float) -> int:
        while self.says:
            self._tell(self.says.pop(0))
        return 0

    def list_topics(self, timeout: float) -> object:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, KafkaError):
            raise KafkaException(outcome)
        return outcome


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> type[Scripted]:
    class Fresh(Scripted):
        """One of its own for each test."""

    Fresh.outcomes, Fresh.says = [], []
    monkeypatch.setattr(admin_client, "AdminClient", Fresh)
    monkeypatch.setattr(admin_client, "PAUSE_SECONDS", 0.0)
    return Fresh


def test_brokers_that_are_away_for_a_moment_are_asked_again(scripted: type[Scripted]) -> None:
    scripted.outcomes = [KafkaError(KafkaError._TRANSPORT), "topics"]
    assert AdminConnection(SOURCE, 30.0).metadata() == "topics"  # type: ignore[comparison-overlap]


def test_who_is_not_let_in_is_reported_at_once(scripted: type[Scripted]) -> None:
    scripted.outcomes = [KafkaError(KafkaError._TRANSPORT)]
    scripted.says = [KafkaError(KafkaError._AUTHENTICATION, "a:1/1: wrong password")]
    with pytest.raises(SourceError, match=r"a:1 rejected authentication.*wrong password") as told:
        AdminConnection(SOURCE, 30.0).metadata()
    assert not isinstance(told.value, SourceSilentError)


def test_silence_is_reported_with_what_the_client_said(scripted: type[Scripted]) -> None:
    scripted.outcomes = [KafkaError(KafkaError._TRANSPORT)]
    scripted.says = [KafkaError(KafkaError._TRANSPORT, "a:1/1: Connection refused")]
    with pytest.raises(SourceSilentError, match=r"a:1 did not report topics.*refused"):
        AdminConnection(SOURCE, -1.0).metadata()


def test_what_was_said_before_an_answer_is_forgotten(scripted: type[Scripted]) -> None:
    one = AdminConnection(SOURCE, -1.0)
    scripted.says = [KafkaError(KafkaError._AUTHENTICATION, "a:1/1: old")]
    scripted.outcomes = ["topics", KafkaError(KafkaError._TRANSPORT)]
    one.metadata()
    with pytest.raises(SourceSilentError) as told:
        one.metadata()
    assert "old" not in told.value.message


def test_an_answer_that_does_not_come_is_silence(scripted: type[Scripted]) -> None:
    class Late:
        def result(self, timeout: float) -> object:
            raise TimeoutError

    with pytest.raises(SourceSilentError, match="report a group: no response"):
        AdminConnection(SOURCE, -1.0).result("a group", Late())


def test_properties_that_do_not_do_are_the_configurations_fault() -> None:
    wrong = KafkaSource("shop", ("t",), properties={"bootstrap.servers": "a:1", "no.such": "1"})
    with pytest.raises(ConfigError, match=r"sources\.shop\.kafka: .*no\.such"):
        AdminConnection(wrong, 1.0)
