"""Programs that end with the process that started them, however that ends."""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

_END_SECONDS = 120.0
# When the pipe on standard input closes, because its owner closed it or is gone, the program is
# sent the signal.
_GUARD = """
number=$1; shift
exec 3<&0
"$@" </dev/null 3<&- & program=$!
{ read -r _ <&3; kill -$number $program; } >/dev/null 2>&1 &
exec 3<&-
wait $program
"""


class GuardedProcess:
    """A program in a process group of its own; `end_signal` is what it takes for the end.

    `user` runs it, if given; what it prints is appended to `log`.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        end_signal: signal.Signals = signal.SIGTERM,
        user: str | None = None,
    ) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "guard", str(int(end_signal)), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=log.parent,
                start_new_session=True,
                user=user,
                extra_groups=None if user is None else [],
            )

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def end(self) -> None:
        """Send the signal and wait."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(_END_SECONDS)

    def kill(self) -> None:
        """SIGKILL."""
        if self.running:
            os.killpg(self._process.pid, signal.SIGKILL)
        self.end()
