"""Handle signals as requests: to stop, or to reload the configuration."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

_SAME_SIGNAL_SECONDS = 0.5
"""Two signals within this time count as one: tools signal a process and then its group."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class SignalRequests:
    """The requests made by signals: to stop, and to reload the configuration."""

    stop: threading.Event = field(default_factory=threading.Event)
    reload: threading.Event = field(default_factory=threading.Event)

    def take(self, event: threading.Event) -> bool:
        """Return whether a request was made, and clear it."""
        was_set = event.is_set()
        event.clear()
        return was_set


@contextmanager
def handled_signals(requests: SignalRequests) -> Iterator[None]:
    """Handle signals in the block: SIGHUP requests a reload, SIGTERM and SIGINT a stop.

    A second SIGTERM or SIGINT exits the process at once.
    """
    first: float | None = None

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal first
        if number == signal.SIGHUP:
            requests.reload.set()
            return
        now = time.monotonic()
        if first is None:
            first = now
            requests.stop.set()
        elif now - first > _SAME_SIGNAL_SECONDS:
            os._exit(128 + number)

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
