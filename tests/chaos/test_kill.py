"""kill -9 at random moments of one run: nothing is lost and nothing counts twice.

Compaction and expiry are at work all the time. With INGESTD_LONG=1 there are 200 kills.
"""

import os
import random
import time
import uuid
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import Daemon, catch_up, run_daemon
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import pipeline

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.slow]

LONG = "INGESTD_LONG" in os.environ
EVENTS = int(os.environ.get("INGESTD_CHAOS_EVENTS", "400000" if LONG else "40000"))
KILLS = int(os.environ.get("INGESTD_CHAOS_KILLS", "200" if LONG else "10"))
SEED = int(os.environ.get("INGESTD_CHAOS_SEED", "20261121"))
WORKER = "ingestd-worker"
OPTIONS = {
    "num-sorted-run.compaction-trigger": "3",
    "compaction.min.file-num": "3",
    "snapshot.num-retained.min": "2",
    "snapshot.num-retained.max": "6",
}


@pytest.mark.timeout(14_400 if LONG else 3000)
def test_killed_drivers_and_workers_lose_and_double_nothing(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    dice = random.Random(SEED)
    ledger = Ledger(f"k{uuid.uuid4().hex[:8]}", EVENTS)
    piece = EVENTS // (KILLS + 1)
    rows = max(100, piece // 20)
    config = pipeline(
        tmp_path,
        broker.bootstrap,
        ledger.pattern,
        options=OPTIONS,
        batch_rows=rows,
        processing={"small-batch-records": rows // 3},
        expiry={"interval": "1s"},
    )
    for number in range(KILLS):
        # A piece for every run, so that none finds everything done before it is killed.
        ledger.produce(broker, number * piece, (number + 1) * piece)
        with run_daemon(config, tmp_path) as daemon:
            _await_progress(daemon)
            time.sleep(dice.random() * 2.5)
            if number % 2:
                assert daemon.kill_one(WORKER) is not None
                time.sleep(dice.random() * 2.0)
            daemon.kill()
    ledger.produce(broker, KILLS * piece)
    catch_up(config, tmp_path, timeout=600)
    assert judge(ledger, tmp_path / "warehouse", oracle) == []


def _await_progress(daemon: Daemon, timeout: float = 300) -> None:
    """Return once this run has committed something, so that kills hit batches, not start-up."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        assert daemon.process.poll() is None, daemon.tail()
        status, page = daemon.get("/metrics")
        if status == 200 and "ingestd_commits_total{" in page:
            return
        time.sleep(0.05)
    raise AssertionError(f"no commit within {timeout} s:\n{daemon.tail()}")
