"""The reader by the Python client: a handful of calls into C and one object for each record."""

import logging
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import cast

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.cimpl import Message

from ingestd.errors import SourceError
from ingestd.kafka.records import Event, Header, Numbers, Problem, Records

_LOG = logging.getLogger(__name__)

# The client's types allow for messages that were not read from a broker.
_offset_of = cast("Callable[[Message], int]", Message.offset)
_headers_of = cast("Callable[[Message], list[Header] | None]", Message.headers)
_second = itemgetter(1)


class PythonReader:
    """A `Reader`. KafkaException, TypeError or ValueError for properties that do not do."""

    def __init__(self, properties: Mapping[str, str], *, headers: bool) -> None:
        self._problems: list[Problem] = []
        self._headers = headers
        self._consumer = Consumer({**properties, "error_cb": self._note}, logger=_LOG)

    def assign(self, topic: str, partition: int, offset: int) -> None:
        """Read this topic partition from the offset on, and nothing else."""
        try:
            self._consumer.assign([TopicPartition(topic, partition, offset)])
        except KafkaException as error:
            raise SourceError(str(error)) from error

    def unassign(self) -> None:
        """Read nothing."""
        self._consumer.unassign()

    def read(self, count: int, seconds: float) -> Records:
        """At most `count` records, those that come within some time."""
        try:
            messages = self._consumer.consume(count, seconds)
        except KafkaException as error:
            raise SourceError(str(error)) from error
        events: list[Event] = []
        if any(map(Message.error, messages)):
            events = [
                Event(_problem(met), -1 if (offset := one.offset()) is None else offset)
                for one in messages
                if (met := one.error()) is not None
            ]
            messages = [one for one in messages if one.error() is None]
        keys = list(map(Message.key, messages))
        value_sizes = _numbers(list(map(Message.__len__, messages)))
        return Records(
            offsets=_numbers(list(map(_offset_of, messages))),
            timestamps=_numbers(list(map(_second, map(Message.timestamp, messages)))),
            sizes=value_sizes + _numbers([0 if key is None else len(key) for key in keys]),
            keys=keys,
            values=list(map(Message.value, messages)),
            headers=list(map(_headers_of, messages)) if self._headers else None,
            events=events,
        )

    def problems(self) -> list[Problem]:
        """What went wrong with the client as a whole since the last call."""
        found, self._problems = self._problems, []
        return found

    def close(self) -> None:
        """Let go of the brokers."""
        self._consumer.close()

    def _note(self, error: KafkaError) -> None:
        self._problems.append(_problem(error))


def _problem(error: KafkaError) -> Problem:
    return Problem(error.code(), error.str())


def _numbers(values: list[int]) -> Numbers:
    return np.array(values, np.int64)
