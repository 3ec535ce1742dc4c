"""Logs that are cut, replaced or expired, as a real broker reports them."""

import shutil
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from ingestd.kafka.consumer_pool import close_consumers
from ingestd.kafka.fetch import fetch
from ingestd.kafka.log_checks import NO_EPOCH
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.records import TopicAndPartition
from tests.support.kafka_broker import (
    WAIT_SECONDS,
    cut_log,
    delete_records,
    fresh_topic,
    produce,
    produce_transaction,
    running_broker,
    source_of,
)

pytestmark = pytest.mark.integration
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.0",
    "max.compaction.lag.ms": "1",
}
PARTITIONS = 200


@pytest.fixture(scope="module")
def own_broker() -> Iterator[DevBroker]:
    """A broker that may be killed."""
    with running_broker() as running:
        yield running


@contextmanager
def asking(broker: DevBroker, *topics: str) -> Iterator[OffsetClient]:
    client = OffsetClient(source_of(broker, *topics))
    try:
        yield client
    finally:
        client.close()


def write(broker: DevBroker, topic: str, batches: int) -> None:
    """Append batches of ten records."""
    for number in range(batches):
        produce(broker, topic, [(b"k%d" % number, b"v%d" % index) for index in range(10)])


def positions(broker: DevBroker, *topics: str) -> dict[TopicAndPartition, tuple[int, int]]:
    """The ends of the logs, with their leader epochs."""
    with asking(broker, *topics) as client:
        ends = client.end_offsets(dict.fromkeys(topics, (0,)))
        epochs = client.leader_epochs(ends)
    return {(topic, 0): (ends[topic][0], epochs[topic][0]) for topic in topics}


def divergences(
    broker: DevBroker, reached: Mapping[TopicAndPartition, tuple[int, int]]
) -> Mapping[TopicAndPartition, int]:
    with asking(broker, *(topic for topic, _ in reached)) as client:
        return client.divergences(reached)


def fingerprints(
    broker: DevBroker, offsets: Mapping[TopicAndPartition, int]
) -> Mapping[TopicAndPartition, int]:
    with asking(broker, *(topic for topic, _ in offsets)) as client:
        return client.fingerprints(offsets)


def last_records(broker: DevBroker, ends: Mapping[str, int]) -> dict[TopicAndPartition, int]:
    """Fingerprints as a batch makes them, of the last record before each end."""
    found: dict[TopicAndPartition, int] = {}
    source = source_of(broker, *ends)
    for topic, end in ends.items():
        wanted = OffsetRange(source.name, topic, 0, 0, end)
        for chunk in fetch(source, wanted, max_records=7, max_bytes=1 << 20):
            found[topic, 0] = chunk.last_checksum()
    close_consumers()
    return found


def test_a_log_that_was_cut_is_found_however_far_it_grows_again(own_broker: DevBroker) -> None:
    cut, _, expired = topics = [fresh_topic(own_broker) for _ in range(3)]
    for topic in topics:
        write(own_broker, topic, 10)
    reached = positions(own_broker, *topics)
    assert {offset for offset, _ in reached.values()} == {100}
    own_broker.kill()
    cut_log(own_broker, cut, 50)
    own_broker.restart()
    assert divergences(own_broker, reached) == {(cut, 0): 50}

    for topic in topics:
        write(own_broker, topic, 10)
    delete_records(own_broker, expired, 150)  # what retention takes is no divergence
    now = positions(own_broker, *topics)
    assert [offset for offset, _ in now.values()] == [150, 200, 200]
    assert all(now[place][1] > epoch for place, (_, epoch) in reached.items())
    assert divergences(own_broker, reached) == {(cut, 0): 50}
    # What was read before the cut, and what was read of the new log, is there.
    assert divergences(own_broker, {(cut, 0): (50, reached[cut, 0][1])}) == {}
    assert divergences(own_broker, now) == {}
    # A cluster that counts epochs again has never heard of the one that was recorded.
    assert divergences(own_broker, {(cut, 0): (120, now[cut, 0][1] + 5)}) == {(cut, 0): NO_EPOCH}


