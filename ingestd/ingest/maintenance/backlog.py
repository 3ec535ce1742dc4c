"""Whether the stream is behind its sources, as far as whoever works beside it should care.

No one is asked for it: a batch that took as much as its limits allow left something for the next.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ingestd.kafka.ranges import BatchOffsets

_START_SECONDS = 30.0
_PAUSE_SECONDS = 5.0


def is_cut(offsets: BatchOffsets, limits: Mapping[str, int]) -> bool:
    """Whether a batch took all that the limit of a source (by name, in offsets) lets it take."""
    taken = dict.fromkeys(limits, 0)
    for one in offsets.ranges():
        if one.source in taken:
            taken[one.source] += one.rows
    return any(taken[name] >= limit for name, limit in limits.items())


@dataclass(slots=True)
class Backlog:
    """Follows the batches of a stream; times are seconds of a steady clock.

    A stream is behind from a batch that was cut to one that was not, and from the opening of its
    tables to the end of its first batch; but not when no batch begins for a while, nor when its run
    has died.
    """

    _behind: bool = False
    _in_batch: bool = False
    _until: float = 0.0

    def opened(self, now: float) -> None:
        """A run of the stream begins."""
        self._behind, self._in_batch, self._until = True, False, now + _START_SECONDS

    def began(self) -> None:
        """A batch has begun."""
        self._in_batch = True

    def ended(self, cut: bool, now: float) -> None:
        """A batch has committed."""
        self._behind, self._in_batch, self._until = cut, False, now + _PAUSE_SECONDS

    def died(self) -> None:
        """The run has ended, and with it the batch that had begun: no one is in a hurry."""
        self._behind, self._in_batch = False, False

    def is_behind(self, now: float) -> bool:
        """Whether it is."""
        return self._behind and (self._in_batch or now < self._until)
