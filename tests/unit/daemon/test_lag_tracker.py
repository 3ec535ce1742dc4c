"""How far tables and batches are behind, by what is known of offsets and times."""

import pytest
from prometheus_client import REGISTRY

from ingestd.daemon.lag_tracker import LagTracker
from ingestd.ingest.batch_events import BatchSummary, CommitStatus, TableCommit
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.counts import Counts
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition

T0 = 1_700_000_000.0


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def seen(
    lag_tracker: LagTracker, now: float, name: str, topic: str = "t", partition: int = 0
) -> object:
    lag_tracker.publish(now)
    place = {"source": "s", "topic": topic, "partition": str(partition)}
    return value(f"ingestd_source_{name}", **place)


def batch(
    until: dict[int, int],
    made: dict[int, float],
    *,
    table: str = "db.t",
    topic: str = "t",
    status: CommitStatus = "committed",
) -> BatchSummary:
    """A batch that read partitions to `until`, whose newest changes were made `made`."""
    times = BatchTimes()
    for partition, time in made.items():
        times.note_reached(
            SourcePartition("s", topic, partition), until[partition], int(time * 1e3)
        )
        times.note_event(table, int(time * 1000))
    commit = TableCommit(table, status, 4, 1, 0.1)
    return BatchSummary(
        1,
        {"s": {topic: until}},
        (commit,),
        Counts(),
        times=times,
        topics={table: frozenset({("s", topic)})},
    )


@pytest.fixture
def lag_tracker() -> LagTracker:
    one = LagTracker()
    one.keep([])
    return one


def answer(lag_tracker: LagTracker, now: float, *ends: int, topic: str = "t") -> None:
    lag_tracker.ends_reported("s", {topic: dict(enumerate(ends))}, now)


def test_nothing_waits_at_the_end(lag_tracker: LagTracker) -> None:
    lag_tracker.batch_committed(batch({0: 10}, {0: T0 - 500}), T0)
    answer(lag_tracker, T0, 10)
    assert lag_tracker.freshness(T0 + 60) == {"db.t": 0.0}
    assert seen(lag_tracker, T0 + 60, "lag_seconds") == 0
    assert value("ingestd_table_freshness_seconds", table="db.t") == 0


def test_what_waits_is_as_old_as_the_newest_change_that_landed(lag_tracker: LagTracker) -> None:
    answer(lag_tracker, T0, 100)
    lag_tracker.batch_committed(batch({0: 10}, {0: T0 - 500}), T0)
    assert lag_tracker.freshness(T0) == {"db.t": 500.0}
    assert lag_tracker.freshness(T0 + 60) == {"db.t": 560.0}
    lag_tracker.batch_committed(batch({0: 50}, {0: T0 - 20}), T0 + 60)
    assert lag_tracker.freshness(T0 + 60) == {"db.t": 80.0}
    assert seen(lag_tracker, T0 + 60, "lag_seconds") == 80


def test_after_a_quiet_time_what_waits_is_younger_than_the_last_change(
    lag_tracker: LagTracker,
) -> None:
    lag_tracker.batch_committed(batch({0: 10}, {0: T0 - 86_400}), T0)
    answer(lag_tracker, T0, 10)
    answer(lag_tracker, T0 + 5, 11)
    assert lag_tracker.freshness(T0 + 5) == {"db.t": 5.0}
    answer(lag_tracker, T0 + 10, 11)
    assert lag_tracker.freshness(T0 + 12) == {"db.t": 12.0}


def test_catching_up_makes_it_fresh_again(lag_tracker: LagTracker) -> None:
    answer(lag_tracker, T0, 100)
    lag_tracker.batch_committed(batch({0: 10}, {0: T0 - 500}), T0)
    lag_tracker.batch_committed(batch({0: 100}, {0: T0 - 1}), T0 + 3)
    assert lag_tracker.freshness(T0 + 4) == {"db.t": 0.0}


def test_a_table_has_the_lag_of_the_worst_of_its_topic_partitions(
    lag_tracker: LagTracker,
) -> None:
    answer(lag_tracker, T0, 10, 100, 100)
    lag_tracker.batch_committed(batch({0: 10, 1: 10}, {0: T0 - 900, 1: T0 - 60}), T0)
    assert lag_tracker.freshness(T0) == {"db.t": 60.0}


