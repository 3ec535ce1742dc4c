"""The rendered chart, run: installed, loaded, killed, upgraded; every event is there once."""

import uuid
from pathlib import Path

import pytest
import yaml

from ingestd.dev.broker import DevBroker
from tests.support.chart import objects
from tests.support.daemon import Daemon, free_port
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import pipeline
from tests.support.pod import Pod

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]
EVENTS = 20_000


def lag(daemon: Daemon) -> float | None:
    """Records behind the topics' end by the page that Prometheus scrapes; None when unknown."""
    _, page = daemon.get("/metrics")
    found = [
        float(line.rpartition(" ")[2])
        for line in page.splitlines()
        if line.startswith("ingestd_source_lag_records{")
    ]
    return sum(found) if found else None


def test_a_release_is_installed_killed_and_upgraded_and_holds_every_event_once(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    config = pipeline(tmp_path, broker.bootstrap, ledger.pattern, batch_rows=2_000)
    config["http"] = {"listen": f"127.0.0.1:{free_port()}"}
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"config": config}))
    release = ("--values", values)
    pod = Pod(objects(*release), tmp_path / "pod")
    ledger.produce(broker, 0, EVENTS // 2)

    with pod.start() as installed:
        installed.wait_until(lambda: pod.probe(installed, "startup") == 200)
        installed.wait_until(lambda: pod.probe(installed, "readiness") == 200)
        assert pod.probe(installed, "liveness") == 200
        installed.kill()
    ledger.produce(broker, EVENTS // 2)
    with pod.start() as restarted:
        restarted.wait_until(lambda: pod.probe(restarted, "readiness") == 200)
        restarted.terminate()
        assert restarted.wait() == 0

    change = ("--set", "config.sources.shop.max-offsets-per-trigger=9000")
    upgraded = Pod(objects(*release, *change), tmp_path / "pod")
    assert upgraded.configuration()["sources"]["shop"]["max-offsets-per-trigger"] == 9000
    with upgraded.start() as running:
        running.wait_until(lambda: lag(running) == 0)
        running.terminate()
        assert running.wait() == 0
    assert judge(ledger, tmp_path / "warehouse", oracle) == []
