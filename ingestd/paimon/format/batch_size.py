"""How much of a data file may be in memory while it is read part by part."""

from dataclasses import dataclass

_MOST_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class BatchSize:
    """At most `rows` rows, and about `memory` bytes of Arrow columns; a row is never cut."""

    memory: int
    rows: int = _MOST_ROWS

    def fitting(self, row_bytes: float) -> int:
        """How many rows of a width may be read at once; at least one."""
        return max(1, min(self.rows, int(self.memory / max(row_bytes, 1))))
