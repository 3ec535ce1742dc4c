"""A topic partition that the client gives no record of, while its broker answers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from ingestd.errors import SourceSilentError
from ingestd.kafka import fetch, isolated_fetch
from ingestd.kafka.consumer_pool import close_consumers
from ingestd.kafka.fetch import Bounds
from ingestd.kafka.isolated_fetch import Unreadable, fetch_readable
from ingestd.kafka.native_reader import native_kafka
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.try_range import start_try
from tests.support.daemon import catch_up, free_port, run_daemon
from tests.support.kafka_broker import fresh_topic, produce, source_of
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline

pytestmark = [pytest.mark.integration, pytest.mark.slow]
SMALL = {"fetch.max.bytes": "1000000", "receive.message.max.bytes": "2000000"}
LARGE = {"max.message.bytes": str(8 << 20)}
PRODUCER = {"message.max.bytes": str(32 << 20)}
BOUNDS = Bounds(1000, 1 << 20)


def event(table: str, number: int, body: str = "") -> tuple[bytes, bytes]:
    source = {"connector": "postgresql", "db": "d", "schema": "s", "table": table, "lsn": number}
    value = {"before": None, "after": {"id": number, "body": body}, "source": source, "op": "c"}
    return json.dumps({"id": number}).encode(), json.dumps(value).encode()


@pytest.mark.parametrize("native", [True, False])
def test_what_is_read_with_it_goes_on(
    broker: DevBroker, monkeypatch: pytest.MonkeyPatch, native: bool
) -> None:
    if native and native_kafka() is None:
        pytest.skip("the native extension is not installed")
    if not native:
        monkeypatch.setattr("ingestd.kafka.consumer_pool.native_kafka", lambda: None)
    close_consumers()
    monkeypatch.setattr(fetch, "STALL_SECONDS", 4.0)
    monkeypatch.setattr(isolated_fetch, "APART_SECONDS", 3.0)
    topics = [fresh_topic(broker, 1, LARGE) for _ in range(4)]
    for topic in topics:
        produce(broker, topic, [(None, b"%d" % index) for index in range(10)])
    produce(broker, topics[2], [(None, b"x" * (4 << 20)), (None, b"y")], config=PRODUCER)
    source = source_of(broker, *topics)
    source = replace(source, properties={**source.properties, **SMALL})
    ranges = [OffsetRange("src", topic, 0, 0, 12 if topic == topics[2] else 10) for topic in topics]
    unreadable: list[Unreadable] = []
    found: dict[str, list[int]] = {topic: [] for topic in topics}
    for chunk in fetch_readable(source, ranges, BOUNDS, unreadable.append):
        found[chunk.topic] += chunk.offsets.tolist()
    assert found == {topic: list(range(10)) for topic in topics}
    assert [unreadable_range.range for unreadable_range in unreadable] == [
        OffsetRange("src", topics[2], 0, 10, 12)
    ]
    assert "receive.message.max.bytes" in unreadable[0].reason


def test_a_try_in_another_process_shows_whether_a_record_can_be_read(broker: DevBroker) -> None:
    topic = fresh_topic(broker, 1, LARGE)
    produce(broker, topic, [(None, b"0"), (None, b"x" * (4 << 20))], config=PRODUCER)
    source = source_of(broker, topic)
    assert start_try(source, [OffsetRange("src", topic, 0, 1, 2)], 1 << 30).wait(120) == 0
    source = replace(source, properties={**source.properties, **SMALL})
    assert start_try(source, [OffsetRange("src", topic, 0, 1, 2)], 1 << 30).wait(120) == 3


def test_a_broker_that_does_not_answer_makes_nothing_unreadable(
    broker: DevBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "STALL_SECONDS", 3.0)
    monkeypatch.setattr(isolated_fetch, "_ASK_SECONDS", 2.0)
    source = replace(
        source_of(broker, "gone"), properties={"bootstrap.servers": f"127.0.0.1:{free_port()}"}
    )
    unreadable: list[Unreadable] = []
    with pytest.raises(SourceSilentError):
        list(
            fetch_readable(source, [OffsetRange("src", "gone", 0, 0, 1)], BOUNDS, unreadable.append)
        )
    assert unreadable == []


def test_others_go_on_and_it_is_read_once_it_can_be(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    """In the second run another source has such a partition, and a policy for it."""
    good, bad = fresh_topic(broker), fresh_topic(broker, 1, LARGE)
    produce(broker, good, [event("good", number) for number in range(20)])
    produce(broker, bad, [event("bad", number) for number in range(10)])
    produce(broker, bad, [event("bad", 10, "x" * (4 << 20)), event("bad", 11)], config=PRODUCER)
    config: dict[str, Any] = pipeline(tmp_path, broker.bootstrap, f"{good}|{bad}")
    kafka = config["sources"]["shop"]["kafka"]
    kafka.update(SMALL)
    with run_daemon(config, tmp_path, until_latest=True) as daemon:
        assert daemon.wait() == 5, daemon.tail(60)
        line = daemon.logged("partition_set_aside")
    assert (line["topic"], line["partition"], line["offset"]) == (bad, 0, 10)
    assert "receive.message.max.bytes" in daemon.logged("pipeline_failed")["message"]

    def ids(table: str) -> list[int]:
        return sorted(row["id"] for row in oracle.read(tmp_path / "warehouse", DATABASE, table))

    assert ids("good") == list(range(20))
    assert ids("bad") == list(range(10)), "what is before it arrives"
    for name in SMALL:
        del kafka[name]
    lost = topic_that_stays_unreadable(broker)
    config["sources"]["small"] = {
        **config["sources"]["shop"],
        "kafka": {**kafka, **SMALL},
        "topic-pattern": lost,
    }
    config["errors"] = {"max-unreadable-tries": 1, "on-unreadable": "dead-letter"}
    catch_up(config, tmp_path)
    assert ids("bad") == list(range(12))
    check_policy(lost, oracle.read(tmp_path / "warehouse", DATABASE, "ingestd_dead_letters"))
    assert ids("lost") == [*range(10), 12]


def topic_that_stays_unreadable(broker: DevBroker) -> str:
    """A topic with two records together that the client does not take, and one after them."""
    topic = fresh_topic(broker, 1, LARGE)
    produce(broker, topic, [event("lost", number) for number in range(10)])
    large = [event("lost", number, "x" * (2 << 20)) for number in (10, 11)]
    produce(broker, topic, [*large, event("lost", 12)], config=PRODUCER)
    return topic


def check_policy(lost: str, rows: list[dict[str, Any]]) -> None:
    """After its tries the policy names the range, and reads on."""
    dead_letters = [row for row in rows if row["reason"] == "unreadable"]
    assert {
        (dead_letter["topic"], dead_letter["partition"], dead_letter["offset"])
        for dead_letter in dead_letters
    } == {(lost, 0, 10)}
    assert f"{lost}/0 of source small, offsets 10 to 12" in dead_letters[0]["message"]
