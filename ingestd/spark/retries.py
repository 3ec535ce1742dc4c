"""Topic partitions that could not be read are tried again, while all others are read."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ingestd.errors import PolicyStopError, SourceError
from ingestd.kafka.ranges import OffsetRange, Place

_FIRST_SECONDS = 60.0
_LONGEST_SECONDS = 3_600.0


class Try(Protocol):
    """A process that tries to read a record; its exit code is 0 if it did."""

    def poll(self) -> int | None:
        """The exit code; None as long as it runs."""

    def kill(self) -> None:
        """End it."""

    def wait(self) -> int:
        """The exit code, when it has ended."""


@dataclass(slots=True)
class Tried:
    """How often a topic partition was tried at an offset, and when it is due (by the clock)."""

    offset: int
    tries: int
    due: float


class Retries:
    """Tries one topic partition at a time, each after twice the time of its last wait.

    `known` outlives a run, so that waits grow although each run finds the partition anew.
    `most_tries` None tries without end.
    """

    def __init__(
        self,
        start: Callable[[OffsetRange], Try],
        known: dict[Place, Tried],
        most_tries: int | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._start = start
        self._known = known
        self._most = most_tries
        self._clock = clock
        self._waiting: dict[Place, OffsetRange] = {}
        self._running: tuple[Place, Try] | None = None

    def add(self, left: OffsetRange) -> None:
        """A topic partition could not be read; that counts as a try."""
        place = (left.source, left.topic, left.partition)
        before = self._known.get(place)
        tries = before.tries + 1 if before is not None and before.offset == left.start else 1
        wait = min(_FIRST_SECONDS * 2 ** (tries - 1), _LONGEST_SECONDS)
        self._known[place] = Tried(left.start, tries, self._clock() + wait)
        self._waiting[place] = left

    def poll(self) -> None:
        """Look at the try that runs, or begin the next one that is due.

        Raises SourceError if a topic partition can be read again, for which the query has to start
        again; PolicyStopError if one was tried as often as it may be.
        """
        for place, left in self._waiting.items():
            if self._most is not None and self._known[place].tries >= self._most:
                raise PolicyStopError(
                    f"{left.topic}/{left.partition} of source {left.source} could not be read at "
                    f"offset {left.start} {self._known[place].tries} times "
                    "(errors.max-unreadable-tries); mend the source, or raise the limit to have it "
                    "wait"
                )
        if self._running is None:
            self._begin()
            return
        place, process = self._running
        code = process.poll()
        if code is None:
            return
        self._running = None
        left = self._waiting[place]
        if code == 0:
            raise SourceError(
                f"{left.topic}/{left.partition} of source {left.source} can be read again at "
                f"offset {left.start}: the query starts again to read it"
            )
        self.add(left)

    def _begin(self) -> None:
        now = self._clock()
        due = [place for place in self._waiting if self._known[place].due <= now]
        if due:
            place = min(due, key=lambda one: self._known[one].due)
            self._running = place, self._start(self._waiting[place])

    def close(self) -> None:
        """End the try that runs."""
        if self._running is not None:
            self._running[1].kill()
            self._running[1].wait()
            self._running = None
