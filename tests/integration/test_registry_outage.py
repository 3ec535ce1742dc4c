"""A schema registry that goes away and comes back costs time and no record.

With INGESTD_LONG=1 it stays away for five minutes.
"""

import json
import os
import time
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from tests.support import captured_avro, corpus
from tests.support.daemon import Daemon, run_daemon
from tests.support.oracle import Oracle
from tests.support.registry_server import RegistryServer

pytestmark = pytest.mark.integration
OUTAGE_SECONDS = 300 if "INGESTD_LONG" in os.environ else 1


def says(daemon: Daemon, word: str) -> int:
    return daemon.log.read_text(errors="replace").count(word)


def test_batches_wait_for_a_registry_that_is_down_and_nothing_is_given_up(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    registry = RegistryServer(captured_avro.REGISTRY)
    dying = RegistryServer(captured_avro.REGISTRY, answers=2)
    dying.port = registry.port
    warehouse = tmp_path / "warehouse"
    replayed = corpus.replay("avro", broker.bootstrap, prefix="outage")
    config = {
        "pipeline": {"name": "outage", "trigger": "0s"},
        "warehouse": {"path": str(warehouse), "database": "ods"},
        "sources": {
            "shop": {
                "kafka": {"bootstrap.servers": broker.bootstrap},
                "topics": [replayed.topics["shop.customers"]],
                "format": "debezium-avro",
                "schema-registry": {"url": registry.url, "retry-timeout": "1s"},
            }
        },
        "restart": {"initial-backoff": "200ms", "max-attempts": 1},
    }
    with run_daemon(config, tmp_path, until_latest=True) as daemon:
        # Down from the start: the batch fails and is run again.
        daemon.wait_until(lambda: says(daemon, "tried") >= 2, 120)
        with dying:
            dying.wait_for_end()
        # Down in the middle of a batch, which needs more schemas.
        down = time.monotonic()
        seen = says(daemon, "tried")
        daemon.wait_until(lambda: says(daemon, "tried") > seen, 120)
        assert not list(warehouse.glob("ods.db/customers/snapshot/*"))
        daemon.wait_until(lambda: '"SourceSilentError"' in daemon.get("/status")[1], 120)
        daemon.wait_until(lambda: time.monotonic() - down >= OUTAGE_SECONDS, 2 * OUTAGE_SECONDS)
        assert daemon.get("/livez")[0] == 200
        assert not list(warehouse.glob("ods.db/customers/snapshot/*"))
        with registry:
            assert daemon.wait() == 0, daemon.tail(60)
    wanted = {
        json.dumps(event["after"]["id"])
        for _, _, event in captured_avro.events("avro")
        if event["source"]["table"] == "customers" and event["op"] in {"c", "r", "u"}
    }
    rows = [json.loads(line) for line in oracle.read_lines(warehouse, "ods", "customers")]
    assert rows and {json.dumps(row["id"]) for row in rows} <= wanted
    assert list((warehouse / "ods.db/ingestd_dead_letters").rglob("data-*")) == []
