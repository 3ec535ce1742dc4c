"""A warning that comes again and again is written once a window, and then once more as a sum.

Two lines are the same when logger, level, event, table and a few other telling fields are. What is
summed up is told when its window is over, or when the handler is closed, as it is at the end of
the process: so a line may come late, but only a process that is killed keeps a count to itself.
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
_TELLING = ("table", "source", "topic", "partition", "offset", "stage", "reason", "error_type")
"""Fields in which lines of one event differ by more than by detail: a record is told each time."""
_MOST_KINDS = 1_000

Fields = Callable[[logging.LogRecord], Mapping[str, object]]


@dataclass(slots=True)
class _Repeats:
    """Lines of one kind since the first was written: how many more, and the newest of them."""

    begun: float
    count: int = 0
    newest: logging.LogRecord | None = None


class SummingHandler(logging.StreamHandler[TextIO]):
    """Writes lines to a stream; of equal warnings and errors the first in each window.

    `fields` gives all fields of a line as its thread sees them. What is below a warning is always
    written, and so is what is critical, and everything while the level is DEBUG.
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
        """Write the line, or count it; first whatever is due."""
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
        """Tell what has been counted; called at the end of the process, too."""
        with self._held():
            if not self.stream.closed:
                self._sum_up(None)
            self._kinds.clear()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        super().close()

    def tell_due(self) -> None:
        """Tell what has been counted in windows that are over, though nothing else is logged."""
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
        """End the windows that are over, all of them without a time."""
        for kind, repeats in list(self._kinds.items()):
            if now is not None and now - repeats.begun < self._window:
                continue
            del self._kinds[kind]
            if repeats.newest is not None:
                super().emit(_sum_of(repeats, repeats.newest, self._clock()))

    def _wake_later(self) -> None:
        if self._timer is not None:
            return
        timer = threading.Timer(self._window, self.tell_due)
        timer.daemon = True
        with suppress(RuntimeError):  # no thread to be had: the next line tells it, or the end
            timer.start()
            self._timer = timer


def _kind(record: logging.LogRecord, fields: Mapping[str, object]) -> Hashable:
    """What lines have in common that count as one; warnings of Python differ by their text."""
    told = record.getMessage() if record.name == "py.warnings" else str(record.msg)
    error = record.exc_info[0] if record.exc_info else None
    telling = tuple(str(fields.get(name)) for name in _TELLING)
    return record.name, record.levelno, told, error, telling


def _kept(record: logging.LogRecord, fields: dict[str, object]) -> logging.LogRecord:
    """Return the line to be told later, perhaps by another thread; of its error the text only."""
    kept = copy.copy(record)
    if record.exc_info and record.exc_info[1]:
        fields.setdefault("message", str(record.exc_info[1]))
    kept.exc_info = kept.exc_text = None
    kept.__dict__["ctx"] = fields
    return kept


def _sum_of(repeats: _Repeats, newest: logging.LogRecord, now: float) -> logging.LogRecord:
    """Return the newest line with the count of all that were not written."""
    counts = {REPEATED: repeats.count, WITHIN: max(round(now - repeats.begun), 1)}
    newest.__dict__["ctx"] = {**counts, **newest.__dict__["ctx"]}
    return newest
