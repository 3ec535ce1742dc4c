"""Read and commit the offsets of a consumer group with a consumer that does not join the group.

An admin client can do the same, but in librdkafka up to 2.16 it aborts the process if the
connection to the group coordinator is lost at the wrong moment.
"""

import time
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ingestd.errors import SourceError, SourceSilentError
from ingestd.kafka.auth_errors import ClientErrors, explain, refused_properties
from ingestd.kafka.consumer_pool import LOG
from ingestd.kafka.properties import KafkaSource, admin_properties
from ingestd.kafka.tokens import with_token_function

_POLL_SECONDS = 0.05
_PAUSE_SECONDS = 0.1
_NO_COORDINATOR = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError._WAIT_COORD,
    }
)
"""Errors of a group without a coordinator: the group is new, or the broker is unreachable."""

_NOT_JOINED = {
    "enable.auto.commit": "false",
    "session.timeout.ms": "2000",
    "heartbeat.interval.ms": "500",
}
"""The session never starts, but its timeout bounds how long closing the client, and so the exit of
the process, waits for the response to a commit when the brokers are unreachable.
"""


class ConsumerGroup:
    """A consumer group of a source's cluster, with a timeout of `seconds` for each request.

    Raises ConfigError for invalid properties, and SourceError if no token could be fetched.
    Requests raise SourceSilentError if the brokers do not respond in time, and SourceError if they
    refuse the request.
    """

    def __init__(self, source: KafkaSource, name: str, seconds: float) -> None:
        self._source = source
        self._name = name
        self._seconds = seconds
        self._client_errors = ClientErrors(source)
        self._responses: list[KafkaError | None] = []
        properties = {**admin_properties(source), **_NOT_JOINED, "group.id": name}
        hooks = {"error_cb": self._client_errors.note, "on_commit": self._note_commit}
        with refused_properties(source):
            settings = with_token_function(source, properties)
            self._consumer = Consumer({**settings, **hooks}, logger=LOG)

    def committed(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions with their committed offsets; negative if none is committed."""
        end = self._begin()
        while True:
            try:
                committed = self._consumer.committed(
                    partitions, max(end - time.monotonic(), _POLL_SECONDS)
                )
            except KafkaException as error:
                self._go_on_or_raise(error.args[0], end)
                continue
            wrong = next(
                (partition.error for partition in committed if partition.error is not None), None
            )
            if wrong is None:
                self._client_errors.forget()
                return committed
            self._go_on_or_raise(wrong, end)

    def commit(self, offsets: Iterable[TopicPartition]) -> None:
        """Commit offsets for the group, and wait for the response."""
        end = self._begin()
        partitions = list(offsets)
        while True:
            self._responses.clear()
            self._consumer.commit(offsets=partitions, asynchronous=True)
            while not self._responses:
                self._consumer.poll(_POLL_SECONDS)
                if time.monotonic() > end:
                    raise self._no_response_error("no response", silent=True)
            response = self._responses[-1]
            if response is None:
                self._client_errors.forget()
                return
            self._go_on_or_raise(response, end)

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def _begin(self) -> float:
        self._consumer.poll(0)
        return time.monotonic() + self._seconds

    def _note_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        wrong = [partition.error for partition in partitions if partition.error is not None]
        self._responses.append(error or (wrong[0] if wrong else None))

    def _go_on_or_raise(self, error: KafkaError, end: float) -> None:
        """Pause and return if a retry may succeed, else raise SourceError."""
        self._consumer.poll(0)
        passes = error.code() in _NO_COORDINATOR
        if not passes or time.monotonic() > end:
            silent = passes or error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
            raise self._no_response_error(error.str(), silent=silent)
        time.sleep(_PAUSE_SECONDS)

    def _no_response_error(self, reason: str, *, silent: bool) -> SourceError:
        source, newest = (
            self._source,
            self._client_errors.rejection_reason or self._client_errors.newest,
        )
        message = (
            f"source {source.name}: {source.bootstrap} did not report group {self._name}: {reason}"
        )
        if newest is not None:
            message += f"; the client reports: {explain(source, newest)}"
        refused = self._client_errors.rejection_reason is not None
        return SourceSilentError(message) if silent and not refused else SourceError(message)
