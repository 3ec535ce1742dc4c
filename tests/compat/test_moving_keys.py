"""A daemon ingests keys that move between partitions; Java judges the table, before and after."""

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

pytestmark = [pytest.mark.integration, pytest.mark.compat]

Row = dict[str, Any]


def _record(op: str, row: Row, before: Row | None, lsn: int) -> tuple[bytes | None, bytes | None]:
    source = {"connector": "postgresql", "db": "d", "schema": "s", "table": "t", "lsn": lsn}
    after = None if op == "d" else row
    event = {"before": before, "after": after, "source": source, "op": op}
    return json.dumps({"id": row["id"]}).encode(), json.dumps(event).encode()


def test_a_key_has_one_row_over_all_partitions_over_batches_and_restarts(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    topic = f"m{uuid.uuid4().hex[:8]}.s.t"
    broker.create_topic(topic, 2)
    config = pipeline(
        tmp_path,
        broker.bootstrap,
        topic.replace(".", r"\."),
        options={"dynamic-bucket.assigner-parallelism": "2"},
        tables={"t": {"primary-keys": ["id"], "partition-keys": ["city"]}},
        batch_rows=60,
    )
    warehouse, rows, lsn = tmp_path / "warehouse", dict[int, Row](), 0
    for run in range(2):
        for step in range(3):
            events = []
            for key in range(40):
                lsn += 1
                old = rows.get(key)
                if old is not None and (key + step + run) % 7 == 0:
                    events.append(_record("d", old, {"id": key, "city": None, "n": None}, lsn))
                    del rows[key]
                    continue
                row = {"id": key, "city": f"city {(key * (step + 1) + run) % 5}", "n": lsn}
                events.append(_record("c" if old is None else "u", row, old, lsn))
                rows[key] = row
            produce(broker, topic, events)
        catch_up(config, tmp_path)
        found = sorted(oracle.read(warehouse, DATABASE, "t"), key=lambda row: row["id"])
        assert found == [rows[key] for key in sorted(rows)]
        assert oracle.fsck(warehouse, DATABASE, "t", "--all") == []
    assert ingestd("verify", warehouse, f"{DATABASE}.t").returncode == 0
    oracle.compact(warehouse, DATABASE, "t")
    found = sorted(oracle.read(warehouse, DATABASE, "t"), key=lambda row: row["id"])
    assert found == [rows[key] for key in sorted(rows)]
