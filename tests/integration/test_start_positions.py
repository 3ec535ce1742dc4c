"""Where a pipeline begins and where it ends, against a real broker and with Spark."""

import json
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from ingestd.dev.broker import DevBroker
from tests.support.daemon import run_daemon
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


def source(broker: DevBroker, group: str, topic: str, **settings: Any) -> dict[str, Any]:
    """A source of plain rows."""
    return {
        "kafka": {"bootstrap.servers": broker.bootstrap, "group.id": group},
        "topics": [topic],
        "format": "json",
        **settings,
    }


def set_group(broker: DevBroker, group: str, position: TopicPartition) -> None:
    """Write the offset of a group; a broker that meets its first group needs a moment."""
    client, request = admin(broker), [ConsumerGroupTopicPartitions(group, [position])]
    end = time.monotonic() + WAIT_SECONDS
    while True:
        (future,) = client.alter_consumer_group_offsets(request).values()
        (done,) = future.result(WAIT_SECONDS).topic_partitions
        if done.error is None:
            return
        assert time.monotonic() < end, done.error
        time.sleep(0.1)


def timed_topic(broker: DevBroker) -> tuple[str, int, int]:
    """A topic of 30 rows, and times between the tenth and eleventh, and twentieth and next one."""
    topic = fresh_topic(broker)
    times = []
    for part in range(3):
        produce(broker, topic, rows_of(10 * part, 10))
        time.sleep(0.02)
        times.append(int(time.time() * 1000))
        time.sleep(0.02)
    return topic, times[0], times[1]


def test_sources_start_and_end_where_their_settings_say_and_continue_from_the_tables(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    """One pipeline with a source for each way, in two runs."""
    group, later = f"g{uuid.uuid4().hex[:8]}", {"bounded-mode": "latest-offset"}
    offsets, ahead, grouped = (fresh_topic(broker, count) for count in (2, 1, 2))
    cut, gone = fresh_topic(broker), fresh_topic(broker)
    timed, first_millis, last_millis = timed_topic(broker)
    produce(broker, offsets, rows_of(0, 10), partition=0)
    produce(broker, offsets, rows_of(100, 10), partition=1)
    produce(broker, ahead, rows_of(0, 5))
    produce(broker, grouped, rows_of(100, 10))
    produce(broker, cut, rows_of(0, 10))
    produce(broker, gone, rows_of(0, 20))
    set_group(broker, group, TopicPartition(grouped, 0, 7))
    by_offsets = source(
        broker,
        group,
        offsets,
        **{
            "startup-mode": "specific-offsets",
            "startup-specific-offsets": f"{offsets}:0:4",
            "bounded-mode": "specific-offsets",
            "bounded-specific-offsets": {offsets: {"0": 8, "1": 3}},
        },
    )
    by_times = {
        "startup-mode": "timestamp",
        "startup-timestamp-millis": first_millis,
        "bounded-mode": "timestamp",
        "bounded-timestamp-millis": last_millis,
    }
    waits = {"bounded-mode": "specific-offsets", "bounded-specific-offsets": f"{ahead}:0:12"}
    document = {
        "pipeline": {"name": "positions", "trigger": "100ms"},
        "warehouse": {"path": str(tmp_path / "lake"), "database": DATABASE},
        "sources": {
            "offsets": by_offsets,
            "timed": source(broker, group, timed, **by_times),
            "grouped": source(broker, group, grouped, **later, **{"startup-mode": "group-offsets"}),
            "ahead": source(broker, group, ahead, **waits),
            "cut": source(broker, group, cut, **later, **{"on-offset-out-of-range": "earliest"}),
            "gone": source(broker, group, gone, **later, **{"on-offset-out-of-range": "latest"}),
        },
        "routing": {
            "table-mapping": {
                offsets: "offsets", timed: "timed", grouped: "grouped", ahead: "ahead", cut: "cut",
                gone: "gone",
            }
        },
        "logging": {"format": "json"},
    }  # fmt: skip
    with run_daemon(document, tmp_path) as daemon:
        daemon.wait_until_ready()
        assert daemon.process.poll() is None, "a bound ahead of the log is waited for"
        produce(broker, ahead, rows_of(5, 20))
        assert daemon.wait() == 0, daemon.tail(80)
    assert ids(oracle, tmp_path, "offsets") == [4, 5, 6, 7, 100, 101, 102]
    assert ids(oracle, tmp_path, "ahead") == list(range(12))
    assert ids(oracle, tmp_path, "timed") == list(range(10, 20))
    assert ids(oracle, tmp_path, "grouped") == [107, 108, 109]
    assert ids(oracle, tmp_path, "cut") == list(range(10))
    assert ids(oracle, tmp_path, "gone") == list(range(20))

    by_offsets["bounded-specific-offsets"] = f"{offsets}:0:9;{offsets}:1:10"
    produce(broker, cut, rows_of(10, 10))
    delete_records(broker, cut, 16)
    produce(broker, gone, rows_of(20, 5))
    delete_records(broker, gone, 25)
    with run_daemon(document, tmp_path) as daemon:
        assert daemon.wait() == 0, daemon.tail(80)
    assert ids(oracle, tmp_path, "offsets") == [4, 5, 6, 7, 8, *range(100, 110)]
    for table, count in {"offsets": 15, "ahead": 12, "timed": 10, "grouped": 3}.items():
        assert len(ids(oracle, tmp_path, table)) == count, "nothing is read twice"
    assert ids(oracle, tmp_path, "cut") == [*range(10), *range(16, 20)]
    assert ids(oracle, tmp_path, "gone") == list(range(20)), "nothing else to read"
    dead_letters = oracle.read(tmp_path / "lake", DATABASE, "ingestd_dead_letters")
    # One for each table, since any table may have lost rows of it.
    assert len(dead_letters) == 2 * 6
    first, second = sorted(
        (row for row in dead_letters if row["message"].endswith(f"table ods.{row['source']}")),
        key=lambda row: row["offset"],
    )
    assert (first["stage"], first["reason"]) == ("fetch", "offset-gap")
    assert (first["topic"], first["partition"], first["offset"]) == (cut, 0, 10)
    assert "offsets 10 to 16, table" in first["message"]
    assert first["value"] is None
    assert (second["stage"], second["reason"]) == ("fetch", "offset-gap")
    assert (second["topic"], second["partition"], second["offset"]) == (gone, 0, 20)
    assert "offsets 20 to 25, table" in second["message"]
    lines = [json.loads(line) for line in daemon.log.read_text().splitlines() if line[:1] == "{"]
    logged = [line["message"] for line in lines if line.get("reason") == "offset-gap"]
    assert sorted(logged) == sorted(row["message"] for row in dead_letters)


def ids(oracle: Oracle, folder: Path, table: str) -> list[int]:
    return sorted(row["id"] for row in oracle.read(folder / "lake", DATABASE, table))
