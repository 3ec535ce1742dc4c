"""The tables alone decide: whatever happens to the files beside them, every record counts once."""

import shutil
import uuid
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import catch_up, run_daemon
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import pipeline

pytestmark = [pytest.mark.integration, pytest.mark.slow]
EVENTS = 6_000
PART = EVENTS // 5


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS, accounts=500)


def test_whatever_happens_to_the_claims_file_every_record_counts_once(
    ledger: Ledger, tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    """One table's life: what an early loss costs is still there at its end."""
    config = pipeline(tmp_path, broker.bootstrap, ledger.pattern, batch_rows=900)
    claims = tmp_path / "warehouse" / ".ingestd" / config["pipeline"]["name"] / "progress.json"

    def run(part: int) -> None:
        ledger.produce(broker, part * PART, (part + 1) * PART)
        catch_up(config, tmp_path)

    run(0)
    older = claims.read_bytes()
    run(1)
    claims.write_bytes(older)
    # Other batch borders than the first time, so ranges are partly there already.
    config["sources"]["shop"]["max-offsets-per-trigger"] = 1300
    run(2)
    claims.write_bytes(older[: len(older) // 2])
    run(3)
    shutil.rmtree(tmp_path / "warehouse" / ".ingestd")
    run(4)
    assert judge(ledger, tmp_path / "warehouse", oracle) == []


def test_sigterm_ends_the_batch_in_flight_and_exits_with_0(
    ledger: Ledger, tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    config = pipeline(tmp_path, broker.bootstrap, ledger.pattern, batch_rows=300)
    ledger.produce(broker)
    with run_daemon(config, tmp_path) as daemon:
        daemon.wait_until_ready()
        daemon.terminate()
        assert daemon.wait(60) == 0, daemon.tail()
    catch_up(config, tmp_path)
    assert judge(ledger, tmp_path / "warehouse", oracle) == []
