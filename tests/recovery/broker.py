"""The brokers of the model: topics, their logs, and what Kafka can do to them."""

from dataclasses import dataclass, replace
from typing import NamedTuple


class Key(NamedTuple):
    """A partition of a topic by the topic's id: another topic of the same name has other keys."""

    topic_id: int
    partition: int


class Position(NamedTuple):
    """An offset, and the epoch of the leader that reported it."""

    offset: int
    epoch: int


class Event(NamedTuple):
    """A Kafka record: a number of its own, what it is about, and the epoch that it was added in."""

    uid: int
    entity: str | None
    epoch: int


@dataclass(frozen=True, slots=True)
class Log:
    """The log of a partition; events below `first` are gone and kept for the judge alone."""

    first: int = 0
    events: tuple[Event, ...] = ()
    epoch: int = 0

    @property
    def end(self) -> int:
        """The offset of the next event."""
        return len(self.events)

    def end_of_epoch(self, epoch: int) -> int:
        """Where an epoch ends, as OffsetForLeaderEpoch answers it."""
        if epoch >= self.epoch:
            return len(self.events)
        for offset in range(len(self.events) - 1, -1, -1):
            if self.events[offset].epoch <= epoch:
                return offset + 1
        return 0

    def with_events(self, uids: range, entities: tuple[str | None, ...]) -> "Log":
        """The log with events more, in the epoch of its leader."""
        added = tuple(
            Event(uid, entity, self.epoch) for uid, entity in zip(uids, entities, strict=True)
        )
        return replace(self, events=self.events + added)

    def truncated(self, count: int) -> "Log":
        """After an unclean election: the last events are gone, a new leader counts on."""
        end = max(self.first, self.end - count)
        return replace(self, events=self.events[:end], epoch=self.epoch + 1)

    def expired(self, count: int) -> "Log":
        """After retention: the first events are gone."""
        return replace(self, first=min(self.end, self.first + count))


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic: Kafka's id of it, and its logs by partition."""

    id: int
    logs: tuple[Log, ...]

    def keyed_logs(self) -> list[tuple[Key, Log]]:
        """Key and log of each partition."""
        return [(Key(self.id, number), log) for number, log in enumerate(self.logs)]

    def with_log(self, partition: int, log: Log) -> "Topic":
        """The topic with another state of a log, or with a partition more."""
        return replace(self, logs=(*self.logs[:partition], log, *self.logs[partition + 1 :]))
