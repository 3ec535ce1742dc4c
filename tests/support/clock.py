"""A clock that goes when a test says so."""

from dataclasses import dataclass


@dataclass
class Clock:
    """Called, it tells `now`, in seconds."""

    now: float

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Go on by `seconds`, without a wait."""
        self.now += seconds
