"""Java Paimon takes a table over, hands it back, and all readers agree."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import catch_up, ingestd
from tests.support.kafka_broker import produce
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline
from tests.support.pypaimon import Pypaimon

pytestmark = [pytest.mark.integration, pytest.mark.compat]


def _records(ids: range, text: str, op: str = "c") -> list[tuple[bytes | None, bytes | None]]:
    source = {"connector": "postgresql", "db": "d", "schema": "s", "table": "t"}
    records: list[tuple[bytes | None, bytes | None]] = []
    for number in ids:
        after = None if op == "d" else {"id": number, "text": f"{text} {number}"}
        event = {"before": None, "after": after, "source": {**source, "lsn": number}, "op": op}
        records.append((json.dumps({"id": number}).encode(), json.dumps(event).encode()))
    return records


def _rows(oracle: Oracle, warehouse: Path) -> dict[int, str]:
    return {row["id"]: row["text"] for row in oracle.read(warehouse, DATABASE, "t")}


def _everybody_agrees(
    oracle: Oracle, pypaimon: Pypaimon, warehouse: Path, wanted: dict[int, str]
) -> None:
    assert _rows(oracle, warehouse) == wanted
    assert oracle.fsck(warehouse, DATABASE, "t") == []
    printed = ingestd("read", warehouse, f"{DATABASE}.t", "--format", "jsonl")
    assert printed.stdout.splitlines() == oracle.read_lines(warehouse, DATABASE, "t")
    others = pypaimon.read(warehouse, DATABASE, "t").to_pylist()
    assert {row["id"]: row["text"] for row in others} == wanted
    verified = ingestd("verify", warehouse, f"{DATABASE}.t")
    assert verified.returncode == 0, verified.stdout


@pytest.mark.parametrize("bucket", ["-1", "2"])
def test_java_appends_and_compacts_and_ingestd_goes_on(
    bucket: str, tmp_path: Path, broker: DevBroker, oracle: Oracle, pypaimon: Pypaimon
) -> None:
    topic = f"j{uuid.uuid4().hex[:8]}.s.t"
    broker.create_topic(topic, 1)
    pattern = topic.replace(".", r"\.")
    config: dict[str, Any] = pipeline(
        tmp_path, broker.bootstrap, pattern, options={"bucket": bucket}
    )
    warehouse = tmp_path / "warehouse"
    wanted: dict[int, str] = {}

    produce(broker, topic, _records(range(100), "first"))
    produce(broker, topic, _records(range(90, 100), "", "d"))
    catch_up(config, tmp_path)
    wanted |= {n: f"first {n}" for n in range(90)}
    _everybody_agrees(oracle, pypaimon, warehouse, wanted)

    java = [{"id": n, "text": f"java {n}"} for n in range(50, 150)]
    oracle.append(warehouse, DATABASE, "t", java, tmp_path, "--user", "java", "--identifier", "1")
    wanted |= {n: f"java {n}" for n in range(50, 150)}
    oracle.compact(warehouse, DATABASE, "t")
    _everybody_agrees(oracle, pypaimon, warehouse, wanted)

    produce(broker, topic, _records(range(120, 200), "second", "u"))
    produce(broker, topic, _records(range(10), "", "d"))
    catch_up(config, tmp_path)
    wanted |= {n: f"second {n}" for n in range(120, 200)}
    wanted = {n: text for n, text in wanted.items() if n >= 10}
    _everybody_agrees(oracle, pypaimon, warehouse, wanted)
    oracle.compact(warehouse, DATABASE, "t")
    _everybody_agrees(oracle, pypaimon, warehouse, wanted)
