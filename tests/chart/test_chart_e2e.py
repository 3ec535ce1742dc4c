"""The rendered chart, run as processes beside a real Prometheus that scrapes it and has its alerts.

Installed, loaded, killed, hung, failed, upgraded: each cause of an alert is there for a while, each
alert fires and clears, and in the end every event is in the tables once. Time runs `haste` times as
fast in the rules; their thresholds are values of the release. Causes that need minutes even so are
in the long run.
"""

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from ingestd.errors import PolicyStopError
from tests.chart.release import LABELS, Release
from tests.chart.rival import Rival
from tests.chart.trickle import Trickle
from tests.support.chart import only
from tests.support.daemon import free_port
from tests.support.kafka_broker import produce, running_broker
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline
from tests.support.processes import one_of, stopped
from tests.support.prometheus import Prometheus, hastened, prometheus_program

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(prometheus_program() is None, reason="no Prometheus to be had"),
]
EVENTS = 30_000
STEP = 40
BURST = 2_000
BAD = 300
PATIENCE = 300.0
THRESHOLDS = {
    "batchAgeSeconds": 10,
    "lagRecords": 1000,
    "freshnessSeconds": 10,
    "sortedRuns": 6,
    "attemptsPerCommit": 1.2,
}
RESTARTS = {"initial-backoff": "100ms", "max-backoff": "500ms", "max-attempts": 10_000}
# What only some pipelines ever have.
SELDOM = {"Rows left out a second"}


def values(bootstrap: str, ledger: Ledger, most_rejected: int) -> dict[str, Any]:
    config = pipeline(Path("/lake"), bootstrap, ledger.pattern, batch_rows=2_000)
    config["sources"]["shop"]["kafka"]["client.id"] = "${file:/run/secrets/ingestd/client}"
    config["http"] = {"listen": f"127.0.0.1:{free_port()}", "linger": "5s"}
    config["errors"] = {"max-rejected-records": most_rejected}
    return {
        "config": config,
        "existingSecret": "kafka",
        "extraEnv": [{"name": "INGESTD__LOGGING__LEVEL", "value": "INFO"}],
        "prometheusRule": {"enabled": True, "thresholds": THRESHOLDS},
        "dashboard": {"enabled": True},
    }


@contextmanager
def provoked(prometheus: Prometheus, *alerts: str) -> Iterator[None]:
    """In the block the cause of these alerts is there; they fire, and clear when it is gone."""
    prometheus.wait_until_clear(*alerts, seconds=PATIENCE)
    yield
    prometheus.wait_until_clear(*alerts, seconds=PATIENCE)


def empty_panels(found: list[dict[str, Any]], prometheus: Prometheus) -> set[str]:
    """Titles of the dashboard's panels with a query that gives nothing."""
    text = only(found, "ConfigMap", "shop-ingestd-dashboard")["data"]["ingestd.json"]
    variables = {"$namespace": LABELS["namespace"], "$pod": LABELS["pod"]}
    empty = set()
    for panel in json.loads(text)["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"]
            for name, value in variables.items():
                expression = expression.replace(name, value)
            series = prometheus.query(expression)
            if not series or all(one["value"][1] == "NaN" for one in series):
                empty.add(panel["title"])
    return empty


@contextmanager
def installed(
    folder: Path, given: dict[str, Any], ledger: Ledger, broker: DevBroker, haste: int
) -> Iterator[tuple[Release, Trickle, Prometheus]]:
    """A release with a load and a Prometheus; in the end all is read, and nothing fires."""
    with (
        Release(folder, given, {"kafka": {"client": "chart-e2e"}}) as release,
        Trickle(ledger, broker, STEP) as trickle,
        Prometheus(
            folder / "prometheus",
            port(given),
            labels=LABELS,
            rules=hastened(release.rules(), haste),
        ) as prometheus,
    ):
        release.place()
        yield release, trickle, prometheus
        trickle.finish()
        # Lag uses end offsets that are some seconds old; positions are those of the tables.
        wanted = ledger.events + trickle.others
        release.daemon.wait_until(lambda: release.position() == wanted, PATIENCE)
        prometheus.wait_until_clear(*names(release.rules()), seconds=PATIENCE)
        release.daemon.terminate()
        assert release.daemon.wait() == 0


