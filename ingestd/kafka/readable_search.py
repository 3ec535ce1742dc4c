"""Where a log can be read again after an offset that cannot.

Records of one compressed batch cannot be read apart, and the client does not say where a batch
ends. So offsets are tried: the next one, then in steps that double, then halfway back.
"""

from dataclasses import dataclass

from ingestd.kafka.ranges import OffsetRange


@dataclass(slots=True)
class ReadableSearch:
    """Finds the first offset in a range that can be read; its end counts as one.

    `failing` is the last offset known to be unreadable, `readable` the first known to be readable.
    """

    range: OffsetRange
    failing: int
    readable: int
    step: int = 1

    @classmethod
    def of(cls, left: OffsetRange) -> "ReadableSearch":
        """Begin with a range whose first offset cannot be read."""
        return cls(left, left.start, left.until)

    def next_offset(self) -> int | None:
        """Return the offset to try; None once the first readable offset is known."""
        if self.readable - self.failing <= 1:
            return None
        middle = (self.failing + self.readable) // 2
        return min(self.failing + self.step, middle) if self.step else middle

    def note(self, offset: int, *, is_readable: bool) -> None:
        """Take in the result of a try."""
        if is_readable:
            self.readable, self.step = offset, 0
        else:
            self.failing, self.step = offset, self.step * 2
