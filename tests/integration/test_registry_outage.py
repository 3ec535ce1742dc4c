"""A schema registry that goes away and comes back costs time and no record."""

import json
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from tests.support import captured_avro, corpus
from tests.support.daemon import Daemon, run_daemon
from tests.support.oracle import Oracle
from tests.support.registry_server import RegistryServer

pytestmark = pytest.mark.integration


def says(daemon: Daemon, word: str) -> int:
    return daemon.log.read_text(errors="replace").count(word)


def test_batches_wait_for_a_registry_that_is_down_and_nothing_is_given_up(
    tmp_path: Path, oracle: Oracle
) -> None:
    registry = RegistryServer(captured_avro.REGISTRY, delay=0.1)
    warehouse = tmp_path / "warehouse"
    with DevBroker() as broker:
        replayed = corpus.replay("avro", broker.bootstrap)
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
            with registry:
                daemon.wait_until(lambda: registry.hits.total() >= 2, 120)
            # Down in the middle of a batch.
            seen = says(daemon, "tried")
            daemon.wait_until(lambda: says(daemon, "tried") > seen, 120)
            assert not list(warehouse.glob("ods.db/customers/snapshot/*"))
            daemon.wait_until(lambda: '"SourceSilentError"' in daemon.get("/status")[1], 120)
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
