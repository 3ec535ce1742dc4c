"""Detect a backlog of the stream, so that maintenance can wait for its end.

No requests are sent to brokers: a batch that reached its limits has probably left records for the
next batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ingestd.kafka.offset_ranges import BatchOffsets

_START_SECONDS = 30.0
_PAUSE_SECONDS = 5.0


def is_cut(offsets: BatchOffsets, limits: Mapping[str, int]) -> bool:
    """Return whether a batch reached `max-offsets-per-trigger`, so that records may remain.

    `limits` maps sources to the maximum number of offsets in a batch. The result is true if any
    source has reached its limit.
    """
    taken = dict.fromkeys(limits, 0)
    for range_ in offsets.ranges():
        if range_.source in taken:
            taken[range_.source] += range_.rows
    return any(taken[name] >= limit for name, limit in limits.items())


@dataclass(slots=True)
class Backlog:
    """The backlog state of a stream, derived from its batches.

    A backlog exists after a batch that reached its limits, and between the opening of the tables
    and the end of the first batch. It ends when no batch starts for 5 seconds (30 seconds after the
    opening), or when the run fails. Times are seconds of a monotonic clock.
    """

    _lagging: bool = False
    _in_batch: bool = False
    _until: float = 0.0

    def opened(self, now: float) -> None:
        """Record that the tables were opened: a backlog is assumed, at first for 30 seconds."""
        self._lagging, self._in_batch, self._until = True, False, now + _START_SECONDS

    def began(self) -> None:
        """Record that a batch has started."""
        self._in_batch = True

    def ended(self, cut: bool, now: float) -> None:
        """Record that a batch is committed; `cut` is whether it reached its limits."""
        self._lagging, self._in_batch, self._until = cut, False, now + _PAUSE_SECONDS

    def died(self) -> None:
        """Record that the run has failed, with its current batch: maintenance need not wait."""
        self._lagging, self._in_batch = False, False

    def is_lagging(self, now: float) -> bool:
        """Return whether the stream has a backlog."""
        return self._lagging and (self._in_batch or now < self._until)
