"""The installed chart with executors: pods of Spark, lost ones, a lost driver, other numbers."""

import json
import os
import time
import urllib.request
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from ingestd.dev.jars import cache_folder
from tests.chart.api_server import can_be_had
from tests.chart.cluster import Cluster
from tests.chart.connections import Connection, permitted
from tests.chart.trickle import Trickle
from tests.support.daemon import free_port
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.made_once import alone
from tests.support.oracle import Oracle
from tests.support.pipelines import pipeline

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(3600)]
EVENTS = 12_000
STEP = EVENTS // 4
NAMESPACE = "lake"
PORTS = {"http": 0, "driver": 7078, "driver-blocks": 7079}
COMPONENT = "app.kubernetes.io/component"
DRIVER = "shop-ingestd-0"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """One at a time: the ports of the driver are fixed, and pods have no network of their own."""
    if not can_be_had():
        pytest.skip("no programs of Kubernetes in the cache, and no Go to build them")
    with alone(cache_folder() / "cluster"), Cluster(tmp_path / "cluster", NAMESPACE) as running:
        lake = tmp_path / "lake"
        lake.mkdir()
        spec = {
            "capacity": {"storage": "50Gi"},
            "accessModes": ["ReadWriteMany"],
            "hostPath": {"path": str(lake)},
        }
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "lake"}}
        running.create({**volume, "spec": spec})
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kafka"}}
        running.create({**secret, "stringData": {"client": "executors"}})
        yield running


