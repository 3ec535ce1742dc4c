"""Programs that are measured: each in a session of its own, under a meter, never left behind.

A session of its own hears nothing of Ctrl-C at the terminal, nor of a signal to the benchmark:
`end_all_on_signals` passes both on to everything that was started.
"""

import contextlib
import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from bench.usage import TreeMeter, descendants

LOG_LINES = 30
END_SECONDS = 30.0


class BenchError(Exception):
    """A measurement did not come about; the message says why."""


def end_all_on_signals() -> None:
    """Let SIGINT and SIGTERM kill what this process has started, and end it by SystemExit.

    Whatever waits for a program meets its end then and cleans up; a second signal waits for no one.
    """
    ending = False

    def end(number: int, _: FrameType | None) -> None:
        nonlocal ending
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if ending:
            os._exit(128 + number)
        ending = True
        raise SystemExit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


class MeteredProcess:
    """A program with its meter; leaving the block kills it with all its children."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.log = log
        self._name = Path(command[0]).name
        self._reaped = _reaped_seconds()
        with log.open("ab") as output:
            self.started = time.time()
            self._process = subprocess.Popen(
                list(command),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=folder,
                env={**os.environ, **(environment or {})},
            )
        self.ended = self.started
        self.meter = TreeMeter(self._process.pid)

    def __enter__(self) -> Self:
        self.meter.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.meter.stop()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(END_SECONDS)

    def finish(self, timeout: float) -> None:
        """Wait for a good end; BenchError with the end of the log on any other."""
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"{self._name} runs for {timeout:.0f} s:\n{self.tail()}") from error
        self.ended = time.time()
        if status:
            raise BenchError(f"{self._name} ended with {status}:\n{self.tail()}")

    def terminate(self, timeout: float = END_SECONDS) -> None:
        """Ask it to end, and wait for a good end."""
        self._process.terminate()
        self.finish(timeout)

    def require_alive(self) -> None:
        """BenchError if it has ended by itself."""
        if self._process.poll() is not None:
            raise BenchError(f"{self._name} ended by itself:\n{self.tail()}")

    @property
    def pid(self) -> int:
        """The id of the program, which leads a session of its own."""
        return self._process.pid

    @property
    def cpu_seconds(self) -> float:
        """CPU of the whole tree: samples, or what the kernel says of reaped processes if more."""
        return max(self.meter.cpu_seconds, _reaped_seconds() - self._reaped)

    def documents(self) -> list[dict[str, Any]]:
        """Every line of the output that is a JSON object."""
        found = []
        for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("{") and line.endswith("}"):
                found.append(json.loads(line))
        return found

    def tail(self) -> str:
        """The end of the output."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES:])


def _reaped_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
