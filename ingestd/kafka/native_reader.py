"""The reader by the native extension: the same client library, without an object for each record.

The extension is given the addresses of the library's functions as the Python client has loaded
them, so that there is one client library in the process, with everything it was built with.
"""

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol, TypeAlias, cast

import numpy as np
from confluent_kafka import cimpl

from ingestd.cdc.native.module import native_module
from ingestd.cdc.texts import Texts
from ingestd.errors import SourceError
from ingestd.kafka.records import LogEvent, Numbers, Place, Problem, Records

Buffer: TypeAlias = bytes | memoryview
"""Or whatever else has the buffer protocol."""


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
    def assign(self, places: list[tuple[str, int, int]]) -> None: ...
    def unassign(self) -> None: ...
    def consume(self, count: int, milliseconds: int, keep: bool) -> list[_NativeRecords]: ...
    def errors(self) -> list[tuple[int, str]]: ...
    def close(self) -> None: ...


class NativeKafka(Protocol):
    """The part of the extension that reads from Kafka."""

    KAFKA_FUNCTIONS: Sequence[str]
    """Names of the functions of the client library whose addresses it needs."""

    def Consumer(  # noqa: N802 - a class of the extension
        self, addresses: Mapping[str, int], properties: Mapping[str, str]
    ) -> _NativeConsumer:
        """A client; ValueError for properties that do not do."""
        ...


@cache
def native_kafka() -> tuple[NativeKafka, Mapping[str, int]] | None:
    """The extension and the functions that it needs; None if one of them is not there."""
    module = native_module()
    if module is None or not hasattr(module, "KAFKA_FUNCTIONS"):
        return None
    kafka = cast("NativeKafka", module)
    library = ctypes.CDLL(cimpl.__file__)  # symbols of what it is linked with are found, too
    addresses: dict[str, int] = {}
    for name in kafka.KAFKA_FUNCTIONS:
        function = getattr(library, name, None)
        address = None if function is None else ctypes.cast(function, ctypes.c_void_p).value
        if address is None:
            return None
        addresses[name] = address
    return kafka, addresses


class NativeFetcher:
    """A `Reader`. ValueError for properties that do not do."""

    def __init__(
        self, kafka: NativeKafka, addresses: Mapping[str, int], properties: Mapping[str, str]
    ) -> None:
        self._consumer = kafka.Consumer(addresses, properties)
        self._alone = False

    def assign(self, offsets: Mapping[Place, int]) -> None:
        """Read these topic partitions, each from its offset on, and nothing else."""
        self._alone = len(offsets) == 1
        try:
            self._consumer.assign([(*place, offset) for place, offset in offsets.items()])
        except RuntimeError as error:
            raise SourceError(str(error)) from error

    def unassign(self) -> None:
        """Read nothing."""
        try:
            self._consumer.unassign()
        except RuntimeError as error:
            raise SourceError(str(error)) from error

    def read(self, count: int, seconds: float) -> list[tuple[Place, Records]]:
        """At most `count` records, those that come within some time, by where they are from.

        The client holds what it fetched until no one has a text of it any more. Of one topic
        partition that is little more than what is asked for; of many, much may lie after the
        ranges, so the texts of these are copied.
        """
        try:
            found = self._consumer.consume(count, round(seconds * 1000), self._alone)
        except RuntimeError as error:
            raise SourceError(str(error)) from error
        return [((one.topic, one.partition), _records(one)) for one in found]

    def problems(self) -> list[Problem]:
        """What went wrong with the client as a whole since the last call."""
        return [Problem(code, text) for code, text in self._consumer.errors()]

    def close(self) -> None:
        """Let go of the brokers."""
        self._consumer.close()


def _records(found: _NativeRecords) -> Records:
    return Records(
        offsets=_numbers(found.offsets),
        timestamps=_numbers(found.timestamps),
        sizes=_numbers(found.sizes),
        keys=found.keys,
        values=found.values,
        headers=None,
        events=[LogEvent(Problem(code, text), offset) for code, text, offset in found.events],
    )


def _numbers(buffer: Buffer) -> Numbers:
    return np.frombuffer(buffer, np.int64)
