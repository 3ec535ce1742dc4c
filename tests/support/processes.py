"""Processes of a session: listed by name, one found, one stopped for a while."""

import os
import signal
from collections.abc import Iterator
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
