from collections import Counter

from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase

from ingestd import metrics
from ingestd.kafka.registry_http import FAILURES, HITS, OUTAGE_MS, REQUESTS

COLLECTORS = [
    variable
    for name, variable in vars(metrics).items()
    if name.startswith("REGISTRY_") and isinstance(variable, MetricWrapperBase)
]


def value(name: str) -> float:
    return REGISTRY.get_sample_value(name) or 0.0


def test_names_are_what_operators_were_promised() -> None:
    assert {collector._name for collector in COLLECTORS} == {
        "ingestd_registry_requests",
        "ingestd_registry_failed_requests",
        "ingestd_registry_cache_hits",
        "ingestd_registry_outage_seconds",
    }
    assert all(
        collector._documentation.endswith(".") and not collector._labelnames
        for collector in COLLECTORS
    )


def test_figures_of_tasks_add_up() -> None:
    names = [f"{collector._name}_total" for collector in COLLECTORS]
    before = [value(name) for name in names]
    metrics.record_registry(Counter({REQUESTS: 5, FAILURES: 2, HITS: 7, OUTAGE_MS: 1500}))
    metrics.record_registry({})
    after = [value(name) for name in names]
    assert [new - old for new, old in zip(after, before, strict=True)] == [5, 2, 7, 1.5]


def test_lookups_of_indexes_add_up_by_result() -> None:
    name = "ingestd_index_cache_lookups_total"
    before = REGISTRY.get_sample_value(name, {"result": "miss"}) or 0.0
    metrics.record_index_lookups({"hit": 3, "miss": 2})
    metrics.record_index_lookups({"miss": 1})
    assert REGISTRY.get_sample_value(name, {"result": "miss"}) == before + 3
