"""The JVM that is on its way before anybody asks for a session.

The command line begins it first thing; the session takes it when everything else is imported. A JVM
that was begun with other settings than the session turns out to need is ended and not used.
"""

import threading
from collections.abc import Mapping
from pathlib import Path

from ingestd.spark.startup.jvm import Jvm, jvm_command, own_archive, start_jvm
from ingestd.spark.startup.settings import session_settings

_lock = threading.Lock()
_early: list[Jvm] = []
_kept: list[Jvm] = []


def prestart(extra: Mapping[str, str]) -> None:
    """Begin the JVM of a session with these settings of the user's; does not wait, never fails."""
    settings = session_settings(extra)
    with _lock:
        if not _early and not _kept:
            jvm = start_jvm(settings)
            if jvm is not None:
                _early.append(jvm)


def fork_prestarted() -> None:
    """Let the JVM's Python processes be forks of this one; not once it has threads."""
    with _lock:
        for jvm in _early:
            jvm.fork_prefork_server()


def take_prestarted(settings: Mapping[str, str]) -> Jvm | None:
    """The JVM that was begun, if it fits a session with all these settings."""
    with _lock:
        jvm = _early.pop() if _early else None
    if jvm is not None and jvm.command != jvm_command(settings):
        jvm.kill()
        return None
    return jvm


def keep(jvm: Jvm) -> None:
    """Hold on to the JVM of the session: it ends when nobody does."""
    with _lock:
        _kept.append(jvm)


def session_jvm() -> Jvm | None:
    """The JVM of the session; None without a session in a JVM of ours."""
    with _lock:
        return _kept[-1] if _kept else None


def forked_python() -> tuple[str, Mapping[str, str]] | None:
    """A command to start instead of Python, and its environment: it has imported everything.

    It takes `-m MODULE` of this package and lives as long as the process that comes of it. None
    without a session in a JVM of ours, or where the user names the Python of the workers.
    """
    with _lock:
        found = [(jvm.python, jvm.variables) for jvm in _kept]
    for command, variables in found:
        if command is not None:
            return command, variables
    return None


def archive_wanted() -> Path | None:
    """The archive of classes that the session's JVM would have used; None without such a JVM."""
    with _lock:
        return own_archive() if _kept else None


def end_unused() -> None:
    """End a JVM that no session took."""
    with _lock:
        early = _early[:]
        _early.clear()
    for jvm in early:
        jvm.kill()


def end_all() -> None:
    """End every JVM that was begun here, the session's by itself; returns when they have."""
    end_unused()
    with _lock:
        kept = _kept[:]
        _kept.clear()
    for jvm in kept:
        jvm.close()
