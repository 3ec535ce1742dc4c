"""The whole daemon dies at named steps, in the process that takes them."""

import contextlib
import os
import signal
import time
import uuid
from pathlib import Path

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
SOME = (CrashPoint.SCHEMA_PUBLISHED, CrashPoint.DATA_WRITTEN, CrashPoint.COMPACTION_WRITTEN)
ALL = (*FIRST, *(point for point in CrashPoint if point not in OTHERS and point not in FIRST))
POINTS = ALL if "INGESTD_LONG" in os.environ else SOME
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
    ledger = Ledger(f"d{uuid.uuid4().hex[:8]}", PIECE * len(POINTS))
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
        mark = tmp_path / f"killed-{point}"
        with run_daemon(config, tmp_path, environment={VARIABLE: f"{point}:1:{mark}"}) as daemon:
            await_death(daemon, mark)
    catch_up(config, tmp_path)
    assert judge(ledger, tmp_path / "warehouse", oracle) == []


@pytest.mark.timeout(1200)
def test_a_driver_that_dies_while_a_batch_runs_ahead_goes_on_from_its_tables(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    ledger = Ledger(f"a{uuid.uuid4().hex[:8]}", 2 * PIECE)
    ledger.produce(broker)
    config = pipeline(
        tmp_path,
        broker.bootstrap,
        ledger.pattern,
        options=OPTIONS,
        batch_rows=PIECE // 4,
        processing={"small-batch-records": 10},
        logging={"format": "json", "level": "DEBUG"},
    )
    for death in PREFETCHING:
        mark = tmp_path / f"killed-{death.partition(':')[0]}"
        taken = _taken_ahead(tmp_path)
        with run_daemon(config, tmp_path, environment={VARIABLE: f"{death}:{mark}"}) as daemon:
            await_death(daemon, mark)
        assert _taken_ahead(tmp_path) > taken, daemon.tail(60)
    catch_up(config, tmp_path)
    assert judge(ledger, tmp_path / "warehouse", oracle) == []


def _taken_ahead(folder: Path) -> int:
    """How many batches of all runs so far found their first stage done."""
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
