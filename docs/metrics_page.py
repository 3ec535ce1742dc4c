"""metrics.md, from the collectors that the `metrics` modules of `ingestd` declare."""

from prometheus_client.metrics import MetricWrapperBase

from ingestd import lag_metrics, metrics

HEAD = """# Metrics

Written by `make docs` from `ingestd/metrics.py` and `ingestd/lag_metrics.py`. The page `/metrics`
serves them in Prometheus' text format or as OpenMetrics, as the client accepts, compressed by gzip
if it accepts that; counters carry the suffix `_total`, histograms `_bucket`, `_sum` and `_count`,
and there are no `_created` series. Its size, and how to reduce it, is in
[operations.md](operations.md#size-of-metrics). Everything is counted on the driver, after the
commit: of a batch that failed nothing is counted, and what its tasks asked of schema registries
only if their processes go on.

| metric | type | labels | what it says |
|---|---|---|---|"""


def collectors() -> list[MetricWrapperBase]:
    """Every collector that the modules declare, by name."""
    modules = (metrics, lag_metrics)
    declared = [variable for module in modules for variable in vars(module).values()]
    found = {id(c): c for c in declared if isinstance(c, MetricWrapperBase)}
    return sorted(found.values(), key=lambda collector: collector._name)


def metrics_page() -> str:
    """The page as text."""
    rows = []
    for collector in collectors():
        labels = ", ".join(f"`{label}`" for label in collector._labelnames) or "–"
        suffix = "_total" if collector._type == "counter" else ""
        rows.append(
            f"| `{collector._name}{suffix}` | {collector._type} | {labels} "
            f"| {collector._documentation} |"
        )
    return "\n".join([HEAD, *rows]) + "\n"
