"""The event times of a batch, which the driver reports as lag and freshness.

All times are in milliseconds since the epoch.
"""

from dataclasses import dataclass, field

from ingestd.kafka.offset_ranges import SourcePartition


@dataclass(frozen=True, slots=True)
class EventSpan:
    """The event times of the oldest and the newest change, in milliseconds since the epoch."""

    oldest: int
    newest: int


@dataclass(slots=True)
class BatchTimes:
    """The event times of a task or batch, in milliseconds since the epoch.

    `events` maps tables to the oldest and the newest of the event times of the first and the last
    row of each chunk. `reached` maps topic partitions to the largest offset and the time of its
    record. `columns` maps tables whose event time is a column to the largest value of the column,
    by topic partition.
    """

    events: dict[str, EventSpan] = field(default_factory=dict)
    reached: dict[SourcePartition, tuple[int, int]] = field(default_factory=dict)
    columns: dict[str, dict[SourcePartition, int]] = field(default_factory=dict)

    def note_event(self, table: str, time: int) -> None:
        """Record the event time of a change to a table, in milliseconds since the epoch."""
        self._unite(table, EventSpan(time, time))

    def note_reached(self, where: SourcePartition, offset: int, time: int) -> None:
        """Record the time of a record, unless a later record of its topic partition is known."""
        self.reached[where] = max((offset, time), self.reached.get(where, (offset, time)))

    def note_column(self, table: str, where: SourcePartition, time: int) -> None:
        """Record a value of a table's event time column; the largest per partition is kept."""
        known = self.columns.setdefault(table, {})
        known[where] = max(time, known.get(where, time))

    def add(self, other: "BatchTimes") -> None:
        """Add the times of another task to these."""
        for table, span in other.events.items():
            self._unite(table, span)
        for where, (offset, time) in other.reached.items():
            self.note_reached(where, offset, time)
        for table, times in other.columns.items():
            for where, time in times.items():
                self.note_column(table, where, time)

    def _unite(self, table: str, span: EventSpan) -> None:
        known = self.events.get(table, span)
        oldest, newest = min(known.oldest, span.oldest), max(known.newest, span.newest)
        self.events[table] = EventSpan(oldest, newest)
