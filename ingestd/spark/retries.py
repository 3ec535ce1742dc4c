"""Topic partitions that could not be read are tried again, while all others are read."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from ingestd.errors import PolicyStopError, SourceError
from ingestd.ingest.settings.error_policy import UnreadablePolicy
from ingestd.kafka.ranges import OffsetRange, Place
from ingestd.kafka.readable_search import ReadableSearch

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


@dataclass(slots=True)
class KnownRanges:
    """What is known of topic partitions that could not be read, for as long as the process lives.

    Waits grow although each run finds a partition again. `given_up` are ranges that the policy has
    decided to leave out, which the next start of the pipeline names in dead letters.
    """

    tried: dict[Place, Tried] = field(default_factory=dict)
    given_up: dict[Place, OffsetRange] = field(default_factory=dict)


class Retries:
    """Tries one topic partition at a time, each after twice the time of its last wait.

    One that was tried as often as the policy says is either an error, or it is searched for the
    offset from which it can be read again.
    """

    def __init__(
        self,
        start: Callable[[OffsetRange], Try],
        known: KnownRanges,
        policy: UnreadablePolicy,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._start = start
        self._known = known
        self._policy = policy
        self._clock = clock
        self._waiting: dict[Place, OffsetRange] = {}
        self._searches: dict[Place, ReadableSearch] = {}
        self._unreached: set[Place] = set()
        self._running: tuple[Place, int, Try] | None = None

    @property
    def is_deciding(self) -> bool:
        """Whether a topic partition is being searched, so that a run should not end yet."""
        return any(self._is_exhausted(place) for place in self._waiting)

    def add(self, left: OffsetRange, *, is_reached: bool = True) -> None:
        """A topic partition could not be read; that counts as a try.

        If it is not reached, records before it are unread: then it cannot be left out.
        """
        place = (left.source, left.topic, left.partition)
        if not is_reached:
            self._unreached.add(place)
        before = self._known.tried.get(place)
        tries = before.tries + 1 if before is not None and before.offset == left.start else 1
        wait = min(_FIRST_SECONDS * 2 ** (tries - 1), _LONGEST_SECONDS)
        self._known.tried[place] = Tried(left.start, tries, self._clock() + wait)
        self._waiting[place] = left

    def poll(self) -> None:
        """Look at the try that runs, or begin the next one that is due.

        Raises SourceError if a topic partition can be read again, or read on after what was given
        up, for which the query has to start again; PolicyStopError if one was tried as often as it
        may be.
        """
        exhausted = [place for place in self._waiting if self._is_exhausted(place)]
        refused = exhausted
        if self._policy.action == "dead-letter":
            refused = [place for place in exhausted if place in self._unreached]
        if refused:
            raise self._stop(refused[0])
        if self._running is None:
            self._begin(exhausted)
            return
        place, offset, process = self._running
        code = process.poll()
        if code is None:
            return
        self._running = None
        left = self._waiting[place]
        if offset == left.start and code == 0:
            raise SourceError(
                f"{left.topic}/{left.partition} of source {left.source} can be read again at "
                f"offset {left.start}: the query starts again to read it"
            )
        if place in self._searches:
            self._searches[place].note(offset, is_readable=code == 0)
        else:
            self.add(left)

    def _is_exhausted(self, place: Place) -> bool:
        most = self._policy.most_tries
        return most is not None and self._known.tried[place].tries >= most

    def _stop(self, place: Place) -> PolicyStopError:
        left = self._waiting[place]
        return PolicyStopError(
            f"{left.topic}/{left.partition} of source {left.source} could not be read at "
            f"offset {left.start} {self._known.tried[place].tries} times "
            "(errors.max-unreadable-tries); mend the source, raise the limit to have it wait, or "
            "let errors.on-unreadable be dead-letter to read on after it, which needs what is "
            "before it to be in the tables"
        )

    def _begin(self, exhausted: list[Place]) -> None:
        if exhausted:
            self._search(exhausted[0])
            return
        now = self._clock()
        due = [place for place in self._waiting if self._known.tried[place].due <= now]
        if due:
            place = min(due, key=lambda one: self._known.tried[one].due)
            left = self._waiting[place]
            self._running = place, left.start, self._start(left)

    def _search(self, place: Place) -> None:
        """Try the next offset of a search; raises SourceError when it has ended."""
        left = self._waiting[place]
        search = self._searches.setdefault(place, ReadableSearch.of(left))
        offset = search.next_offset()
        if offset is not None:
            self._running = place, offset, self._start(replace(left, start=offset))
            return
        self._known.given_up[place] = replace(left, until=search.readable)
        raise SourceError(
            f"{left.topic}/{left.partition} of source {left.source} cannot be read at offsets "
            f"{left.start} to {search.readable}: the query starts again to read on after them, "
            "which a dead letter names (errors.on-unreadable)"
        )

    def close(self) -> None:
        """End the try that runs."""
        if self._running is not None:
            self._running[2].kill()
            self._running[2].wait()
            self._running = None
