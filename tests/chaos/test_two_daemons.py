"""Two daemons of one pipeline: started at once, or one that wakes up after it was replaced."""

import os
import signal
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import Daemon, catch_up, ingestd, run_daemon
from tests.support.daemon_progress import Watched
from tests.support.ledger import PARTITIONS, Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(900)]
EVENTS = 12_000
FENCED = 6


def snapshots(folder: Path) -> int:
    return len(list((folder / "warehouse" / f"{DATABASE}.db" / "entry" / "snapshot").glob("s*-*")))


def until(daemons: list[Daemon], folder: Path, wanted: int) -> None:
    end = time.monotonic() + 240
    while snapshots(folder) < wanted and any(daemon.process.poll() is None for daemon in daemons):
        assert time.monotonic() < end, "\n".join(daemon.tail() for daemon in daemons)
        time.sleep(0.05)


def the_fenced_one_of(*daemons: Daemon) -> Daemon:
    """The one that has ended, or ends now, because the other has taken over."""
    end = time.monotonic() + 120
    while not (ended := [daemon for daemon in daemons if daemon.process.poll() is not None]):
        assert time.monotonic() < end, "\n".join(daemon.tail() for daemon in daemons)
        time.sleep(0.05)
    assert [one.process.poll() for one in ended] == [FENCED], "\n".join(map(Daemon.tail, ended))
    return ended[0]


def finish(daemon: Daemon) -> None:
    """Wait until a daemon has all events in its tables, and end it."""
    Watched(daemon, "shop", 2 * PARTITIONS).await_offsets(EVENTS)
    daemon.terminate()
    assert daemon.wait() == 0, daemon.tail()


def of(folder: Path, broker: DevBroker, ledger: Ledger) -> dict[str, Any]:
    """The pipeline as any machine runs it."""
    return pipeline(folder, broker.bootstrap, ledger.pattern, batch_rows=500)


def test_of_two_that_start_at_once_no_event_is_written_twice(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    ledger.produce(broker)
    configs = {node: of(tmp_path, broker, ledger) for node in "ab"}
    with (
        run_daemon(configs["a"], tmp_path, name="a") as first,
        run_daemon(configs["b"], tmp_path, name="b") as second,
    ):
        until([first, second], tmp_path, 10)
        ended = the_fenced_one_of(first, second)
        assert "another daemon has taken over" in ended.log.read_text(), ended.tail()
        [survivor] = [daemon for daemon in (first, second) if daemon.process.poll() is None]
        finish(survivor)
    assert judge(ledger, tmp_path / "warehouse", oracle) == []


def test_one_that_wakes_up_after_it_was_replaced_changes_nothing(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    ledger.produce(broker, 0, EVENTS // 2)
    with run_daemon(of(tmp_path, broker, ledger), tmp_path, name="a") as paused:
        until([paused], tmp_path, 2)
        by_hand = ingestd("run", "-c", tmp_path / "a.yaml", "--until-latest")
        assert by_hand.returncode == FENCED
        assert f"process {paused.process.pid} on " in by_hand.stderr
        assert paused.process.poll() is None
        os.killpg(paused.process.pid, signal.SIGSTOP)
        catch_up(of(tmp_path, broker, ledger), tmp_path)
        ledger.produce(broker, EVENTS // 2)
        successor = of(tmp_path, broker, ledger)
        with run_daemon(successor, tmp_path, name="b") as running:
            os.killpg(paused.process.pid, signal.SIGCONT)
            before = snapshots(tmp_path)
            until([paused, running], tmp_path, before + 4)
            assert the_fenced_one_of(paused, running) is paused
            finish(running)
    assert judge(ledger, tmp_path / "warehouse", oracle) == []