def test_brokers_that_are_away_are_asked_again(own_broker: DevBroker) -> None:
    topic = fresh_topic(own_broker)
    write(own_broker, topic, 1)
    epoch = positions(own_broker, topic)[topic, 0][1]
    own_broker.kill()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(divergences, own_broker, {(topic, 0): (15, epoch)})
        with pytest.raises(TimeoutError):
            asked.result(1)
        own_broker.start()
        assert asked.result(WAIT_SECONDS) == {(topic, 0): 10}


def test_many_partitions_are_asked_at_once(own_broker: DevBroker) -> None:
    topic = fresh_topic(own_broker, partitions=PARTITIONS)
    for partition in range(0, PARTITIONS, 2):
        produce(own_broker, topic, [(b"k", b"v")] * 3, partition)
    places = [(topic, partition) for partition in range(PARTITIONS)]
    ends = {place: 3 * (place[1] % 2 == 0) for place in places}
    assert divergences(own_broker, {place: (end, 0) for place, end in ends.items()}) == {}
    assert divergences(own_broker, dict.fromkeys(places, (5, 0))) == ends
    found = fingerprints(own_broker, dict.fromkeys(places, 3))
    assert found.keys() == {place for place, end in ends.items() if end}


@pytest.mark.parametrize("reader", ["native", "python"])
def test_records_are_known_again_or_nothing_is_said_of_them(
    own_broker: DevBroker, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reader == "python":
        monkeypatch.setattr("ingestd.kafka.consumer_pool.native_kafka", lambda: None)
    plain, missing, empty, marked, expired = (fresh_topic(own_broker) for _ in range(5))
    compacted = fresh_topic(own_broker, config=COMPACTED)
    produce(own_broker, plain, [(b"k", b"v"), (None, b"w" * 100_000)])
    produce(own_broker, missing, [(b"", None)])
    produce(own_broker, empty, [(b"", b"")])
    produce_transaction(own_broker, marked, [(b"k", b"v")], commit=True)
    for topic in (compacted, expired):
        produce(own_broker, topic, [(b"k", b"%d" % number) for number in range(5)])
    ends = {plain: 2, missing: 1, empty: 1, marked: 1, expired: 5, compacted: 4}
    read = last_records(own_broker, ends)
    assert len(set(read.values())) == len(ends)
    assert fingerprints(own_broker, {(topic, 0): end for topic, end in ends.items()}) == read

    produce(own_broker, compacted, [(b"k", b"new")])
    delete_records(own_broker, expired, 5)
    deadline = time.monotonic() + WAIT_SECONDS
    while fingerprints(own_broker, {(compacted, 0): 4}):
        assert time.monotonic() < deadline
        time.sleep(0.2)
        produce(own_broker, compacted, [(b"roll", b"")])  # closes the segment before it
    gone = {(plain, 0): 3, (marked, 0): 2, (expired, 0): 5, (compacted, 0): 4}
    assert fingerprints(own_broker, gone) == {}


def test_a_restored_broker_that_counts_epochs_again_is_known_by_its_records(
    tmp_path: Path,
) -> None:
    with running_broker() as broker:
        replaced, kept = topics = [fresh_topic(broker) for _ in range(2)]
        for topic in topics:
            write(broker, topic, 5)
        broker.kill()
        data = broker.log.parent / "data"
        shutil.copytree(data, tmp_path / "backup")
        broker.restart()
        produce(broker, replaced, [(b"k", b"first %d" % number) for number in range(50)])
        reached = positions(broker, *topics)
        with asking(broker, *topics) as client:
            keys = client.topic_keys(topics)
        read = last_records(broker, {topic: reached[topic, 0][0] for topic in topics})

        broker.kill()
        shutil.rmtree(data)
        shutil.copytree(tmp_path / "backup", data)
        broker.restart()
        produce(broker, replaced, [(b"k", b"again %d" % number) for number in range(60)])
        # Ids and epochs are those of before, and the log has grown past what was read.
        with asking(broker, *topics) as client:
            assert client.topic_keys(topics) == keys
        epoch = reached[replaced, 0][1]
        assert positions(broker, *topics) == {**reached, (replaced, 0): (110, epoch)}
        assert divergences(broker, reached) == {}
        found = fingerprints(broker, {place: offset for place, (offset, _) in reached.items()})
        assert found.keys() == read.keys()
        assert found[kept, 0] == read[kept, 0]
        assert found[replaced, 0] != read[replaced, 0]
