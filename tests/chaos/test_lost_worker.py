"""A machine of a real Spark cluster goes while a batch runs on it; every event is there once."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from bench.spark_cluster import SparkCluster
from ingestd.dev.broker import DevBroker
from tests.support.daemon import Daemon, run_daemon
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]
EVENTS = 60_000
SPARK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "180s",
}


def batch(daemon: Daemon) -> dict[str, Any]:
    code, page = daemon.get("/status")
    found: dict[str, Any] = json.loads(page)["batch"] if code == 200 else {}
    return found


def running(daemon: Daemon) -> Any:
    return batch(daemon).get("running")


def test_a_worker_killed_during_a_batch_costs_nothing(
    tmp_path: Path, broker: DevBroker, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_WORKER_DIR", str(tmp_path / "work"))
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    ledger.produce(broker)
    (tmp_path / "cluster").mkdir()
    with SparkCluster(tmp_path / "cluster", workers=2, cores=1) as cluster:
        config = pipeline(
            tmp_path,
            broker.bootstrap,
            ledger.pattern,
            batch_rows=EVENTS // 3,
            spark={**SPARK, "spark.master": cluster.url},
            processing={"small-batch-records": 100},
            warehouse={"path": str(tmp_path / "warehouse"), "database": DATABASE, "shared": True},
        )
        with run_daemon(config, tmp_path, until_latest=True) as daemon:
            daemon.wait_until(lambda: batch(daemon).get("finished") is not None)
            daemon.wait_until(lambda: running(daemon) is not None)
            under_way = running(daemon)
            cluster.kill_worker(0)
            assert running(daemon) == under_way, "the batch was over before the worker was"
            assert daemon.wait(600) == 0, daemon.tail(80)
        assert "Lost executor" in daemon.log.read_text()
    assert judge(ledger, tmp_path / "warehouse", oracle) == []
