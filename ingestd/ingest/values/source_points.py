"""The order of changes of a source in different topic partitions, by position and record time.

Positions in the log of a source order changes exactly, but begin again on another server, after
RESET MASTER, and in a restored database. Timestamps of records do not begin again, but come from
clocks that differ. So changes whose records are more than `MAX_SKEW_MS` apart are ordered by the
timestamps of the records, and other changes by their positions.
"""

from typing import NamedTuple

import numpy as np

from ingestd.cdc.base import UNKNOWN_POSITION, RecordChunk
from ingestd.paimon.spec.row_selection import Indices, Mask

UNKNOWN_TIME = -1
MAX_SKEW_MS = 60_000
"""The largest difference between timestamps, in ms, for which positions decide.

Clocks of producers and brokers must not differ by more. If positions begin again within this time
after a truncate, new rows cannot be distinguished from rows before the truncate.
"""


class SourcePoint(NamedTuple):
    """The position of a change in the log of its source, and the timestamp of its record.

    The timestamp is in milliseconds since the epoch. Each of them is -1 if unknown.
    """

    position: int = UNKNOWN_POSITION
    time: int = UNKNOWN_TIME

    def is_after(self, other: "SourcePoint") -> bool:
        """Return whether this point is later than `other`.

        Timestamps decide if both are known and differ by more than a minute (`MAX_SKEW_MS`),
        otherwise positions, of which an unknown one is the smallest. Points that are equal are not
        later.
        """
        distance = self.time - other.time if self.time > 0 and other.time > 0 else 0
        if abs(distance) > MAX_SKEW_MS:
            return distance > 0
        return self.position > other.position


NO_POINT = SourcePoint()
"""The point of a table without rows that have a position."""


def is_after(positions: Indices, times: Indices, point: SourcePoint) -> Mask:
    """Return a mask (n,) of the changes later than a point, by `SourcePoint.is_after`."""
    later: Mask = positions > point.position
    if point.time <= 0:
        return later
    distances = np.where(times > 0, times - point.time, 0)
    return np.where(np.abs(distances) > MAX_SKEW_MS, distances > 0, later)


def point_at(chunk: RecordChunk, offset: int, position: int) -> SourcePoint:
    """Return the point of a change whose record is at an offset of the chunk.

    `position` is the position of the change in the source's log, -1 if unknown.
    """
    return SourcePoint(position, int(times_of(chunk, np.array([offset]))[0]))


def times_of(chunk: RecordChunk, offsets: Indices) -> Indices:
    """Return the timestamps (ms since the epoch) of the records at these offsets; shape (n,).

    All offsets must be in the chunk.
    """
    return chunk.timestamps[np.searchsorted(chunk.offsets, offsets)]


def later_point(first: SourcePoint, second: SourcePoint) -> SourcePoint:
    """Return the later of two points by `SourcePoint.is_after`, the first if neither is later."""
    return second if second.is_after(first) else first


def last_truncate(first: SourcePoint | None, second: SourcePoint | None) -> SourcePoint | None:
    """Return the point up to which two truncates delete rows; None stands for no truncate.

    It is the later of the two points, with the newer timestamp. So the timestamp never decreases if
    truncates are combined in any order, although `SourcePoint.is_after` is not transitive.
    """
    if first is None or second is None:
        return first or second
    return later_point(first, second)._replace(time=max(first.time, second.time))
