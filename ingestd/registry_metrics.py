"""Prometheus collectors of schema registries: what tasks asked of them for batches that landed."""

from collections.abc import Mapping

from prometheus_client import Counter

from ingestd.kafka.registry_tally import FAILURES, HITS, OUTAGE_MS
from ingestd.kafka.registry_tally import REQUESTS as SENT

REQUESTS = Counter("ingestd_registry_requests", "Requests to schema registries.")
FAILED = Counter(
    "ingestd_registry_failed_requests", "Requests to schema registries without a usable answer."
)
CACHE_HITS = Counter(
    "ingestd_registry_cache_hits", "Schemas that were asked for and known already."
)
OUTAGE_SECONDS = Counter(
    "ingestd_registry_outage_seconds",
    "Time that tasks waited for schema registries which did not answer.",
)


def record_registry(figures: Mapping[str, int]) -> None:
    """What the tasks of a batch asked of registries, by the names of `registry_tally`."""
    REQUESTS.inc(figures.get(SENT, 0))
    FAILED.inc(figures.get(FAILURES, 0))
    CACHE_HITS.inc(figures.get(HITS, 0))
    OUTAGE_SECONDS.inc(figures.get(OUTAGE_MS, 0) / 1000)
