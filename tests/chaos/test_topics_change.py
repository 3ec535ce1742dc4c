"""A real topic gets partitions while it is read, and is then deleted and recreated."""

import json
from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewPartitions

from ingestd.dev.broker import DevBroker
from tests.support.daemon import Daemon, run_daemon
from tests.support.kafka_broker import WAIT_SECONDS, admin, delete_topic, fresh_topic, produce
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.slow]
LOST_TOPIC = 3


def put(broker: DevBroker, topic: str, numbers: range, partition: int = 0) -> None:
    rows = [(None, json.dumps({"id": number}).encode()) for number in numbers]
    produce(broker, topic, rows, partition)


def read_so_far(daemon: Daemon) -> float:
    lines = daemon.get("/metrics")[1].splitlines()
    told = [line for line in lines if line.startswith("ingestd_source_records_total{")]
    return sum(float(one.split()[-1]) for one in told)


def test_new_partitions_are_read_and_a_topic_created_again_only_if_that_is_accepted(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    topic = fresh_topic(broker)
    put(broker, topic, range(10))
    config = pipeline(tmp_path, broker.bootstrap, topic, tables={})
    config["sources"]["shop"]["format"] = "json"
    config["routing"] = {"table-mapping": {topic: "t"}}
    with run_daemon(config, tmp_path) as daemon:
        daemon.wait_until(lambda: read_so_far(daemon) >= 10)
        client = admin(broker)
        client.create_partitions([NewPartitions(topic, 3)])[topic].result(WAIT_SECONDS)
        put(broker, topic, range(10, 15), 1)
        put(broker, topic, range(15, 20), 2)
        daemon.wait_until(lambda: read_so_far(daemon) >= 20)
        delete_topic(broker, topic)
        broker.create_topic(topic, 3)
        for partition in range(3):
            put(broker, topic, range(100, 150), partition)
        assert daemon.wait() == LOST_TOPIC, daemon.tail()
        assert "the topic was deleted and created again" in daemon.tail()
    rows = oracle.read(tmp_path / "warehouse", DATABASE, "t")
    assert sorted(row["id"] for row in rows) == list(range(20))
    config["sources"]["shop"]["on-offset-out-of-range"] = "earliest"
    with run_daemon(config, tmp_path, until_latest=True, name="again") as daemon:
        assert daemon.wait() == 0, daemon.tail()
    rows = oracle.read(tmp_path / "warehouse", DATABASE, "t")
    new = [number for number in range(100, 150) for _ in range(3)]
    assert sorted(row["id"] for row in rows) == [*range(20), *new]
    dead_letters = oracle.read(tmp_path / "warehouse", DATABASE, "ingestd_dead_letters")
    assert {row["reason"] for row in dead_letters} == {"topic-recreated"}
