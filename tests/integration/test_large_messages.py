"""Messages of 10 MB from end to end, and what becomes of those that are too large."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from bench.usage import TreeMeter
from ingestd.dev.broker import DevBroker
from ingestd.errors import SourceError
from ingestd.kafka import fetch
from ingestd.kafka.offset_ranges import OffsetRange
from tests.support.command_line import run_command
from tests.support.daemon import run_daemon
from tests.support.kafka_broker import fresh_topic, produce, source_of
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline

pytestmark = pytest.mark.integration
LARGE = 10 << 20
TOO_LARGE = 17 << 20
ROWS = 8
MOST_BYTES = 2_500 << 20
"""What docs/deployment.md reckons for two cores and one source, rounded up."""
PRODUCER = {"message.max.bytes": str(32 << 20), "queue.buffering.max.kbytes": str(1 << 20)}


def text(number: int, size: int) -> str:
    piece = sha256(str(number).encode()).hexdigest()
    return piece * (size // len(piece))


def message(number: int, size: int) -> tuple[bytes, bytes]:
    source = {"connector": "postgresql", "name": "s", "db": "d", "schema": "public"}
    position = {"table": "docs", "lsn": 1000 + number, "ts_ms": 1, "snapshot": "false"}
    after = {"id": number, "body": text(number, size)}
    event = {"before": None, "after": after, "source": {**source, **position}, "op": "c"}
    return json.dumps({"id": number}).encode(), json.dumps(event).encode()


def test_messages_of_ten_megabytes_land_in_bounded_memory(
    tmp_path: Path, broker: DevBroker, oracle: Oracle, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = fresh_topic(broker, 2, {"max.message.bytes": str(32 << 20)})
    for number in range(ROWS):
        one = [message(number, LARGE), message(100 + number, 100)]
        produce(broker, topic, one, number % 2, config=PRODUCER)
    produce(broker, topic, [message(50, TOO_LARGE)], config=PRODUCER)
    config = pipeline(tmp_path, broker.bootstrap, topic)
    config["spark"] = {"spark.master": "local[2]"}
    with run_daemon(config, tmp_path, until_latest=True) as daemon:
        meter = TreeMeter(daemon.process.pid)
        meter.start()
        assert daemon.wait() == 0, daemon.tail()
        meter.stop()
    warehouse = tmp_path / "warehouse"
    name = f"{DATABASE}.docs"
    read = run_command(capsys, "read", warehouse, name, "--format", "jsonl", "--limit", 1000)
    rows = [json.loads(line) for line in read.out.splitlines()]
    wanted = dict.fromkeys(range(ROWS), LARGE) | {100 + n: 100 for n in range(ROWS)}
    assert {row["id"]: row["body"] for row in rows} == {n: text(n, s) for n, s in wanted.items()}
    assert len(rows) == len(wanted)
    (by_java,) = oracle.read(warehouse, DATABASE, "docs", "--filter", "id=3")
    assert by_java["body"] == text(3, LARGE)
    findings = oracle.fsck(warehouse, DATABASE, "docs")
    assert [finding for finding in findings if finding["severity"] == "error"] == []
    listed = run_command(capsys, "dlq", "count", warehouse, DATABASE, "--json")
    (dead_letters,) = json.loads(listed.out)["groups"]
    assert dead_letters["reason"] == "too-large"
    print(f"peak of the process tree: {meter.peak_pss_bytes >> 20} MiB shared pages counted once")
    assert 0 < meter.peak_pss_bytes < MOST_BYTES


@pytest.mark.parametrize("headers", [False, True])
def test_a_message_larger_than_the_client_takes_is_refused_with_the_property_to_raise(
    broker: DevBroker, monkeypatch: pytest.MonkeyPatch, headers: bool
) -> None:
    monkeypatch.setattr(fetch, "STALL_SECONDS", 3.0)
    topic = fresh_topic(broker, 1, {"max.message.bytes": str(8 << 20)})
    produce(broker, topic, [(None, b"x" * (4 << 20))], config=PRODUCER)
    source = source_of(broker, topic)
    small = {"fetch.max.bytes": "1000000", "receive.message.max.bytes": "2000000"}
    source = replace(source, properties={**source.properties, **small})
    wanted = OffsetRange("src", topic, 0, 0, 1)
    with pytest.raises(SourceError, match=r"receive\.message\.max\.bytes"):
        list(fetch.fetch(source, wanted, max_records=10, max_bytes=1 << 20, headers=headers))
