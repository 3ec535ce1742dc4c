"""One real broker for a test run, and putting records into it."""

import struct
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from ingestd.dev.broker import DevBroker
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource

WAIT_SECONDS = 120
_NO_COORDINATOR = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
"""A new group has no one who keeps its offsets yet: it has told none."""
_NOT_THERE_YET = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
)
"""A broker may answer so for a moment after a topic or partition was created."""
Record = tuple[bytes | None, bytes | None]
Failed = tuple[KafkaError, Message]


class Reachable(Protocol):
    """A broker, or several."""

    @property
    def bootstrap(self) -> str:
        """The addresses for clients."""


@contextmanager
def running_broker() -> Iterator[DevBroker]:
    """A broker for the block; its cleaner compacts within a second, all partitions of all tests."""
    cleaner = {"log.cleaner.min.compaction.lag.ms": "0", "log.cleaner.backoff.ms": "1000"}
    with DevBroker(cleaner) as broker:
        yield broker


class SharedBroker(DevBroker):
    """A broker that another process of this test run has started."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._shared_address = address

    @property
    def bootstrap(self) -> str:
        """The address for clients, `127.0.0.1:PORT`."""
        return self._shared_address


def fresh_topic(
    broker: DevBroker, partitions: int = 1, config: Mapping[str, str] | None = None
) -> str:
    """Create a topic with a name that no one has used, and wait until the broker knows it."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    broker.create_topic(name, partitions, config)
    client, end = admin(broker), time.monotonic() + WAIT_SECONDS
    while name not in client.list_topics(timeout=WAIT_SECONDS).topics:
        # The controller has created it; until the broker knows, it answers that there is none.
        assert time.monotonic() < end, f"{name} does not appear"
        time.sleep(0.01)
    return name


def delete_topic(broker: DevBroker, topic: str) -> None:
    """Delete a topic and wait until the broker has done it."""
    client = admin(broker)  # has to live until the answer is there
    client.delete_topics([topic], operation_timeout=WAIT_SECONDS)[topic].result(WAIT_SECONDS)
    end = time.monotonic() + WAIT_SECONDS
    while topic in client.list_topics(timeout=WAIT_SECONDS).topics:
        # The controller has deleted it; until the broker knows, requests are answered with its id.
        assert time.monotonic() < end, f"{topic} does not disappear"
        time.sleep(0.01)


def delete_records(broker: DevBroker, topic: str, before: int, partition: int = 0) -> None:
    """Delete the records before an offset, as retention does."""
    client = admin(broker)
    place = TopicPartition(topic, partition, before)
    for future in client.delete_records([place]).values():
        future.result(WAIT_SECONDS)


def log_folder(broker: DevBroker, topic: str, partition: int = 0) -> Path:
    """The folder with the segments of a log."""
    return broker.log.parent / "data" / f"{topic}-{partition}"


def cut_log(broker: DevBroker, topic: str, before: int, partition: int = 0) -> None:
    """Drop the batches of records from an offset on from a killed broker, as a lost disk does."""
    segment = log_folder(broker, topic, partition) / f"{0:020}.log"
    log, at = segment.read_bytes(), 0
    while at < len(log):
        first, size = struct.unpack_from(">qi", log, at)
        if first >= before:
            break
        at += 12 + size
    segment.write_bytes(log[:at])


def admin(broker: Reachable) -> AdminClient:
    """An admin client."""
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})


def produce(
    broker: DevBroker,
    topic: str,
    records: Iterable[Record],
    partition: int = 0,
    *,
    config: Mapping[str, str] | None = None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> None:
    """Append (key, value) records to one partition and wait until the broker has them."""
    client = Producer(
        {"bootstrap.servers": broker.bootstrap, "log_level": 0, "linger.ms": 5, **(config or {})}
    )
    deadline, pending = time.monotonic() + WAIT_SECONDS, list(records)
    while pending:
        failed: list[Failed] = []

        def note(error: KafkaError | None, message: Message, failed: list[Failed] = failed) -> None:
            if error is not None:
                failed.append((error, message))

        for key, value in pending:
            client.produce(topic, value, key, partition, headers=list(headers), on_delivery=note)
            client.poll(0)
        assert client.flush(WAIT_SECONDS) == 0
        for error, _ in failed:
            is_early = error.code() in _NOT_THERE_YET and time.monotonic() < deadline
            assert is_early, f"{topic}/{partition}: {error}"
        pending = [(message.key(), message.value()) for _, message in failed]
        time.sleep(0.1 if pending else 0)


def produce_transaction(
    broker: DevBroker, topic: str, records: Iterable[Record], partition: int = 0, *, commit: bool
) -> None:
    """Append records in a transaction of its own, and its marker; return once both can be read."""
    offsets = OffsetClient(source_of(broker, topic))

    def end() -> int:
        return offsets.end_offsets({topic: (partition,)})[topic][partition]

    records, first = list(records), end()
    client = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "log_level": 0,
            "transactional.id": uuid.uuid4().hex,
        }
    )
    client.init_transactions(WAIT_SECONDS)
    client.begin_transaction()
    for key, value in records:
        client.produce(topic, value, key, partition)
    client.flush(WAIT_SECONDS)
    if commit:
        client.commit_transaction(WAIT_SECONDS)
    else:
        client.abort_transaction(WAIT_SECONDS)
    # The coordinator answers before it has written the marker.
    deadline = time.monotonic() + WAIT_SECONDS
    while end() < first + len(records) + 1:
        assert time.monotonic() < deadline, f"the marker of {topic} does not arrive"
        time.sleep(0.02)
    offsets.close()


def source_of(broker: DevBroker, *topics: str, name: str = "src", **fields: object) -> KafkaSource:
    """A source that reads these topics of the broker; fields as `KafkaSource` has them."""
    properties = {"bootstrap.servers": broker.bootstrap, "log_level": "0"}
    return KafkaSource(name, topics, properties=properties, **fields)  # type: ignore[arg-type]


def backlog(broker: DevBroker, group: str, topics: Collection[str]) -> int:
    """Records of the topics that a group has not told the broker to have read."""
    known = admin(broker).list_topics(timeout=WAIT_SECONDS).topics
    places = [TopicPartition(name, number) for name in topics for number in known[name].partitions]
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0})
    try:
        told = _committed(reader, places)
        ends = [reader.get_watermark_offsets(place, WAIT_SECONDS)[1] for place in places]
    finally:
        reader.close()
    return sum(end - max(one.offset, 0) for end, one in zip(ends, told, strict=True))


def _committed(reader: Consumer, places: list[TopicPartition]) -> list[TopicPartition]:
    try:
        return reader.committed(places, WAIT_SECONDS)
    except KafkaException as error:
        if error.args[0].code() not in _NO_COORDINATOR:
            raise
        return places


def records(broker: DevBroker, topic: str) -> list[tuple[bytes | None, bytes]]:
    """Key and value of all records that a topic has now, tombstones left out."""
    partitions = admin(broker).list_topics(topic, WAIT_SECONDS).topics[topic].partitions
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none", "log_level": 0})
    found: list[tuple[bytes | None, bytes]] = []
    try:
        for number in partitions:
            place = TopicPartition(topic, number, 0)
            end = reader.get_watermark_offsets(place, WAIT_SECONDS)[1]
            reader.assign([place])
            at = 0
            while at < end:
                for message in reader.consume(1000, 1):
                    at = (message.offset() or 0) + 1
                    value = message.value()
                    if value is not None:
                        found.append((message.key(), value))
    finally:
        reader.close()
    return found
