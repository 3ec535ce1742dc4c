"""Exact ranges against a real broker: gaps, markers, lost offsets, a broker that is away."""

import multiprocessing
import time
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from confluent_kafka import Producer

from ingestd.cdc.base import RecordChunk
from ingestd.dev.broker import DevBroker
from ingestd.errors import ConfigError, LogChangedError, SourceError
from ingestd.kafka.consumer_pool import close_consumers
from ingestd.kafka.fetch import STALL_SECONDS, fetch
from ingestd.kafka.native_reader import native_kafka
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource
from tests.support.kafka_broker import (
    WAIT_SECONDS,
    delete_records,
    delete_topic,
    fresh_topic,
    produce,
    produce_transaction,
    source_of,
)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", autouse=True)
def consumers() -> Iterator[None]:
    yield
    close_consumers()


@pytest.fixture(params=["native", "python"], autouse=True)
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test reads by both readers; one that the other left idle is closed first."""
    close_consumers()
    if request.param == "python":
        monkeypatch.setattr("ingestd.kafka.consumer_pool.native_kafka", lambda: None)
    elif native_kafka() is None:
        pytest.skip("the native extension is not installed")


def read(
    source: KafkaSource,
    topic: str,
    start: int,
    until: int,
    stall_seconds: float = STALL_SECONDS,
    **bounds: object,
) -> list[RecordChunk]:
    limits: dict[str, object] = {"max_records": 10_000, "max_bytes": 1 << 24, **bounds}
    wanted = OffsetRange(source.name, topic, 0, start, until)
    with patch("ingestd.kafka.fetch.STALL_SECONDS", stall_seconds):
        return list(fetch(source, wanted, **limits))  # type: ignore[arg-type]


def offsets(chunks: list[RecordChunk]) -> list[int]:
    return [int(offset) for chunk in chunks for offset in chunk.offsets]


def values(chunks: list[RecordChunk]) -> list[bytes | None]:
    return [value for chunk in chunks for value in chunk.values]


def end_of(source: KafkaSource, topic: str) -> int:
    return OffsetClient(source).end_offsets({topic: (0,)})[topic][0]


def test_exactly_the_range_is_read_with_all_columns(broker: DevBroker) -> None:
    topic = fresh_topic(broker)
    records = [
        (None if i % 3 else b"k%d" % i, None if i % 5 == 0 else b"v%d" % i) for i in range(50)
    ]
    produce(broker, topic, records)
    (chunk,) = read(source_of(broker, topic), topic, 10, 45)
    assert (chunk.topic, chunk.partition, chunk.headers) == (topic, 0, None)
    assert list(chunk.offsets) == list(range(10, 45))
    assert chunk.keys == [key for key, _ in records[10:45]]
    assert chunk.values == [value for _, value in records[10:45]]
    assert (abs(chunk.timestamps / 1000 - time.time()) < 3600).all()


def test_the_same_consumer_reads_range_after_range_in_any_order(broker: DevBroker) -> None:
    first, second = fresh_topic(broker), fresh_topic(broker)
    produce(broker, first, [(None, b"a%d" % i) for i in range(3000)])
    produce(broker, second, [(None, b"b%d" % i) for i in range(3000)])
    source = source_of(broker, first, second)
    for topic, start, until in [
        (first, 0, 10),
        (first, 10, 2000),
        (second, 5, 6),
        (first, 0, 3000),
        (second, 2999, 3000),
        (first, 5, 7),
    ]:
        dead_letter = b"a" if topic == first else b"b"
        expected = [dead_letter + b"%d" % i for i in range(start, until)]
        assert values(read(source, topic, start, until)) == expected


def test_interleaved_ranges_do_not_disturb_each_other(broker: DevBroker) -> None:
    topic = fresh_topic(broker)
    produce(broker, topic, [(None, b"%d" % i) for i in range(100)])
    source = source_of(broker, topic)
    both = [
        fetch(source, OffsetRange("src", topic, 0, a, a + 50), max_records=7, max_bytes=1 << 20)
        for a in (0, 50)
    ]
    pairs = list(zip(*both, strict=True))
    assert offsets([left for left, _ in pairs]) == list(range(50))
    assert offsets([right for _, right in pairs]) == list(range(50, 100))


def test_headers_come_when_asked_for(broker: DevBroker) -> None:
    topic = fresh_topic(broker)
    client_headers = [("a", b"1"), ("a", None)]
    produce(broker, topic, [(None, b"without")])
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    producer.produce(topic, b"with", headers=client_headers, partition=0)
    assert producer.flush(WAIT_SECONDS) == 0
    (chunk,) = read(source_of(broker, topic), topic, 0, 2, headers=True)
    assert chunk.headers == [None, client_headers]


def test_chunks_keep_their_bounds_and_a_huge_record_is_alone(broker: DevBroker) -> None:
    topic = fresh_topic(broker, config={"max.message.bytes": str(8 << 20)})
    sizes = [100] * 500 + [3 << 20] + [100] * 500
    produce(
        broker,
        topic,
        [(b"kk", b"x" * size) for size in sizes],
        config={"message.max.bytes": str(8 << 20)},
    )
    chunks = read(source_of(broker, topic), topic, 0, 1001, max_records=64, max_bytes=4080)
    assert offsets(chunks) == list(range(1001))
    for chunk in chunks:
        total = sum(len(value or b"") + 2 for value in chunk.values)
        assert len(chunk.values) <= 64
        assert total <= 4080 or len(chunk.values) == 1
    assert [len(chunk.values) for chunk in chunks].count(1) == 1


def test_aborted_records_are_left_out_and_markers_end_a_range(broker: DevBroker) -> None:
    topic = fresh_topic(broker)
    source = source_of(broker, topic)
    produce(broker, topic, [(None, b"plain")])  # 0
    produce_transaction(broker, topic, [(None, b"lost1"), (None, b"lost2")], commit=False)  # 1 2 m3
    produce_transaction(broker, topic, [(None, b"kept1"), (None, b"kept2")], commit=True)  # 4 5 m6
    assert end_of(source, topic) == 7
    assert values(read(source, topic, 0, 7)) == [b"plain", b"kept1", b"kept2"]
    assert values(read(source, topic, 6, 7)) == []  # a marker alone, at the very end
    assert values(read(source, topic, 1, 4)) == []  # aborted records and their marker
    assert values(read(source, topic, 2, 5)) == [b"kept1"]
    produce_transaction(broker, topic, [(None, b"last")], commit=False)  # 7 m8
    assert end_of(source, topic) == 9
    assert offsets(read(source, topic, 5, 9)) == [5]
    assert values(read(source, topic, 0, 9)) == [b"plain", b"kept1", b"kept2"]


def test_offsets_of_an_open_transaction_are_not_the_end_yet(broker: DevBroker) -> None:
    topic = fresh_topic(broker)
    source = source_of(broker, topic)
    produce(broker, topic, [(None, b"before")])
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions(WAIT_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(WAIT_SECONDS)
    assert end_of(source, topic) == 1
    with pytest.raises(SourceError, match=f"{topic}/0 .* returned no record for 1 s at offset 1"):
        read(source, topic, 0, 2, stall_seconds=1.0)
    producer.commit_transaction(WAIT_SECONDS)
    assert values(read(source, topic, 0, 2)) == [b"before", b"open"]


def test_gaps_of_compaction_are_passed_over(broker: DevBroker) -> None:
    config = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.0",
        "max.compaction.lag.ms": "1",
    }
    topic = fresh_topic(broker, config=config)
    source = source_of(broker, topic)
    produce(broker, topic, [(b"k%d" % (i % 2), b"%d" % i) for i in range(40)])
    deadline = time.monotonic() + WAIT_SECONDS
    count = 40
    found: list[bytes | None] = []
    while time.monotonic() < deadline:
        time.sleep(0.3)
        produce(broker, topic, [(b"roll", b"%d" % count)])  # closes the segment before it
        count += 1
        found = values(read(source, topic, 0, 40))
        if len(found) < 40:
            break
    assert found == [] or found[-1] in {b"38", b"39"}
    assert len(found) < 40
    assert values(read(source, topic, count - 1, count)) == [b"%d" % (count - 1)]


def test_offsets_deleted_by_retention_are_an_error_that_names_them(broker: DevBroker) -> None:
    topic = fresh_topic(broker)
    produce(broker, topic, [(None, b"%d" % i) for i in range(20)])
    delete_records(broker, topic, 12)
    with pytest.raises(LogChangedError, match=rf"offsets 5 to 15 of {topic}/0 .* has 12 to 20"):
        read(source_of(broker, topic), topic, 5, 15)
    assert offsets(read(source_of(broker, topic), topic, 12, 15)) == [12, 13, 14]


def test_a_range_after_the_end_of_a_recreated_topic_is_lost(broker: DevBroker) -> None:
    topic = fresh_topic(broker)
    produce(broker, topic, [(None, b"x")] * 3)
    with pytest.raises(LogChangedError, match=f"{topic}/0 of source src .* has 0 to 3"):
        read(source_of(broker, topic), topic, 10, 12)


def test_a_deleted_topic_is_an_error(broker: DevBroker) -> None:
    topic = fresh_topic(broker)
    produce(broker, topic, [(None, b"x")] * 3)
    source = source_of(broker, topic)
    read(source, topic, 0, 1)
    delete_topic(broker, topic)
    with pytest.raises(LogChangedError, match=topic):
        read(source, topic, 1, 3)


def test_a_fork_reads_with_a_consumer_of_its_own(broker: DevBroker) -> None:
    topic = fresh_topic(broker)
    produce(broker, topic, [(None, b"%d" % i) for i in range(10)])
    source = source_of(broker, topic)
    assert len(values(read(source, topic, 0, 10))) == 10
    fork = multiprocessing.get_context("fork")
    queue = fork.SimpleQueue()
    child = fork.Process(target=lambda: queue.put(values(read(source, topic, 2, 4))))
    child.start()
    assert queue.get() == [b"2", b"3"]
    child.join(WAIT_SECONDS)
    assert child.exitcode == 0
    assert values(read(source, topic, 8, 10)) == [b"8", b"9"]


def test_an_unknown_property_is_named() -> None:
    properties = {"bootstrap.servers": "127.0.0.1:1", "no.such.thing": "1"}
    source = KafkaSource("shop", ("t",), properties=properties)
    with pytest.raises(ConfigError, match=r"sources\.shop\.kafka.*no\.such\.thing"):
        read(source, "t", 0, 1)


@pytest.fixture(scope="module")
def mortal() -> Iterator[DevBroker]:
    """A broker that is killed and started again."""
    with DevBroker() as running:
        yield running


def test_a_broker_that_goes_away_is_waited_for_and_then_named(mortal: DevBroker) -> None:
    topic = fresh_topic(mortal)
    produce(mortal, topic, [(None, b"x")] * 10)
    source = source_of(mortal, topic)
    assert len(values(read(source, topic, 0, 10))) == 10
    mortal.kill()
    text = rf"{topic}/0 .* returned no record for 2 s at offset 3 .*{mortal.bootstrap}; the client"
    with pytest.raises(SourceError, match=text):
        read(source, topic, 3, 10, stall_seconds=2.0)
    mortal.restart()
    assert offsets(read(source, topic, 3, 10)) == list(range(3, 10))


def test_a_read_that_is_given_up_does_not_spoil_the_next_one(broker: DevBroker) -> None:
    topic = fresh_topic(broker)
    produce(broker, topic, [(None, b"%d" % i) for i in range(5000)])
    source = source_of(broker, topic)
    wanted = OffsetRange("src", topic, 0, 0, 5000)
    given_up = fetch(source, wanted, max_records=10, max_bytes=1 << 20)
    assert len(next(given_up).values) == 10
    given_up.close()  # type: ignore[attr-defined]  # fetch is a generator
    assert offsets(read(source, topic, 100, 200)) == list(range(100, 200))
