"""Detect a Spark cluster without executors, on which tasks wait instead of failing."""

from collections.abc import Callable

MISSING_SECONDS = 60.0
"""The time without executors after which the daemon is not ready."""


class ExecutorWatch:
    """The last count of the executors, and whether executors have been missing for too long.

    `count` is None for a local master. `is_missing` is whether there had been no executor for
    `MISSING_SECONDS` at the last count. `ticks` is a monotonic clock. Not thread-safe.
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
