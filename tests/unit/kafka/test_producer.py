"""Delivery reports of messages, by a producer with scripted answers."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from ingestd.errors import ConfigError, IngestdError, PolicyStopError, SourceError
from ingestd.kafka import producer
from ingestd.kafka.producer import Outgoing, produce
from ingestd.kafka.properties import KafkaSource

SOURCE = KafkaSource("s", ("t",), properties={"bootstrap.servers": "a:1"})


class Scripted:
    """Takes messages; `answers` are for them in order, `full` how often its queue is full."""

    answers: list[KafkaError | None]
    full = 0
    left = 0
    refused: KafkaError | None = None
    taken: list[tuple[Any, ...]]

    def __init__(self, properties: dict[str, Any], **_: object) -> None:
        assert properties["enable.idempotence"] == "true"
        if self.refused is not None:
            raise KafkaException(self.refused)
        self.waiting: list[Callable[..., None]] = []

    def produce(self, *message: Any, headers: Any, on_delivery: Callable[..., None]) -> None:
        if type(self).full:
            type(self).full -= 1
            raise BufferError
        self.taken.append((*message, headers))
        self.waiting.append(on_delivery)

    def poll(self, _: float) -> None:
        for answer in self.waiting:
            answer(self.answers.pop(0) if self.answers else None, None)
        self.waiting.clear()

    def flush(self, timeout: float) -> int:
        self.poll(timeout)
        return self.left


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> type[Scripted]:
    class Fresh(Scripted):
        """One of its own for each test."""

    Fresh.answers, Fresh.taken = [], []
    monkeypatch.setattr(producer, "Producer", Fresh)
    return Fresh


def test_messages_are_sent_as_they_are_and_counted(scripted: type[Scripted]) -> None:
    scripted.full = 2
    messages = [Outgoing(b"k", b"v", (("h", b"1"),)), Outgoing(None, None, partition=3)]
    assert produce(SOURCE, "t", messages) == 2
    assert scripted.taken == [("t", b"v", b"k", -1, [("h", b"1")]), ("t", None, None, 3, [])]


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, PolicyStopError, "topic t at a:1 rejects messages"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, SourceError, "topic t at a:1 rejected 1 message"),
    ],
)
def test_a_message_that_is_not_taken_is_an_error(
    scripted: type[Scripted], code: int, kind: type[IngestdError], text: str
) -> None:
    scripted.answers = [None, KafkaError(code)]
    with pytest.raises(kind, match=text):
        produce(SOURCE, "t", [Outgoing(b"k", b"v")] * 3)


def test_silence_is_an_error(scripted: type[Scripted]) -> None:
    scripted.left = 4
    with pytest.raises(SourceError, match="did not respond for 4 messages"):
        produce(SOURCE, "t", [Outgoing(b"k", b"v")])


def test_properties_that_cannot_be_used_are_named(scripted: type[Scripted]) -> None:
    scripted.refused = KafkaError(KafkaError._INVALID_ARG)
    with pytest.raises(ConfigError, match=r"sources\.s\.kafka"):
        produce(SOURCE, "t", [])
