"""Counters of this process's requests to schema registries, until they are collected."""

import threading
from collections import Counter

REQUESTS, FAILURES, HITS, OUTAGE_MS = "requests", "failures", "hits", "outage_ms"
"""Requests sent, requests without a usable response, look-ups served from the cache, and
milliseconds from a first failure to the response that ended it, or to the timeout.
"""

_lock = threading.Lock()
_figures: Counter[str] = Counter()


def note(figure: str, count: int = 1) -> None:
    """Increase one of the counters above."""
    with _lock:
        _figures[figure] += count


def take_figures() -> Counter[str]:
    """Return the counters since the last call, and reset them."""
    with _lock:
        taken = Counter(_figures)
        _figures.clear()
    return taken
