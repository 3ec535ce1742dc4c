"""Record batches as a topic holds them, read once and sent again: a producer that needs little CPU.

Requests of Kafka's protocol are made here, because client libraries take and give records, not
batches. The batches stay compressed; the broker gives them new offsets.
"""

import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.process import BenchError

FETCH, FETCH_VERSION = 1, 4
PRODUCE, PRODUCE_VERSION = 0, 3
WAIT_MS = 10_000
FETCH_BYTES = 16 << 20
SECONDS = 30.0
NO_LEADER_YET = (3, 6)
"""Error codes for a topic that has just been created."""
_HEAD = struct.Struct(">qi")
"""Base offset and the length of what follows."""
_COUNT_AT = 57
_NEW_HEAD = struct.pack(">q", 0)


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """A batch of one partition with base offset 0, and how many records it has."""

    partition: int
    records: int
    payload: bytes


class RawClient:
    """A connection to the only broker of a cluster, `HOST:PORT`, without TLS and login."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), SECONDS)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def batches(self, topic: str, partition: int) -> Iterator[RecordBatch]:
        """All batches of a partition, in order; BenchError if the broker refuses."""
        offset = end = 0
        while True:
            end, records = self._fetch(topic, partition, offset)
            place = 0
            while place + _HEAD.size <= len(records):
                base, length = _HEAD.unpack_from(records, place)
                after = place + _HEAD.size + length
                if after > len(records):
                    break
                (count,) = struct.unpack_from(">i", records, place + _COUNT_AT)
                yield RecordBatch(partition, count, _NEW_HEAD + records[place + 8 : after])
                offset, place = base + count, after
            if offset >= end:
                return
            if not place:
                raise BenchError(f"a batch of {topic}/{partition} at {offset} is too large to read")

    def send(self, topic: str, batch: RecordBatch) -> None:
        """Append a batch and wait for the leader's answer; BenchError if it is refused."""
        body = struct.pack(">hhii", -1, 1, WAIT_MS, 1) + _text(topic)
        body += struct.pack(">iii", 1, batch.partition, len(batch.payload)) + batch.payload
        deadline = time.monotonic() + SECONDS
        while True:
            answer = self._answer(PRODUCE, PRODUCE_VERSION, body)
            (code,) = struct.unpack_from(">h", answer, 4 + len(_text(topic)) + 8)
            if not code:
                return
            if code not in NO_LEADER_YET or time.monotonic() > deadline:
                raise BenchError(f"the broker refused a batch for {topic}: error {code}")
            time.sleep(0.05)

    def _fetch(self, topic: str, partition: int, offset: int) -> tuple[int, bytes]:
        """The end of a partition and the bytes of its log from an offset on."""
        body = struct.pack(">iiiibi", -1, WAIT_MS, 1, FETCH_BYTES, 0, 1) + _text(topic)
        body += struct.pack(">iiqi", 1, partition, offset, FETCH_BYTES)
        answer = self._answer(FETCH, FETCH_VERSION, body)
        place = 8 + len(_text(topic)) + 8
        code, end, _, aborted = struct.unpack_from(">hqqi", answer, place)
        if code:
            raise BenchError(f"the broker does not give {topic}/{partition}: error {code}")
        place += 22 + 16 * max(aborted, 0)
        (length,) = struct.unpack_from(">i", answer, place)
        return end, answer[place + 4 : place + 4 + length]

    def _answer(self, key: int, version: int, body: bytes) -> bytes:
        """The body of the response to one request."""
        request = struct.pack(">hhi", key, version, 0) + _text("bench") + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        (length,) = struct.unpack(">i", self._read(4))
        return self._read(length)[4:]

    def _read(self, length: int) -> bytes:
        received = bytearray()
        while len(received) < length:
            part = self._socket.recv(min(length - len(received), 1 << 20))
            if not part:
                raise BenchError("the broker closed the connection")
            received += part
        return bytes(received)


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()
