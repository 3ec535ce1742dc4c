"""A daemon ingests Debezium events; Java's streaming reader is given every one of the changes."""

import json
import uuid
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import catch_up
from tests.support.kafka_broker import produce
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline

pytestmark = [pytest.mark.integration, pytest.mark.compat]

Row = dict[str, Any]


def _record(op: str, key: int, before: Row | None, after: Row | None, lsn: int) -> Any:
    source = {"connector": "postgresql", "db": "d", "schema": "s", "table": "t", "lsn": lsn}
    event = {"before": before, "after": after, "source": source, "op": op}
    return json.dumps({"id": key}).encode(), json.dumps(event).encode()


def test_readers_get_what_the_source_said_in_its_order_over_batches_and_restarts(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    topic = f"c{uuid.uuid4().hex[:8]}.s.t"
    broker.create_topic(topic, 2)
    options = {"changelog-producer": "input", "changelog-file.format": "orc"}
    config = pipeline(
        tmp_path, broker.bootstrap, topic.replace(".", r"\."), options=options, batch_rows=70
    )
    random, rows, lsn = Random(5), dict[int, Row](), 0
    wanted: dict[int, list[tuple[str, Any]]] = defaultdict(list)
    for _ in range(2):
        events = []
        for _ in range(150):
            lsn += 1
            key = random.randrange(20)
            old, new = rows.get(key), {"id": key, "n": lsn, "note": f"at {lsn}"}
            if old is None:
                events.append(_record("c", key, None, new, lsn))
                wanted[key].append(("+I", lsn))
            elif random.random() < 0.2:
                events.append(_record("d", key, old, None, lsn))
                wanted[key].append(("-D", old["n"]))
                del rows[key]
                continue
            else:
                events.append(_record("u", key, old, new, lsn))
                wanted[key] += [("-U", old["n"]), ("+U", lsn)]
            rows[key] = new
        produce(broker, topic, events)
        catch_up(config, tmp_path)
        found: dict[int, list[tuple[str, Any]]] = defaultdict(list)
        changes = oracle.changelog(tmp_path / "warehouse", DATABASE, "t")
        for change in changes:
            assert change["note"] == f"at {change['n']}"
            found[change["id"]].append((change["rowkind"], change["n"]))
        assert found == wanted
        assert len({change["_snapshot"] for change in changes}) > 1
        read = oracle.read(tmp_path / "warehouse", DATABASE, "t")
        assert sorted(read, key=lambda row: row["id"]) == [rows[key] for key in sorted(rows)]
    assert oracle.fsck(tmp_path / "warehouse", DATABASE, "t", "--all") == []
