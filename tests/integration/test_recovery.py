"""The tables alone decide: whatever happens to the files beside them, every record counts once."""

import os
import shutil
import signal
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import Daemon, catch_up, run_daemon
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


def one_group(daemon: Daemon) -> None:
    """What `timeout` and others do: end the process and then its group, itself included."""
    daemon.terminate()
    os.killpg(daemon.process.pid, signal.SIGTERM)


def every_process(daemon: Daemon) -> None:
    """What a service manager does that ends all it has of a service."""
    for pid in daemon.family():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


@pytest.mark.parametrize("end", [one_group, every_process])
def test_sigterm_to_all_processes_ends_as_one_to_the_daemon(
    end: Callable[[Daemon], None],
    ledger: Ledger,
    tmp_path: Path,
    broker: DevBroker,
    oracle: Oracle,
) -> None:
    config = pipeline(tmp_path, broker.bootstrap, ledger.pattern, batch_rows=300)
    ledger.produce(broker)
    with run_daemon(config, tmp_path) as daemon:
        daemon.logged("batch_finished")  # and another is under way
        end(daemon)
        assert daemon.wait(60) == 0, daemon.tail()
        lines = daemon.log.read_text()
    assert "Traceback" not in lines
    assert '"event":"pipeline_stopped"' in lines
    catch_up(config, tmp_path)
    assert judge(ledger, tmp_path / "warehouse", oracle) == []


def test_no_process_outlives_a_daemon_that_is_killed(
    ledger: Ledger, tmp_path: Path, broker: DevBroker
) -> None:
    config = pipeline(tmp_path, broker.bootstrap, ledger.pattern, batch_rows=300)
    ledger.produce(broker)
    with run_daemon(config, tmp_path) as daemon:
        daemon.logged("batch_finished")
        assert len(daemon.family()) > 3, daemon.family()
        daemon.process.kill()
        daemon.process.wait(30)
        end = time.monotonic() + 120
        while daemon.family() and time.monotonic() < end:
            time.sleep(0.2)
        assert daemon.family() == {}


def test_a_jvm_that_was_killed_is_named(ledger: Ledger, tmp_path: Path, broker: DevBroker) -> None:
    config = pipeline(tmp_path, broker.bootstrap, ledger.pattern, batch_rows=300)
    ledger.produce(broker)
    with run_daemon(config, tmp_path) as daemon:
        daemon.logged("batch_finished")
        assert daemon.kill_one("PythonGatewayServer") is not None
        assert daemon.wait(60) == 1, daemon.tail()
        failed = daemon.logged("pipeline_failed")
        lines = daemon.log.read_text()
    assert "Spark's JVM was killed by SIGKILL" in failed["message"]
    assert "pipeline_broke" not in lines
