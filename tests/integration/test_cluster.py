"""The daemon on clusters of Spark: executors that are processes of their own, as elsewhere."""

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.event_log import SETTINGS, DriverTraffic, driver_traffic
from bench.spark_cluster import SparkCluster
from ingestd.dev.broker import DevBroker
from tests.support.daemon import catch_up, ingestd, run_daemon
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]
EVENTS = 30_000
RECORD_BYTES = 200  # at the least
# Both have executors that are processes of their own; only a real cluster has them elsewhere.
KINDS = ("standalone", "local-cluster") if "INGESTD_LONG" in os.environ else ("standalone",)
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
EXECUTORS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    # No task before both executors are there: the first one alone could finish a run this short.
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "180s",
}


@contextmanager
def cluster(kind: str, folder: Path) -> Iterator[str]:
    if kind == "local-cluster":
        yield "local-cluster[2,1,1024]"
        return
    folder.mkdir()
    with SparkCluster(folder, workers=2, cores=1) as running:
        yield running.url


def ingest(
    ledger: Ledger, broker: DevBroker, folder: Path, spark: Mapping[str, str]
) -> DriverTraffic:
    events = folder / "events"
    events.mkdir()
    settings = {**SETTINGS, "spark.eventLog.dir": events.as_uri(), **LOOPBACK, **EXECUTORS, **spark}
    config = pipeline(
        folder,
        broker.bootstrap,
        ledger.pattern,
        batch_rows=EVENTS // 2,
        spark=settings,
        processing={"small-batch-records": 100},
        warehouse={"path": str(folder / "warehouse"), "database": DATABASE, "shared": True},
    )
    catch_up(config, folder)
    return driver_traffic(events)


def test_executors_with_another_disk_write_nothing(
    tmp_path: Path, broker: DevBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One path that is another folder for each process, as a disk of its own is."""
    monkeypatch.setenv("SPARK_WORKER_DIR", str(tmp_path / "work"))
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", 200)
    ledger.produce(broker)
    elsewhere = {"path": "/proc/self/cwd/warehouse", "database": DATABASE, "shared": True}
    with cluster("standalone", tmp_path / "cluster") as master:
        spark = {**LOOPBACK, **EXECUTORS, "spark.master": master}
        config = pipeline(
            tmp_path, broker.bootstrap, ledger.pattern, spark=spark, warehouse=elsewhere
        )
        with run_daemon(config, tmp_path, until_latest=True) as daemon:
            assert daemon.wait() == 4, daemon.tail(80)
    assert "is not on the disk of the executor" in daemon.log.read_text()
    snapshots = (tmp_path / "warehouse" / f"{DATABASE}.db").glob("*/snapshot/snapshot-*")
    assert [
        snapshot for snapshot in snapshots if json.loads(snapshot.read_bytes())["totalRecordCount"]
    ] == []
    written = [path.name for path in (tmp_path / "work").rglob("*.parquet")]
    assert written == []


@pytest.mark.parametrize("kind", KINDS)
def test_both_stages_run_on_all_executors_and_only_metadata_passes_the_driver(
    kind: str,
    tmp_path: Path,
    broker: DevBroker,
    oracle: Oracle,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_WORKER_DIR", str(tmp_path / "work"))  # else in the installed Spark
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    ledger.produce(broker)
    with cluster(kind, tmp_path / "cluster") as master:
        traffic = ingest(ledger, broker, tmp_path, {"spark.master": master})
    assert judge(ledger, tmp_path / "warehouse", oracle) == []
    assert traffic.executors == 2
    # Rows, the newest of each key, go from task to task: what comes back is names of files, their
    # statistics and counts.
    assert traffic.shuffled > EVENTS * 8
    assert traffic.results < EVENTS * RECORD_BYTES / 20
    assert traffic.closures / traffic.tasks < 64 << 10
    verified = ingestd("verify", tmp_path / "warehouse", f"{DATABASE}.account")
    assert verified.returncode == 0, verified.stdout + verified.stderr
