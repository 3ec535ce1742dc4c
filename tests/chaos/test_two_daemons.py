"""Two daemons of one pipeline: started at once, or one that wakes up after it was replaced."""

import os
import pty
import signal
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import COMMAND, Daemon, ingestd, run_daemon
from tests.support.daemon_progress import Watched
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(900)]
FIRST, SECOND, EVENTS = 12_000, 15_000, 18_000
"""Events before a daemon is frozen, before it wakes up, and of the whole ledger."""
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
    Watched(daemon, "shop").await_offsets(EVENTS)
    daemon.terminate()
    assert daemon.wait() == 0, daemon.tail()


def of(folder: Path, broker: DevBroker, ledger: Ledger) -> dict[str, Any]:
    """The pipeline as any machine runs it."""
    return pipeline(folder, broker.bootstrap, ledger.pattern, batch_rows=500)


def test_of_two_daemons_the_later_one_goes_on_and_no_event_is_written_twice(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    """Two are started at once; the survivor is frozen, replaced, and wakes up."""
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    ledger.produce(broker, 0, FIRST)
    with (
        run_daemon(of(tmp_path, broker, ledger), tmp_path, name="a") as first,
        run_daemon(of(tmp_path, broker, ledger), tmp_path, name="b") as second,
    ):
        until([first, second], tmp_path, 10)
        ended = the_fenced_one_of(first, second)
        assert "another daemon has taken over" in ended.log.read_text(), ended.tail()
        [survivor] = [daemon for daemon in (first, second) if daemon is not ended]
        assert survivor.process.poll() is None
        wakes_up_after_it_was_replaced(survivor, tmp_path, broker, ledger)
    assert judge(ledger, tmp_path / "warehouse", oracle) == []


def wakes_up_after_it_was_replaced(
    paused: Daemon, folder: Path, broker: DevBroker, ledger: Ledger
) -> None:
    """A daemon is frozen at work; the one that replaced it is at work when it wakes up."""
    ledger.produce(broker, FIRST, SECOND)
    until([paused], folder, snapshots(folder) + 1)
    by_hand = ingestd("run", "-c", folder / "a.yaml", "--until-latest")
    assert by_hand.returncode == FENCED
    assert f"process {paused.process.pid} on " in by_hand.stderr
    assert code_on_a_terminal("run", "-c", folder / "a.yaml") == FENCED
    assert paused.process.poll() is None
    os.killpg(paused.process.pid, signal.SIGSTOP)
    with run_daemon(of(folder, broker, ledger), folder, take_over=True, name="c") as running:
        Watched(running, "shop").await_offsets(SECOND)
        ledger.produce(broker, SECOND)
        os.killpg(paused.process.pid, signal.SIGCONT)
        assert the_fenced_one_of(paused, running) is paused
        finish(running)


def code_on_a_terminal(*words: object) -> int:
    """The exit code of a command line that a person typed, whose terminal nobody reads."""
    master, terminal = pty.openpty()
    try:
        command = [*COMMAND, *map(str, words)]
        return subprocess.run(command, stdin=terminal, stdout=terminal, timeout=120).returncode
    finally:
        os.close(terminal)
        os.close(master)
