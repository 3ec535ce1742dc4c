"""How long to wait before a failed query is started again, and when to give up."""

import random
from collections import deque
from dataclasses import dataclass

_SOON_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """At most `max_attempts` restarts within `window`; waits double between two bounds; seconds."""

    max_attempts: int = 10
    window: float = 600.0
    initial_backoff: float = 1.0
    max_backoff: float = 60.0


class RestartBudget:
    """Counts restarts; waits grow with failures in a row and fall back after a good batch."""

    def __init__(self, policy: RestartPolicy, spread: random.Random | None = None) -> None:
        self._policy = policy
        self._spread = spread or random.Random()  # noqa: S311  (only spreads waits)
        self._restarts: deque[float] = deque()
        self._in_a_row = 0

    def succeeded(self) -> None:
        """A batch went through: the next failure is the first of its row."""
        self._in_a_row = 0

    def next_wait(self, now: float, *, counts: bool = True) -> float | None:
        """Seconds to wait before the restart that a failure at `now` needs; None: give up.

        A failure that does not count is waited out, whatever the budget says, and soon tried
        again: the try itself is patient. The wait is at most a quarter shorter than the doubled
        one, so that many daemons do not come back at once.
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
