from prometheus_client import REGISTRY, generate_latest
from prometheus_client.metrics import MetricWrapperBase

from ingestd import lag_metrics

COLLECTORS = [
    variable for variable in vars(lag_metrics).values() if isinstance(variable, MetricWrapperBase)
]


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def test_names_are_what_operators_were_promised() -> None:
    assert {collector._name for collector in COLLECTORS} == {
        "ingestd_source_position_offset",
        "ingestd_source_end_offset",
        "ingestd_source_lag_records",
        "ingestd_source_lag_seconds",
        "ingestd_source_pending_records",
        "ingestd_source_pending_seconds",
        "ingestd_event_time_lag_seconds",
        "ingestd_newest_event_timestamp_seconds",
        "ingestd_end_to_end_latency_seconds",
        "ingestd_table_freshness_seconds",
        "ingestd_topic_set_aside",
        "ingestd_partition_unreadable",
    }


def test_each_has_a_meaning_and_bounded_labels() -> None:
    for collector in COLLECTORS:
        assert collector._documentation.endswith(".")
        assert set(collector._labelnames) <= {"source", "topic", "partition", "table"}


def test_what_landed_gives_the_age_of_the_newest_and_two_latencies() -> None:
    lag_metrics.record_committed("db.landed", 100.0, 4.0, 1_700_000_000.0)
    assert value("ingestd_event_time_lag_seconds", table="db.landed") == 4
    assert value("ingestd_newest_event_timestamp_seconds", table="db.landed") == 1_700_000_000
    name = "ingestd_end_to_end_latency_seconds"
    assert value(f"{name}_count", table="db.landed") == 2
    assert value(f"{name}_sum", table="db.landed") == 104
    assert value(f"{name}_bucket", table="db.landed", le="5.0") == 1


def test_what_is_not_known_has_no_series() -> None:
    place = {"source": "s", "topic": "unknown-lag", "partition": "0"}
    lag_metrics.record_lag(("s", "unknown-lag", 0), None)
    lag_metrics.record_pending(("s", "unknown-lag", 0), 5, None)
    assert value("ingestd_source_lag_seconds", **place) is None
    assert value("ingestd_source_pending_seconds", **place) is None
    assert value("ingestd_source_pending_records", **place) == 5


def test_lag_needs_both_ends_and_is_never_negative() -> None:
    place = {"source": "s", "topic": "lag-test", "partition": "0"}
    lag_metrics.record_position(("s", "lag-test", 0), position=5, end=None)
    assert value("ingestd_source_lag_records", **place) is None
    lag_metrics.record_position(("s", "lag-test", 0), position=5, end=12)
    assert value("ingestd_source_lag_records", **place) == 7
    lag_metrics.record_position(("s", "lag-test", 0), position=20, end=12)
    assert value("ingestd_source_lag_records", **place) == 0


def test_partitions_that_are_gone_leave_the_page() -> None:
    place = {"source": "s", "topic": "gone-lag", "partition": "1"}
    lag_metrics.record_lag(("s", "gone-lag", 1), 3.0)
    lag_metrics.record_pending(("s", "gone-lag", 1), 5, 3.0)
    lag_metrics.record_position(("s", "gone-lag", 1), position=1, end=2)
    for _ in range(2):
        lag_metrics.forget_partitions([("s", "gone-lag", 1)])
    names = [
        collector._name
        for collector in COLLECTORS
        if isinstance(collector, lag_metrics.PartitionGauge)
    ]
    assert len(names) == 6
    assert {value(name, **place) for name in names} == {None}
    assert b"gone-lag" not in generate_latest()
