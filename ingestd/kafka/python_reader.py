"""A reader based on the Python client, which creates a Python object for each record."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import groupby
from operator import itemgetter, methodcaller
from typing import Any, cast

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.cimpl import Message

from ingestd.cdc.base import Numbers
from ingestd.errors import SourceError
from ingestd.kafka.records import (
    NOWHERE,
    Header,
    LogEvent,
    Problem,
    Records,
    TopicAndPartition,
)

_LOG = logging.getLogger(__name__)
_METADATA_SECONDS = 2.0

# The client's type hints include messages that were not read from a broker.
_offset_of = cast("Callable[[Message], int]", Message.offset)
# Since Python 3.12 a direct call does not check that a C method that returns has set no exception:
# the SystemError was raised by a caller. This one checks it.
_parsed_headers: Callable[[Message], list[Header] | None] = methodcaller("headers")
_second = itemgetter(1)


class PythonReader:
    """A `Reader` that uses the consumer of the Python client.

    With `headers`, records have their headers and timestamp types. Raises KafkaException, TypeError
    or ValueError for invalid properties; methods raise SourceError if the client library fails.
    """

    def __init__(self, properties: Mapping[str, Any], *, headers: bool) -> None:
        self._problems: list[Problem] = []
        self._headers = headers
        self._known: set[str] = set()
        self._consumer = Consumer({**properties, "error_cb": self._note}, logger=_LOG)

    def assign(self, offsets: Mapping[TopicAndPartition, int]) -> None:
        """Read only these topic partitions from now on, each from its offset."""
        try:
            self._consumer.assign(
                [TopicPartition(*partition, offset) for partition, offset in offsets.items()]
            )
        except KafkaException as error:
            raise SourceError(str(error)) from error
        topics = {topic for topic, _ in offsets}
        if topics <= self._known:
            return
        # The client looks up the brokers of new topics once a second; this requests them at once.
        with suppress(KafkaException):  # reading reports a missing response
            self._consumer.list_topics(topics.pop() if len(topics) == 1 else "", _METADATA_SECONDS)
        self._known.update(topic for topic, _ in offsets)

    def unassign(self) -> None:
        """Stop reading until the next `assign`."""
        try:
            self._consumer.unassign()
        except KafkaException as error:
            raise SourceError(str(error)) from error

    def read(self, count: int, seconds: float) -> list[tuple[TopicAndPartition, Records]]:
        """Wait for `count` records, but at most `seconds`; return those that arrived, or [].

        Consecutive records of one topic partition form one pair; a partition can occur in several.
        """
        try:
            messages = self._consumer.consume(count, seconds)
        except KafkaException as error:
            raise SourceError(str(error)) from error
        return [
            (partition, self._records(list(run)))
            for partition, run in groupby(messages, _partition_of)
        ]

    def _records(self, messages: list[Message]) -> Records:
        events: list[LogEvent] = []
        if any(map(Message.error, messages)):
            events = [
                LogEvent(_problem(error), -1 if (offset := message.offset()) is None else offset)
                for message in messages
                if (error := message.error()) is not None
            ]
            messages = [message for message in messages if message.error() is None]
        keys = list(map(Message.key, messages))
        stamps = list(map(Message.timestamp, messages))
        value_sizes = _numbers(list(map(Message.__len__, messages)))
        return Records(
            offsets=_numbers(list(map(_offset_of, messages))),
            timestamps=_numbers(list(map(_second, stamps))),
            sizes=value_sizes + _numbers([0 if key is None else len(key) for key in keys]),
            keys=keys,
            values=list(map(Message.value, messages)),
            headers=list(map(_headers, messages)) if self._headers else None,
            events=events,
            timestamp_types=[kind for kind, _ in stamps] if self._headers else None,
        )

    def problems(self) -> list[Problem]:
        """Return the errors since the last call that belong to no single topic partition."""
        problems, self._problems = self._problems, []
        return problems

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def _note(self, error: KafkaError) -> None:
        self._problems.append(_problem(error))


def _headers(message: Message) -> list[Header] | None:
    """Return the headers of a record; None if the name of one of them is not UTF-8.

    For such a name the client raises SystemError, and must not be called again for the record.
    """
    try:
        return _parsed_headers(message)
    except SystemError:
        where = {
            "topic": message.topic(),
            "partition": message.partition(),
            "record_offset": message.offset(),
        }
        _LOG.warning("headers_unreadable", extra={"ctx": where})
        return None


def _partition_of(message: Message) -> TopicAndPartition:
    topic, partition = message.topic(), message.partition()
    return NOWHERE if topic is None or partition is None else (topic, partition)


def _problem(error: KafkaError) -> Problem:
    return Problem(error.code(), error.str())


def _numbers(values: list[int]) -> Numbers:
    return np.array(values, np.int64)
