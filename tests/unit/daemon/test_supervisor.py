import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from ingestd.daemon.notices import CloudEvent, Notices
from ingestd.daemon.restarts import RestartPolicy
from ingestd.daemon.status import Status, build_info
from ingestd.daemon.supervisor import DaemonSettings, Supervisor, supervise
from ingestd.errors import (
    CommitUnknownError,
    ConfigError,
    DiskFullError,
    FencedError,
    IngestdError,
    SourceError,
    SourceSilentError,
)
from ingestd.ingest.batch_events import BatchListener, BatchSummary
from ingestd.ingest.settings.context import SourceSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.values.counts import Counts
from ingestd.kafka.properties import KafkaSource
from tests.unit.daemon.made_runs import Run, Runs, settings

QUICK = RestartPolicy(3, 600, 0.001, 0.002)


def supervisor(
    runs: Runs, *, until_latest: bool = False, policy: RestartPolicy = QUICK
) -> tuple[Supervisor, Status]:
    status = Status("p", "1", [])
    daemon = DaemonSettings("127.0.0.1:0", "1", policy, until_latest)
    return Supervisor(settings(), daemon, status, runs), status


def state(status: Status) -> object:
    return status.document()["state"]


def eventually(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_until_latest_ends_with_zero_when_the_query_has_caught_up() -> None:
    runs = Runs([None])
    one, status = supervisor(runs, until_latest=True)
    assert one.run() == 0
    assert runs.made[0].until_latest
    assert state(status) == "stopped"


def test_what_may_heal_is_started_again() -> None:
    runs = Runs([SourceError("a"), SourceError("b"), None])
    one, status = supervisor(runs, until_latest=True)
    before = REGISTRY.get_sample_value("ingestd_restarts_total", {"error": "SourceError"}) or 0
    assert one.run() == 0
    assert len(runs.made) == 3
    assert all(run.stopped.is_set() for run in runs.made[:2])
    assert status.document()["restarts"] == 2
    after = REGISTRY.get_sample_value("ingestd_restarts_total", {"error": "SourceError"})
    assert after == before + 2


def test_the_budget_ends_it_with_the_code_of_the_last_error() -> None:
    runs = Runs([SourceError("again")] * 10)
    one, status = supervisor(runs)
    assert one.run() == 3
    assert len(runs.made) == 1 + QUICK.max_attempts
    assert state(status) == "failed"
    assert status.document()["last_error"]["message"] == "again"


def test_silence_of_the_brokers_is_waited_out_beyond_the_budget() -> None:
    silence = [SourceSilentError("nobody there")] * (QUICK.max_attempts + 3)
    one, status = supervisor(Runs([*silence, None]), until_latest=True)
    assert one.run() == 0
    assert status.document()["restarts"] == len(silence)
    assert status.document()["last_error"]["type"] == "SourceSilentError"


def test_a_full_disk_is_waited_out_wherever_it_is() -> None:
    (unknown := CommitUnknownError("?")).__cause__ = DiskFullError("no room in the warehouse")
    full = [DiskFullError("no room for scratch"), unknown] * (QUICK.max_attempts + 3)
    one, status = supervisor(Runs([*full, None]), until_latest=True)
    assert (one.run(), status.document()["restarts"]) == (0, len(full))


def test_silence_counts_as_long_as_a_source_has_never_answered() -> None:
    status = Status("p", "1", ["here", "nowhere"])
    status.source_answered("here", {})
    daemon = DaemonSettings("127.0.0.1:0", "1", QUICK)
    silence = [SourceSilentError("nobody there")] * (QUICK.max_attempts + 3)
    runs = Runs([*silence, None])
    assert Supervisor(settings(), daemon, status, runs).run() == SourceSilentError.exit_code
    assert len(runs.made) == QUICK.max_attempts + 1


@pytest.mark.parametrize(("error", "code"), [(FencedError("x"), 6), (ConfigError("x"), 2)])
def test_what_does_not_heal_ends_it_at_once(error: IngestdError, code: int) -> None:
    runs = Runs([error])
    one, _ = supervisor(runs)
    assert one.run() == code
    assert len(runs.made) == 1


def test_the_pages_stay_for_a_while_after_what_does_not_heal_but_not_when_told_to_stop() -> None:
    status = Status("p", "1", [])
    daemon = DaemonSettings("127.0.0.1:0", "1", QUICK, linger=3600)
    one = Supervisor(settings(), daemon, status, Runs([FencedError("x")]))
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(one.run()))
    thread.start()
    eventually(lambda: state(status) == "failed")
    assert codes == []
    one.stop()
    thread.join(120)
    assert codes == [FencedError.exit_code]


