"""Offsets of many partitions are those that the admin client reports for each."""

import time
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from ingestd.dev.broker import DevBroker
from ingestd.errors import SourceError
from ingestd.kafka import offsets
from ingestd.kafka.offsets import MANY_PARTITIONS, OffsetClient, TopicPartitions
from ingestd.kafka.ranges import TopicOffsets
from tests.support.kafka_broker import delete_records, fresh_topic, produce, source_of

pytestmark = pytest.mark.integration
OPEN, DELETED = 7, 8


@pytest.fixture(scope="module")
def topic(broker: DevBroker) -> Iterator[str]:
    """A topic of many partitions: one with an open transaction, one without its first records."""
    name = fresh_topic(broker, partitions=MANY_PARTITIONS)
    for partition in (0, OPEN, DELETED, MANY_PARTITIONS - 1):
        produce(broker, name, [(b"k", b"v")] * (3 + partition), partition)
    delete_records(broker, name, 4, DELETED)
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": uuid.uuid4().hex}
    writer = Producer(settings)
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce(name, b"not committed", partition=OPEN)
    writer.flush(30)
    yield name
    writer.abort_transaction(30)


def all_offsets(client: OffsetClient, asked: TopicPartitions, moment: int) -> list[TopicOffsets]:
    ends = client.end_offsets(asked)
    starts, later = client.beginning_offsets(asked), client.offsets_at(asked, moment)
    return [starts, ends, client.leader_epochs(ends), later, client.offsets_at(asked, 0)]


def test_both_requests_report_the_same(
    broker: DevBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, moment = {topic: tuple(range(MANY_PARTITIONS))}, int(time.time() * 1000) + 3_600_000
    client = OffsetClient(source_of(broker, topic))
    in_bulk = all_offsets(client, asked, moment)
    assert client._bulk is not None
    monkeypatch.setattr(offsets, "MANY_PARTITIONS", MANY_PARTITIONS + 1)
    one_by_one = OffsetClient(source_of(broker, topic))
    assert in_bulk == all_offsets(one_by_one, asked, moment)
    assert one_by_one._bulk is None
    starts, ends = in_bulk[0][topic], in_bulk[1][topic]
    assert (starts[DELETED], ends[DELETED], ends[OPEN], ends[1]) == (4, 3 + DELETED, 3 + OPEN, 0)
    client.close()
    one_by_one.close()


def test_a_partition_that_does_not_exist_is_named(broker: DevBroker, topic: str) -> None:
    client = OffsetClient(source_of(broker, topic), request_seconds=2)
    with pytest.raises(SourceError, match=f"offsets of {topic}/{MANY_PARTITIONS}: "):
        client.end_offsets({topic: tuple(range(MANY_PARTITIONS + 1))})
    client.close()
