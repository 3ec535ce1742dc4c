"""What this process asked of schema registries, until someone takes the figures away."""

import threading
from collections import Counter

REQUESTS, FAILURES, HITS, OUTAGE_MS = "requests", "failures", "hits", "outage_ms"
"""Requests sent, those without a usable answer, look-ups that needed none, and milliseconds from a
first failure to the answer that ended it, or to giving up."""

_lock = threading.Lock()
_figures: Counter[str] = Counter()


def note(figure: str, count: int = 1) -> None:
    """Count something, by one of the names above."""
    with _lock:
        _figures[figure] += count


def take_figures() -> Counter[str]:
    """What was counted since the last time; counting goes on from 0."""
    with _lock:
        taken = Counter(_figures)
        _figures.clear()
    return taken
