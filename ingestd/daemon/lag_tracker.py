"""Track positions of topic partitions, and the lag of tables in records and in time.

Lag in time is computed without fetching records: a waiting record is not older than the last moment
without waiting records, nor than the newest change that was read before it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ingestd import lag_metrics
from ingestd.ingest.maintenance.batch_summary import BatchSummary
from ingestd.kafka.ranges import OffsetRange, SourcePartition, TopicOffsets


@dataclass(slots=True)
class _Reading:
    """One topic partition; offsets and times (seconds since 1970) are None while unknown.

    `position` is the next offset that is not in the tables, `taken` the next one after the running
    batch. `newest` is the time of the newest change in the tables; `caught_up` and
    `batch_caught_up` are the last times when the end offset was read and no records followed these
    offsets. `shown` are the values of the gauges.
    """

    position: int | None = None
    taken: int | None = None
    end: int | None = None
    asked: float | None = None
    newest: float | None = None
    caught_up: float | None = None
    batch_caught_up: float | None = None
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
            self.caught_up = self.asked
        if self.buffer_lag == 0:
            self.batch_caught_up = self.asked

    def lag_seconds(self, now: float) -> float | None:
        """Return the longest possible wait of a record in seconds; None if unknown."""
        return _behind(self.lag, (self.caught_up, self.newest), now)

    def buffer_lag_seconds(self, now: float) -> float | None:
        """Return the same for records after the batch in progress."""
        return _behind(self.buffer_lag, (self.batch_caught_up, self.caught_up, self.newest), now)

    def publish(self, partition: SourcePartition, now: float) -> None:
        """Set the gauges if a value changed, which is rare for most topic partitions."""
        seconds, records = self.lag_seconds(now), self.buffer_lag
        buffer_seconds = self.buffer_lag_seconds(now)
        shown = (self.position, self.end, seconds, records, buffer_seconds)
        if shown == self.shown:
            return
        self.shown = shown
        lag_metrics.record_position(partition, position=self.position, end=self.end)
        lag_metrics.record_lag(partition, seconds)
        if records is not None:
            lag_metrics.record_buffer_lag(partition, records, buffer_seconds)


def _behind(lag: int | None, since: Iterable[float | None], now: float) -> float | None:
    if not lag:
        return None if lag is None else 0.0
    known = [moment for moment in since if moment is not None]
    return max(now - max(known), 0.0) if known else None


class LagTracker:
    """The positions and the lag of a pipeline's topic partitions. Not thread-safe."""

    def __init__(self) -> None:
        self._partitions: dict[SourcePartition, _Reading] = {}
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
        for reading in self._partitions.values():
            reading.taken = None

    def landed(self, summary: BatchSummary, now: float) -> None:
        """Note a committed batch, and record the age of its changes."""
        for source, topics in summary.until.items():
            for partition, offset in by_partition(source, topics).items():
                reading = self._reading(partition)
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

    def answered(self, source: str, ends: TopicOffsets, now: float) -> list[SourcePartition]:
        """Set the ends of the topic partitions of a source; return those that no longer exist."""
        reported = by_partition(source, ends)
        for partition, end in reported.items():
            reading = self._reading(partition)
            reading.end, reading.asked = end, now
            reading.settle()
        return self._forget(
            partition
            for partition, known in self._partitions.items()
            if partition[0] == source and known.end is not None and partition not in reported
        )

    def keep(self, sources: Iterable[str]) -> list[SourcePartition]:
        """Keep only these sources; return the topic partitions of the others."""
        kept = set(sources)
        return self._forget(partition for partition in self._partitions if partition[0] not in kept)

    def document(self, source: str) -> dict[str, dict[str, dict[str, int | None]]]:
        """Return position, end and lag by topic and partition of a source."""
        topics: dict[str, dict[str, dict[str, int | None]]] = {}
        for partition, reading in sorted(self._partitions.items(), key=lambda item: item[0]):
            if partition[0] == source:
                offsets = {"position": reading.position, "end": reading.end, "lag": reading.lag}
                topics.setdefault(partition[1], {})[str(partition[2])] = offsets
        return topics

    def freshness(self, now: float) -> Mapping[str, float]:
        """Return the lag of each table behind its topics in seconds, where it is known."""
        by_topic: dict[tuple[str, str], list[float]] = {}
        for (source, topic, _), reading in self._partitions.items():
            if (seconds := reading.lag_seconds(now)) is not None:
                by_topic.setdefault((source, topic), []).append(seconds)
        known = {
            table: [seconds for topic in topics for seconds in by_topic.get(topic, ())]
            for table, topics in self._topics.items()
        }
        return {table: max(seconds) for table, seconds in known.items() if seconds}

    def publish(self, now: float) -> None:
        """Set the gauges."""
        for partition, reading in self._partitions.items():
            reading.publish(partition, now)
        for table, seconds in self.freshness(now).items():
            lag_metrics.record_freshness(table, seconds)

    def _reading(self, partition: SourcePartition) -> _Reading:
        return self._partitions.setdefault(partition, _Reading())

    def _forget(self, gone: Iterable[SourcePartition]) -> list[SourcePartition]:
        forgotten = list(gone)
        for partition in forgotten:
            del self._partitions[partition]
        lag_metrics.forget_partitions(forgotten)
        return forgotten


def by_partition(source: str, topics: TopicOffsets) -> dict[SourcePartition, int]:
    """Return offsets by topic partition."""
    return {
        (source, topic, partition): offset
        for topic, partitions in topics.items()
        for partition, offset in partitions.items()
    }
