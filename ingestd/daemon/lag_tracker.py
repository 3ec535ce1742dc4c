"""Track positions of topic partitions, and the lag of tables in records and in time.

Lag in time is computed without fetching records: a record that is not in the tables is not older
than the last time when the tables contained all records, nor than the newest change in the tables.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from ingestd import lag_metrics
from ingestd.ingest.batch_events import BatchSummary
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition, TopicOffsets


@dataclass(slots=True)
class _Reading:
    """The state of a topic partition.

    Offsets, and times in seconds since 1970, are None while unknown.

    `position` is the first offset that is not in the tables, `batch_end` the first one after the
    batch in progress, and `end` the end offset that was read at the time `polled`. `newest` is the
    time of the newest change in the tables. `caught_up` and `batch_caught_up` are the last times of
    a poll that found no records after `position` and after the batch in progress. `published` has
    the values of the gauges.
    """

    position: int | None = None
    batch_end: int | None = None
    end: int | None = None
    polled: float | None = None
    newest: float | None = None
    caught_up: float | None = None
    batch_caught_up: float | None = None
    published: tuple[float | None, ...] = ()

    @property
    def lag(self) -> int | None:
        """The number of offsets that are not in the tables, or None if unknown."""
        if self.position is None or self.end is None:
            return None
        return max(self.end - self.position, 0)

    @property
    def pending(self) -> int | None:
        """The number of offsets after the batch in progress, or None if unknown."""
        if self.position is None or self.end is None:
            return None
        return max(self.end - max(self.batch_end or 0, self.position), 0)

    def settle(self) -> None:
        """Update `caught_up` and `batch_caught_up` from the latest poll."""
        if self.lag == 0:
            self.caught_up = self.polled
        if self.pending == 0:
            self.batch_caught_up = self.polled

    def lag_seconds(self, now: float) -> float | None:
        """Return the maximum age in seconds of the records in `lag`.

        If there are no such records, return 0; if the age is unknown, None.
        """
        return _max_age(self.lag, (self.caught_up, self.newest), now)

    def pending_seconds(self, now: float) -> float | None:
        """Return the maximum age in seconds of the records in `pending`.

        If there are no such records, return 0; if the age is unknown, None.
        """
        return _max_age(self.pending, (self.batch_caught_up, self.caught_up, self.newest), now)

    def publish(self, partition: SourcePartition, now: float) -> None:
        """Set the gauges if a value changed, which is rare for most topic partitions."""
        seconds, records = self.lag_seconds(now), self.pending
        pending_seconds = self.pending_seconds(now)
        published = (self.position, self.end, seconds, records, pending_seconds)
        if published == self.published:
            return
        self.published = published
        lag_metrics.record_position(partition, position=self.position, end=self.end)
        lag_metrics.record_lag(partition, seconds)
        if records is not None:
            lag_metrics.record_pending(partition, records, pending_seconds)


def _max_age(lag: int | None, since: Iterable[float | None], now: float) -> float | None:
    if not lag:
        return None if lag is None else 0.0
    known = [moment for moment in since if moment is not None]
    return max(now - max(known), 0.0) if known else None


class LagTracker:
    """Tracks positions and lag of a pipeline's topic partitions and tables. Not thread-safe.

    The times `now` are in seconds since 1970.
    """

    def __init__(self) -> None:
        self._partitions: dict[SourcePartition, _Reading] = {}
        self._topics: dict[str, frozenset[tuple[str, str]]] = {}

    def started(self, ranges: Iterable[OffsetRange]) -> None:
        """Record the ranges of a new batch; the tables contain all offsets before these ranges."""
        for range_ in ranges:
            reading = self._reading(range_.source_partition)
            if reading.position is None:
                reading.position = range_.start
            reading.batch_end = range_.until
            reading.settle()

    def batch_ended(self) -> None:
        """Record that no batch is in progress."""
        for reading in self._partitions.values():
            reading.batch_end = None

    def batch_committed(self, summary: BatchSummary, now: float) -> None:
        """Record the positions of a committed batch, and the ages of its changes by table."""
        for source, topics in summary.until.items():
            for partition, offset in by_partition(source, topics).items():
                reading = self._reading(partition)
                reading.position = offset
                reading.settle()
        for where, (_, time) in summary.times.reached.items():
            self._reading(where).newest = time / 1000
        done = {commit.table for commit in summary.commits if commit.status == "committed"}
        for table, span in summary.times.events.items():
            topics_of = summary.topics.get(table, frozenset())
            self._topics[table] = self._topics.get(table, frozenset()) | topics_of
            if table in done:
                newest, oldest = span.newest / 1000, span.oldest / 1000
                ages = max(now - oldest, 0.0), max(now - newest, 0.0)
                lag_metrics.record_committed(table, *ages, newest)

    def ends_reported(self, source: str, ends: TopicOffsets, now: float) -> list[SourcePartition]:
        """Set the end offsets of a source, reported at `now`; return the partitions dropped.

        A partition that had an end offset and is not in `ends` no longer exists, and is dropped.
        """
        reported = by_partition(source, ends)
        for partition, end in reported.items():
            reading = self._reading(partition)
            reading.end, reading.polled = end, now
            reading.settle()
        return self._forget(
            partition
            for partition, known in self._partitions.items()
            if partition.source == source and known.end is not None and partition not in reported
        )

    def keep(self, sources: Iterable[str]) -> list[SourcePartition]:
        """Drop all sources but these; return the topic partitions of the dropped ones."""
        kept = set(sources)
        return self._forget(partition for partition in self._partitions if partition[0] not in kept)

    def document(
        self, source: str, *, silent: bool = False
    ) -> dict[str, dict[str, dict[str, int | None]]]:
        """Return position, end offset and lag of a source's partitions, by topic and partition.

        The keys are "position", "end" and "lag", with None for unknown values. With `silent`, end
        offsets and lags are unknown, because the brokers do not respond.
        """
        topics: dict[str, dict[str, dict[str, int | None]]] = {}
        for partition, reading in sorted(self._partitions.items(), key=lambda item: item[0]):
            if partition[0] == source:
                offsets = {"position": reading.position, "end": None, "lag": None}
                if not silent:
                    offsets |= {"end": reading.end, "lag": reading.lag}
                topics.setdefault(partition.topic, {})[str(partition.partition)] = offsets
        return topics

    def freshness(self, now: float, silent: Container[str] = ()) -> Mapping[str, float]:
        """Return the lag of each table in seconds, the largest lag of its topic partitions.

        Tables whose lag is unknown are left out, such as tables with a source in `silent`.
        """
        by_topic: dict[tuple[str, str], list[float]] = {}
        for (source, topic, _), reading in self._partitions.items():
            if (seconds := reading.lag_seconds(now)) is not None:
                by_topic.setdefault((source, topic), []).append(seconds)
        known = {
            table: [seconds for topic in topics for seconds in by_topic.get(topic, ())]
            for table, topics in self._topics.items()
            if not any(source in silent for source, _ in topics)
        }
        return {table: max(seconds) for table, seconds in known.items() if seconds}

    def publish(self, now: float) -> None:
        """Set the gauges of all topic partitions, and of the tables whose lag is known."""
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
    """Return the offsets of a source's topics by (source, topic, partition)."""
    return {
        SourcePartition(source, topic, partition): offset
        for topic, partitions in topics.items()
        for partition, offset in partitions.items()
    }
