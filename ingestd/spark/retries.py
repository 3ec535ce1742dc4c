"""Retry unreadable topic partitions while all others are read."""

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
    """A process that tries to read a record, with exit code 0 on success."""

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""

    def kill(self) -> None:
        """Kill it."""

    def wait(self) -> int:
        """Wait for its exit and return the exit code."""


@dataclass(slots=True)
class Tried:
    """The retries of a topic partition at an offset, and the time of the next one."""

    offset: int
    tries: int
    due: float


@dataclass(slots=True)
class KnownRanges:
    """The state of unreadable topic partitions, for the life of the process.

    So delays keep growing when a later run finds the same partition. `given_up` are ranges that the
    policy skips; the next start of the pipeline writes dead letters for them.
    """

    tried: dict[Place, Tried] = field(default_factory=dict)
    given_up: dict[Place, OffsetRange] = field(default_factory=dict)


class QueryRetries:
    """Retries one topic partition at a time, with exponential backoff.

    After the retries that the policy allows, a partition is either an error, or it is searched for
    the next readable offset.
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
        """Whether a search for a readable offset is not finished, so that the run must not end."""
        return any(self._is_exhausted(place) for place in self._waiting)

    def add(self, left: OffsetRange, *, is_reached: bool = True) -> None:
        """Add an unreadable range, which counts as a try.

        If `is_reached` is false, records before the range are unread, and it cannot be skipped.
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
        """Check the running retry, or start the next one that is due.

        Raises SourceError, which restarts the query, if a topic partition is readable again or its
        unreadable range is skipped; PolicyStopError if its retries are exhausted.
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
        """Try the next offset of a search. Raises SourceError when the search has ended."""
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
        """Kill the running retry."""
        if self._running is not None:
            self._running[2].kill()
            self._running[2].wait()
            self._running = None
