"""Plan which snapshots or long-lived changelogs expire: the oldest ones, up to an id.

Pure.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-snapshots/#expire-snapshots
"""

from collections.abc import Callable
from dataclasses import dataclass

from ingestd.paimon.table.retention.expire_settings import Retention

TimeOf = Callable[[int], int | None]
"""Commit time of a snapshot id in milliseconds of the epoch, None if it does not exist."""


@dataclass(frozen=True, slots=True)
class Window:
    """The existing ids, and the first id that a consumer needs (None: no consumer)."""

    earliest: int
    latest: int
    held_from: int | None = None


def snapshots_end(window: Window, retention: Retention, now_ms: int, time_of: TimeOf) -> int:
    """Return the first id that is kept; at most `window.earliest` if nothing expires.

    Snapshots beyond the maximum number expire unless a consumer needs them. Between the minimum and
    the maximum number, a snapshot expires if its successor is older than the retention time: a
    reader that began when it was the newest had this time to finish.
    """
    first, end = _bounds(window, retention)
    for snapshot_id in range(first, end):
        committed = time_of(snapshot_id + 1)
        if committed is not None and now_ms - retention.time_ms <= committed:
            return snapshot_id
    return end


def changelogs_end(
    window: Window, latest_changelog: int, retention: Retention, now_ms: int, time_of: TimeOf
) -> int:
    """Return the first long-lived changelog that is kept; the newest is always kept.

    `window.earliest` is the oldest changelog, `window.latest` the newest snapshot: numbers to
    retain count snapshots and changelogs together.
    """
    first, end = _bounds(window, retention)
    end = min(end, latest_changelog)
    for snapshot_id in range(first, end + 1):
        committed = time_of(snapshot_id)
        if committed is not None and now_ms - retention.time_ms <= committed:
            return min(snapshot_id, end)
    return end


def _bounds(window: Window, retention: Retention) -> tuple[int, int]:
    """Return the first id to check by age, and the first id that is kept regardless of its age."""
    first = max(window.latest - retention.num_max + 1, window.earliest)
    end = min(window.latest - retention.num_min + 1, window.earliest + retention.limit)
    if window.held_from is not None:
        end = min(end, window.held_from)
    return first, end
