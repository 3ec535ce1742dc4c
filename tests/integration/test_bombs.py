"""Records that are small on the wire and do not fit into a worker once they are unpacked."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bench.usage import TreeMeter
from ingestd.dev.broker import DevBroker
from tests.support.daemon import catch_up, run_daemon
from tests.support.kafka_broker import fresh_topic, produce
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline

pytestmark = pytest.mark.integration
LONG = bool(os.environ.get("INGESTD_LONG"))
# In snappy a record of this size did not get into the log of the broker that tests have.
CODECS = ("gzip", "lz4", "zstd") if LONG else ("gzip", "lz4")
SIZE = (600 if LONG else 300) << 20
WORKER_MEMORY = "768mb" if LONG else "512mb"
MOST_BYTES = 2_000 << 20
TOPIC = {"max.message.bytes": str(64 << 20)}
PRODUCER = {"message.max.bytes": "1000000000", "queue.buffering.max.kbytes": str(2 << 20)}


def event(table: str, number: int, body: str = "") -> tuple[bytes, bytes]:
    source = {"connector": "postgresql", "db": "d", "schema": "s", "table": table, "lsn": number}
    value = {"before": None, "after": {"id": number, "body": body}, "source": source, "op": "c"}
    return json.dumps({"id": number}).encode(), json.dumps(value).encode()


def add_bomb(broker: DevBroker, topic: str, codec: str) -> None:
    """Append a bomb and a record after it."""
    config = {**PRODUCER, "compression.type": codec}
    produce(broker, topic, [event(codec, 10, "x" * SIZE)], config=config)
    produce(broker, topic, [event(codec, 11)])


def test_bombs_are_set_aside_alone_and_in_bounded_memory(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    good = fresh_topic(broker)
    produce(broker, good, [event("good", number) for number in range(20)])
    bad = {fresh_topic(broker, 1, TOPIC): codec for codec in CODECS}
    for topic, codec in bad.items():
        produce(broker, topic, [event(codec, number) for number in range(10)])
    config: dict[str, Any] = pipeline(tmp_path, broker.bootstrap, "|".join([good, *bad]))
    config["processing"] = {"worker-memory": WORKER_MEMORY}
    config["spark"] = {"spark.master": "local[2,2]"}
    catch_up(config, tmp_path)
    produce(broker, good, [event("good", number) for number in range(20, 30)])
    for topic, codec in bad.items():
        add_bomb(broker, topic, codec)
    with run_daemon(config, tmp_path, until_latest=True) as daemon:
        meter = TreeMeter(daemon.process.pid)
        meter.start()
        code = daemon.wait()
        meter.stop()
        assert code == 5, daemon.tail(60)
    lines = [json.loads(line) for line in daemon.log.read_text().splitlines() if line[:1] == "{"]
    aside = [line for line in lines if line["event"] == "partition_set_aside"]
    assert {(one["topic"], one["partition"], one["offset"]) for one in aside} == {
        (topic, 0, 10) for topic in bad
    }
    print(f"peak of the process tree: {meter.peak_pss_bytes >> 20} MiB")
    assert meter.peak_pss_bytes < MOST_BYTES

    def ids(table: str) -> list[int]:
        return sorted(row["id"] for row in oracle.read(tmp_path / "warehouse", DATABASE, table))

    assert ids("good") == list(range(30))
    for codec in CODECS:
        assert ids(codec) == list(range(10))
