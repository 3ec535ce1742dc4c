"""Ranges of many topic partitions that are read at a time, by either reader."""

import pytest

from ingestd.dev.broker import DevBroker
from ingestd.errors import LogChangedError
from ingestd.kafka.consumer_pool import close_consumers
from ingestd.kafka.fetch import fetch_all
from ingestd.kafka.native_reader import native_kafka
from ingestd.kafka.offset_ranges import OffsetRange
from tests.support.kafka_broker import delete_records, fresh_topic, produce, source_of

pytestmark = pytest.mark.integration


@pytest.fixture(params=["native", "python"], autouse=True)
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    close_consumers()
    if request.param == "python":
        monkeypatch.setattr("ingestd.kafka.consumer_pool.native_kafka", lambda: None)
    elif native_kafka() is None:
        pytest.skip("the native extension is not installed")


def test_small_ranges_of_many_topics_are_read_together(broker: DevBroker) -> None:
    topics = [fresh_topic(broker) for _ in range(6)]
    for number, topic in enumerate(topics):
        # A range is a part of what there is, and much lies after the end of some.
        produce(broker, topic, [(None, b"%d" % i) for i in range(20 + 1500 * number)])
    source = source_of(broker, *topics)
    ranges = [OffsetRange("src", topic, 0, 5, 15) for topic in topics]
    for bytes_of_a_chunk in (1 << 20, 16):
        found: dict[str, list[int]] = {topic: [] for topic in topics}
        for chunk in fetch_all(source, ranges, max_records=1000, max_bytes=bytes_of_a_chunk):
            found[chunk.topic] += chunk.offsets.tolist()
        assert found == {topic: list(range(5, 15)) for topic in topics}


def test_a_range_that_is_lost_among_others_is_named(broker: DevBroker) -> None:
    topics = [fresh_topic(broker) for _ in range(3)]
    for topic in topics:
        produce(broker, topic, [(None, b"%d" % i) for i in range(20)])
    delete_records(broker, topics[1], 12)
    ranges = [OffsetRange("src", topic, 0, 5, 15) for topic in topics]
    bounds = {"max_records": 1000, "max_bytes": 1 << 20}
    with pytest.raises(LogChangedError, match=rf"offsets 5 to 15 of {topics[1]}/0 .* has 12 to 20"):
        list(fetch_all(source_of(broker, *topics), ranges, **bounds))