def test_maintenance_hears_that_a_run_has_died(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs([SourceError("a"), None])
    one, _ = supervisor(runs, until_latest=True)
    died: list[int] = []
    monkeypatch.setattr(one._listener, "run_died", lambda _: died.append(len(runs.made)))
    assert one.run() == 0
    assert died == [1]


def test_a_query_that_ends_by_itself_is_started_again() -> None:
    runs = Runs([None, FencedError("end of the test")])
    one, _ = supervisor(runs)
    thread = threading.Thread(target=one.run)
    thread.start()
    eventually(lambda: bool(runs.made))
    runs.made[0].stopped.set()
    thread.join(120)
    assert len(runs.made) == 2


def test_what_batches_did_reaches_the_status() -> None:
    runs = Runs([None])
    one, status = supervisor(runs, until_latest=True)
    assert one.run() == 0
    runs.made[0].listener.batch_finished(BatchSummary("5", {}, (), Counts()))
    assert status.document()["batch"]["finished"] == "5"


def test_stop_ends_a_running_query_with_zero() -> None:
    runs = Runs([None])
    one, status = supervisor(runs)
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(one.run()))
    thread.start()
    eventually(lambda: state(status) == "running")
    one.stop()
    thread.join(120)
    assert codes == [0]
    assert len(runs.made) == 1


def test_stop_ends_a_wait_for_a_restart_with_zero() -> None:
    runs = Runs([SourceError("a"), None])
    one, status = supervisor(runs, policy=RestartPolicy(5, 600, 3600, 3600))
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(one.run()))
    thread.start()
    eventually(lambda: state(status) == "backoff")
    one.stop()
    thread.join(120)
    assert codes == [0]
    assert len(runs.made) == 1


def test_the_daemon_reports_an_error_that_nobody_foresaw_as_one() -> None:
    def broken(_: PipelineSettings, __: BatchListener) -> Run:
        raise ZeroDivisionError

    sent: list[CloudEvent] = []
    daemon = DaemonSettings("127.0.0.1:0", "1", QUICK, notices=Notices("p", sent.append))
    assert supervise(settings(), daemon, broken) == 1
    assert [event.data["error_type"] for event in sent] == ["ZeroDivisionError"]


@pytest.mark.parametrize(
    ("outcomes", "until_latest", "expected"),
    [
        ([None], True, (0, None)),
        ([SourceError("a"), None], True, (0, None)),
        ([FencedError("x")], False, (6, "FencedError")),
    ],
)
def test_the_end_of_a_pipeline_is_one_notice_and_a_restart_is_none(
    outcomes: list[IngestdError | None], until_latest: bool, expected: tuple[int, str | None]
) -> None:
    sent: list[CloudEvent] = []
    notices = Notices("p", sent.append)
    daemon = DaemonSettings("127.0.0.1:0", "1", QUICK, until_latest, notices=notices)
    assert supervise(settings(), daemon, Runs(outcomes)) == expected[0]
    assert [(one.data["exit_code"], one.data["error_type"]) for one in sent] == [expected]


def test_a_daemon_that_cannot_listen_has_not_started(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConfigError, match=r"http\.listen"):
            supervise(settings(), DaemonSettings(listen, "1", QUICK), Runs([None]))
    assert "daemon_started" not in caplog.messages
    daemon = DaemonSettings("127.0.0.1:0", "1", QUICK, until_latest=True)
    assert supervise(settings(), daemon, Runs([None])) == 0
    assert caplog.messages.index("http_listening") < caplog.messages.index("daemon_started")
    [started] = [record for record in caplog.records if record.message == "daemon_started"]
    parts = {"version", "decoder", "kafka_reader", "librdkafka"}
    assert {name: vars(started)["ctx"][name] for name in parts} == asdict(build_info("1"))


def test_the_daemon_puts_signal_handlers_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    daemon = DaemonSettings("127.0.0.1:0", "1", QUICK, until_latest=True)
    assert supervise(settings(), daemon, Runs([None])) == 0
    assert signal.getsignal(signal.SIGTERM) is before


PROGRAM = """
import sys, threading, time
sys.path[:0] = [{root!r}]
from ingestd.daemon.restarts import RestartPolicy
from ingestd.daemon.supervisor import DaemonSettings, supervise
from tests.unit.daemon.made_runs import Runs, settings

class Slow(Runs):
    def __call__(self, settings, listener):
        run = super().__call__(settings, listener)
        if {stubborn}:
            run.stop = lambda: (print("stopping", flush=True), time.sleep(600))
        print("up", flush=True)
        return run

daemon = DaemonSettings("127.0.0.1:0", "1", RestartPolicy(3, 600, 0.001, 0.002))
sys.exit(supervise(settings(), daemon, Slow([None])))
"""


