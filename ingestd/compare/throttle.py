"""Limit the rate at which rows of a source database are read."""

import time
from collections.abc import Callable


class Throttle:
    """Limits the rate at which rows are read, by a wait after each statement.

    At most one second of unused time is credited.
    """

    def __init__(
        self,
        rows_per_second: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = rows_per_second
        self._clock = clock
        self._sleep = sleep
        self._due = clock()
        self.rows = 0

    def took(self, rows: int) -> None:
        """Count rows that a statement has read, and wait if they exceed the rate."""
        self.rows += rows
        now = self._clock()
        self._due = max(self._due, now - 1) + rows / self._rate
        if self._due > now:
            self._sleep(self._due - now)
