"""Prometheus collectors of time: how old changes are when they land, and how far tables are behind.

Times of changes are those of the source database where messages tell them, else those of the
records. Labels are bounded as in `ingestd.metrics`.
"""

from collections.abc import Iterable

from prometheus_client import Gauge, Histogram

_PLACE = ("source", "topic", "partition")
_LATENCY_BUCKETS = (0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600)

LAG_SECONDS = Gauge(
    "ingestd_source_lag_seconds",
    "Age of the newest change of the topic partition that is in the tables, or time since nothing "
    "was waiting if that is less; 0 while nothing waits.",
    _PLACE,
)
BUFFER_LAG = Gauge(
    "ingestd_source_buffer_lag_records",
    "Offsets between what the batch under way takes and the end of the topic partition.",
    _PLACE,
)
BUFFER_LAG_SECONDS = Gauge(
    "ingestd_source_buffer_lag_seconds",
    "As ingestd_source_lag_seconds, for what the batch under way does not take; 0 if it takes all.",
    _PLACE,
)
EVENT_TIME_LAG = Gauge(
    "ingestd_event_time_lag_seconds",
    "Age that the newest change of a table's last commit had when it landed.",
    ["table"],
)
NEWEST_EVENT = Gauge(
    "ingestd_newest_event_timestamp_seconds",
    "When the newest change that has landed in a table was made.",
    ["table"],
)
LATENCY = Histogram(
    "ingestd_end_to_end_latency_seconds",
    "Age that the oldest and the newest change of each commit had when they landed.",
    ["table"],
    buckets=_LATENCY_BUCKETS,
)
FRESHNESS = Gauge(
    "ingestd_table_freshness_seconds",
    "How far a table is behind its topics: the largest ingestd_source_lag_seconds of those that it "
    "was written from since the start; 0 while nothing waits.",
    ["table"],
)


def record_landed(table: str, oldest_age: float, newest_age: float, newest: float) -> None:
    """Changes landed in a table: their ages, and when the newest was made (seconds since 1970)."""
    EVENT_TIME_LAG.labels(table).set(newest_age)
    NEWEST_EVENT.labels(table).set(newest)
    for age in (oldest_age, newest_age):
        LATENCY.labels(table).observe(age)


def record_freshness(table: str, seconds: float) -> None:
    """A table is so far behind its topics."""
    FRESHNESS.labels(table).set(seconds)


def record_lag(place: tuple[str, str, int], seconds: float | None) -> None:
    """The tables are so far behind a topic partition; None: not known."""
    if seconds is not None:
        LAG_SECONDS.labels(*_labels(place)).set(seconds)


def record_buffer_lag(place: tuple[str, str, int], records: int, seconds: float | None) -> None:
    """The batch under way leaves so much of a topic partition; None: not known."""
    BUFFER_LAG.labels(*_labels(place)).set(records)
    if seconds is not None:
        BUFFER_LAG_SECONDS.labels(*_labels(place)).set(seconds)


def forget_places(gone: Iterable[tuple[str, str, int]]) -> None:
    """Drop the series of topic partitions (source, topic, partition) that exist no more."""
    for place in gone:
        labels = dict(zip(_PLACE, _labels(place), strict=True))
        for gauge in (LAG_SECONDS, BUFFER_LAG, BUFFER_LAG_SECONDS):
            gauge.remove_by_labels(labels)


def _labels(place: tuple[str, str, int]) -> tuple[str, str, str]:
    return place[0], place[1], str(place[2])
