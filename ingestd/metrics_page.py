"""The page /metrics: all collectors in the format and encoding that the client accepts.

Formats, negotiation and compression are those of `prometheus_client`, without `_created` series.
"""

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from prometheus_client import REGISTRY, Metric, disable_created_metrics, make_wsgi_app

_SUMMED_UNITS = ("_records", "_offset", "_files")
"""If a label is removed, gauges in these units are summed over its values; of other gauges, the
maximum is taken.
"""

disable_created_metrics()  # type: ignore[no-untyped-call]  # the library declares no types here


class Scrape(NamedTuple):
    """The response to a scrape; `encoding` is None if the body is not compressed."""

    content_type: str
    encoding: str | None
    body: bytes


@dataclass(frozen=True, slots=True)
class MetricsPage:
    """The page /metrics, with or without the labels `table` and `partition`.

    Series that differ only in a label that is left out are combined: gauges that are not counts of
    records, offsets or files to the largest value, all others to the sum.
    """

    per_table: bool = True
    per_partition: bool = True

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families of all collectors, without the labels that the page leaves out.

        `prometheus_client` calls this method, as it does for a registry.
        """
        kept = {"table": self.per_table, "partition": self.per_partition}
        dropped = frozenset(label for label, is_kept in kept.items() if not is_kept)
        for metric in REGISTRY.collect():
            yield _without_labels(metric, dropped) if dropped else metric

    def scrape(self, accept: str | None, accept_encoding: str | None) -> Scrape:
        """Return the page as text or OpenMetrics, compressed by gzip if the client accepts that.

        The arguments are the request's headers `Accept` and `Accept-Encoding`.
        """
        headers: dict[str, str] = {}

        def start_response(_: str, sent: list[tuple[str, str]]) -> None:
            headers.update(sent)

        request: dict[str, Any] = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": "/metrics",
            "HTTP_ACCEPT": accept,
            "HTTP_ACCEPT_ENCODING": accept_encoding,
        }
        body = b"".join(make_wsgi_app(self)(request, start_response))
        return Scrape(headers["Content-Type"], headers.get("Content-Encoding"), body)


def _without_labels(metric: Metric, dropped: frozenset[str]) -> Metric:
    """Return a metric family without the labels `dropped`.

    Samples that then have the same labels are combined: gauges as in `_SUMMED_UNITS`, all others by
    their sum.
    """
    if not any(dropped & sample.labels.keys() for sample in metric.samples):
        return metric
    largest = metric.type == "gauge" and not metric.name.endswith(_SUMMED_UNITS)
    merge = max if largest else operator.add
    totals: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for sample in metric.samples:
        labels = tuple(pair for pair in sample.labels.items() if pair[0] not in dropped)
        series = sample.name, labels
        known = totals.get(series)
        totals[series] = sample.value if known is None else merge(known, sample.value)
    merged = Metric(metric.name, metric.documentation, metric.type, metric.unit)
    for (name, labels), total in totals.items():
        merged.add_sample(name, dict(labels), total)
    return merged
