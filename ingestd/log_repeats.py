"""Rate limiting of repeated warnings: one line per window, then a line with the number of repeats.

Lines are repeats of each other if they have the same logger, level, event, table and other
identifying fields. The line with the count is written when the window ends or the handler is
closed, as it is when the process exits; only a killed process loses counts.
"""

import copy
import logging
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

WINDOW_SECONDS = 60.0
REPEATED = "repeated"
WITHIN = "within_seconds"
_IDENTIFYING = ("table", "source", "topic", "partition", "offset", "stage", "reason", "error_type")
"""Fields that identify a line: lines with different values are not repeats of each other."""
_MOST_KINDS = 1_000

Fields = Callable[[logging.LogRecord], Mapping[str, object]]


@dataclass(slots=True)
class _Repeats:
    """The repeats of a line since it was written at `begun`: their number and the newest one."""

    begun: float
    count: int = 0
    newest: logging.LogRecord | None = None


class SummingHandler(logging.StreamHandler[TextIO]):
    """A stream handler that writes only the first of repeated warnings and errors in each window.

    `fields` is a function that returns all fields of a line, including those of its thread. Lines
    below WARNING and above ERROR are always written, and all lines while the level is DEBUG.
    """

    def __init__(
        self,
        stream: TextIO,
        fields: Fields,
        *,
        window: float = WINDOW_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(stream)
        self._fields = fields
        self._window = window
        self._clock = clock
        self._kinds: dict[Hashable, _Repeats] = {}
        self._timer: threading.Timer | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, or count it as a repeat.

        The counts of windows that have ended are written before it.
        """
        now = self._clock()
        self._sum_up(now)
        if not logging.WARNING <= record.levelno <= logging.ERROR or self._writes_all():
            super().emit(record)
            return
        fields = dict(self._fields(record))
        kind = _kind(record, fields)
        repeats = self._kinds.get(kind)
        if repeats is None:
            if len(self._kinds) >= _MOST_KINDS:
                self._sum_up(None)
            self._kinds[kind] = _Repeats(now)
            super().emit(record)
            return
        repeats.count += 1
        repeats.newest = _kept(record, fields)
        self._wake_later()

    def close(self) -> None:
        """Write all counts; also called when the process exits."""
        with self._held():
            if not self.stream.closed:
                self._sum_up(None)
            self._kinds.clear()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        super().close()

    def write_due(self) -> None:
        """Write the counts of windows that have ended, even if nothing else is logged."""
        with self._held():
            self._timer = None
            self._sum_up(self._clock())
            if any(repeats.count for repeats in self._kinds.values()):
                self._wake_later()

    def _held(self) -> threading.RLock:
        """Return the lock of the handler."""
        if self.lock is None:
            raise ValueError("a handler without a lock")
        return self.lock

    def _writes_all(self) -> bool:
        return logging.getLogger().level <= logging.DEBUG

    def _sum_up(self, now: float | None) -> None:
        """Write the counts of windows that have ended; with None, of all windows."""
        for kind, repeats in list(self._kinds.items()):
            if now is not None and now - repeats.begun < self._window:
                continue
            del self._kinds[kind]
            if repeats.newest is not None:
                super().emit(_sum_of(repeats, repeats.newest, self._clock()))

    def _wake_later(self) -> None:
        if self._timer is not None:
            return
        timer = threading.Timer(self._window, self.write_due)
        timer.daemon = True
        with suppress(RuntimeError):  # no thread available: the next line or `close` writes counts
            timer.start()
            self._timer = timer


def _kind(record: logging.LogRecord, fields: Mapping[str, object]) -> Hashable:
    """Return a key that is equal for lines that are repeats of each other.

    Python's own warnings are compared by their text.
    """
    text = record.getMessage() if record.name == "py.warnings" else str(record.msg)
    error = record.exc_info[0] if record.exc_info else None
    identity = tuple(str(fields.get(name)) for name in _IDENTIFYING)
    return record.name, record.levelno, text, error, identity


def _kept(record: logging.LogRecord, fields: dict[str, object]) -> logging.LogRecord:
    """Return a copy of a line that any thread can write later.

    Of an exception, only the message remains, as a field.
    """
    kept = copy.copy(record)
    if record.exc_info and record.exc_info[1]:
        fields.setdefault("message", str(record.exc_info[1]))
    kept.exc_info = kept.exc_text = None
    kept.__dict__["ctx"] = fields
    return kept


def _sum_of(repeats: _Repeats, newest: logging.LogRecord, now: float) -> logging.LogRecord:
    """Return the newest repeat with the number of repeats and the elapsed seconds as fields."""
    counts = {REPEATED: repeats.count, WITHIN: max(round(now - repeats.begun), 1)}
    newest.__dict__["ctx"] = {**counts, **newest.__dict__["ctx"]}
    return newest
