"""Detect a Spark cluster without executors, on which tasks wait instead of failing."""

from collections.abc import Callable

MISSING_SECONDS = 60.0
"""The time without executors after which the daemon is not ready."""


class ExecutorWatch:
    """The number of executors over time; None for a local master. Not thread-safe.

    `is_missing` states whether there had been none for `MISSING_SECONDS` at the last count. `ticks`
    is a monotonic clock.
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