class Release:
    """The chart's release on the cluster, and its pages."""

    def __init__(self, cluster: Cluster, ledger: Ledger, bootstrap: str) -> None:
        self._cluster = cluster
        self._port = free_port()
        config = pipeline(Path("/lake"), bootstrap, ledger.pattern, batch_rows=STEP)
        config["warehouse"]["shared"] = True
        config["processing"] = {"small-batch-records": 100}  # larger ones are exchanged
        config["sources"]["shop"]["kafka"]["client.id"] = "${file:/run/secrets/ingestd/client}"
        config["http"] = {"listen": f"0.0.0.0:{self._port}", "linger": "1s"}
        self.api, self.broker = cluster.api.port, int(bootstrap.rpartition(":")[2])
        self._spark = {"spark.master": f"k8s://https://kubernetes.default.svc:{self.api}"}
        self._values: dict[str, Any] = {
            "config": config,
            "existingSecret": "kafka",
            "persistence": {"accessModes": ["ReadWriteMany"]},
            "networkPolicy": {"egress": [{"ports": [{"port": self.broker}, {"port": self.api}]}]},
        }

    def upgrade(self, executors: int, *, encryption: bool = False) -> None:
        """Install it, or change it to this number of executors."""
        wanted = {"instances": executors, "encryption": encryption}
        config = {**self._values["config"], "spark": self._spark if executors else {}}
        values = {**self._values, "config": config, "executors": wanted}
        self._cluster.upgrade("shop", values)

    def status(self) -> dict[str, Any]:
        """The page /status; empty while there is none."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self._port}/status", timeout=30
            ) as page:
                found: dict[str, Any] = json.loads(page.read())
                return found
        except OSError:
            return {}

    def wait_for(self, executors: int | None, gone: Collection[str] = ()) -> set[str]:
        """The names of the executors' pods, when the driver counts this many and some are gone."""

        def there() -> bool:
            names = set(self._cluster.executors())
            status = self.status()
            counted = bool(status) and status.get("executors") == executors
            return counted and len(names) == (executors or 0) and names.isdisjoint(gone)

        self._cluster.wait_until(there)
        return set(self._cluster.executors())

    def position(self) -> float:
        """Offsets that the tables have reached, summed over all topic partitions."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self._port}/metrics", timeout=30
            ) as page:
                lines = page.read().decode().splitlines()
        except OSError:
            return -1
        found = [line for line in lines if line.startswith("ingestd_source_position_offset{")]
        return sum(float(one.rpartition(" ")[2]) for one in found)


def test_a_release_goes_on_over_lost_executors_a_lost_driver_and_other_numbers_of_executors(
    tmp_path: Path, broker: DevBroker, cluster: Cluster, oracle: Oracle
) -> None:
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    ledger.produce(broker, 0, STEP)
    release = Release(cluster, ledger, broker.bootstrap)
    release.upgrade(2)
    first = release.wait_for(2)
    cluster.wait_until(lambda: release.position() == STEP)

    lost = min(first)
    cluster.kubelet.pods[lost].kill()
    ledger.append(broker, STEP, 2 * STEP)
    cluster.wait_until(lambda: release.position() == 2 * STEP)
    second = release.wait_for(2, gone={lost})
    assert len(second & first) == 1

    cluster.delete_pod(DRIVER)
    ledger.append(broker, 2 * STEP, 3 * STEP)
    third = release.wait_for(2, gone=second)
    cluster.wait_until(lambda: set(cluster.kubelet.pods) == {DRIVER, *third})
    cluster.wait_until(lambda: release.position() == 3 * STEP)
    # No pod sees the files of another one: those that it did not write came over the network.
    assert list((tmp_path / "cluster").rglob("ingestd-exchange/*/*"))

    release.upgrade(1, encryption=True)
    ledger.append(broker, 3 * STEP)
    release.wait_for(1, gone=third)
    cluster.wait_until(lambda: release.position() == EVENTS)
    assert judge(ledger, tmp_path / "lake" / "warehouse", oracle) == []
    check_connections(cluster, release)


@pytest.mark.skipif("INGESTD_LONG" not in os.environ, reason="minutes; make chart-e2e")
def test_a_long_life_of_a_release_with_losses_of_each_kind(
    tmp_path: Path, broker: DevBroker, cluster: Cluster, oracle: Oracle
) -> None:
    """Under a load that does not end; a line is printed for each event."""
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", 10 * EVENTS)
    release = Release(cluster, ledger, broker.bootstrap)
    begun = time.monotonic()

    def after(event: str, executors: int | None, gone: Collection[str] = ()) -> set[str]:
        names = release.wait_for(executors, gone)
        more = release.position()
        cluster.wait_until(lambda: release.position() > more)
        print(f"{time.monotonic() - begun:6.0f} s  {event}: {sorted(names) or 'no executors'}")
        return names

    with Trickle(ledger, broker, 50) as trickle:
        release.upgrade(1)
        names = after("installed with one executor", 1)
        release.upgrade(3)
        names = after("upgraded to three", 3, names)
        for number in range(3):
            lost = min(names)
            cluster.kubelet.pods[lost].kill()
            names = after(f"killed executor {number + 1}, {lost}", 3, {lost})
        lost = min(names)
        cluster.delete_pod(lost, grace_seconds=30)
        names = after(f"deleted {lost}", 3, {lost})
        lost = min(names)
        cluster.delete_pod(lost)
        names = after(f"deleted by force {lost}", 3, {lost})
        for number in range(3):
            cluster.delete_pod(DRIVER)
            names = after(f"deleted the driver by force, {number + 1}", 3, names)
            cluster.wait_until(lambda names=names: set(cluster.kubelet.pods) == {DRIVER, *names})
        cluster.kubelet.pods[DRIVER].kill()
        ended, names = names, after("killed the driver's processes in their pod", 3, names)
        assert ended <= set(cluster.kubelet.pods), "their owner is still there"
        release.upgrade(3, encryption=True)
        names = after("upgraded to encryption", 3, {*ended, *names})
        assert ended.isdisjoint(cluster.kubelet.pods)
        release.upgrade(0)
        after("upgraded to none", None, names)
        release.upgrade(2)
        after("upgraded to two", 2, names)
        trickle.finish()
        cluster.wait_until(lambda: release.position() == ledger.events)
    assert judge(ledger, tmp_path / "lake" / "warehouse", oracle) == []
    check_connections(cluster, release)
    print(f"{time.monotonic() - begun:6.0f} s  {ledger.events} events are in the tables once")


def check_connections(cluster: Cluster, release: Release) -> None:
    """The network policies permit all connections that were seen, and these were seen."""
    policies = cluster.policies()
    refused = {one for one in cluster.seen if not permitted(one, policies, PORTS)}
    assert refused == set()
    opened = {ends(one) for one in cluster.seen}
    executors = {
        ("executor", "daemon", PORTS["driver"]),
        ("executor", "daemon", PORTS["driver-blocks"]),
        ("executor", "executor", 7080),
        ("executor", None, release.broker),
    }
    assert executors <= opened
    assert ("daemon", None, release.api) in opened
    assert ("executor", None, release.api) not in opened
    for one in cluster.seen:
        if one.server:
            stranger = one._replace(client=(("app", "another"),))
            assert not permitted(stranger, policies, PORTS)


def ends(one: Connection) -> tuple[str | None, str | None, int]:
    """The components at both ends, and the port."""
    client, server = (dict(labels).get(COMPONENT) for labels in (one.client, one.server))
    return client, server, one.port
