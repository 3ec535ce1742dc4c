"""Detect a query that no longer polls, and a Spark cluster without executors.

Other checks do not detect such a query: a batch that is never planned has no duration that exceeds
a limit, and lag grows only with new records.
"""

from collections.abc import Callable

from ingestd import metrics

STUCK_SECONDS = 300.0
"""Maximum time until the next poll, with one source, or until the supervisor's next `beat`.

A poll fails after a minute at most; the start of Spark may take longer.
"""
PER_SOURCE_SECONDS = 60.0
"""Time added for each source after the first, because sources are polled in turn."""


class Watchdog:
    """Watches the polls of a query, and reports when the next one is overdue. Not thread-safe.

    `ticks` returns the seconds of a monotonic clock, `clock` seconds since 1970. A poll is overdue
    after a time that grows with the number of `sources`, but after `patience` seconds at the
    latest.
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
        self._longest = patience
        self.expect_sources(sources)
        self._last = ticks()
        self._held = False
        self.has_polled = False
        """Whether the query has polled since it was started."""

    def expect_sources(self, sources: int) -> None:
        """Set the number of sources of which each poll requests end offsets."""
        self._patience = min(
            STUCK_SECONDS + PER_SOURCE_SECONDS * max(sources - 1, 0), self._longest
        )

    def started(self) -> None:
        """Record that the start of a query begins: no poll has happened yet."""
        self._last, self._held, self.has_polled = self._ticks(), False, False

    def opened(self) -> None:
        """Record that the query has started; the time until a poll is overdue begins again."""
        self._last = self._ticks()

    def done(self) -> None:
        """Record a poll; the time until the next poll is overdue begins again.

        Called when a batch starts or ends, and while the query is idle.
        """
        self._last, self.has_polled = self._ticks(), True
        metrics.record_poll(self._clock())

    def hold(self, *, held: bool) -> None:
        """Set whether the next poll is delayed on purpose; each call also counts as a poll."""
        self._held = held
        self.done()

    @property
    def seconds(self) -> float:
        """The seconds since the last poll, or since the start of the query."""
        return self._ticks() - self._last

    @property
    def is_overdue(self) -> bool:
        """Whether the next poll is overdue; False while it is delayed on purpose."""
        return not self._held and self.seconds > self._patience


MISSING_SECONDS = 60.0
"""The time without executors after which the daemon is not ready."""


class ExecutorWatch:
    """Watches the number of executors, and reports when they are missing for too long.

    `count` is None for a local master, or if it is unknown. `is_missing` is whether, at the last
    count, there had been no executor for at least `MISSING_SECONDS`. `ticks` returns the seconds of
    a monotonic clock. Not thread-safe.
    """

    def __init__(self, ticks: Callable[[], float]) -> None:
        self._ticks = ticks
        self._last_seen = ticks()
        self.count: int | None = None
        self.is_missing = False

    def counted(self, count: int | None) -> bool:
        """Set the current number of executors; return whether this changes `is_missing`."""
        self.count, before, now = count, self.is_missing, self._ticks()
        if count != 0:
            self._last_seen = now
        self.is_missing = count == 0 and now - self._last_seen >= MISSING_SECONDS
        return self.is_missing != before
