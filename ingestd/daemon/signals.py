"""Signals as things that were asked for: to stop, to read the configuration again."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

_SAME_SECONDS = 0.5
"""What ends a process and then its group sends the signal twice in one breath: it asks once."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Asked:
    """What signals have asked for."""

    stop: threading.Event = field(default_factory=threading.Event)
    reload: threading.Event = field(default_factory=threading.Event)

    def take(self, event: threading.Event) -> bool:
        """Whether this was asked for; it is not any longer."""
        found = event.is_set()
        event.clear()
        return found


@contextmanager
def handled_signals(asked: Asked) -> Iterator[None]:
    """The first signal to stop asks to, a later one ends the process where it stands."""
    first: float | None = None

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal first
        if number == signal.SIGHUP:
            asked.reload.set()
            return
        now = time.monotonic()
        if first is None:
            first = now
            asked.stop.set()
        elif now - first > _SAME_SECONDS:
            os._exit(128 + number)

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
