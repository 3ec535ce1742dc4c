"""CPU of a process and its descendants, and of a broker beside it, by process and by thread."""

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench.usage import TICKS
from ingestd.spark.startup.python_daemon import NAME

SAMPLE_SECONDS = 0.1
WORKER, JVM, DRIVER, BROKER, OTHER = "worker", "JVM", "driver", "broker", "other Python"
_CLIENT = "rdk"
"""What the Kafka client's threads are called."""

Ticks = dict[tuple[str, str, str], int]
"""By kind of process, kind of thread and an id that makes it unique; thread "" is the process."""


@dataclass(slots=True)
class ThreadMeter:
    """Watches the tree of `root`, the driver, which leads a session; `broker` is outside of it."""

    root: int
    broker: int | None
    _samples: list[tuple[float, Ticks]] = field(default_factory=list)
    _seen: Ticks = field(default_factory=dict)
    _kinds: dict[int, str] = field(default_factory=dict)
    _end: threading.Event = field(default_factory=threading.Event)
    _watcher: threading.Thread | None = None

    def start(self) -> None:
        """Begin to sample in a thread of its own."""
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def stop(self) -> None:
        """End the sampling."""
        self._end.set()
        if self._watcher is not None:
            self._watcher.join()

    def between(
        self, begin: float, end: float
    ) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
        """CPU seconds from one moment to another: by process, and by process and thread."""
        before, after = self._at(begin), self._at(end)
        processes: dict[str, float] = {}
        threads: dict[tuple[str, str], float] = {}
        for key, ticks in after.items():
            kind, thread, _ = key
            seconds = (ticks - before.get(key, 0)) / TICKS
            if thread:
                threads[kind, thread] = threads.get((kind, thread), 0.0) + seconds
            else:
                processes[kind] = processes.get(kind, 0.0) + seconds
        return processes, threads

    def _at(self, moment: float) -> Ticks:
        for at, ticks in self._samples:
            if at >= moment:
                return ticks
        return self._samples[-1][1] if self._samples else {}

    def _watch(self) -> None:
        while not self._end.wait(SAMPLE_SECONDS):
            for name in os.listdir("/proc"):  # noqa: PTH208  (thousands of times)
                if name.isdigit():
                    self._look_at(int(name))
            self._samples.append((time.time(), dict(self._seen)))

    def _look_at(self, pid: int) -> None:
        stat = _stat(f"/proc/{pid}/stat")
        if stat is None:
            return
        of_tree = self.root in (pid, stat.session) or stat.parent in self._kinds
        if not of_tree and pid != self.broker:
            return
        if self._kinds.get(pid, OTHER) == OTHER:
            self._kinds[pid] = self._kind(pid, stat.name)
        kind = self._kinds[pid]
        if stat.is_zombie and kind == OTHER:
            return
        self._seen[kind, "", str(pid)] = stat.ticks
        try:
            names = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
        except OSError:
            return
        for name in names:
            thread = _stat(f"/proc/{pid}/task/{name}/stat")
            if thread is not None:
                self._seen[kind, _thread_kind(kind, thread.name), f"{pid}/{name}"] = thread.ticks

    def _kind(self, pid: int, name: str) -> str:
        if pid == self.broker:
            return BROKER
        if pid == self.root:
            return DRIVER
        if name == NAME:
            return WORKER
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return OTHER
        return JVM if words[0].endswith(b"java") else OTHER


@dataclass(frozen=True, slots=True)
class _Stat:
    name: str
    parent: int
    session: int
    ticks: int
    is_zombie: bool


def _stat(path: str) -> _Stat | None:
    try:
        text = Path(path).read_text(errors="replace")
    except OSError:
        return None
    head, _, rest = text.rpartition(")")
    fields = rest.split()
    name = head.partition("(")[2]
    ticks = int(fields[11]) + int(fields[12])
    return _Stat(name, int(fields[1]), int(fields[3]), ticks, fields[0] == "Z")


def _thread_kind(kind: str, name: str) -> str:
    if kind == BROKER:
        return "all"
    if name.startswith(_CLIENT):
        return "Kafka client"
    if kind != JVM:
        return "Python"
    for start, meaning in _JVM_THREADS:
        if name.startswith(start):
            return meaning
    return "other"


_JVM_THREADS = (
    ("C1", "compiler"),
    ("C2", "compiler"),
    ("GC", "garbage collection"),
    ("VM", "garbage collection"),
    ("Executor task", "tasks"),
    ("stream exec", "streaming query"),
    ("dag-sched", "scheduler"),
    ("dispatcher", "scheduler"),
    ("task-result", "scheduler"),
)
