"""Track positions of topic partitions, and the lag of tables in records and in time.

Lag in time is computed without fetching records: a waiting record is not older than the last moment
without waiting records, nor than the newest change that was read before it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ingestd import lag_metrics
from ingestd.ingest.maintenance.batch_summary import BatchSummary
from ingestd.kafka.ranges import OffsetRange, TopicOffsets

Place = tuple[str, str, int]
"""Source, topic, partition."""


@dataclass(slots=True)
class _Reading:
    """One topic partition; offsets and times (seconds since 1970) are None while unknown.

    `position` is the next offset that is not in the tables, `taken` the next one after the running
    batch. `newest` is the time of the newest change in the tables; `even` and `taken_even` are the
    last times when the end offset was read and no records followed these offsets. `shown` are the
    values of the gauges.
    """

    position: int | None = None
    taken: int | None = None
    end: int | None = None
    asked: float | None = None
    newest: float | None = None
    even: float | None = None
    taken_even: float | None = None
    shown: tuple[float | None, ...] = ()

    @property
    def lag(self) -> int | None:
        """The number of offsets between the tables and the end."""
        if self.position is None or self.end is None:
            return None
        return max(self.end - self.position, 0)

    @property
    def buffer_lag(self) -> int | None:
        """The number of offsets between the batch in progress and the end."""
        if self.position is None or self.end is None:
            return None
        return max(self.end - max(self.taken or 0, self.position), 0)

    def settle(self) -> None:
        """Store the time if no records were waiting."""
        if self.lag == 0:
            self.even = self.asked
        if self.buffer_lag == 0:
            self.taken_even = self.asked

    def lag_seconds(self, now: float) -> float | None:
        """Return the longest possible wait of a record in seconds; None if unknown."""
        return _behind(self.lag, (self.even, self.newest), now)

    def buffer_lag_seconds(self, now: float) -> float | None:
        """Return the same for records after the batch in progress."""
        return _behind(self.buffer_lag, (self.taken_even, self.even, self.newest), now)

    def publish(self, place: Place, now: float) -> None:
        """Set the gauges if a value changed, which is rare for most topic partitions."""
        seconds, records = self.lag_seconds(now), self.buffer_lag
        buffer_seconds = self.buffer_lag_seconds(now)
        shown = (self.position, self.end, seconds, records, buffer_seconds)
        if shown == self.shown:
            return
        self.shown = shown
        lag_metrics.record_position(place, position=self.position, end=self.end)
        lag_metrics.record_lag(place, seconds)
        if records is not None:
            lag_metrics.record_buffer_lag(place, records, buffer_seconds)


def _behind(lag: int | None, since: Iterable[float | None], now: float) -> float | None:
    if not lag:
        return None if lag is None else 0.0
    known = [one for one in since if one is not None]
    return max(now - max(known), 0.0) if known else None


class LagTracker:
    """The positions and the lag of a pipeline's topic partitions. Not thread-safe."""

    def __init__(self) -> None:
        self._places: dict[Place, _Reading] = {}
        self._topics: dict[str, frozenset[tuple[str, str]]] = {}

    def started(self, ranges: Iterable[OffsetRange]) -> None:
        """Note the ranges of a new batch; the tables contain all offsets before them."""
        for range_ in ranges:
            reading = self._reading((range_.source, range_.topic, range_.partition))
            if reading.position is None:
                reading.position = range_.start
            reading.taken = range_.until
            reading.settle()

    def given_up(self) -> None:
        """Note that no batch is in progress."""
        for reading in self._places.values():
            reading.taken = None

    def landed(self, summary: BatchSummary, now: float) -> None:
        """Note a committed batch, and record the age of its changes."""
        for source, topics in summary.until.items():
            for place, offset in places(source, topics).items():
                reading = self._reading(place)
                reading.position = offset
                reading.settle()
        for where, (_, time) in summary.times.reached.items():
            self._reading((where.source, where.topic, where.partition)).newest = time / 1000
        done = {commit.table for commit in summary.commits if commit.status == "committed"}
        for table, span in summary.times.events.items():
            topics_of = summary.topics.get(table, frozenset())
            self._topics[table] = self._topics.get(table, frozenset()) | topics_of
            if table in done:
                newest, oldest = span.newest / 1000, span.oldest / 1000
                ages = max(now - oldest, 0.0), max(now - newest, 0.0)
                lag_metrics.record_landed(table, *ages, newest)

    def answered(self, source: str, ends: TopicOffsets, now: float) -> list[Place]:
        """Set the ends of the topic partitions of a source; return those that no longer exist."""
        found = places(source, ends)
        for place, end in found.items():
            reading = self._reading(place)
            reading.end, reading.asked = end, now
            reading.settle()
        return self._forget(
            place
            for place, known in self._places.items()
            if place[0] == source and known.end is not None and place not in found
        )

    def keep(self, sources: Iterable[str]) -> list[Place]:
        """Keep only these sources; return the topic partitions of the others."""
        kept = set(sources)
        return self._forget(place for place in self._places if place[0] not in kept)

    def document(self, source: str) -> dict[str, dict[str, dict[str, int | None]]]:
        """Return position, end and lag by topic and partition of a source."""
        topics: dict[str, dict[str, dict[str, int | None]]] = {}
        for place, one in sorted(self._places.items(), key=lambda item: item[0]):
            if place[0] == source:
                offsets = {"position": one.position, "end": one.end, "lag": one.lag}
                topics.setdefault(place[1], {})[str(place[2])] = offsets
        return topics

    def freshness(self, now: float) -> Mapping[str, float]:
        """Return the lag of each table behind its topics in seconds, where it is known."""
        by_topic: dict[tuple[str, str], list[float]] = {}
        for (source, topic, _), reading in self._places.items():
            if (seconds := reading.lag_seconds(now)) is not None:
                by_topic.setdefault((source, topic), []).append(seconds)
        known = {
            table: [seconds for topic in topics for seconds in by_topic.get(topic, ())]
            for table, topics in self._topics.items()
        }
        return {table: max(seconds) for table, seconds in known.items() if seconds}

    def publish(self, now: float) -> None:
        """Set the gauges."""
        for place, one in self._places.items():
            one.publish(place, now)
        for table, seconds in self.freshness(now).items():
            lag_metrics.record_freshness(table, seconds)

    def _reading(self, place: Place) -> _Reading:
        return self._places.setdefault(place, _Reading())

    def _forget(self, gone: Iterable[Place]) -> list[Place]:
        forgotten = list(gone)
        for place in forgotten:
            del self._places[place]
        lag_metrics.forget_places(forgotten)
        return forgotten


def places(source: str, topics: TopicOffsets) -> dict[Place, int]:
    """Return offsets by topic partition."""
    return {
        (source, topic, partition): offset
        for topic, partitions in topics.items()
        for partition, offset in partitions.items()
    }
