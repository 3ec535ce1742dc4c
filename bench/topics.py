"""Loads in topics: created and filled once for each broker, with the table they must end in."""

import time
from dataclasses import dataclass, field

import pyarrow as pa
from confluent_kafka import Producer

from bench.load import Event, Load, events, expected
from bench.process import BenchError
from ingestd.dev.broker import DevBroker

FLUSH_SECONDS = 120
KEEP_ALL = {"retention.ms": "-1"}  # the events claim to be old


@dataclass(slots=True)
class Topics:
    """The topics of one broker."""

    broker: DevBroker
    _made: dict[str, Load] = field(default_factory=dict)
    _expected: dict[Load, pa.Table] = field(default_factory=dict)

    def filled(self, name: str, load: Load) -> str:
        """The name of a topic that holds the load; produced when it is first asked for."""
        if name not in self._made:
            self.broker.create_topic(name, load.partitions, KEEP_ALL)
            fill(self.broker.bootstrap, name, load)
            self._made[name] = load
        if self._made[name] != load:
            raise ValueError(f"topic {name} holds another load")
        return name

    def expected(self, load: Load) -> pa.Table:
        """The rows that the load, and those before it, end in."""
        if load not in self._expected:
            self._expected[load] = expected(load)
        return self._expected[load]


def producer(bootstrap: str, linger_ms: int = 50) -> Producer:
    """A producer for a load: lz4, large batches."""
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 3,
            "linger.ms": linger_ms,
            "batch.size": 1 << 20,
            "compression.type": "lz4",
            "acks": 1,
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 1 << 20,
        }
    )


def fill(bootstrap: str, topic: str, load: Load) -> None:
    """Produce a load; BenchError when the broker does not take it."""
    client = producer(bootstrap)
    for event in events(load):
        send(client, topic, event)
    if client.flush(FLUSH_SECONDS):
        raise BenchError(f"the broker did not take the load into {topic}")


def send(client: Producer, topic: str, event: Event) -> None:
    """Hand one event to the producer, waiting for room."""
    deadline = time.monotonic() + FLUSH_SECONDS
    while True:
        try:
            client.produce(
                topic, event.value, event.key, event.partition, timestamp=event.timestamp_ms
            )
        except BufferError as error:
            if time.monotonic() > deadline:
                raise BenchError(f"the broker takes nothing more into {topic}") from error
            client.poll(0.05)
        else:
            return
