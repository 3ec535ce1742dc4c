"""Metrics, log lines and status of maintenance on the driver."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ingestd import metrics
from ingestd.ingest.maintenance.jobs import Compacted, Done, Expired, NotDone
from ingestd.log import redact

_LOG = logging.getLogger(__name__)
_KEPT = 30


class MaintenanceRecord:
    """Written by the threads of maintenance and of the stream, read by the HTTP pages."""

    def __init__(self, mode: str, clock: Callable[[], float] = time.time) -> None:
        self._mode = mode
        self._clock = clock
        self._lock = threading.Lock()
        self._compactions: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._expiries: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._waiting: str | None = None
        self._waited = 0.0

    def sorted_runs(self, table: str, sorted_runs: tuple[int | None, int | None]) -> None:
        """How full a table is: files of level 0, and sorted runs of its fullest bucket."""
        level_0, runs = sorted_runs
        if level_0 is not None and runs is not None:
            metrics.record_lag(table, level_0, runs)

    def throttled(self, cause: str, tables: Sequence[str]) -> None:
        """Ingest begins to wait."""
        with self._lock:
            self._waiting = cause
        level = logging.WARNING if cause == "sorted-runs" else logging.DEBUG
        _LOG.log(level, "ingest_throttled", extra={"ctx": {"cause": cause, "tables": tables}})

    def released(self, cause: str, seconds: float) -> None:
        """Ingest has waited for so long."""
        with self._lock:
            self._waiting = None
            self._waited += seconds
        metrics.record_throttled(cause, seconds)

    def done(self, done: Done) -> None:
        """A job has ended."""
        if isinstance(done, Compacted):
            self._compacted(done)
        elif isinstance(done, Expired):
            self._expired(done)
        else:
            self._not_done(done)

    def document(
        self, standings: Mapping[str, tuple[int | None, int | None]], over: Sequence[str]
    ) -> dict[str, Any]:
        """For /status, newest first; times are seconds since 1970."""
        with self._lock:
            return {
                "mode": self._mode,
                "throttled_by": self._waiting,
                "throttled_seconds": round(self._waited, 3),
                "over_stop_trigger": list(over),
                "tables": {
                    name: {"level_0": level_0, "sorted_runs": runs}
                    for name, (level_0, runs) in sorted(standings.items())
                },
                "compactions": list(reversed(self._compactions)),
                "expiries": list(reversed(self._expiries)),
            }

    def _compacted(self, done: Compacted) -> None:
        table, seconds = done.job.table, done.seconds
        metrics.record_compaction(table, done.status, seconds)
        metrics.record_compacted_bytes(table, done.bytes_read, done.bytes_written)
        if done.status == "nothing":
            return
        line = {
            "table": table,
            "result": done.status,
            "kind": done.job.kind,
            "snapshot_id": done.snapshot_id,
            "seconds": round(seconds, 3),
            "buckets": done.buckets,
            "lost_buckets": done.lost,
            "files_before": done.files_before,
            "files_after": done.files_after,
            "bytes_read": done.bytes_read,
            "bytes_written": done.bytes_written,
            "changelog_rows": done.changelog_rows,
            "message": "",
        }
        self._keep(self._compactions, line)
        _LOG.info("table_compacted", extra={"ctx": _without(line, "message")})

    def _expired(self, done: Expired) -> None:
        table = done.job.table
        metrics.record_expiry(table, done.snapshots, done.files)
        line = {
            "table": table,
            "seconds": round(done.seconds, 3),
            "snapshots": done.snapshots,
            "changelogs": done.changelogs,
            "partitions": done.partitions,
            "tags": done.tags,
            "tags_made": done.tags_made,
            "files": done.files,
        }
        if any(line[name] for name in ("snapshots", "changelogs", "partitions", "tags")):
            self._keep(self._expiries, line)
            _LOG.info("table_expired", extra={"ctx": line})
        elif done.tags_made:
            _LOG.info("tags_made", extra={"ctx": line})

    def _not_done(self, done: NotDone) -> None:
        table = done.job.table
        line = {"table": table, "kind": done.job.kind, "error_type": done.error}
        _LOG.warning("maintenance_failed", extra={"ctx": {**line, "message": done.message}})
        if done.job.kind == "expire":
            metrics.record_expiry_failure(table)
            return
        metrics.record_compaction(table, "failed", None)
        told = {"table": table, "result": "failed", "kind": done.job.kind}
        self._keep(self._compactions, {**told, "message": redact(done.message)})

    def _keep(self, lines: deque[dict[str, Any]], line: Mapping[str, Any]) -> None:
        with self._lock:
            lines.append({"at": self._clock(), **line})


def _without(line: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key != name}
