"""The tables alone decide: whatever happens to the files beside them, every record counts once."""

import os
import shutil
import signal
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import Daemon, catch_up, run_daemon
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import pipeline

pytestmark = [pytest.mark.integration, pytest.mark.slow]
EVENTS = 4_800
PART = EVENTS // 4


def to_the_daemon(daemon: Daemon) -> None:
    daemon.terminate()


def to_its_group_and_every_process(daemon: Daemon) -> None:
    """What `timeout` does, which ends the process and then its group, itself included.

    The other processes get the signal from a service manager that ends all it has of a service.
    """
    family = daemon.family()
    daemon.terminate()
    os.killpg(daemon.process.pid, signal.SIGTERM)
    for pid in family:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def kill_the_jvm(daemon: Daemon) -> None:
    assert daemon.kill_one("PythonGatewayServer") is not None


def kill_the_driver(daemon: Daemon) -> None:
    """Its children must notice by themselves."""
    assert len(daemon.family()) > 3, daemon.family()
    daemon.process.kill()


@dataclass(frozen=True)
class Ending:
    """How a daemon is ended while it works, its exit code, and what its log must hold."""

    end: Callable[[Daemon], None]
    code: int
    logged: str = ""


STOPPED = '"event":"pipeline_stopped"'
ENDINGS = (
    Ending(to_the_daemon, 0, STOPPED),
    Ending(to_its_group_and_every_process, 0, STOPPED),
    Ending(kill_the_jvm, 1, "Spark's JVM was killed by SIGKILL"),
    Ending(kill_the_driver, -signal.SIGKILL),
)


def test_however_a_daemon_ends_and_whatever_happens_to_the_claims_file_every_record_counts_once(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    """One table's life: what an early loss costs is still there at its end.

    Every daemon but the last is ended while a batch is in progress, and its exit code says how.
    The claims file is lost or another one after the first three.
    """
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS, accounts=500)
    config = pipeline(tmp_path, broker.bootstrap, ledger.pattern, batch_rows=200)
    claims = tmp_path / "warehouse" / ".ingestd" / config["pipeline"]["name"] / "progress.json"
    older = b""
    for number, ending in enumerate(ENDINGS):
        ledger.produce(broker, number * PART, (number + 1) * PART)
        with run_daemon(config, tmp_path, name=f"run-{number}") as daemon:
            daemon.logged("batch_finished")  # and another one is in progress
            ending.end(daemon)
            assert daemon.wait() == ending.code, daemon.tail()
            gone = time.monotonic() + 120
            while daemon.family() and time.monotonic() < gone:
                time.sleep(0.2)
            assert daemon.family() == {}, ending
            log = daemon.log.read_text()
        assert ending.logged in log
        assert "pipeline_broke" not in log
        assert ending.code or "Traceback" not in log
        older = older or claims.read_bytes()
        # Other batch borders than before, so ranges are partly there already.
        config["sources"]["shop"]["max-offsets-per-trigger"] = 200 + 70 * number
        damage(claims, number, older)
    catch_up(config, tmp_path)
    assert judge(ledger, tmp_path / "warehouse", oracle) == []


def damage(claims: Path, run: int, older: bytes) -> None:
    """What happens to the file after a run: the folder is lost, the file older, or half of it."""
    if run == 0:
        shutil.rmtree(claims.parents[1])
    elif run == 1:
        claims.write_bytes(older)
    elif run == 2:
        claims.write_bytes(older[: len(older) // 2])