def test_a_table_has_no_lag_of_other_topics(lag_tracker: LagTracker) -> None:
    ends = {"t": {0: 10}, "u": {0: 100}}
    lag_tracker.ends_reported("s", ends, T0)
    lag_tracker.batch_committed(batch({0: 10}, {0: T0}), T0)
    lag_tracker.batch_committed(batch({0: 10}, {0: T0 - 60}, table="db.u", topic="u"), T0)
    assert lag_tracker.freshness(T0) == {"db.t": 0.0, "db.u": 60.0}


def test_a_table_without_rows_since_the_start_is_not_reported(lag_tracker: LagTracker) -> None:
    answer(lag_tracker, T0, 100)
    lag_tracker.started([OffsetRange("s", "t", 0, 0, 10)])
    assert lag_tracker.freshness(T0) == {}
    assert seen(lag_tracker, T0, "lag_seconds", topic="unread") is None


def test_changes_from_the_future_are_not_younger_than_now(lag_tracker: LagTracker) -> None:
    answer(lag_tracker, T0, 100)
    lag_tracker.batch_committed(batch({0: 10}, {0: T0 + 500}, table="db.future"), T0)
    assert lag_tracker.freshness(T0) == {"db.future": 0.0}
    assert value("ingestd_event_time_lag_seconds", table="db.future") == 0


def test_what_the_batch_under_way_takes_is_no_lag_to_the_buffer(lag_tracker: LagTracker) -> None:
    answer(lag_tracker, T0, 100)
    lag_tracker.batch_committed(batch({0: 10}, {0: T0 - 500}), T0)
    lag_tracker.started([OffsetRange("s", "t", 0, 10, 70)])
    assert seen(lag_tracker, T0, "lag_records") == 90
    assert seen(lag_tracker, T0, "pending_records") == 30
    assert seen(lag_tracker, T0, "pending_seconds") == 500
    lag_tracker.started([OffsetRange("s", "t", 0, 10, 100)])
    assert seen(lag_tracker, T0, "pending_records") == 0
    assert seen(lag_tracker, T0, "pending_seconds") == 0
    answer(lag_tracker, T0 + 7, 101)
    assert seen(lag_tracker, T0 + 7, "pending_seconds") == 7
    assert seen(lag_tracker, T0 + 7, "lag_seconds") == 507


def test_a_batch_that_failed_has_taken_nothing(lag_tracker: LagTracker) -> None:
    answer(lag_tracker, T0, 100)
    lag_tracker.started([OffsetRange("s", "t", 0, 10, 100)])
    assert seen(lag_tracker, T0, "pending_records") == 0
    lag_tracker.batch_ended()
    assert seen(lag_tracker, T0, "pending_records") == 90


def test_only_a_commit_determines_how_old_changes_were_when_they_landed(
    lag_tracker: LagTracker,
) -> None:
    lag_tracker.batch_committed(batch({0: 1}, {0: T0 - 5}, table="db.re", status="replayed"), T0)
    assert value("ingestd_event_time_lag_seconds", table="db.re") is None
    lag_tracker.batch_committed(batch({0: 1}, {0: T0 - 5}, table="db.re"), T0)
    assert value("ingestd_event_time_lag_seconds", table="db.re") == 5
    assert value("ingestd_newest_event_timestamp_seconds", table="db.re") == T0 - 5


def test_series_of_a_source_that_is_no_more_are_gone(lag_tracker: LagTracker) -> None:
    answer(lag_tracker, T0, 100, topic="left")
    lag_tracker.batch_committed(batch({0: 10}, {0: T0 - 500}, table="db.left", topic="left"), T0)
    assert seen(lag_tracker, T0, "lag_seconds", topic="left") == 500
    lag_tracker.keep(["other"])
    assert seen(lag_tracker, T0, "lag_seconds", topic="left") is None
    assert seen(lag_tracker, T0, "end_offset", topic="left") is None
    assert lag_tracker.document("s") == {}


def test_a_topic_partition_that_is_gone_holds_no_table_back(lag_tracker: LagTracker) -> None:
    answer(lag_tracker, T0, 100, 10)
    lag_tracker.batch_committed(batch({0: 10, 1: 10}, {0: T0 - 500, 1: T0}), T0)
    assert lag_tracker.ends_reported("s", {"t": {1: 10}}, T0) == [("s", "t", 0)]
    assert lag_tracker.freshness(T0) == {"db.t": 0.0}
