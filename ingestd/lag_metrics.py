"""Prometheus collectors of topics and topic partitions: lag, ages, positions, set-aside topics.

The time of a change is the time in the source database if the message contains it, else the
timestamp of the record. Labels are bounded as in `ingestd.metrics`. A pipeline may have thousands
of topic partitions, so a `PartitionGauge` stores the values of all of them itself instead of a
child for each.
"""

from collections.abc import Iterable

from prometheus_client import Gauge, Histogram, Metric
from prometheus_client.core import GaugeMetricFamily

from ingestd.kafka.offset_ranges import SourcePartition

_PARTITION_LABELS = ("source", "topic", "partition")


class PartitionGauge(Gauge):
    """A gauge with one value per topic partition; thread-safe."""

    def __init__(self, name: str, documentation: str) -> None:
        self._numbers: dict[SourcePartition, float] = {}
        super().__init__(name, documentation, _PARTITION_LABELS)

    def put(self, partition: SourcePartition, number: float) -> None:
        """Set the value of a topic partition to `number`."""
        self._numbers[partition] = number

    def drop(self, partition: SourcePartition) -> None:
        """Remove the series of a topic partition, if it has one."""
        self._numbers.pop(partition, None)

    def collect(self) -> list[Metric]:
        """Return the metric family of the gauge, as `prometheus_client` requires of a collector."""
        family = GaugeMetricFamily(self._name, self._documentation, labels=_PARTITION_LABELS)
        for partition, number in dict(self._numbers).items():
            family.add_metric((partition[0], partition[1], str(partition[2])), number)
        return [family]


_LATENCY_BUCKETS = (0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600)

SET_ASIDE = Gauge(
    "ingestd_topic_set_aside",
    "1 for a topic that is no longer read, because nearly all of its first records were rejected.",
    ["source", "topic"],
)
UNREADABLE = Gauge(
    "ingestd_partition_unreadable",
    "1 for a topic partition that is no longer read, because the client returns no records of it.",
    _PARTITION_LABELS,
)
SOURCE_POSITION = PartitionGauge(
    "ingestd_source_position_offset",
    "Next offset to read: everything before it is in the tables.",
)
SOURCE_END = PartitionGauge(
    "ingestd_source_end_offset",
    "End offset (last stable offset) of the topic partition at the last poll.",
)
SOURCE_LAG = PartitionGauge(
    "ingestd_source_lag_records",
    "Offsets from the position in the tables to the end of the topic partition.",
)
LAG_SECONDS = PartitionGauge(
    "ingestd_source_lag_seconds",
    "Maximum age of the records in ingestd_source_lag_records: the age of the newest change in the "
    "tables, or the time since the tables contained all records, if less; 0 if there are none.",
)
PENDING_RECORDS = PartitionGauge(
    "ingestd_source_pending_records",
    "Offsets from the end of the batch in progress to the end of the topic partition.",
)
PENDING_SECONDS = PartitionGauge(
    "ingestd_source_pending_seconds",
    "Maximum age of the records in ingestd_source_pending_records; 0 if there are none.",
)
EVENT_TIME_LAG = Gauge(
    "ingestd_event_time_lag_seconds",
    "Age of the newest change in the last commit to a table, at the time of the commit.",
    ["table"],
)
NEWEST_EVENT = Gauge(
    "ingestd_newest_event_timestamp_seconds",
    "Time of the newest change that has been committed to a table.",
    ["table"],
)
LATENCY = Histogram(
    "ingestd_end_to_end_latency_seconds",
    "Age of the oldest and of the newest change in each commit, at the time of the commit.",
    ["table"],
    buckets=_LATENCY_BUCKETS,
)
FRESHNESS = Gauge(
    "ingestd_table_freshness_seconds",
    "Lag of a table: the largest ingestd_source_lag_seconds of the topics that it was written from "
    "since the start; 0 if the table contains all records.",
    ["table"],
)


def record_committed(table: str, oldest_age: float, newest_age: float, newest: float) -> None:
    """Record the ages of the oldest and the newest change of a commit, and the time of the newest.

    The ages are in seconds at the time of the commit; `newest` is in seconds since 1970.
    """
    EVENT_TIME_LAG.labels(table).set(newest_age)
    NEWEST_EVENT.labels(table).set(newest)
    for age in (oldest_age, newest_age):
        LATENCY.labels(table).observe(age)


def record_freshness(table: str, seconds: float) -> None:
    """Set the lag of a table in seconds."""
    FRESHNESS.labels(table).set(seconds)


def record_position(partition: SourcePartition, *, position: int | None, end: int | None) -> None:
    """Set the position in a topic partition and its end offset, and with both the lag in records.

    None leaves a value unchanged.
    """
    if position is not None:
        SOURCE_POSITION.put(partition, position)
    if end is not None:
        SOURCE_END.put(partition, end)
    if position is not None and end is not None:
        SOURCE_LAG.put(partition, max(end - position, 0))


def record_lag(partition: SourcePartition, seconds: float | None) -> None:
    """Set the lag of a topic partition in seconds; None leaves it unchanged."""
    if seconds is not None:
        LAG_SECONDS.put(partition, seconds)


def record_pending(partition: SourcePartition, records: int, seconds: float | None) -> None:
    """Set the number of records of a topic partition after the batch in progress, and their age.

    `seconds` is the maximum age; if it is None, only the number is set.
    """
    PENDING_RECORDS.put(partition, records)
    if seconds is not None:
        PENDING_SECONDS.put(partition, seconds)


def forget_partitions(dropped: Iterable[SourcePartition]) -> None:
    """Remove the series of topic partitions that no longer exist or are no longer read."""
    for partition in dropped:
        for gauge in _GAUGES:
            gauge.drop(partition)


_GAUGES = (SOURCE_POSITION, SOURCE_END, SOURCE_LAG, LAG_SECONDS, PENDING_RECORDS, PENDING_SECONDS)


def record_set_aside(source: str, topic: str) -> None:
    """Mark a topic as set aside in the metrics: no longer read in this run."""
    SET_ASIDE.labels(source, topic).set(1)


def forget_set_aside() -> None:
    """Remove the marks of all set-aside topics and topic partitions: a new run reads them again."""
    SET_ASIDE.clear()
    UNREADABLE.clear()


def record_unreadable(source: str, topic: str, partition: int) -> None:
    """Mark a topic partition as set aside in the metrics: no longer read in this run."""
    UNREADABLE.labels(source, topic, partition).set(1)
