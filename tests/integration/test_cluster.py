"""The daemon on clusters of Spark: executors that are processes of their own, as elsewhere."""

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.event_log import SETTINGS, driver_traffic
from bench.spark_cluster import SparkCluster
from ingestd.dev.broker import DevBroker
from tests.support.daemon import Daemon, catch_up, ingestd, run_daemon
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline
from tests.support.planted import Planted, files_below
from tests.support.s3_server import S3Server, built, can_be_had, running_s3

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]
EVENTS = 30_000
RECORD_BYTES = 200  # at the least
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
EXECUTORS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    # No task before both executors are there: the first one alone could finish a run this short.
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "180s",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the cluster has its logs, and its executors their working directories."""
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[SparkCluster]:
    """A master and two workers; a test that kills one adds another."""
    with SparkCluster(folder, workers=2, cores=1) as running:
        yield running


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A store that is the only thing which driver and executors share."""
    if not can_be_had():
        pytest.skip("the S3 server is built with go")
    with running_s3(built(), tmp_path_factory.mktemp("s3")) as server:
        yield server


def configuration(
    tmp_path: Path,
    broker: DevBroker,
    ledger: Ledger,
    spark: Mapping[str, str],
    *,
    batches: int,
    warehouse: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A pipeline over the ledger on both executors, in this many batches."""
    return pipeline(
        tmp_path,
        broker.bootstrap,
        ledger.pattern,
        batch_rows=ledger.events // batches,
        spark={**LOOPBACK, **EXECUTORS, **spark},
        processing={"small-batch-records": 100},
        warehouse={
            "path": str(tmp_path / "warehouse"),
            "database": DATABASE,
            "shared": True,
            **(warehouse or {}),
        },
    )


def running(daemon: Daemon) -> Any:
    """The batch under way, as `/status` shows it."""
    return batch(daemon).get("running")


def executors(daemon: Daemon) -> int:
    """The executors that `/status` counts."""
    return int(json.loads(daemon.get("/status")[1])["executors"])


def batch(daemon: Daemon) -> dict[str, Any]:
    code, page = daemon.get("/status")
    found: dict[str, Any] = json.loads(page)["batch"] if code == 200 else {}
    return found


def test_executors_with_another_disk_write_nothing(
    tmp_path: Path, broker: DevBroker, cluster: SparkCluster, folder: Path
) -> None:
    """One path that is another folder for each process, as a disk of its own is."""
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", 200)
    ledger.produce(broker)
    spark = {"spark.master": cluster.url}
    elsewhere = {"path": "/proc/self/cwd/warehouse"}
    config = configuration(tmp_path, broker, ledger, spark, batches=1, warehouse=elsewhere)
    with run_daemon(config, tmp_path, until_latest=True) as daemon:
        assert daemon.wait() == 4, daemon.tail(80)
    assert "is not in the warehouse of the executor" in daemon.log.read_text()
    snapshots = (tmp_path / "warehouse" / f"{DATABASE}.db").glob("*/snapshot/snapshot-*")
    assert [
        snapshot for snapshot in snapshots if json.loads(snapshot.read_bytes())["totalRecordCount"]
    ] == []
    assert list(folder.glob("work-*/app-*")), "no executor ran"
    assert [path.name for path in folder.rglob("*.parquet")] == []


def test_both_stages_run_on_all_executors_and_only_metadata_passes_the_driver(
    tmp_path: Path,
    broker: DevBroker,
    oracle: Oracle,
    cluster: SparkCluster,
    folder: Path,
    s3: S3Server,
) -> None:
    """The warehouse is a store, whose keys executors look up themselves."""
    planted = Planted()
    planted.by_place["s3"] = s3.options["s3.secret-key"]
    (tmp_path / "key").write_text(s3.options["s3.secret-key"])
    options = {**s3.options, "s3.secret-key": "${file:key}", "s3.access-key": "${file:id}"}
    (tmp_path / "id").write_text(s3.options["s3.access-key"])
    warehouse = {"path": "s3://lake/warehouse", "options": options, "shared": False}
    check_traffic(tmp_path, broker, oracle, cluster.url, s3.folder / "warehouse", warehouse)
    assert planted.search([*files_below(tmp_path / "events"), *files_below(folder)]) == {}


@pytest.mark.skipif("INGESTD_LONG" not in os.environ, reason="the same on another kind of master")
def test_the_same_on_a_local_cluster(
    tmp_path: Path, broker: DevBroker, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_WORKER_DIR", str(tmp_path / "work"))  # else in the installed Spark
    check_traffic(tmp_path, broker, oracle, "local-cluster[2,1,1024]", tmp_path / "warehouse")


def check_traffic(
    tmp_path: Path,
    broker: DevBroker,
    oracle: Oracle,
    master: str,
    lake: Path,
    warehouse: Mapping[str, Any] | None = None,
) -> None:
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    ledger.produce(broker)
    events = tmp_path / "events"
    events.mkdir()
    spark = {**SETTINGS, "spark.eventLog.dir": events.as_uri(), "spark.master": master}
    config = configuration(tmp_path, broker, ledger, spark, batches=2, warehouse=warehouse)
    catch_up(config, tmp_path)
    traffic = driver_traffic(events)
    assert judge(ledger, lake, oracle) == []
    assert traffic.executors == 2
    # Rows, the newest of each key, go from task to task: what comes back is names of files, their
    # statistics and counts.
    assert traffic.shuffled > EVENTS * 8
    assert traffic.results < EVENTS * RECORD_BYTES / 20
    assert traffic.closures / traffic.tasks < 64 << 10
    verified = ingestd("verify", lake, f"{DATABASE}.account")
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.chaos
def test_a_worker_killed_during_a_batch_costs_nothing(
    tmp_path: Path, broker: DevBroker, oracle: Oracle, cluster: SparkCluster
) -> None:
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", 2 * EVENTS)
    ledger.produce(broker)
    config = configuration(tmp_path, broker, ledger, {"spark.master": cluster.url}, batches=3)
    with run_daemon(config, tmp_path, until_latest=True) as daemon:
        daemon.wait_until(lambda: batch(daemon).get("finished") is not None)
        daemon.wait_until(lambda: running(daemon) is not None)
        under_way = running(daemon)
        assert executors(daemon) == 2
        cluster.kill_worker(0)
        assert running(daemon) == under_way, "the batch was over before the worker was"
        daemon.wait_until(lambda: executors(daemon) == 1)
        assert daemon.wait(600) == 0, daemon.tail(80)
    cluster.add_worker()
    assert "Lost executor" in daemon.log.read_text()
    assert judge(ledger, tmp_path / "warehouse", oracle) == []