def started(stubborn: bool) -> subprocess.Popen[str]:
    root = str(Path(__file__).resolve().parents[3])
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(root=root, stubborn=stubborn)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_daemon_with_zero(number: int) -> None:
    process = started(stubborn=False)
    os.kill(process.pid, number)
    assert process.wait(120) == 0


def test_a_second_signal_ends_the_process_at_once() -> None:
    process = started(stubborn=True)
    assert process.stdout is not None
    os.kill(process.pid, signal.SIGTERM)
    assert process.stdout.readline() == "stopping\n"
    os.kill(process.pid, signal.SIGTERM)  # in the same breath, as of a group: asked once
    os.kill(process.pid, signal.SIGCONT)
    assert process.poll() is None
    end = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
        os.kill(process.pid, signal.SIGTERM)
    assert process.wait(120) == 128 + signal.SIGTERM


def test_other_settings_are_followed_with_a_new_run_after_the_batch_in_flight() -> None:
    runs = Runs([None, FencedError("end of the test")])
    one, status = supervisor(runs)
    thread = threading.Thread(target=one.run)
    thread.start()
    eventually(lambda: state(status) == "running")
    one.follow(replace(settings(), trigger_seconds=7.0))
    thread.join(120)
    assert [run.settings.trigger_seconds for run in runs.made] == [1.0, 7.0]
    assert runs.made[0].stopped.is_set()
    assert status.document()["restarts"] == 0


def test_settings_that_come_during_a_backoff_are_those_of_the_next_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = Runs([SourceError("a"), FencedError("end of the test")])
    one, status = supervisor(runs)
    enter = status.enter

    def enter_and_follow(entered: str) -> None:
        enter(entered)
        if entered == "backoff":
            one.follow(replace(settings(), trigger_seconds=7.0))
            one.reopen()

    monkeypatch.setattr(status, "enter", enter_and_follow)
    one.run()
    assert [run.settings.trigger_seconds for run in runs.made] == [1.0, 7.0]


def test_settings_that_come_during_the_start_end_the_query_once_it_runs() -> None:
    starting, told = threading.Event(), threading.Event()
    made: list[Run] = []

    class Slow(Run):
        def start(self, *, until_latest: bool) -> None:
            starting.set()
            assert told.wait(120)
            self.stopped.clear()  # a query that does not exist yet cannot be stopped

    def run(one: PipelineSettings, listener: BatchListener) -> Run:
        made.append(Slow(None, listener, one))
        return made[-1]

    status = Status("p", "1", [])
    one = Supervisor(settings(), DaemonSettings("127.0.0.1:0", "1", QUICK), status, run)
    thread = threading.Thread(target=one.run, daemon=True)
    thread.start()
    assert starting.wait(120)
    one.follow(replace(settings(), trigger_seconds=7.0))
    told.set()
    eventually(lambda: len(made) == 2 and state(status) == "running")
    one.stop()
    thread.join(120)
    assert [run.settings.trigger_seconds for run in made] == [1.0, 7.0]


def test_sighup_reads_again_and_goes_on_with_what_it_gives() -> None:
    runs = Runs([None, None])
    asked: list[int] = []

    def reload() -> PipelineSettings:
        asked.append(1)
        return replace(settings(), trigger_seconds=7.0)

    def play() -> None:
        eventually(lambda: len(runs.made) == 1)
        os.kill(os.getpid(), signal.SIGHUP)
        eventually(lambda: len(runs.made) == 2)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=play)
    thread.start()
    daemon = DaemonSettings("127.0.0.1:0", "1", QUICK)
    assert supervise(settings(), daemon, runs, reload) == 0
    thread.join(120)
    assert asked == [1]
    assert runs.made[1].settings.trigger_seconds == 7.0


def test_a_pipeline_whose_sources_all_end_may_end_by_itself() -> None:
    class Ended(Run):
        def await_termination(self, timeout: float) -> bool:
            return True

    kafka = KafkaSource("s", ("t",), bounded_mode="latest-offset")
    bounded = replace(settings(), sources={"s": SourceSettings(kafka, "json")})
    made: list[Run] = []

    def run(one: PipelineSettings, listener: BatchListener) -> Run:
        made.append(Ended(None, listener, one))
        return made[-1]

    status = Status("p", "1", [])
    daemon = DaemonSettings("127.0.0.1:0", "1", QUICK)
    assert Supervisor(bounded, daemon, status, run).run() == 0
    assert len(made) == 1
    assert state(status) == "stopped"
