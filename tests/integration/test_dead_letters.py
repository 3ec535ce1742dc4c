"""Dead letters from a real broker: limits, the way back, deletion, a topic for a table."""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message

from ingestd.dev.broker import DevBroker
from tests.support.command_line import run_command
from tests.support.daemon import run_daemon
from tests.support.daemon_progress import Watched
from tests.support.kafka_broker import WAIT_SECONDS, fresh_topic, produce
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE

pytestmark = pytest.mark.integration

LETTERS = "ingestd_dead_letters"


def row(number: int, text: str = "x") -> tuple[bytes, bytes]:
    return json.dumps({"id": number}).encode(), json.dumps({"id": number, "v": text}).encode()


def config(folder: Path, broker: DevBroker, topic: str, **sections: Any) -> dict[str, Any]:
    """A pipeline of plain rows of one topic into the table `t`."""
    return {
        "pipeline": {"name": "letters", "trigger": "100ms"},
        "warehouse": {"path": str(folder / "lake"), "database": DATABASE},
        "sources": {
            "s": {
                "kafka": {"bootstrap.servers": broker.bootstrap},
                "topics": [topic],
                "format": "json",
            }
        },
        "routing": {"table-mapping": {topic: "t"}},
        "logging": {"format": "json"},
        **sections,
    }


def dlq(capsys: pytest.CaptureFixture[str], command: str, lake: Path, *rest: object) -> Any:
    done = run_command(capsys, "dlq", command, lake, DATABASE, *rest, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_a_limit_stops_before_the_commit_and_what_was_mended_comes_back_once(
    tmp_path: Path, broker: DevBroker, oracle: Oracle, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second daemon reloads its configuration until dead letters go to a topic."""
    topic, lake = fresh_topic(broker), tmp_path / "lake"
    large = {7: row(7, "y" * 3000), 11: row(11, "y" * 3000)}
    produce(broker, topic, [large.get(n, row(n)) for n in range(20)])
    produce(broker, topic, [(b'{"id": 20}', b"not JSON")])
    tight = {"processing": {"max-record-bytes": "1kb"}}
    strict = config(tmp_path, broker, topic, errors={"max-rejected-records": 2}, **tight)
    with run_daemon(strict, tmp_path, until_latest=True) as daemon:
        assert daemon.wait() == 5, daemon.tail(80)
    assert "3 rejected records in this run, 2 are allowed" in daemon.log.read_text()
    assert f"{topic}/0 at 7 (" in daemon.log.read_text()
    assert [path.parts[-3] for path in lake.rglob("snapshot-*")] == [LETTERS]
    assert oracle.read(lake, DATABASE, LETTERS) == [], "nothing of the batch is committed"

    loose = config(tmp_path, broker, topic, errors={"max-rejected-records": 3}, **tight)
    with run_daemon(loose, tmp_path) as daemon:
        reading = Watched(daemon, "s")
        reading.await_offsets(21)
        come_back_once(tmp_path, broker, topic, reading, oracle, capsys)
        go_to_a_topic(tmp_path, broker, topic, reading, oracle)
        daemon.terminate()
        assert daemon.wait() == 0, daemon.tail(80)
    for table in (LETTERS, f"{LETTERS}_replays"):
        assert oracle.fsck(lake, DATABASE, table) == []


def come_back_once(
    folder: Path,
    broker: DevBroker,
    topic: str,
    reading: Watched,
    oracle: Oracle,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without the limits the records that were too large are replayed once, and purged."""
    lake = folder / "lake"
    assert len(oracle.read(lake, DATABASE, "t")) == 18
    groups = dlq(capsys, "count", lake)["groups"]
    assert sum(group["dead_letters"] for group in groups) == 3
    (reason,) = {group["reason"] for group in groups if group["dead_letters"] == 2}

    reading.daemon.reload(config(folder, broker, topic))
    there = ("--bootstrap", broker.bootstrap, "--reason", reason)
    assert dlq(capsys, "replay", lake, *there)["sent"] == 2
    assert dlq(capsys, "replay", lake, *there)["sent"] == 0
    reading.await_offsets(23)
    rows = {one["id"]: one["v"] for one in oracle.read(lake, DATABASE, "t")}
    assert sorted(rows) == list(range(20))
    assert rows[7] == rows[11] == "y" * 3000

    assert dlq(capsys, "purge", lake, "--replayed")["dead_letters"] == 2
    (left,) = oracle.read(lake, DATABASE, LETTERS)
    assert (left["offset"], left["value"]) == (20, b"not JSON".hex())
    produce(broker, topic, [(b'{"id": 21}', b"nor this")])
    reading.await_offsets(24)
    assert sorted(one["offset"] for one in oracle.read(lake, DATABASE, LETTERS)) == [20, 23]


def go_to_a_topic(
    folder: Path, broker: DevBroker, topic: str, reading: Watched, oracle: Oracle
) -> None:
    """A topic gets the dead letters in place of the table."""
    dead, lake = fresh_topic(broker), folder / "lake"
    reading.daemon.reload(config(folder, broker, topic, errors={"dead-letter-topic": dead}))
    produce(broker, topic, [row(24), (b"k", b"not JSON"), row(26)])
    reading.await_offsets(27)
    ids = sorted(one["id"] for one in oracle.read(lake, DATABASE, "t"))
    assert ids == [*range(20), 24, 26]
    assert sorted(one["offset"] for one in oracle.read(lake, DATABASE, LETTERS)) == [20, 23]
    (one,) = read_all(broker, dead)
    assert (one.key(), one.value()) == (b"k", b"not JSON")
    headers = {name: value.decode() for name, value in one.headers() or []}
    assert headers["ingestd.topic"] == topic
    assert (headers["ingestd.partition"], headers["ingestd.offset"]) == ("0", "25")
    assert headers["ingestd.stage"] == "decode"
    assert headers["ingestd.reason"]


def read_all(broker: DevBroker, topic: str) -> list[Message]:
    """Everything in a topic of one partition."""
    properties = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
    }
    client = Consumer(properties)
    client.subscribe([topic])
    found: list[Message] = []
    while (message := client.poll(WAIT_SECONDS)) is not None:
        error = message.error()
        if error is None:
            found.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            break
    client.close()
    return found
