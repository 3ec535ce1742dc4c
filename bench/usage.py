"""CPU seconds and peak memory of all processes of one session, sampled from /proc.

A JVM and its workers are not always waited for by the process that was started, so what the kernel
adds up for a child misses them.
"""

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

SAMPLE_SECONDS = 0.1
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class SessionUsage:
    """Watches a session while the block runs; what a process did after its last sample is lost."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._ticks: dict[int, int] = {}
        self._end = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self.peak_bytes = 0

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.set()
        self._watcher.join()

    @property
    def cpu_seconds(self) -> float:
        """User and system time of all processes seen."""
        return sum(self._ticks.values()) / TICKS

    def _watch(self) -> None:
        while not self._end.wait(SAMPLE_SECONDS):
            resident = 0
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                if int(fields[3]) == self._session:
                    self._ticks[int(folder.name)] = int(fields[11]) + int(fields[12])
                    resident += int(fields[21]) * PAGE
            self.peak_bytes = max(self.peak_bytes, resident)
