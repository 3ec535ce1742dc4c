"""The page /metrics: formats, compression, and series without tables and partitions."""

import gzip
from collections.abc import Iterator

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families

from ingestd import lag_metrics, metrics
from ingestd.metrics_page import MetricsPage

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
TABLES = ("page.a", "page.b")


@pytest.fixture
def filled() -> Iterator[None]:
    """Two tables and two topic partitions, and nothing else that has such labels."""
    labelled = [
        variable
        for variable in vars(metrics).values()
        if "table" in getattr(variable, "_labelnames", ())
    ]
    labelled += [lag_metrics.FRESHNESS, lag_metrics.LATENCY]
    for collector in labelled:
        collector.clear()
    for number, table in enumerate(TABLES, 1):
        metrics.record_rows(table, "+I", 10 * number)
        metrics.record_commit(table, "committed", 1, 0.02 * number)
        metrics.record_sorted_runs(table, level_0=number, runs=10 * number)
        lag_metrics.record_freshness(table, float(number))
    for partition in (0, 1):
        place = "s", 'a "quoted" \\ topic\nin two lines', partition
        lag_metrics.record_position(place, position=100, end=150)
        lag_metrics.record_lag(place, 2.5 + partition)
    yield
    for collector in labelled:
        collector.clear()
    lag_metrics.forget_partitions([(*place[:2], partition) for partition in (0, 1)])


def samples(families: Iterator[Metric]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
        if sample.name.startswith("ingestd_")
    }


def openmetrics(page: MetricsPage) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return samples(openmetrics_families(page.scrape(OPENMETRICS, None).body.decode()))


@pytest.mark.usefixtures("filled")
def test_text_and_openmetrics_have_the_same_series_and_none_of_creation_times() -> None:
    text = MetricsPage().scrape(None, None)
    assert text.content_type.startswith("text/plain; version=0.0.4")
    assert text.encoding is None
    series = samples(text_string_to_metric_families(text.body.decode()))
    assert series == openmetrics(MetricsPage())
    assert not [name for name, _ in series if name.endswith("_created")]
    assert b"_created" not in text.body


@pytest.mark.usefixtures("filled")
def test_a_client_that_accepts_gzip_gets_the_same_page_compressed() -> None:
    scrape = MetricsPage().scrape(OPENMETRICS, "deflate, gzip;q=0.8")
    assert (scrape.encoding, scrape.content_type.split(";")[0]) == ("gzip", OPENMETRICS[:28])
    text = gzip.decompress(scrape.body).decode()
    assert samples(openmetrics_families(text)) == openmetrics(MetricsPage())


@pytest.mark.usefixtures("filled")
def test_without_tables_counts_are_totals_and_gauges_the_largest() -> None:
    series = openmetrics(MetricsPage(per_table=False))
    assert not [labels for _, labels in series if "table" in dict(labels)]
    assert series["ingestd_rows_written_total", (("kind", "+I"),)] == 30
    assert series["ingestd_commit_seconds_count", ()] == 2
    assert series["ingestd_commit_seconds_sum", ()] == pytest.approx(0.06)
    assert series["ingestd_commit_seconds_bucket", (("le", "0.025"),)] == 1
    assert series["ingestd_commit_seconds_bucket", (("le", "+Inf"),)] == 2
    assert series["ingestd_level0_files", ()] == 3
    assert series["ingestd_sorted_runs", ()] == 20
    assert series["ingestd_table_freshness_seconds", ()] == 2
    assert [labels for _, labels in series if "partition" in dict(labels)]


@pytest.mark.usefixtures("filled")
def test_without_partitions_a_topic_has_the_sum_of_records_and_the_largest_time() -> None:
    series = openmetrics(MetricsPage(per_partition=False))
    assert not [labels for _, labels in series if "partition" in dict(labels)]
    topic = (("source", "s"), ("topic", 'a "quoted" \\ topic\nin two lines'))
    sources = {name: value for (name, labels), value in series.items() if labels == topic}
    shown = {name.removeprefix("ingestd_source_"): value for name, value in sources.items()}
    assert shown == {
        "position_offset": 200,
        "end_offset": 300,
        "lag_records": 100,
        "lag_seconds": 3.5,
    }
    assert series["ingestd_rows_written_total", (("kind", "+I"), ("table", "page.a"))] == 10
