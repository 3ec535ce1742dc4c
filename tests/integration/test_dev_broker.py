"""The development broker as a process: what it leaves behind, and what it keeps.

The workload arrives in it as it was made.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from ingestd.dev.broker import BrokerError, DevBroker
from ingestd.dev.produce import messages
from ingestd.dev.produce import produce as produce_workload
from ingestd.dev.workload import Workload
from ingestd.errors import SourceError
from ingestd.kafka.fetch import fetch
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.offsets import OffsetClient
from tests.support.kafka_broker import WAIT_SECONDS, fresh_topic, produce, source_of

pytestmark = pytest.mark.integration

OWNER = """
import sys, time
from ingestd.dev.broker import DevBroker
broker = DevBroker()
broker.start()
print(broker.bootstrap, broker.log, flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def lasting() -> Iterator[DevBroker]:
    """A broker with nothing in it that is not killed."""
    with DevBroker() as broker:
        yield broker


def wait_until_gone(path: Path) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not path.exists()


def test_a_killed_broker_comes_back_with_its_data_and_address() -> None:
    with DevBroker() as broker:
        topic = fresh_topic(broker)
        produce(broker, topic, [(None, b"kept")])
        address = broker.bootstrap
        broker.kill()
        assert not broker.running
        broker.restart()
        assert broker.bootstrap == address
        wanted = OffsetRange("src", topic, 0, 0, 1)
        (chunk,) = fetch(source_of(broker, topic), wanted, max_records=10, max_bytes=1000)
        assert chunk.values == [b"kept"]
        folder = broker.log.parent
    assert not folder.exists()


def test_a_broker_ends_with_the_process_that_owns_it() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout
    address, log = owner.stdout.readline().split()
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait(WAIT_SECONDS)
    owner.stdout.close()
    wait_until_gone(Path(log).parent)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(address.split(":")[1])), 1)


def test_a_broker_that_does_not_start_shows_its_log() -> None:
    with pytest.raises(BrokerError, match=r"(?s)ended while starting.*log\.cleaner\.threads"):
        DevBroker({"log.cleaner.threads": "-5"}).start()


def test_ids_and_group_offsets_are_what_the_broker_says(lasting: DevBroker) -> None:
    topic = fresh_topic(lasting, 2)
    client = OffsetClient(source_of(lasting, topic, "absent"))
    assert client.list_topic_partitions() == {topic: (0, 1)}
    assert len(client.cluster_id()) == 22
    ids = client.topic_ids([topic, "absent"])
    assert ids.keys() == {topic}
    assert len(ids[topic]) == 22
    deadline = time.monotonic() + WAIT_SECONDS
    found: list[int] = []
    # A group's coordinator may still be loading; the hint is given again after every batch.
    while found != [5, 7] and time.monotonic() < deadline:
        client.commit_group_offsets("ingestd-src", {topic: {0: 5, 1: 7}})
        found = committed(lasting, topic)
    assert found == [5, 7]


def committed(broker: DevBroker, topic: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "ingestd-src"})
    places = [TopicPartition(topic, one) for one in (0, 1)]
    found = [one.offset for one in consumer.committed(places, WAIT_SECONDS)]
    consumer.close()
    return found


def test_every_message_arrives_in_its_partition_in_order_and_only_in_new_topics(
    lasting: DevBroker,
) -> None:
    workload = Workload(events=1500, partitions=2)
    told: list[int] = []
    sent = produce_workload(workload, lasting.bootstrap, told.append)
    wanted: dict[tuple[str, int], list[tuple[bytes, bytes | None]]] = {}
    for message in messages(workload):
        place = wanted.setdefault((message.topic, message.partition), [])
        place.append((message.key, message.value))
    consumer = Consumer({"bootstrap.servers": lasting.bootstrap, "group.id": "reader"})
    for (topic, partition), records in wanted.items():
        consumer.assign([TopicPartition(topic, partition, 0)])
        got = consumer.consume(len(records), 30)
        assert [(m.key(), m.value()) for m in got] == records
    consumer.close()
    # Topics that are there already are not filled twice.
    with pytest.raises(SourceError, match="did not take the workload"):
        produce_workload(Workload(events=100), lasting.bootstrap)
    assert sent == sum(map(len, wanted.values()))
    assert told[-1] == sent
