"""Find the offset ranges that cannot be read with the memory of a worker.

A worker that is killed or runs out of memory does not report what it was reading. So the ranges
are read again by separate processes: in halves, until the ranges that end their process are known,
and then batch by batch up to the offset.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from ingestd.kafka.isolated_fetch import Unreadable, answers
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import OffsetRange
from ingestd.kafka.try_range import out_of_memory, read_apart

_MORE_TRIES = 2
ReadApart = Callable[[KafkaSource, Sequence[OffsetRange], int], tuple[list[OffsetRange], str]]


def find_unreadable(
    source: KafkaSource,
    ranges: Sequence[OffsetRange],
    memory: int,
    read: ReadApart = read_apart,
) -> list[Unreadable]:
    """Return the rest of ranges of one source, from the first offset that cannot be read."""
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
    return [Unreadable(left[0], reason)] if answers(source, left) else []


def by_source(ranges: Iterable[OffsetRange]) -> list[list[OffsetRange]]:
    """Group ranges by source, sorted."""
    ordered = sorted(ranges)
    return [list(ones) for _, ones in groupby(ordered, lambda offset_range: offset_range.source)]
