"""The event times of a batch, which the driver reports as lag and freshness.

All times are milliseconds since 1970.
"""

from dataclasses import dataclass, field

from ingestd.ingest.values.counts import TopicPartition


@dataclass(frozen=True, slots=True)
class EventSpan:
    """The times of the oldest and the newest change."""

    oldest: int
    newest: int


@dataclass(slots=True)
class BatchTimes:
    """Event times of a task or a batch, from the first and last record of each chunk.

    `events` are by table; `reached` by topic partition: an offset, and the time of its record.
    """

    events: dict[str, EventSpan] = field(default_factory=dict)
    reached: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)

    def note_event(self, table: str, time: int) -> None:
        """Record the time of a change of a table."""
        self._unite(table, EventSpan(time, time))

    def note_reached(self, where: TopicPartition, offset: int, time: int) -> None:
        """Record the time of a record in a topic partition; the largest offset is kept."""
        self.reached[where] = max((offset, time), self.reached.get(where, (offset, time)))

    def add(self, other: "BatchTimes") -> None:
        """Add the times of another task, or of another run of the batch."""
        for table, span in other.events.items():
            self._unite(table, span)
        for where, (offset, time) in other.reached.items():
            self.note_reached(where, offset, time)

    def _unite(self, table: str, span: EventSpan) -> None:
        known = self.events.get(table, span)
        oldest, newest = min(known.oldest, span.oldest), max(known.newest, span.newest)
        self.events[table] = EventSpan(oldest, newest)