def test_every_event_is_there_once_and_every_alert_fires_for_its_cause_and_clears(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    given = values(broker.bootstrap, ledger, BAD // 3)
    with installed(tmp_path, given, ledger, broker, 60) as (release, trickle, prometheus):
        assert release.pod.probe(release.daemon, "liveness") == 200
        with provoked(prometheus, "IngestdDown"):
            release.daemon.kill()
            prometheus.wait_for_alerts("IngestdDown")
            release.place()
        release.wait_for_rows()
        behind = ("IngestdNoBatch", "IngestdLagGrowing", "IngestdFreshness")
        jvm = one_of(release.daemon.process.pid, "java:")
        with provoked(prometheus, *behind), stopped(jvm):
            trickle.more(BURST)
            prometheus.wait_for_alerts(*behind)
        with provoked(prometheus, "IngestdFailed", "IngestdDeadLetters"):
            produce(broker, f"{ledger.prefix}.bank.entry", [(None, b"{")] * BAD)
            trickle.others = BAD
            prometheus.wait_for_alerts("IngestdFailed")
            assert release.daemon.wait() == PolicyStopError.exit_code
            release.upgrade(loosened(given))
            prometheus.wait_for_alerts("IngestdDeadLetters")
            assert empty_panels(release.found, prometheus) <= SELDOM
    assert judge(ledger, release.pod.path("/lake/warehouse"), oracle) == []


@pytest.mark.skipif("INGESTD_LONG" not in os.environ, reason="minutes; make chart-e2e")
def test_alerts_of_storage_brokers_compaction_and_other_writers_fire_and_clear(
    tmp_path: Path, oracle: Oracle
) -> None:
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    with running_broker() as broker:
        given = values(broker.bootstrap, ledger, BAD)
        given["config"]["restart"] = RESTARTS
        with installed(tmp_path, given, ledger, broker, 20) as (release, _, prometheus):
            release.wait_for_rows()
            warehouse = release.pod.path("/lake/warehouse")
            maintenance = release.daemon.logged("maintenance_process_started")["pid"]
            with provoked(prometheus, "IngestdCompactionBehind"), stopped(maintenance):
                prometheus.wait_for_alerts("IngestdCompactionBehind", seconds=PATIENCE)
            conflicts = "IngestdCommitConflicts"
            with provoked(prometheus, conflicts), Rival(warehouse, f"{DATABASE}.entry"):
                prometheus.wait_for_alerts(conflicts, seconds=PATIENCE)
            with provoked(prometheus, "IngestdRestarting"), away(warehouse / f"{DATABASE}.db"):
                prometheus.wait_for_alerts("IngestdRestarting", seconds=PATIENCE)
            unreachable = "IngestdSourceUnreachable"
            with provoked(prometheus, unreachable), stopped(broker_of(broker)):
                prometheus.wait_for_alerts(unreachable, seconds=PATIENCE)
        assert judge(ledger, warehouse, oracle) == []


@contextmanager
def away(folder: Path) -> Iterator[None]:
    """Something else is in the place of a folder, as when a volume is not what it was."""
    aside = folder.with_name(f"{folder.name}.aside")
    folder.rename(aside)
    folder.write_text("")
    try:
        yield
    finally:
        folder.unlink()
        aside.rename(folder)


def broker_of(broker: DevBroker) -> int:
    """The process of a broker."""
    assert broker._process is not None
    return one_of(broker._process.pid, "java:")


def port(given: Mapping[str, Any]) -> int:
    """The port that the pages are on."""
    return int(given["config"]["http"]["listen"].rpartition(":")[2])


def loosened(given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the upgrade: bad records are no reason to end any more."""
    return {**given, "config": {**given["config"], "errors": {"max-rejected-records": 10 * BAD}}}


def names(rules: Mapping[str, Any]) -> list[str]:
    """The alerts of a release."""
    return [rule["alert"] for group in rules["groups"] for rule in group["rules"]]
