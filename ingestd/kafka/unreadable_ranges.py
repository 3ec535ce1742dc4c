"""Find the offset ranges that cannot be read with the memory of a worker, and where they end.

A worker that is killed or runs out of memory does not report what it was reading. So the ranges are
read again by separate processes: in halves, until the ranges that end their process are known, and
then one record batch at a time up to the unreadable offset.

Records of one compressed record batch cannot be read individually, and the client does not report
where a batch ends. So the search for the next readable offset doubles its steps, then bisects.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from ingestd.kafka.isolated_fetch import Unreadable, is_reachable
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.try_range import out_of_memory, read_apart

_MORE_TRIES = 2
ReadApart = Callable[[KafkaSource, Sequence[OffsetRange], int], tuple[list[OffsetRange], str]]


def find_unreadable(
    source: KafkaSource,
    ranges: Sequence[OffsetRange],
    memory: int,
    read: ReadApart = read_apart,
) -> list[Unreadable]:
    """Return the ranges of one source that cannot be read, each from its first unreadable offset.

    `memory` is the memory limit of the separate process in bytes. `read` reads ranges in the
    process, and returns the parts that it did not read and the reason. Ranges whose brokers do not
    respond are left out. Raises ConfigError for invalid properties, and SourceError if no token
    could be fetched.
    """
    left, reason = read(source, ranges, memory)
    if len(left) > 1:
        middle = len(left) // 2
        halves = (left[:middle], left[middle:])
        return [
            unreadable_range
            for half in halves
            for unreadable_range in find_unreadable(source, half, memory, read)
        ]
    if not left:
        return []
    if left != list(ranges):
        return find_unreadable(source, left, memory, read)
    # The client may have requested the next batch, and ended, before it returned the previous one.
    for _ in range(_MORE_TRIES if reason == out_of_memory(memory) else 0):
        again, reason = read(source, left, memory)
        if again != left:
            return find_unreadable(source, again, memory, read) if again else []
    return [Unreadable(left[0], reason)] if is_reachable(source, left) else []


def by_source(ranges: Iterable[OffsetRange]) -> list[list[OffsetRange]]:
    """Return the ranges in groups by source; groups, and the ranges in them, are sorted."""
    ordered = sorted(ranges)
    return [
        list(source_ranges)
        for _, source_ranges in groupby(ordered, lambda offset_range: offset_range.source)
    ]


@dataclass(slots=True)
class ReadableSearch:
    """A search for the first readable offset of a range; the end of the range counts as readable.

    `failing` is the last offset known to be unreadable, `readable` the first known to be readable,
    and `step` the distance to the next offset to try, 0 for bisection.
    """

    range: OffsetRange
    failing: int
    readable: int
    step: int = 1

    @classmethod
    def of(cls, left: OffsetRange) -> "ReadableSearch":
        """Start a search in a range whose first offset cannot be read."""
        return cls(left, left.start, left.until)

    def next_offset(self) -> int | None:
        """Return the offset to try; None once the first readable offset is known."""
        if self.readable - self.failing <= 1:
            return None
        middle = (self.failing + self.readable) // 2
        return min(self.failing + self.step, middle) if self.step else middle

    def note(self, offset: int, *, is_readable: bool) -> None:
        """Record whether an offset could be read."""
        if is_readable:
            self.readable, self.step = offset, 0
        else:
            self.failing, self.step = offset, self.step * 2
