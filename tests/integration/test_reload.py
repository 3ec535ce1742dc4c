"""SIGHUP on a running daemon: more topics are read from their beginning, nothing twice."""

import signal
import time
import uuid
from pathlib import Path

import pytest
import yaml

from ingestd.dev.broker import DevBroker
from tests.support.daemon import run_daemon
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
EVENTS = 4_000


def test_a_topic_that_joins_on_sighup_is_ingested(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    ledger.produce(broker, 0, EVENTS // 2)
    only_accounts = pipeline(tmp_path, broker.bootstrap, rf"{ledger.prefix}\.bank\.account")
    tables = tmp_path / "warehouse" / f"{DATABASE}.db"
    with run_daemon(only_accounts, tmp_path) as daemon:
        daemon.wait_until((tables / "account" / "snapshot" / "snapshot-1").exists)
        assert not (tables / "entry").exists()
        file = tmp_path / "ingestd.yaml"
        document = yaml.safe_load(file.read_text())
        document["sources"]["shop"]["topic-pattern"] = ledger.pattern
        file.write_text(yaml.safe_dump(document))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_until((tables / "entry" / "snapshot" / "snapshot-1").exists)
        ledger.produce(broker, EVENTS // 2)
        end = time.monotonic() + 120
        while judge(ledger, tmp_path / "warehouse", oracle) and time.monotonic() < end:
            time.sleep(1)
        daemon.terminate()
        assert daemon.wait() == 0
    assert judge(ledger, tmp_path / "warehouse", oracle) == []
