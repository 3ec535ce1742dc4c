"""The whole daemon dies at named steps, in the process that takes them."""

import contextlib
import os
import signal
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ingestd.crash_points import VARIABLE, CrashPoint
from ingestd.dev.broker import DevBroker
from tests.support.daemon import Daemon, catch_up, run_daemon
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import pipeline

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.slow]
OTHERS = {
    CrashPoint.INDEX_WRITTEN,
    CrashPoint.INDEX_MANIFEST_WRITTEN,
    CrashPoint.CHANGELOG_WRITTEN,
    CrashPoint.CHANGELOG_LISTED,
    CrashPoint.VECTORS_WRITTEN,
    CrashPoint.MOVES_WRITTEN,
}
"""Steps of tables of other kinds than these."""
FIRST = (CrashPoint.SCHEMA_CHOSEN, CrashPoint.SCHEMA_PUBLISHED)
"""Steps that are not passed again once the tables are there."""
PREFETCHING = (f"{CrashPoint.SNAPSHOT_PUBLISHED}:6", f"{CrashPoint.CLAIMS_WRITTEN}:4")
"""Deaths during a prefetch: between two tables of the third batch, and after the sixth batch."""
SOME = (CrashPoint.DATA_WRITTEN, CrashPoint.COMPACTION_WRITTEN)
"""In short a step of a worker and one of maintenance; the driver dies during a prefetch."""
ALL = (*FIRST, *(point for point in CrashPoint if point not in OTHERS and point not in FIRST))
LONG = "INGESTD_LONG" in os.environ
POINTS = ALL if LONG else SOME
DEATHS = PREFETCHING if LONG else PREFETCHING[:1]
PIECE = 2_000
OPTIONS = {
    "bucket": "2",
    "num-sorted-run.compaction-trigger": "2",
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "3",
}


@pytest.mark.timeout(4000)
def test_a_daemon_that_dies_at_a_step_goes_on_from_there(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    """Then it dies while batches are prefetched, which the driver's own batches never are."""
    ledger = Ledger(f"d{uuid.uuid4().hex[:8]}", PIECE * (len(POINTS) + 2))
    config = pipeline(
        tmp_path,
        broker.bootstrap,
        ledger.pattern,
        options=OPTIONS,
        tables={"entry": {"options": {"bucket": "-1"}}},
        batch_rows=PIECE // 4,
        expiry={"interval": "1s"},
    )
    for number, point in enumerate(POINTS):
        ledger.produce(broker, number * PIECE, (number + 1) * PIECE)
        die(config, tmp_path, f"{point}:1")
    ledger.produce(broker, len(POINTS) * PIECE)
    config |= {
        "processing": {"small-batch-records": 10},
        "logging": {"format": "json", "level": "DEBUG"},
    }
    for death in DEATHS:
        used = _prefetches_used(tmp_path)
        die(config, tmp_path, death)
        assert _prefetches_used(tmp_path) > used
    catch_up(config, tmp_path)
    assert judge(ledger, tmp_path / "warehouse", oracle) == []


def die(config: Mapping[str, Any], folder: Path, death: str) -> None:
    """Run the daemon until it dies at a step, `POINT:TIMES`."""
    mark = folder / f"killed-{death.partition(':')[0]}"
    mark.unlink(missing_ok=True)
    with run_daemon(config, folder, environment={VARIABLE: f"{death}:{mark}"}) as daemon:
        await_death(daemon, mark)


def _prefetches_used(folder: Path) -> int:
    """How many batches of all runs until now were prefetched."""
    log = folder / "ingestd.log"
    return log.read_text(errors="replace").count('"prefetch_used"') if log.exists() else 0


def await_death(daemon: Daemon, mark: Path) -> None:
    """Return once some process of the daemon has died at the step, and leave no other behind."""
    end = time.monotonic() + 240
    while not mark.exists():
        assert time.monotonic() < end, daemon.tail(60)
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(daemon.process.pid, signal.SIGKILL)
