"""Latencies under steady load count from when a record was due; the highest rate is bisected."""

import itertools
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, TopicPartition

from bench import steady
from bench.load import Load, events
from bench.replay import RawClient
from bench.steady import RATES, Totals, highest_rate, latencies
from bench.topics import Topics
from ingestd.dev.broker import DevBroker

LOAD = Load(events=5_000, keys=5_000, inserts=1.0, updates=0.0, partitions=2)


def totals(*points: tuple[float, int]) -> Totals:
    found = Totals()
    for moment, records in points:
        found.add(moment, records)
    return found


def test_a_batch_waits_for_the_commit_that_has_its_last_record() -> None:
    sent = totals((0.0, 10), (1.0, 10), (2.0, 10), (3.0, 10))
    readable = totals((1.5, 10), (2.5, 15), (4.0, 5))
    waits = latencies(sent, readable, begun=1.0, now=9.0)
    assert waits.tolist() == [1.5, 2.0, 6.0]  # the last batch is in no commit


@pytest.mark.parametrize("highest", [-1, 0, 7, len(RATES) - 1])
def test_the_highest_rate_is_found_and_every_rate_that_was_tried_is_kept(highest: int) -> None:
    limit = RATES[highest] if highest >= 0 else 0.0

    def hold(rate: float) -> dict[str, object]:
        return {"rate": rate, "correct": True, "p99_s": 1.9 if rate <= limit else 2.1}

    found = highest_rate(hold)
    assert found["rate"] == limit
    assert len(found["points"]) <= 5
    if highest >= 0:
        assert found["half"]["rate"] == limit / 2


def test_a_rate_at_which_rows_are_wrong_is_not_held() -> None:
    found = highest_rate(lambda rate: {"rate": rate, "correct": rate < RATES[3], "p99_s": 0.1})
    assert found["rate"] == RATES[2]


@pytest.fixture(scope="module")
def topics() -> Iterator[Topics]:
    with DevBroker() as broker:
        yield Topics(broker)


def test_batches_that_are_sent_again_hold_the_same_records(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steady, "CYCLE", LOAD)
    batches = steady.cycle(topics.broker.bootstrap, topics.filled("cycle", LOAD))
    assert sum(batch.records for batch in batches) == LOAD.events
    topics.broker.create_topic("again", LOAD.partitions, {"retention.ms": "-1"})
    with closing(RawClient(topics.broker.bootstrap)) as client:
        for batch in itertools.chain(batches, batches):
            client.send("again", batch)
    wanted = [(event.partition, event.key, event.value) for event in events(LOAD)]
    assert sorted(_records(topics.broker.bootstrap, "again")) == sorted(wanted * 2)


def _records(bootstrap: str, topic: str) -> Iterator[tuple[int, bytes, bytes]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
    consumer.assign([TopicPartition(topic, one, 0) for one in range(LOAD.partitions)])
    for _ in range(2 * LOAD.events):
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        yield message.partition() or 0, message.key() or b"", message.value() or b""
    consumer.close()
