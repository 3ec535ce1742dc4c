"""Prometheus collectors of schema registries: what tasks asked of them for batches that landed.

A task that fails reports nothing. What it asked is told by the next task of its worker process, or
lost with that process: then the log alone tells of an outage (`schema_registry_retry`).
"""

from collections.abc import Mapping

from prometheus_client import Counter

from ingestd.kafka.registry_tally import FAILURES, HITS, OUTAGE_MS
from ingestd.kafka.registry_tally import REQUESTS as SENT

REQUESTS = Counter("ingestd_registry_requests", "Requests to schema registries.")
FAILED = Counter(
    "ingestd_registry_failed_requests",
    "Requests to schema registries without a usable answer; those of a batch that failed are lost "
    "if its workers ended with it.",
)
CACHE_HITS = Counter(
    "ingestd_registry_cache_hits", "Schemas that were asked for and known already."
)
OUTAGE_SECONDS = Counter(
    "ingestd_registry_outage_seconds",
    "Time that tasks waited for schema registries which did not answer; as with failed requests, "
    "a batch that failed may have taken its share with it, and only the log tells.",
)


def record_registry(figures: Mapping[str, int]) -> None:
    """What the tasks of a batch asked of registries, by the names of `registry_tally`."""
    REQUESTS.inc(figures.get(SENT, 0))
    FAILED.inc(figures.get(FAILURES, 0))
    CACHE_HITS.inc(figures.get(HITS, 0))
    OUTAGE_SECONDS.inc(figures.get(OUTAGE_MS, 0) / 1000)
