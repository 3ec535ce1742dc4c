"""Whether the stream lags behind its sources, for work that should wait for it.

The brokers are not asked: a batch that reached its limits has left records for the next one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ingestd.kafka.ranges import BatchOffsets

_START_SECONDS = 30.0
_PAUSE_SECONDS = 5.0


def is_cut(offsets: BatchOffsets, limits: Mapping[str, int]) -> bool:
    """Return whether a batch reached the limit of a source (by name, in offsets)."""
    taken = dict.fromkeys(limits, 0)
    for range_ in offsets.ranges():
        if range_.source in taken:
            taken[range_.source] += range_.rows
    return any(taken[name] >= limit for name, limit in limits.items())


@dataclass(slots=True)
class Backlog:
    """Follows the batches of a stream; times are seconds of a monotonic clock.

    A stream has a backlog from a batch that was limited to one that was not, and from the opening
    of its tables to the end of its first batch; but not if no batch starts for a while, nor after
    its run has failed.
    """

    _behind: bool = False
    _in_batch: bool = False
    _until: float = 0.0

    def opened(self, now: float) -> None:
        """Record the start of a run of the stream."""
        self._behind, self._in_batch, self._until = True, False, now + _START_SECONDS

    def began(self) -> None:
        """Record the start of a batch."""
        self._in_batch = True

    def ended(self, cut: bool, now: float) -> None:
        """Record the commit of a batch."""
        self._behind, self._in_batch, self._until = cut, False, now + _PAUSE_SECONDS

    def died(self) -> None:
        """Record the end of the run, and of its current batch: maintenance need not wait."""
        self._behind, self._in_batch = False, False

    def is_behind(self, now: float) -> bool:
        """Return whether the stream has a backlog."""
        return self._behind and (self._in_batch or now < self._until)
