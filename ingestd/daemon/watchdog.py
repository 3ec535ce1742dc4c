"""Detect a query that no longer polls: it neither starts batches nor finds its sources idle.

Other signals miss such a query: a batch that is never planned has no duration, and lag needs new
records.
"""

from collections.abc import Callable

from ingestd import metrics

STUCK_SECONDS = 300.0
"""Maximum time until the next poll or sign of life.

A poll fails after a minute at most; the start of Spark may take longer.
"""
PER_SOURCE_SECONDS = 60.0
"""Time added for each source after the first, because sources are polled in turn."""


class Watchdog:
    """The time of the last poll of a query. Not thread-safe.

    `ticks` is a monotonic clock, `clock` returns seconds since 1970. `patience` is an upper limit,
    in seconds, of the time until the next poll is overdue.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        ticks: Callable[[], float],
        patience: float,
        sources: int = 1,
    ) -> None:
        self._clock = clock
        self._ticks = ticks
        self._patience = min(STUCK_SECONDS + PER_SOURCE_SECONDS * max(sources - 1, 0), patience)
        self._last = ticks()
        self._held = False
        self.has_polled = False
        """Whether the query has polled since it was started."""

    def started(self) -> None:
        """Note that the start of a query has begun."""
        self._last, self._held, self.has_polled = self._ticks(), False, False

    def opened(self) -> None:
        """Note that the query has been started."""
        self._last = self._ticks()

    def done(self) -> None:
        """Note a poll: a batch has started or finished, or there are no new records."""
        self._last, self.has_polled = self._ticks(), True
        metrics.record_poll(self._clock())

    def hold(self, *, held: bool) -> None:
        """Set whether the next poll is delayed on purpose, which also counts as a poll."""
        self._held = held
        self.done()

    @property
    def seconds(self) -> float:
        """The seconds since the last poll, or since the start of the query."""
        return self._ticks() - self._last

    @property
    def is_overdue(self) -> bool:
        """Whether the next poll is overdue."""
        return not self._held and self.seconds > self._patience
