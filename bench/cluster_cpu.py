"""CPU of a daemon and of its executors by group of processes, sampled from /proc.

A process keeps the CPU of its last sample after it has ended.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.usage import TICKS, descendants, process_stat

GROUPS = ("driver", "driver JVM", "executor JVM", "worker")
"""The daemon's Python, its JVM, the executors' JVMs, and Spark's Python processes."""
_SAMPLE_SECONDS = 0.2
_EXECUTOR = "CoarseGrainedExecutorBackend"
_DRIVER_MAINS = ("PythonGatewayServer", "SparkSubmit")


class GroupMeter:
    """CPU of the processes below a root over time; see `metered`."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._groups: dict[int, str | None] = {}
        self._ticks: dict[int, int] = {}
        self._samples: list[tuple[float, Mapping[str, float]]] = []

    def cpu_at(self, group: str, moment: float) -> float:
        """Return the CPU seconds of a group up to a moment, in seconds since 1970."""
        return max((used[group] for at, used in self._samples if at <= moment), default=0.0)

    def watch(self, end: threading.Event) -> None:
        """Sample until `end` is set."""
        while not end.wait(_SAMPLE_SECONDS):
            for pid in descendants(self._root):
                self._sample(pid)
            used = dict.fromkeys(GROUPS, 0.0)
            for pid, ticks in self._ticks.items():
                group = self._groups.get(pid)
                if group is not None:
                    used[group] += ticks / TICKS
            self._samples.append((time.time(), used))

    def _sample(self, pid: int) -> None:
        fields = process_stat(pid)
        if fields is None:
            return
        with suppress(OSError):  # it has ended
            self._groups[pid] = _group(pid)  # each time: a fork may become another program
            self._ticks[pid] = int(fields[11]) + int(fields[12])


@contextmanager
def metered(root: int) -> Iterator[GroupMeter]:
    """Yield a meter that samples the processes below a root while the block runs."""
    meter, end = GroupMeter(root), threading.Event()
    watcher = threading.Thread(target=meter.watch, args=(end,), daemon=True)
    watcher.start()
    try:
        yield meter
    finally:
        end.set()
        watcher.join()


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
