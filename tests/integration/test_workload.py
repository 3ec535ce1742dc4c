"""The workload arrives in a real broker as it was made."""

import pytest
from confluent_kafka import Consumer, TopicPartition

from ingestd.dev.broker import DevBroker
from ingestd.dev.produce import messages, produce
from ingestd.dev.workload import Workload
from ingestd.errors import SourceError

pytestmark = pytest.mark.integration


def test_every_message_arrives_in_its_partition_in_order_and_only_in_new_topics() -> None:
    workload = Workload(events=1500, partitions=2)
    told: list[int] = []
    with DevBroker() as broker:
        sent = produce(workload, broker.bootstrap, told.append)
        wanted: dict[tuple[str, int], list[tuple[bytes, bytes | None]]] = {}
        for message in messages(workload):
            place = wanted.setdefault((message.topic, message.partition), [])
            place.append((message.key, message.value))
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "reader"})
        for (topic, partition), records in wanted.items():
            consumer.assign([TopicPartition(topic, partition, 0)])
            got = consumer.consume(len(records), 30)
            assert [(m.key(), m.value()) for m in got] == records
        consumer.close()
        # Topics that are there already are not filled twice.
        with pytest.raises(SourceError, match="did not take the workload"):
            produce(Workload(events=100), broker.bootstrap)
    assert sent == sum(map(len, wanted.values()))
    assert told[-1] == sent
