"""Signals as things that were asked for: to stop, to read the configuration again."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

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
    """The first signal to stop asks to, the second one ends the process where it stands."""
    seen: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        if number == signal.SIGHUP:
            asked.reload.set()
            return
        seen.append(number)
        if len(seen) > 1:
            os._exit(128 + number)
        asked.stop.set()

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
