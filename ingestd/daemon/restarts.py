"""Delays between restarts of a failed query, and their limit."""

import random
from collections import deque
from dataclasses import dataclass

_SOON_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Limits of restarts: at most `max_attempts` within `window`, with exponential backoff.

    Times are in seconds.
    """

    max_attempts: int = 10
    window: float = 600.0
    initial_backoff: float = 1.0
    max_backoff: float = 60.0


class RestartBudget:
    """Counts restarts of a failed query against the limits, and computes their delays.

    Delays grow with consecutive failures; a finished batch resets them. `spread` shortens delays at
    random (None: a new generator).
    """

    def __init__(self, policy: RestartPolicy, spread: random.Random | None = None) -> None:
        self._policy = policy
        self._spread = spread or random.Random()  # noqa: S311  (only jitter)
        self._restarts: deque[float] = deque()
        self._in_a_row = 0

    def succeeded(self) -> None:
        """Reset the backoff after a finished batch."""
        self._in_a_row = 0

    def next_wait(self, now: float, *, counts: bool = True) -> float | None:
        """Return the delay in seconds before a restart after a failure, or None to give up.

        `now` is the time of the failure, in seconds on a monotonic clock. Without `counts`, the
        restart is not limited by the budget, and its delay is at most 15 seconds, because the
        restarted query waits by itself. The delay is shortened by up to a quarter at random, so
        that many daemons do not restart at the same time.
        """
        while self._restarts and self._restarts[0] <= now - self._policy.window:
            self._restarts.popleft()
        if counts:
            if len(self._restarts) >= self._policy.max_attempts:
                return None
            self._restarts.append(now)
        doubled = self._policy.initial_backoff * 2.0 ** min(self._in_a_row, 60)
        self._in_a_row += 1
        most = self._policy.max_backoff if counts else min(self._policy.max_backoff, _SOON_SECONDS)
        return min(doubled, most) * self._spread.uniform(0.75, 1.0)
