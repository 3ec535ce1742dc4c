"""kill -9 at random moments of one run: nothing is lost and nothing counts twice.

The driver with all its children, a worker, or the maintenance process, drawn at random, the next
only when something has been committed since. Compaction and expiry are at work all the time.
With INGESTD_LONG=1 there are 200 kills.
"""

import os
import random
import time
import uuid
from collections import Counter
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
EVENTS = int(os.environ.get("INGESTD_CHAOS_EVENTS", "100000" if LONG else "9600"))
KILLS = int(os.environ.get("INGESTD_CHAOS_KILLS", "200" if LONG else "4"))
SEED = int(os.environ.get("INGESTD_CHAOS_SEED", "20261121"))
DRIVER, WORKER, MAINTENANCE = "driver", "ingestd-worker", "ingestd-maint"
VICTIMS = {DRIVER: 35, WORKER: 35, MAINTENANCE: 30}
PAUSE = 2.5 if LONG else 1.6
STANDSTILL = 300
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
    rows = max(100, piece // 8)
    config = pipeline(
        tmp_path,
        broker.bootstrap,
        ledger.pattern,
        options=OPTIONS,
        batch_rows=rows,
        processing={"small-batch-records": rows // 3},
        expiry={"interval": "1s"},
    )
    drawn = dice.choices([*VICTIMS], [*VICTIMS.values()], k=KILLS - 3)
    victims = [MAINTENANCE, *drawn, WORKER, DRIVER]  # the last one ends the last run
    killed: Counter[str] = Counter()
    while killed.total() < KILLS:
        with run_daemon(config, tmp_path) as daemon:
            victim = ""
            while victim != DRIVER and killed.total() < KILLS:
                # A piece for every kill, so that none finds everything done.
                number = killed.total()
                ledger.produce(broker, number * piece, (number + 1) * piece)
                _await_a_commit(daemon)
                time.sleep(dice.random() * PAUSE)
                victim = victims[number]
                _kill(daemon, victim)
                killed[victim] += 1
    print(f"killed: {dict(killed)}")
    ledger.produce(broker, KILLS * piece)
    catch_up(config, tmp_path, timeout=600)
    assert judge(ledger, tmp_path / "warehouse", oracle) == []


def _kill(daemon: Daemon, victim: str) -> None:
    """SIGKILL to it; a worker or the process of maintenance may have to be waited for."""
    if victim == DRIVER:
        daemon.kill()
    else:
        daemon.wait_until(lambda: daemon.kill_one(victim) is not None, STANDSTILL)


def _await_a_commit(daemon: Daemon) -> None:
    """Return when this run commits something more, so that kills hit batches, not start-up."""
    before = _commits(daemon)
    daemon.wait_until(lambda: _commits(daemon) > before, STANDSTILL)


def _commits(daemon: Daemon) -> float:
    status, page = daemon.get("/metrics")
    lines = page.splitlines() if status == 200 else []
    return sum(
        float(line.split()[-1]) for line in lines if line.startswith("ingestd_commits_total{")
    )
