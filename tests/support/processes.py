"""Processes of a session: listed by name, one found, one stopped for a while."""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def session_of(leader: int) -> dict[int, str]:
    """Names and command lines of all processes of a session, youngest first."""
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            name = (folder / "comm").read_text()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, UnicodeDecodeError):
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found[int(folder.name)] = f"{name.strip()}: {command}"
    return dict(sorted(found.items(), reverse=True))


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time that these processes have used, with children that they waited for."""
    used = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        used += sum(map(int, fields[11:15]))
    return used / os.sysconf("SC_CLK_TCK")


def one_of(leader: int, begin: str) -> int:
    """The youngest process of a session whose name and command line begin so."""
    return next(pid for pid, command in session_of(leader).items() if command.startswith(begin))


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """In the block a process is there and does nothing."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def shares(pids: Iterable[int]) -> int:
    """Bytes of memory of these processes, pages that several share counted once."""
    found = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        found += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return found


def open_files(pids: Iterable[int]) -> int:
    """File descriptors that these processes have open."""
    found = 0
    for pid in pids:
        try:
            found += len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            continue
    return found
