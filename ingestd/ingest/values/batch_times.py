"""When the changes of a batch were made: what travels to the driver for lag and freshness.

All times are milliseconds since 1970.
"""

from dataclasses import dataclass, field

from ingestd.ingest.values.counts import TopicPartition


@dataclass(frozen=True, slots=True)
class EventSpan:
    """Times of the oldest and the newest of some changes."""

    oldest: int
    newest: int


@dataclass(slots=True)
class BatchTimes:
    """Times of a task's or a batch's changes, of the first and last of each chunk to be exact.

    `events` by table; `reached` by topic partition: an offset, and the time of its record.
    """

    events: dict[str, EventSpan] = field(default_factory=dict)
    reached: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)

    def note_event(self, table: str, time: int) -> None:
        """A change of a table was made at this time."""
        self._unite(table, EventSpan(time, time))

    def note_reached(self, where: TopicPartition, offset: int, time: int) -> None:
        """A record of a topic partition has this time; the furthest one counts."""
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
