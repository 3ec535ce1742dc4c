"""Where a pipeline begins and where it ends, against a real broker and with Spark."""

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from ingestd.dev.broker import DevBroker
from tests.support.daemon import Daemon, run_daemon
from tests.support.kafka_broker import (
    WAIT_SECONDS,
    admin,
    delete_records,
    fresh_topic,
    produce,
)
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE

pytestmark = pytest.mark.integration


def rows_of(first: int, count: int) -> Iterable[tuple[bytes, bytes]]:
    """Rows with consecutive ids."""
    for number in range(first, first + count):
        yield json.dumps({"id": number}).encode(), json.dumps({"id": number, "v": "x"}).encode()


def config(folder: Path, broker: DevBroker, topics: list[str], **source: Any) -> dict[str, Any]:
    """A pipeline of plain rows; keys of the source with `_` for what YAML has as `-` or `.`."""
    return {
        "pipeline": {"name": folder.name, "trigger": "100ms"},
        "warehouse": {"path": str(folder / "lake"), "database": DATABASE},
        "sources": {
            "s": {
                "kafka": {"bootstrap.servers": broker.bootstrap, "group.id": folder.name},
                "topics": topics,
                "format": "json",
                **source,
            }
        },
        "routing": {"table-mapping": dict.fromkeys(topics, "t"), "merge-shards": True},
        "logging": {"format": "json"},
    }


def run(document: Mapping[str, Any], folder: Path) -> Daemon:
    """Run a pipeline that ends by itself."""
    with run_daemon(document, folder) as daemon:
        assert daemon.wait() == 0, daemon.tail(80)
    return daemon


def set_group(broker: DevBroker, group: str, place: TopicPartition) -> None:
    """Write the offset of a group; a broker that meets its first group needs a moment."""
    client, request = admin(broker), [ConsumerGroupTopicPartitions(group, [place])]
    end = time.monotonic() + WAIT_SECONDS
    while True:
        (future,) = client.alter_consumer_group_offsets(request).values()
        (done,) = future.result(WAIT_SECONDS).topic_partitions
        if done.error is None:
            return
        assert time.monotonic() < end, done.error
        time.sleep(0.1)


def ids(oracle: Oracle, folder: Path, table: str = "t") -> list[int]:
    return sorted(row["id"] for row in oracle.read(folder / "lake", DATABASE, table))


def test_specific_offsets_bound_a_run_and_a_second_run_goes_on_from_the_tables(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    topic = fresh_topic(broker, 2)
    produce(broker, topic, rows_of(0, 10), partition=0)
    produce(broker, topic, rows_of(100, 10), partition=1)
    document = config(
        tmp_path,
        broker,
        [topic],
        **{
            "startup-mode": "specific-offsets",
            "startup-specific-offsets": f"{topic}:0:4",
            "bounded-mode": "specific-offsets",
            "bounded-specific-offsets": {topic: {"0": 8, "1": 3}},
        },
    )
    run(document, tmp_path)
    assert ids(oracle, tmp_path) == [4, 5, 6, 7, 100, 101, 102]
    document["sources"]["s"] |= {"bounded-specific-offsets": f"{topic}:0:9;{topic}:1:10"}
    run(document, tmp_path)
    assert ids(oracle, tmp_path) == [4, 5, 6, 7, 8, *range(100, 110)]


def test_a_bound_that_lies_ahead_is_waited_for(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    topic = fresh_topic(broker)
    produce(broker, topic, rows_of(0, 5))
    bounds = {"bounded-mode": "specific-offsets"}
    bounds["bounded-specific-offsets"] = f"{topic}:0:12"
    with run_daemon(config(tmp_path, broker, [topic], **bounds), tmp_path) as daemon:
        daemon.wait_until_ready()
        assert daemon.process.poll() is None
        produce(broker, topic, rows_of(5, 20))
        assert daemon.wait() == 0, daemon.tail(80)
    assert ids(oracle, tmp_path) == list(range(12))


def test_times_bound_one_source_and_the_offsets_of_a_group_begin_another(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    timed, grouped = fresh_topic(broker), fresh_topic(broker, 2)
    borders = []
    for part in range(3):
        produce(broker, timed, rows_of(10 * part, 10))
        time.sleep(0.02)
        borders.append(int(time.time() * 1000))
        time.sleep(0.02)
    produce(broker, grouped, rows_of(100, 10))
    set_group(broker, tmp_path.name, TopicPartition(grouped, 0, 7))
    document = config(tmp_path, broker, [timed, grouped])
    document["sources"] = {
        "timed": {
            **document["sources"]["s"],
            "topics": [timed],
            "startup-mode": "timestamp",
            "startup-timestamp-millis": borders[0],
            "bounded-mode": "timestamp",
            "bounded-timestamp-millis": borders[1],
        },
        "grouped": {
            **document["sources"]["s"],
            "topics": [grouped],
            "startup-mode": "group-offsets",
            "bounded-mode": "latest-offset",
        },
    }
    run(document, tmp_path)
    assert ids(oracle, tmp_path) == [*range(10, 20), 107, 108, 109]


def test_a_gap_in_the_log_is_a_dead_letter_a_log_line_and_no_silence(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    topic = fresh_topic(broker)
    produce(broker, topic, rows_of(0, 10))
    bounds = {"bounded-mode": "latest-offset", "on-offset-out-of-range": "earliest"}
    document = config(tmp_path, broker, [topic], **bounds)
    run(document, tmp_path)
    produce(broker, topic, rows_of(10, 10))
    delete_records(broker, topic, 16)
    run(document, tmp_path)
    produce(broker, topic, rows_of(20, 5))
    delete_records(broker, topic, 25)
    document["sources"]["s"] |= {"on-offset-out-of-range": "latest"}
    daemon = run(document, tmp_path)
    assert ids(oracle, tmp_path) == [*range(10), *range(16, 20)]
    dead_letters = oracle.read(tmp_path / "lake", DATABASE, "ingestd_dead_letters")
    first, second = sorted(dead_letters, key=lambda dead_letter: dead_letter["offset"])
    assert (first["stage"], first["reason"]) == ("fetch", "offset-gap")
    assert (first["topic"], first["partition"], first["offset"]) == (topic, 0, 10)
    assert "offsets 10 to 16, table" in first["message"]
    assert first["value"] is None
    assert "offsets 20 to 25, table" in second["message"], "nothing else to read"
    lines = [json.loads(line) for line in daemon.log.read_text().splitlines() if line[:1] == "{"]
    assert [line["message"] for line in lines if line.get("reason") == "offset-gap"] == [
        first["message"],
        second["message"],
    ]
