"""A schema registry that goes away and comes back costs time and no record."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from tests.support import captured_avro, corpus
from tests.support.daemon import Daemon, run_daemon
from tests.support.oracle import Oracle
from tests.support.registry_server import RegistryServer

pytestmark = pytest.mark.integration


def wait_for(what: Callable[[], bool], daemon: Daemon) -> None:
    end = time.monotonic() + 120
    while not what():
        assert time.monotonic() < end, daemon.tail(60)
        assert daemon.process.poll() is None, daemon.tail(60)
        time.sleep(0.05)


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
            "restart": {"initial-backoff": "200ms", "max-attempts": 100},
        }
        with run_daemon(config, tmp_path, until_latest=True) as daemon:
            # Down from the start: the batch fails and is run again.
            wait_for(lambda: says(daemon, "tried") >= 2, daemon)
            with registry:
                wait_for(lambda: registry.hits.total() >= 2, daemon)
            # Down in the middle of a batch.
            seen = says(daemon, "tried")
            wait_for(lambda: says(daemon, "tried") > seen, daemon)
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
