"""The reader by the Python client: refusals of its client, and records with unusual headers."""

import logging
import socket
import struct
import time
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from ingestd.errors import SourceError
from ingestd.kafka import python_reader
from ingestd.kafka.python_reader import PythonReader
from tests.support.varints import zigzag


class Refusing:
    """A consumer that refuses everything."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def _refuse(self, *_: object) -> NoReturn:
        raise KafkaException(KafkaError(KafkaError._STATE, "no"))

    assign = unassign = consume = _refuse


@pytest.mark.parametrize(
    "ask",
    [
        lambda reader: reader.assign({("t", 0): 1}),
        lambda reader: reader.unassign(),
        lambda reader: reader.read(1, 0.0),
    ],
    ids=["assign", "unassign", "read"],
)
def test_what_the_client_refuses_is_an_error_of_the_source(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[Any], object]
) -> None:
    monkeypatch.setattr(python_reader, "Consumer", Refusing)
    with pytest.raises(SourceError, match="no"):
        ask(PythonReader({}, headers=False))


def sized(data: bytes) -> bytes:
    return zigzag(len(data)) + data


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def record_batch(*header_names: bytes) -> bytes:
    """A record batch with one record for each name of a header."""
    records = b""
    for index, name in enumerate(header_names):
        fields = b"\0" + zigzag(0) + zigzag(index) + zigzag(-1) + sized(b"v%d" % index)
        records += sized(fields + zigzag(1) + sized(name) + sized(b"x"))
    count, now = len(header_names), int(time.time() * 1000)
    tail = struct.pack(">hiqqqhii", 0, count - 1, now, now, -1, -1, -1, count) + records
    return struct.pack(">qiibI", 0, len(tail) + 9, -1, 2, crc32c(tail)) + tail


def produce(address: tuple[str, int], topic: bytes, batch: bytes) -> None:
    """Produce a batch to partition 0 as it is, by a request of the protocol."""
    text = struct.pack(">h", len(topic)) + topic
    request = struct.pack(">hhih", 0, 7, 1, -1) + struct.pack(">hhi", -1, 1, 5000)
    request += struct.pack(">i", 1) + text + struct.pack(">iii", 1, 0, len(batch)) + batch
    with socket.create_connection(address, 60) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        assert connection.recv(1000)


def test_a_header_name_that_is_not_utf_8_stops_no_reader(caplog: pytest.LogCaptureFixture) -> None:
    broker = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1})
    metadata = broker.list_topics("t", 10)
    address = next(iter(metadata.brokers.values()))
    names = [b"a"] * 50 + [b"\xff", b"\xc3\xa9"]  # Python specialises calls that are repeated
    produce((address.host, address.port), b"t", record_batch(*names))
    properties = {"bootstrap.servers": f"{address.host}:{address.port}", "group.id": "g"}
    reader = PythonReader(properties, headers=True)
    try:
        reader.assign({("t", 0): 0})
        with caplog.at_level(logging.WARNING):
            ((_, records),) = reader.read(len(names), 20.0)
    finally:
        reader.close()
    assert records.values == [b"v%d" % number for number in range(len(names))]
    assert records.headers == [*[[("a", b"x")]] * 50, None, [("é", b"x")]]
    assert [line.message for line in caplog.records] == ["headers_unreadable"]
