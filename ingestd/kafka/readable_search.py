"""Search for the first readable offset after an unreadable one.

Records of one compressed record batch cannot be read individually, and the client does not report
where a batch ends. So the search tries the next offset, then doubles its steps, then bisects.
"""

from dataclasses import dataclass

from ingestd.kafka.ranges import OffsetRange


@dataclass(slots=True)
class ReadableSearch:
    """Finds the first readable offset in a range; the end of the range counts as readable.

    `failing` is the last offset known to be unreadable, `readable` the first known to be readable.
    """

    range: OffsetRange
    failing: int
    readable: int
    step: int = 1

    @classmethod
    def of(cls, left: OffsetRange) -> "ReadableSearch":
        """Start with a range whose first offset cannot be read."""
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
