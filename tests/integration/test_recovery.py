"""The tables are the truth: whatever happens to the checkpoint, every record counts once."""

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

pytestmark = pytest.mark.integration
EVENTS = 6_000


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS, accounts=500)


def test_a_lost_checkpoint_costs_nothing(
    ledger: Ledger, tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    config = pipeline(tmp_path, broker.bootstrap, ledger.pattern, batch_rows=900)
    ledger.produce(broker, until=EVENTS // 2)
    catch_up(config, tmp_path)
    shutil.rmtree(tmp_path / "checkpoint")
    ledger.produce(broker, first=EVENTS // 2)
    catch_up(config, tmp_path)
    assert judge(ledger, tmp_path / "warehouse", oracle) == []


def test_an_older_copy_of_the_checkpoint_costs_nothing(
    ledger: Ledger, tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    config = pipeline(tmp_path, broker.bootstrap, ledger.pattern, batch_rows=900)
    ledger.produce(broker, until=EVENTS // 3)
    catch_up(config, tmp_path)
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "older")
    ledger.produce(broker, first=EVENTS // 3, until=2 * EVENTS // 3)
    catch_up(config, tmp_path)
    shutil.rmtree(tmp_path / "checkpoint")
    shutil.move(tmp_path / "older", tmp_path / "checkpoint")
    ledger.produce(broker, first=2 * EVENTS // 3)
    # Other batch borders than the first time, so ranges are partly there already.
    config["sources"]["shop"]["max-offsets-per-trigger"] = 1300
    catch_up(config, tmp_path)
    assert judge(ledger, tmp_path / "warehouse", oracle) == []


def test_a_lost_checkpoint_and_a_lost_mirror_cost_nothing(
    ledger: Ledger, tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    config = pipeline(tmp_path, broker.bootstrap, ledger.pattern, batch_rows=900)
    ledger.produce(broker, until=EVENTS // 2)
    catch_up(config, tmp_path)
    shutil.rmtree(tmp_path / "checkpoint")
    shutil.rmtree(tmp_path / "warehouse" / ".ingestd")
    ledger.produce(broker, first=EVENTS // 2)
    catch_up(config, tmp_path)
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
