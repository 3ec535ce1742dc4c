"""Produce messages to topics: dead letters, and the messages that a replay sends again.

The producer is idempotent, so its own retries write a message once. A caller that runs again sends
its messages again, so delivery is at least once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from ingestd.errors import ConfigError, PolicyStopError, SourceError, SourceSilentError
from ingestd.kafka.auth_errors import ClientErrors, explain, refused_properties
from ingestd.kafka.consumer_pool import LOG
from ingestd.kafka.properties import KafkaSource, producer_properties
from ingestd.kafka.tokens import with_token_function
from ingestd.wording import counted

_FLUSHES = 130
"""Number of waits of one second for the acknowledgements of all messages."""
_ANY_PARTITION = -1


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send to a topic.

    If `partition` is None, the partition is selected by the key, as in Java's producer.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None


@dataclass(slots=True)
class _Failures:
    """The delivery callback of a producer: counts failed messages and keeps the first error."""

    first: KafkaError | None = None
    count: int = field(default=0)

    def __call__(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.first = self.first or error
            self.count += 1


def produce(source: KafkaSource, topic: str, messages: Iterable[Outgoing]) -> int:
    """Send messages to a topic, wait until all are written, and return their number.

    The topic is in the cluster of `source`. Raises SourceError if the brokers do not accept all
    messages in time (SourceSilentError if they do not respond), if they reject the client or if no
    token could be fetched; PolicyStopError for a message larger than the topic allows; ConfigError
    for invalid properties.
    """
    failures, count, client_errors = _Failures(), 0, ClientErrors(source)
    where = f"topic {topic} at {source.bootstrap}"
    with refused_properties(source):
        settings = with_token_function(source, producer_properties(source))
        producer = Producer({**settings, "error_cb": client_errors.note}, logger=LOG)
    try:
        for message in messages:
            _send(producer, topic, message, failures)
            count += 1
        left = _flush(producer, client_errors)
    except KafkaException as error:
        _refuse(where, error.args[0])
        raise ConfigError(f"sources.{source.name}.kafka: {error.args[0].str()}") from error
    if failures.first is not None:
        _refuse(where, failures.first)
        raise SourceError(
            f"{where} rejected {counted(failures.count, 'message')}: {failures.first.str()}"
        )
    if left:
        rejection_reason = client_errors.rejection_reason or client_errors.newest
        why = "is the broker up?" if rejection_reason is None else explain(source, rejection_reason)
        kind = SourceSilentError if client_errors.rejection_reason is None else SourceError
        where = f"source {source.name}: {where}"
        raise kind(f"{where} did not respond for {counted(left, 'message')}: {why}")
    return count


def _flush(producer: Producer, client_errors: ClientErrors) -> int:
    """Wait until all messages are acknowledged, the timeout ends, or the client is rejected.

    Returns the number of messages that are not acknowledged.
    """
    left = 0
    for _ in range(_FLUSHES):
        left = producer.flush(1.0)
        if not left or client_errors.rejection_reason is not None:
            break
    return left


def _send(producer: Producer, topic: str, message: Outgoing, failures: _Failures) -> None:
    partition = _ANY_PARTITION if message.partition is None else message.partition
    while True:
        try:
            producer.produce(
                topic,
                message.value,
                message.key,
                partition,
                headers=list(message.headers),
                on_delivery=failures,
            )
        except BufferError:  # the queue is full: wait for responses
            producer.poll(1.0)
        else:
            producer.poll(0)
            return


def _refuse(where: str, error: KafkaError) -> None:
    if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        raise PolicyStopError(
            f"{where} rejects messages of this size: raise max.message.bytes of the topic, or "
            "lower processing.max-record-bytes"
        )
