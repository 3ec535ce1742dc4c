"""CPU and memory of a process with all its descendants over time, sampled from /proc.

A JVM and its workers are not always waited for by the process that was started, so what the kernel
adds up for a child misses them. Memory is reported in two ways: as resident pages of every process
(RSS), which counts pages that forked workers share once for each of them, and as proportional
shares (PSS), which add up.
"""

import bisect
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

SAMPLE_SECONDS = 0.1
SHARES_EVERY = 10
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Sample:
    """CPU seconds used so far and bytes held now, by all processes together."""

    at: float
    cpu_seconds: float
    rss_bytes: int


class TreeMeter:
    """Watches a process and its descendants from `start` to `stop`.

    A process belongs to the tree if it is in the session of the root, which must lead one, or
    descends from it. What a process did after its last sample is lost.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._ticks: dict[int, int] = {}
        self._strangers: set[int] = set()
        self._samples: list[Sample] = []
        self._peak_shares = 0
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        """Begin to sample in a thread of its own."""
        self._watcher.start()

    def stop(self) -> None:
        """End the sampling; the figures stay."""
        self._end.set()
        self._watcher.join()

    def sample(self) -> Sample:
        """The figures of now."""
        with self._lock:
            resident = sum(self._alive().values())
            now = Sample(time.time(), sum(self._ticks.values()) / TICKS, resident)
            self._samples.append(now)
            return now

    @property
    def cpu_seconds(self) -> float:
        """User and system time of all processes seen so far."""
        return max((sample.cpu_seconds for sample in self._samples), default=0.0)

    @property
    def peak_rss_bytes(self) -> int:
        """Most resident bytes at one time, summed over the processes."""
        return max((sample.rss_bytes for sample in self._samples), default=0)

    @property
    def peak_pss_bytes(self) -> int:
        """Most bytes at one time, shared pages counted once."""
        return self._peak_shares

    def cpu_at(self, moment: float) -> float:
        """CPU seconds used up to a moment (seconds since 1970), between samples interpolated."""
        samples = self._samples
        place = bisect.bisect_left([sample.at for sample in samples], moment)
        if not samples or place == 0:
            return samples[0].cpu_seconds if samples else 0.0
        if place == len(samples):
            return samples[-1].cpu_seconds
        before, after = samples[place - 1], samples[place]
        share = (moment - before.at) / (after.at - before.at) if after.at > before.at else 0.0
        return before.cpu_seconds + share * (after.cpu_seconds - before.cpu_seconds)

    def _watch(self) -> None:
        turn = 0
        while not self._end.wait(SAMPLE_SECONDS):
            self.sample()
            if turn % SHARES_EVERY == 0:
                shares = sum(_shares(pid) for pid in list(self._ticks))
                self._peak_shares = max(self._peak_shares, shares)
            turn += 1

    def _alive(self) -> dict[int, int]:
        """Resident bytes of the processes of the tree that are there now; notes their CPU."""
        resident: dict[int, int] = {}
        listed = {int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()}
        self._strangers &= listed
        for pid in sorted(listed - self._strangers):
            fields = process_stat(pid)
            if fields is None:
                continue
            parent, session = int(fields[1]), int(fields[3])
            if self._root not in (pid, session) and parent not in self._ticks:
                self._strangers.add(pid)
                continue
            self._ticks[pid] = int(fields[11]) + int(fields[12])
            resident[pid] = int(fields[21]) * PAGE
        return resident


def descendants(root: int) -> list[int]:
    """Processes that descend from one, or are in a session that such a process leads."""
    found: set[int] = set()
    fields = {int(path.name): process_stat(int(path.name)) for path in Path("/proc").glob("[0-9]*")}
    origins = {pid: (int(one[1]), int(one[3])) for pid, one in fields.items() if one}
    while True:
        more = {
            pid
            for pid, (parent, session) in origins.items()
            if pid not in found and (parent == root or {parent, session} & found)
        }
        if not more:
            return sorted(found)
        found |= more


def process_stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat after the name of the program; None if the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _shares(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
