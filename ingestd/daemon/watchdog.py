"""Whether a query goes round: it begins batches, or asks its sources and finds nothing new.

A batch that is never planned has no seconds of its own, and where topics are quiet no lag either.
Whoever shares this between threads locks it.
"""

from collections.abc import Callable

from ingestd import metrics

STUCK_SECONDS = 300.0
"""A source is asked within a minute, or there is an error; a loop that ticks every second is silent
for no longer than Spark takes to start."""
ASKING_SECONDS = 60.0
"""How much longer a round may take for each source beyond the first, for they are asked in turn."""


class Watchdog:
    """When a query of some sources last went round, by `ticks`; `clock` is seconds since 1970."""

    def __init__(
        self,
        clock: Callable[[], float],
        ticks: Callable[[], float],
        patience: float,
        sources: int = 1,
    ) -> None:
        self._clock = clock
        self._ticks = ticks
        self._patience = min(STUCK_SECONDS + ASKING_SECONDS * max(sources - 1, 0), patience)
        self._last = ticks()
        self._held = False
        self.any = False
        """Whether the query has gone round since it was started."""

    def started(self) -> None:
        """A query starts; it has to go round first."""
        self._last, self._held, self.any = self._ticks(), False, False

    def opened(self) -> None:
        """The query has been started, however long that took."""
        self._last = self._ticks()

    def done(self) -> None:
        """A batch has begun or ended, or nothing is new."""
        self._last, self.any = self._ticks(), True
        metrics.record_poll(self._clock())

    def hold(self, *, held: bool) -> None:
        """Whether the next round is put off on purpose, for as long as it takes."""
        self._held = held
        self.done()

    @property
    def seconds(self) -> float:
        """Since the last round, or since the query was started."""
        return self._ticks() - self._last

    @property
    def is_overdue(self) -> bool:
        """Whether the next one should have come long ago."""
        return not self._held and self.seconds > self._patience
