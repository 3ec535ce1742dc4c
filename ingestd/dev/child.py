"""Run `ingestd` as a child process for the demo, until the end of a `with` block."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_PROGRAM = (sys.executable, "-c", "from ingestd.cli.main import main; main()")
_END_SECONDS = 30.0
_LOG_LINES = 20


class Child:
    """A process group that runs a command of ingestd; the end of the `with` block kills it.

    `arguments` follow `ingestd` on the command line. The output replaces the contents of `log`.
    """

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*_PROGRAM, *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(_END_SECONDS)

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process; None while it runs."""
        return self._process.poll()

    def log_tail(self) -> str:
        """Return the last lines that the process has written to its log."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_LOG_LINES:])
