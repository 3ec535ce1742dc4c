import pytest
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.parser import text_string_to_metric_families

from ingestd import metrics

COLLECTORS = [
    variable for variable in vars(metrics).values() if isinstance(variable, MetricWrapperBase)
]


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def test_names_have_the_prefix_base_units_and_a_meaning() -> None:
    for collector in COLLECTORS:
        assert collector._name.startswith("ingestd_")
        assert not collector._name.endswith(("_ms", "_millis", "_kb"))
        assert collector._documentation.endswith(".")


def test_labels_are_bounded() -> None:
    allowed = {"source", "topic", "partition", "table", "kind", "reason", "stage", "phase",
               "result", "error", "state", "version", "cause", "decoder",
               "kafka_reader", "librdkafka", "type"}  # fmt: skip
    assert {label for collector in COLLECTORS for label in collector._labelnames} <= allowed


@pytest.mark.parametrize(
    "name",
    [
        "ingestd_rows_written",
        "ingestd_source_bytes",
        "ingestd_batch_seconds",
        "ingestd_phase_seconds",
        "ingestd_commits",
        "ingestd_last_commit_timestamp_seconds",
        "ingestd_snapshot_id",
        "ingestd_dead_letters",
        "ingestd_restarts",
        "ingestd_pipeline_state",
    ],
)
def test_what_operators_were_promised_is_there(name: str) -> None:
    assert name in {collector._name for collector in COLLECTORS}


def test_the_page_can_be_parsed() -> None:
    metrics.record_rows("db.t", "+I", 3)
    families = text_string_to_metric_families(generate_latest().decode())
    assert "ingestd_rows_written" in {family.name for family in families}


def test_exactly_one_state_is_set() -> None:
    metrics.record_state("backoff")
    metrics.record_state("running")
    values = {state: value("ingestd_pipeline_state", state=state) for state in metrics.STATES}
    assert values == {state: float(state == "running") for state in metrics.STATES}


def test_a_state_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="sleeping"):
        metrics.record_state("sleeping")


def test_what_is_to_be_expected_counts_from_zero() -> None:
    metrics.expect_restarts(["ExpectedError"])
    metrics.expect_reading("s", ["expected"])
    metrics.expect_reading("s", ["expected"])
    assert value("ingestd_restarts_total", error="ExpectedError") == 0
    assert value("ingestd_source_records_total", source="s", topic="expected") == 0
    assert value("ingestd_rejected_records_total") is not None


def test_what_cannot_be_used_is_counted_whatever_became_of_it() -> None:
    before = value("ingestd_rejected_records_total") or 0
    claims = value("ingestd_refused_claims_total") or 0
    metrics.record_rejected(3, claims=1)
    assert value("ingestd_rejected_records_total") == before + 3
    assert value("ingestd_refused_claims_total") == claims + 1
