"""`ingestd watch` against the pages of a daemon that runs in this process."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.cli import watch as module
from ingestd.cli.watch import DaemonAddress, DaemonSilentError
from ingestd.daemon.http_access import HttpAccess
from ingestd.daemon.http_server import HttpServer
from ingestd.daemon.status import Status
from tests.support.command_line import run_command

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HttpServer]:
    (tmp_path / "token").write_text("planted-token")
    server = HttpServer(
        "127.0.0.1:0", Status("shop", "1.2.3", ["s"]), HttpAccess(auth_file=f"{tmp_path}/token")
    )
    server.start()
    yield server
    server.stop()


def test_a_pipe_gets_a_line_each_time(server: HttpServer, tmp_path: Path, capsys: Capture) -> None:
    options = ("--auth-file", tmp_path / "token", "--count", 2, "--interval", 0.1)
    done = run_command(capsys, "watch", server.address, *options)
    lines = done.out.splitlines()
    assert (done.code, len(lines)) == (0, 2)
    assert "pipeline=shop state=starting ready=false batch=- " in lines[0]


def test_json_is_the_whole_status_on_one_line(
    server: HttpServer, tmp_path: Path, capsys: Capture
) -> None:
    options = ("--auth-file", tmp_path / "token", "--count", 1, "--json")
    (line,) = run_command(capsys, "watch", f"http://{server.address}", *options).out.splitlines()
    assert json.loads(line)["pipeline"] == "shop"


def test_a_token_that_is_missing_is_asked_for(server: HttpServer, capsys: Capture) -> None:
    done = run_command(capsys, "watch", server.address)
    assert (done.code, "--auth-file" in done.err) == (2, True)


def test_nobody_there_and_no_address_are_reported(capsys: Capture) -> None:
    for url in ("http://127.0.0.1:1", "http://no..host:1"):
        done = run_command(capsys, "watch", url)
        assert (done.code, f"{url} does not respond" in done.err) == (1, True)
    assert run_command(capsys, "watch", "ftp://x").code == 2


@pytest.mark.parametrize(
    ("url", "option", "said"),
    [
        ("http://127.0.0.1:1", "--auth-file", "No such file"),
        ("https://127.0.0.1:1", "--ca", "No such file"),
        ("http://127.0.0.1:99999", None, "is not the address"),
    ],
)
def test_what_is_given_wrongly_is_not_taken_for_a_silent_daemon(
    capsys: Capture, tmp_path: Path, url: str, option: str | None, said: str
) -> None:
    options = () if option is None else (option, tmp_path / "absent")
    done = run_command(capsys, "watch", url, *options)
    assert (done.code, said in done.err, "Traceback" in done.err) == (2, True, False)


def test_a_daemon_that_falls_silent_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[object] = [{"n": 1}, DaemonSilentError("gone"), {"n": 2}]

    def status(self: DaemonAddress) -> object:
        answer = answers.pop(0)
        if isinstance(answer, DaemonSilentError):
            raise answer
        return answer

    monkeypatch.setattr(DaemonAddress, "status", status)
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
    seen = list(module._polls(DaemonAddress("x:1"), 1.0, 3))
    assert seen == [({"n": 1}, None), ({"n": 1}, "gone"), ({"n": 2}, None)]
