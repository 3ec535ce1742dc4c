"""CPU of a daemon and of its executors by group of processes, sampled from /proc.

A process keeps the CPU of its last sample after it has ended.
"""

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.usage import TICKS, descendants

GROUPS = ("driver", "driver JVM", "executor JVM", "worker")
"""The daemon's Python, its JVM, the executors' JVMs, and Spark's Python processes."""
_SAMPLE_SECONDS = 0.2
_EXECUTOR = "CoarseGrainedExecutorBackend"
_DRIVER_MAINS = ("PythonGatewayServer", "SparkSubmit")


class GroupMeter:
    """Samples the processes below a root while its block runs."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._groups: dict[int, str | None] = {}
        self._ticks: dict[int, int] = {}
        self._samples: list[tuple[float, Mapping[str, float]]] = []
        self._end = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

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

    def cpu_at(self, group: str, moment: float) -> float:
        """Return the CPU seconds of a group up to a moment, in seconds since 1970."""
        return max((used[group] for at, used in self._samples if at <= moment), default=0.0)

    def _watch(self) -> None:
        while not self._end.wait(_SAMPLE_SECONDS):
            for pid in descendants(self._root):
                self._sample(pid)
            used = dict.fromkeys(GROUPS, 0.0)
            for pid, ticks in self._ticks.items():
                group = self._groups.get(pid)
                if group is not None:
                    used[group] += ticks / TICKS
            self._samples.append((time.time(), used))

    def _sample(self, pid: int) -> None:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            self._groups[pid] = _group(pid)  # each time: a fork may become another program
            self._ticks[pid] = int(fields[11]) + int(fields[12])
        except OSError:
            return


def _group(pid: int) -> str | None:
    command = (
        Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    )
    name = Path(f"/proc/{pid}/comm").read_text().strip()
    if _EXECUTOR in command:
        return "executor JVM"
    if any(main in command for main in _DRIVER_MAINS):
        return "driver JVM"
    if name.startswith("ingestd-") or "pyspark." in command or "python_daemon" in command:
        return "worker"
    return "driver" if "ingestd.cli.main" in command else None
