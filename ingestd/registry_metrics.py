"""Prometheus collectors of the requests of tasks to schema registries, in committed batches.

A failed task reports nothing. Its requests are reported by the next task of its worker process, or
lost with that process; then only the log (`schema_registry_retry`) shows an outage.
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
CACHE_HITS = Counter("ingestd_registry_cache_hits", "Lookups of schemas that were in the cache.")
OUTAGE_SECONDS = Counter(
    "ingestd_registry_outage_seconds",
    "Time that tasks waited for schema registries that did not answer; as with failed requests, "
    "that of a failed batch is lost if its workers ended with it.",
)


def record_registry(figures: Mapping[str, int]) -> None:
    """Add the counts of a batch's tasks, with the names of `registry_tally`."""
    REQUESTS.inc(figures.get(SENT, 0))
    FAILED.inc(figures.get(FAILURES, 0))
    CACHE_HITS.inc(figures.get(HITS, 0))
    OUTAGE_SECONDS.inc(figures.get(OUTAGE_MS, 0) / 1000)
