"""Dead letters from a real broker: limits, the way back, deletion, a topic for a table."""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message

from ingestd.dev.broker import DevBroker
from tests.support.command_line import run_command
from tests.support.daemon import catch_up, run_daemon
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

    catch_up(config(tmp_path, broker, topic, errors={"max-rejected-records": 3}, **tight), tmp_path)
    assert len(oracle.read(lake, DATABASE, "t")) == 18
    groups = dlq(capsys, "count", lake)["groups"]
    assert sum(group["dead_letters"] for group in groups) == 3
    (reason,) = {group["reason"] for group in groups if group["dead_letters"] == 2}

    there = ("--bootstrap", broker.bootstrap, "--reason", reason)
    assert dlq(capsys, "replay", lake, *there)["sent"] == 2
    assert dlq(capsys, "replay", lake, *there)["sent"] == 0
    catch_up(config(tmp_path, broker, topic), tmp_path)
    rows = {one["id"]: one["v"] for one in oracle.read(lake, DATABASE, "t")}
    assert sorted(rows) == list(range(20))
    assert rows[7] == rows[11] == "y" * 3000

    assert dlq(capsys, "purge", lake, "--replayed")["dead_letters"] == 2
    (left,) = oracle.read(lake, DATABASE, LETTERS)
    assert (left["offset"], left["value"]) == (20, b"not JSON".hex())
    for table in (LETTERS, f"{LETTERS}_replays"):
        assert oracle.fsck(lake, DATABASE, table) == []
    produce(broker, topic, [(b'{"id": 21}', b"nor this")])
    catch_up(config(tmp_path, broker, topic), tmp_path)
    assert sorted(one["offset"] for one in oracle.read(lake, DATABASE, LETTERS)) == [20, 23]


def test_a_topic_gets_the_letters_in_place_of_the_table(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    topic, dead = fresh_topic(broker), fresh_topic(broker)
    produce(broker, topic, [row(0), (b"k", b"not JSON"), row(2)])
    document = config(tmp_path, broker, topic, errors={"dead-letter-topic": dead})
    catch_up(document, tmp_path)
    assert [one["id"] for one in oracle.read(tmp_path / "lake", DATABASE, "t")] == [0, 2]
    assert oracle.read(tmp_path / "lake", DATABASE, LETTERS) == []
    (one,) = read_all(broker, dead)
    assert (one.key(), one.value()) == (b"k", b"not JSON")
    headers = {name: value.decode() for name, value in one.headers() or []}
    assert headers["ingestd.topic"] == topic
    assert (headers["ingestd.partition"], headers["ingestd.offset"]) == ("0", "1")
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
