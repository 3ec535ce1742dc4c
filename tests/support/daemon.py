"""`ingestd run` as a process of its own, for tests that start, watch and kill it."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from tests.support.processes import cpu_seconds, session_of

COMMAND = (sys.executable, "-c", "from ingestd.cli.main import main; main()")


class Daemon:
    """One running `ingestd run`; on leaving the block it is killed with all its children."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, port: int) -> None:
        self.process = process
        self.log = log
        self.port = port

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def wait(self, timeout: float = 240) -> int:
        """The exit code; ``timeout`` is as in `wait_until`.

        Raises:
            AssertionError: it did not end in time; the end of its log is in the error.
        """
        patience = Patience(self, timeout)
        while not patience.is_over():
            try:
                return self.process.wait(1)
            except subprocess.TimeoutExpired:
                continue
        raise AssertionError(f"still running after {timeout} s:\n{self.tail()}")

    def terminate(self) -> None:
        """SIGTERM to the driver: the batch in flight ends, then the daemon."""
        self.process.terminate()

    def reload(self, config: Mapping[str, Any]) -> None:
        """Replace its configuration, and return once it has reloaded that."""
        before = self._reloads()
        write_configuration(config, self.log.with_suffix(".yaml"), self.port)
        self.process.send_signal(signal.SIGHUP)
        self.wait_until(lambda: self._reloads() > before)

    def _reloads(self) -> int:
        return self.log.read_text(errors="replace").count('"event":"reloaded"')

    def kill(self) -> None:
        """SIGKILL to the driver, the JVM and every worker."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(300)

    def kill_one(self, command_part: str) -> int | None:
        """SIGKILL to one descendant whose name or command line holds the text; its pid, or None."""
        for pid, command in self.family().items():
            if command_part in command and pid != self.process.pid:
                os.kill(pid, signal.SIGKILL)
                return pid
        return None

    def family(self) -> dict[int, str]:
        """Names and command lines of all processes of the daemon's session, youngest first."""
        return session_of(self.process.pid)

    def logged(self, event: str) -> dict[str, Any]:
        """The newest line of its log about an event; waits for the first one."""

        def found() -> list[str]:
            lines = self.log.read_text(errors="replace").splitlines()
            return [line for line in lines if f'"event":"{event}"' in line]

        self.wait_until(lambda: bool(found()))
        line: dict[str, Any] = json.loads(found()[-1])
        return line

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a page of the daemon; status 0 while nothing listens."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}{path}", timeout=30
            ) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def wait_until_ready(self, timeout: float = 120) -> None:
        """Return when /readyz says so."""
        self.wait_until(lambda: self.get("/readyz")[0] == 200, timeout)

    def wait_until(self, condition: Callable[[], bool], timeout: float = 180) -> None:
        """Return when the condition holds; the daemon must run until then.

        ``timeout`` is for a daemon that stands still: one that logs, or uses a processor, has
        four times as long, for the machine may be busy with others. Pauses grow up to a quarter
        of a second, since each look takes processor time here and in the daemon; after a condition
        that takes long to evaluate they are longer.
        """
        patience = Patience(self, timeout)
        looked, shortest = time.monotonic(), 0.05
        while not condition():
            pause = min(max(shortest, 4 * (time.monotonic() - looked)), 1.0)
            shortest = min(1.2 * shortest, 0.25)
            if self.process.poll() is not None:
                raise AssertionError(f"ended with {self.process.returncode}:\n{self.tail(60)}")
            if patience.is_over():
                status = self.get("/status")[1]
                raise AssertionError(f"not so after {timeout} s:\n{status}\n{self.tail(60)}")
            time.sleep(pause)
            looked = time.monotonic()

    def tail(self, lines: int = 40) -> str:
        """The end of what it printed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


class Patience:
    """How long to wait for a daemon: less when it stands still than when it is at work."""

    _ASKED_EVERY = 5.0

    def __init__(self, daemon: Daemon, standstill: float) -> None:
        self._daemon = daemon
        self._standstill = standstill
        now = time.monotonic()
        self._end = now + 4 * standstill
        self._moved = self._asked = now
        self._seen = self._signs()

    def is_over(self) -> bool:
        """Whether nothing moved for the time of a standstill, or four of them have gone by."""
        now = time.monotonic()
        if now - self._asked >= self._ASKED_EVERY:
            self._asked = now
            signs = self._signs()
            if signs[0] != self._seen[0] or signs[1] - self._seen[1] > 1:
                self._seen, self._moved = signs, now
        return now - self._moved >= self._standstill or now >= self._end

    def _signs(self) -> tuple[int, float]:
        """Bytes that were logged, and seconds of processors that its processes have used."""
        return self._daemon.log.stat().st_size, cpu_seconds(self._daemon.family())


def run_daemon(
    config: Mapping[str, Any],
    folder: Path,
    *,
    until_latest: bool = False,
    take_over: bool = False,
    name: str = "ingestd",
    environment: Mapping[str, str] | None = None,
) -> Daemon:
    """Write the configuration into ``folder`` and start the daemon on a free HTTP port.

    One that runs ``until_latest`` takes over, too. ``environment`` is added to this process's own.
    Its output goes to ``NAME.log`` in the same folder, one file for all runs of that name.
    """
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    file, log = folder / f"{name}.yaml", folder / f"{name}.log"
    write_configuration(config, file, port)
    flags = ["--until-latest"] if until_latest else []
    flags += ["--take-over"] if until_latest or take_over else []
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*COMMAND, "run", "-c", str(file), *flags],
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=folder,
            env={**os.environ, **(environment or {})},
        )
    return Daemon(process, log, port)


def write_configuration(config: Mapping[str, Any], file: Path, port: int) -> None:
    """Write the configuration of a daemon that has its pages on this port."""
    document = {**config, "http": {**config.get("http", {}), "listen": f"127.0.0.1:{port}"}}
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def catch_up(config: Mapping[str, Any], folder: Path, *, timeout: float = 240) -> Daemon:
    """Run until the latest offsets are in the tables; the run must succeed."""
    with run_daemon(config, folder, until_latest=True) as daemon:
        code = daemon.wait(timeout)
        assert code == 0, f"exit code {code}:\n{daemon.tail(80)}"
    return daemon


def ingestd(*arguments: object, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """Run one command line to its end; output is captured."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def free_port() -> int:
    """A port of 127.0.0.1 that no one listens on now.

    It is below those that systems give to connections, so that none takes it before it is used.
    """
    dice = random.SystemRandom()
    while True:
        port = dice.randrange(10_000, 32_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
