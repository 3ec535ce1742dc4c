"""A topic in another data format than the configuration says waits, and all others go on.

A receiver of notices learns of it, of new tables and schemas, and of the end of the pipeline.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.daemon.notices import (
    PIPELINE_STOPPED,
    SCHEMA_CHANGED,
    TABLE_CREATED,
    TOPIC_SET_ASIDE,
)
from ingestd.dev.broker import DevBroker
from tests.support.command_line import run_command
from tests.support.daemon import run_daemon
from tests.support.daemon_progress import Watched
from tests.support.kafka_broker import fresh_topic, produce
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline
from tests.support.scripted_http import Reply, ScriptedServer

pytestmark = pytest.mark.integration


def event(table: str, number: int, **more: str) -> tuple[bytes, bytes]:
    source = {"connector": "postgresql", "db": "d", "schema": "s", "table": table, "lsn": number}
    row = {"id": number, **more}
    value = {"before": None, "after": row, "source": source, "op": "c"}
    return json.dumps({"id": number}).encode(), json.dumps(value).encode()


def test_a_topic_of_another_format_is_set_aside_and_read_once_it_is_mended(
    tmp_path: Path,
    broker: DevBroker,
    oracle: Oracle,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    good, bad = fresh_topic(broker), fresh_topic(broker, 2)
    produce(broker, good, [event("good", number) for number in range(50)])
    for partition in range(2):
        numbers = range(partition * 100, partition * 100 + 100)
        produce(broker, bad, [event("bad", number) for number in numbers], partition)
    config: dict[str, Any] = pipeline(tmp_path, broker.bootstrap, good)
    other = {**config["sources"]["shop"], "topic-pattern": bad, "format": "canal-json"}
    config["sources"]["other"] = other

    receiver = ScriptedServer([Reply(503), *[Reply(204)] * 20])
    receiver.start()
    request.addfinalizer(receiver.close)
    config["notices"] = {"url": receiver.uri}

    def notices() -> list[tuple[str, str]]:
        """Type and subject of the events taken since the last call; the first was sent twice."""
        documents = [asked.document for asked in receiver.asked]
        receiver.asked.clear()
        return list(dict.fromkeys((event["type"], event["subject"]) for event in documents))

    def dead_letters() -> list[dict[str, Any]]:
        return oracle.read(tmp_path / "warehouse", DATABASE, "ingestd_dead_letters")

    with run_daemon(config, tmp_path, until_latest=True) as daemon:
        assert daemon.wait() == 5
        line = daemon.logged("topic_set_aside")
    assert (line["topic"], line["looks_like"]) == (bad, "debezium-json")
    assert line["offsets"] == {"0": 0, "1": 0}
    assert "sources.other.format" in daemon.logged("pipeline_failed")["message"]
    assert len(oracle.read(tmp_path / "warehouse", DATABASE, "good")) == 50
    assert dead_letters() == []
    [stopped] = [a.document for a in receiver.asked if a.document["type"] == PIPELINE_STOPPED]
    assert stopped["source"] == "/ingestd/pipelines/shop"
    assert stopped["data"]["exit_code"] == 5
    assert sorted(notices()) == [
        (PIPELINE_STOPPED, "shop"),
        (TABLE_CREATED, f"{DATABASE}.good"),
        (TOPIC_SET_ASIDE, f"other/{bad}"),
    ]

    with run_daemon(config, tmp_path) as daemon:
        daemon.wait_until(lambda: f'topic="{bad}"}} 1.0' in daemon.get("/metrics")[1])
        produce(broker, good, [event("good", number, note="a") for number in range(50, 60)])
        produce(broker, bad, [event("bad", number) for number in range(200, 210)])
        place = f'partition="0",source="shop",topic="{good}"'
        reached = f"ingestd_source_position_offset{{{place}}} 60.0"
        daemon.wait_until(lambda: reached in daemon.get("/metrics")[1])
        shown = json.loads(daemon.get("/status")[1])["sources"]["other"]["set_aside"][bad]
        assert shown["looks_like"] == "debezium-json"
        assert len(oracle.read(tmp_path / "warehouse", DATABASE, "good")) == 60
        assert dead_letters() == []
        planned = run_command(capsys, "plan", "-c", tmp_path / "ingestd.yaml")
        assert planned.code == 5, planned.out
        assert f"topic {bad} of source other would be set aside" in planned.out

        other["format"] = "debezium-json"
        daemon.reload(config)
        Watched(daemon, "other").await_offsets(210)
        daemon.terminate()
        assert daemon.wait() == 0
    changed = [a.document for a in receiver.asked if a.document["type"] == SCHEMA_CHANGED]
    assert changed[0]["data"] == {
        "table": f"{DATABASE}.good",
        "schema_id": 1,
        "changes": ["added note STRING"],
    }
    assert (PIPELINE_STOPPED, "shop") in notices()
    rows = oracle.read(tmp_path / "warehouse", DATABASE, "bad")
    assert sorted(row["id"] for row in rows) == list(range(210))
    assert dead_letters() == []
