"""Brokers of a cluster go away one after the other, and all at once: the stream only waits."""

import os
import uuid
from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewTopic

from tests.chaos.kafka_cluster import kafka_cluster, start_together
from tests.support.daemon import run_daemon
from tests.support.daemon_progress import Watched
from tests.support.kafka_broker import admin
from tests.support.ledger import PARTITIONS, TABLES, Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import pipeline

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif("INGESTD_LONG" not in os.environ, reason="three brokers: a long run"),
]
PIECE = 2_000


def test_brokers_that_restart_in_turn_cost_no_record_and_no_exit(
    tmp_path: Path, oracle: Oracle
) -> None:
    with kafka_cluster() as cluster:
        ledger = Ledger(f"r{uuid.uuid4().hex[:8]}", PIECE * 5)
        client = admin(cluster)
        topics = [NewTopic(f"{ledger.prefix}.bank.{table}", PARTITIONS, 3) for table in TABLES]
        for future in client.create_topics(topics).values():
            future.result(60)
        ledger.append(cluster, 0, PIECE)
        config = pipeline(tmp_path, cluster.bootstrap, ledger.pattern, batch_rows=PIECE // 4)
        with run_daemon(config, tmp_path) as daemon:
            watched = Watched(daemon, "shop")
            watched.await_offsets(PIECE)
            for number, broker in enumerate(cluster.brokers, 1):
                broker.kill()
                ledger.append(cluster, number * PIECE, (number + 1) * PIECE)
                watched.await_offsets((number + 1) * PIECE)
                broker.start()
            for broker in cluster.brokers[:2]:  # no majority: nothing can be written or read
                broker.kill()
            daemon.wait_until(lambda: watched.source().get("reachable") is False)
            start_together(cluster.brokers[:2])
            ledger.append(cluster, 4 * PIECE, 5 * PIECE)
            watched.await_offsets(5 * PIECE)
            daemon.terminate()
            assert daemon.wait() == 0, daemon.tail()
    assert judge(ledger, tmp_path / "warehouse", oracle) == []
