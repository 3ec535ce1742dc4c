"""What the native reader read stays readable without its consumer, in a fork, and in part."""

import gc
import os
from collections.abc import Iterator

import pytest

from ingestd.cdc.base import RecordChunk
from ingestd.dev.broker import DevBroker
from ingestd.kafka.consumer_pool import close_consumers
from ingestd.kafka.fetch import fetch, fetch_all
from ingestd.kafka.native_reader import native_kafka
from ingestd.kafka.offset_ranges import OffsetRange
from tests.support.kafka_broker import fresh_topic, produce, source_of

pytestmark = pytest.mark.integration

COUNT = 3000
KEYS = [b"key %d" % i for i in range(COUNT)]
VALUES = [b"%d " % i + b"x" * (1000 + i % 7) if i % 11 else None for i in range(COUNT)]


@pytest.fixture(scope="module", autouse=True)
def consumers() -> Iterator[None]:
    if native_kafka() is None:
        pytest.skip("the native extension is not installed")
    close_consumers()
    yield
    close_consumers()


@pytest.fixture(scope="module")
def topic(broker: DevBroker) -> str:
    topic = fresh_topic(broker)
    produce(broker, topic, list(zip(KEYS, VALUES, strict=True)))
    return topic


def read(broker: DevBroker, topic: str, until: int = COUNT) -> RecordChunk:
    wanted = OffsetRange("src", topic, 0, 0, until)
    (chunk,) = fetch(source_of(broker, topic), wanted, max_records=COUNT, max_bytes=1 << 26)
    assert not isinstance(chunk.values, list)
    return chunk


def test_records_outlive_their_consumer(broker: DevBroker, topic: str) -> None:
    chunk = read(broker, topic)
    close_consumers()
    gc.collect()
    assert chunk.keys == KEYS
    assert chunk.values == VALUES


def test_a_part_outlives_the_chunk_and_the_consumer(broker: DevBroker, topic: str) -> None:
    part = read(broker, topic).values[1990:2010]
    close_consumers()
    gc.collect()
    assert list(part) == VALUES[1990:2010]


def test_a_consumer_may_go_after_its_records(broker: DevBroker, topic: str) -> None:
    assert read(broker, topic).values == VALUES
    gc.collect()
    close_consumers()
    assert read(broker, topic, 10).values == VALUES[:10]


def test_a_fork_reads_the_records_and_lets_them_go_without_harm(
    broker: DevBroker, topic: str
) -> None:
    chunk = read(broker, topic)
    child = os.fork()
    if not child:  # nothing may be raised here: it would go on with the tests
        same = chunk.values == VALUES
        del chunk
        close_consumers()
        gc.collect()
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert chunk.values == VALUES
    assert read(broker, topic, 5).values == VALUES[:5]


def test_ranges_that_are_read_together_have_texts_of_their_own(
    broker: DevBroker, topic: str
) -> None:
    other = fresh_topic(broker)
    produce(broker, other, [(None, b"other")])
    source = source_of(broker, topic, other)
    wanted = [OffsetRange("src", topic, 0, 5, 50), OffsetRange("src", other, 0, 0, 1)]
    chunks = list(fetch_all(source, wanted, max_records=100, max_bytes=1 << 20))
    close_consumers()
    assert {chunk.topic: list(chunk.values) for chunk in chunks} == {
        topic: VALUES[5:50],
        other: [b"other"],
    }
