"""A reader in the native extension, which creates no Python object for each record.

The extension calls the client library that the Python client has loaded, by the addresses of its
functions. So a process has only one client library, with all features that it was built with.
"""

import ctypes
import logging
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol, TypeAlias, cast

import numpy as np
from confluent_kafka import cimpl, libversion

from ingestd.cdc.base import Numbers, Texts
from ingestd.cdc.native_module import native_module
from ingestd.errors import SourceError
from ingestd.kafka.records import LogEvent, Problem, Records, TopicAndPartition
from ingestd.kafka.tokens import TokenFunction

_LOG = logging.getLogger(__name__)
_MAJOR = 2
"""The major version of librdkafka whose functions and structures the extension knows."""
Buffer: TypeAlias = bytes | memoryview
"""Bytes, or another object with the buffer protocol."""


class _NativeRecords(Protocol):
    topic: str
    partition: int
    offsets: Buffer
    timestamps: Buffer
    sizes: Buffer
    keys: Texts
    values: Texts
    events: Sequence[tuple[int, str, int]]


class _NativeConsumer(Protocol):
    def assign(self, partitions: list[tuple[str, int, int]]) -> None: ...
    def unassign(self) -> None: ...
    def consume(self, count: int, milliseconds: int, keep: bool) -> list[_NativeRecords]: ...
    def errors(self) -> list[tuple[int, str]]: ...
    def close(self) -> None: ...


class NativeKafka(Protocol):
    """The part of the extension that reads from Kafka."""

    KAFKA_FUNCTIONS: Sequence[str]
    """Names of the client library's functions whose addresses the extension needs."""

    def Consumer(  # noqa: N802 - a class of the extension
        self,
        addresses: Mapping[str, int],
        properties: Mapping[str, str],
        token: TokenFunction | None,
    ) -> _NativeConsumer:
        """Create a client; `addresses` are those of the client library's functions, by name.

        `token` computes OAUTHBEARER tokens (None: not needed). Raises ValueError for a missing
        address or an invalid property.
        """
        ...


def client_version() -> str:
    """Return the version of librdkafka in this process."""
    return libversion()[0]


@cache
def native_kafka() -> tuple[NativeKafka, Mapping[str, int]] | None:
    """Return the extension, and the addresses of the client library's functions by name.

    Returns None if the extension or a function that it needs is missing, or if the client library
    has another major version.
    """
    module = native_module()
    if module is None or not hasattr(module, "KAFKA_FUNCTIONS"):
        return None
    version, number = libversion()
    if number >> 24 != _MAJOR:
        _log_reason(f"the native reader needs librdkafka {_MAJOR}, found {version}")
        return None
    kafka = cast("NativeKafka", module)
    library = ctypes.CDLL(cimpl.__file__)  # finds symbols of the libraries it is linked with, too
    addresses: dict[str, int] = {}
    for name in kafka.KAFKA_FUNCTIONS:
        function = getattr(library, name, None)
        address = None if function is None else ctypes.cast(function, ctypes.c_void_p).value
        if address is None:
            _log_reason(f"librdkafka {version} has no function {name}")
            return None
        addresses[name] = address
    return kafka, addresses


def _log_reason(reason: str) -> None:
    _LOG.warning("kafka_reader", extra={"ctx": {"reader": "python", "reason": reason}})


class NativeKafkaReader:
    """A `Reader` that uses the consumer of the native extension.

    `addresses` are those of the client library's functions, by name, and `token` computes
    OAUTHBEARER tokens (None: not needed). Raises ValueError for invalid properties; methods raise
    SourceError if the client library fails.
    """

    def __init__(
        self,
        kafka: NativeKafka,
        addresses: Mapping[str, int],
        properties: Mapping[str, str],
        token: TokenFunction | None = None,
    ) -> None:
        self._consumer = kafka.Consumer(addresses, properties, token)
        self._alone = False

    def assign(self, offsets: Mapping[TopicAndPartition, int]) -> None:
        """Read only these topic partitions from now on, each from its offset."""
        self._alone = len(offsets) == 1
        try:
            self._consumer.assign([(*partition, offset) for partition, offset in offsets.items()])
        except RuntimeError as error:
            raise SourceError(str(error)) from error

    def unassign(self) -> None:
        """Stop reading until the next `assign`."""
        try:
            self._consumer.unassign()
        except RuntimeError as error:
            raise SourceError(str(error)) from error

    def read(self, count: int, seconds: float) -> list[tuple[TopicAndPartition, Records]]:
        """Wait for `count` records, but at most `seconds`; return those that arrived, or [].

        Consecutive records of one topic partition form one pair; a partition can occur in several.
        With one assigned topic partition, keys and values refer to the client's memory, which holds
        the fetched messages while they are used. With several, many fetched messages may be past
        the end of a range, so keys and values are copied.
        """
        try:
            batches = self._consumer.consume(count, round(seconds * 1000), self._alone)
        except RuntimeError as error:
            raise SourceError(str(error)) from error
        return [((batch.topic, batch.partition), _records(batch)) for batch in batches]

    def problems(self) -> list[Problem]:
        """Return the errors since the last call that belong to no single topic partition."""
        return [Problem(code, text) for code, text in self._consumer.errors()]

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()


def _records(batch: _NativeRecords) -> Records:
    return Records(
        offsets=_numbers(batch.offsets),
        timestamps=_numbers(batch.timestamps),
        sizes=_numbers(batch.sizes),
        keys=batch.keys,
        values=batch.values,
        headers=None,
        events=[LogEvent(Problem(code, text), offset) for code, text, offset in batch.events],
    )


def _numbers(buffer: Buffer) -> Numbers:
    return np.frombuffer(buffer, np.int64)
