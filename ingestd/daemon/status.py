"""The state of the daemon and its build, updated by threads, read by the HTTP pages and metrics."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from ingestd import metrics
from ingestd.cdc.native_module import decoder_name
from ingestd.config.effective import Setting
from ingestd.daemon.lag_tracker import LagTracker
from ingestd.daemon.recent_history import (
    Recent,
    RecentFailure,
    SavedHistory,
    SchemaLog,
)
from ingestd.daemon.samples import total_lag
from ingestd.daemon.watchdog import MISSING_SECONDS, STUCK_SECONDS, ExecutorWatch, Watchdog
from ingestd.errors import IngestdError, RetryableError, SourceError
from ingestd.ingest.batch_events import BatchSummary, OpenedTable
from ingestd.ingest.settings.wrong_format import SetAside
from ingestd.kafka.native_reader import client_version, native_kafka
from ingestd.kafka.offset_ranges import OffsetRange, TopicOffsets
from ingestd.log import redact
from ingestd.wording import utc_text


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """The versions of ingestd and librdkafka, and the implementations in use.

    `decoder` and `kafka_reader` are `native` or `python`. Both are `python` without the native
    extension; only `kafka_reader` is `python` if the extension does not support the librdkafka in
    use.
    """

    version: str
    decoder: str
    kafka_reader: str
    librdkafka: str


def build_info(version: str) -> BuildInfo:
    """Return the versions and implementations in use in this process."""
    reader = "python" if native_kafka() is None else "native"
    return BuildInfo(version, decoder_name(), reader, client_version())


BATCH_SECONDS = 1800.0
"""The default limit for the duration of a batch."""
_HEALING: tuple[type[RetryableError], ...] = (
    RetryableError,
    *RetryableError.__subclasses__(),
    *SourceError.__subclasses__(),
)


class NotReady(StrEnum):
    """A reason for which a daemon is not ready, as a code for `/readyz` and `/status`."""

    NO_EXECUTORS = "no-executors"
    NOT_RUNNING = "not-running"
    POLL_OVERDUE = "poll-overdue"
    NO_BATCH = "no-batch"


NOT_READY: Mapping[NotReady, str] = {
    NotReady.NO_EXECUTORS: f"Spark has had no executor for {MISSING_SECONDS:.0f} s or more",
    NotReady.NOT_RUNNING: "the query does not run",
    NotReady.POLL_OVERDUE: "the next poll of the sources is overdue",
    NotReady.NO_BATCH: "no batch has finished yet, and no poll of all sources",
}
"""The reasons in words, for `/readyz` and the console."""


@dataclass(frozen=True, slots=True)
class TableStatus:
    """The newest commit to a table, and the rows and files written since the daemon started.

    `result` is the `status` of the newest TableCommit to the table. It is "opened" before the first
    commit, and if the table had another snapshot when a run opened it. `at` is in seconds since
    1970: the end of the batch of that commit, or for "opened" the time of the snapshot, None
    without a snapshot.
    """

    snapshot_id: int | None
    result: str
    at: float | None
    rows: int
    files: int


@dataclass(slots=True)
class RunningBatch:
    """The batch in progress: its start on a monotonic clock, and the seconds of finished phases."""

    batch_id: str
    begun: float
    phases: dict[str, float] = field(default_factory=dict)


class Status:
    """The state of a pipeline; thread-safe.

    `version` is the version of ingestd, and `sources` are the names of the sources. A batch is
    overdue after `batch_timeout` seconds. `clock` returns seconds since 1970, `ticks` the seconds
    of a monotonic clock.
    """

    def __init__(
        self,
        pipeline: str,
        version: str,
        sources: Iterable[str],
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
        *,
        batch_timeout: float = BATCH_SECONDS,
    ) -> None:
        self._pipeline = pipeline
        self._version = version
        self._build: Mapping[str, str] = {}
        self._clock = clock
        self._ticks = ticks
        self._batch_timeout = batch_timeout
        self._lock = threading.Lock()
        self._state = "starting"
        self._since = clock()
        self._beat = ticks()
        self._restarts = 0
        self._recent = Recent()
        self._running: RunningBatch | None = None
        self._finished_batch: str | None = None
        self._batch_done = False
        self._tables: dict[str, TableStatus] = {}
        self._rows: Counter[str] = Counter()
        self._files: Counter[str] = Counter()
        self._lag_tracker = LagTracker()
        self._schemas = SchemaLog()
        self._reachable: dict[str, bool | None] = dict.fromkeys(sources)
        self._watchdog = Watchdog(clock, ticks, batch_timeout, len(self._reachable))
        self._executors = ExecutorWatch(ticks)
        self._why_silent: dict[str, str] = {}
        self.set_aside = SetAsidePage()
        self._met: set[str] = set()
        self._maintenance: Callable[[], dict[str, Any]] = dict
        self._configuration: Callable[[], Sequence[Setting]] = tuple
        metrics.expect_restarts(error_class.__name__ for error_class in _HEALING)
        metrics.record_state(self._state)

    def enter(self, state: str) -> None:
        """Set the state of the pipeline, one of `metrics.STATES`.

        "starting" also clears the batch in progress and readiness. Raises ValueError for another
        state.
        """
        with self._lock:
            self._state, self._since, self._beat = state, self._clock(), self._ticks()
            if state == "starting":
                self._batch_done, self._running = False, None
                self._watchdog.started()
                self._executors.counted(None)  # unknown until the query runs
                self._lag_tracker.batch_ended()
            elif state == "running":
                self._watchdog.opened()
        metrics.record_state(state)

    def follow(self, sources: Iterable[str]) -> None:
        """Set the names of the sources after a reload; drop the positions and lag of all others."""
        with self._lock:
            self._reachable = {name: self._reachable.get(name) for name in sources}
            self._lag_tracker.keep(self._reachable)
            self._watchdog.expect_sources(len(self._reachable))

    def show_build(self, build: BuildInfo) -> None:
        """Set the versions and implementations in use, also as labels of `ingestd_build_info`."""
        self._build = asdict(build)
        metrics.record_build(self._build)

    def show_maintenance(self, document: Callable[[], dict[str, Any]]) -> None:
        """Set the function that returns the section `maintenance` of /status."""
        self._maintenance = document

    def show_configuration(self, configuration: Callable[[], Sequence[Setting]]) -> None:
        """Set the function that returns the configuration in effect, without secret values."""
        self._configuration = configuration

    def beat(self) -> None:
        """Record that the supervisor's loop is alive, for the liveness probe."""
        with self._lock:
            self._beat = self._ticks()

    def query_idled(self) -> None:
        """Record that the query is idle, which counts as a poll for the readiness probe."""
        with self._lock:
            if self._running is None:
                self._watchdog.done()

    def executors_counted(self, count: int | None) -> bool | None:
        """Set the number of executors; None for a local master, or if it is unknown.

        Returns True if executors are missing from now on, False if they are no longer missing, and
        None if neither has changed.
        """
        with self._lock:
            changed = self._executors.counted(count)
            return self._executors.is_missing if changed else None

    def delayed(self, *, delayed: bool) -> None:
        """Set whether the next batch is delayed on purpose; then it is not reported as overdue."""
        with self._lock:
            self._watchdog.hold(held=delayed)

    def failed(self, error: IngestdError) -> None:
        """Record a failure of the query in the history and the metrics."""
        now = self._clock()
        with self._lock:
            failure = RecentFailure(type(error).__name__, redact(error.message), now)
            self._recent.failures.append(failure)
        metrics.record_failure(now)

    def restarting(self, error: IngestdError) -> None:
        """Count a restart of the query, by the class of the error."""
        with self._lock:
            self._restarts += 1
        metrics.record_restart(type(error).__name__)

    def tables_opened(self, tables: Mapping[str, OpenedTable]) -> None:
        """Record the existing tables at the start of a run, in which nothing is set aside yet.

        Topics and partitions that the last run set aside are no longer listed.
        """
        with self._lock:
            self.set_aside.clear()
            schemas = {name: table.schema for name, table in tables.items()}
            self._schemas.opened(schemas, self._clock())
            for name, table in tables.items():
                known = self._tables.get(name)
                if known is None or known.snapshot_id != table.snapshot_id:
                    self._tables[name] = TableStatus(
                        table.snapshot_id,
                        "opened",
                        table.committed_at,
                        self._rows[name],
                        self._files[name],
                    )

    def batch_started(self, batch_id: str, ranges: Iterable[OffsetRange]) -> None:
        """Record the start of a batch; the tables contain all offsets before its ranges."""
        with self._lock:
            self._watchdog.done()
            self._running = RunningBatch(batch_id, self._ticks())
            self._lag_tracker.started(ranges)

    def phase(self, name: str, seconds: float) -> None:
        """Add the duration of a finished phase to the batch in progress, if any."""
        with self._lock:
            if self._running is not None:
                phases = self._running.phases
                phases[name] = phases.get(name, 0.0) + seconds

    def batch_finished(self, summary: BatchSummary) -> None:
        """Record a committed batch: its tables, positions, phases and rejected records."""
        now = self._clock()
        with self._lock:
            self._running, self._finished_batch = None, summary.batch_id
            self._batch_done = True
            self._watchdog.done()
            self._recent.finished(summary, now)
            self._count_tables(summary, now)
            self._lag_tracker.batch_committed(summary, now)
            self._lag_tracker.publish(now)

    def _count_tables(self, summary: BatchSummary, now: float) -> None:
        for (table, _), rows in summary.counts.rows.items():
            self._rows[table] += rows
        self._files.update(summary.counts.files)
        for commit in summary.commits:
            name = commit.table
            if commit.growth is not None:
                self._schemas.committed(name, commit.growth.schema, now)
            self._tables[name] = TableStatus(
                commit.snapshot_id, commit.status, now, self._rows[name], self._files[name]
            )

    def sample(self) -> None:
        """Update the gauges of lag, and add the rate and lag to the history if a sample is due."""
        with self._lock:
            self._lag_tracker.publish(self._clock())
            now = self._clock()
            lag = total_lag(self._sources())
            known = None if False in self._reachable.values() else self._freshness(now, lag)
            freshness = max(known.values(), default=None) if known else None
            self._recent.sample(now, lag, freshness)

    def source_answered(self, source: str, ends: TopicOffsets) -> None:
        """Record that the brokers of a source responded with these end offsets."""
        with self._lock:
            self._reachable[source] = True
            self._met.add(source)
            self._why_silent.pop(source, None)
            now = self._clock()
            self._lag_tracker.ends_reported(source, ends, now)
            self._lag_tracker.publish(now)
        metrics.record_reachable(source, reachable=True)
        metrics.expect_reading(source, ends)

    def source_went_silent(self, source: str, why: str) -> bool:
        """Record that the brokers of a source did not respond, for the reason `why`.

        Returns whether this is news: they had responded before, or no request had been made yet.
        """
        with self._lock:
            self._why_silent[source] = redact(why)
            news = self._reachable.get(source) is not False
            self._reachable[source] = False
        metrics.record_reachable(source, reachable=False)
        return news

    @property
    def has_met_its_sources(self) -> bool:
        """Whether every source has responded at least once since the start.

        Until then, an address may be wrong.
        """
        with self._lock:
            return self._met >= self._reachable.keys()

    @property
    def is_live(self) -> bool:
        """Whether the supervisor's loop has reported in time, and no batch or poll is overdue."""
        with self._lock:
            now = self._ticks()
            running = self._running
            hung = running is not None and now - running.begun > self._batch_timeout
            return now - self._beat < STUCK_SECONDS and not hung and not self._plans_too_long()

    def _plans_too_long(self) -> bool:
        """Return whether the next batch or poll is overdue."""
        return self._state == "running" and self._running is None and self._watchdog.is_overdue

    @property
    def not_ready(self) -> NotReady | None:
        """The reason for which the daemon is not ready, or None if it is ready."""
        with self._lock:
            if self._executors.is_missing:
                return NotReady.NO_EXECUTORS
            if self._state != "running":
                return NotReady.NOT_RUNNING
            if self._plans_too_long():
                return NotReady.POLL_OVERDUE
            polled = self._watchdog.has_polled and all(self._reachable.values())
            return None if self._batch_done or polled else NotReady.NO_BATCH

    def document(self) -> dict[str, Any]:
        """Return the state of the daemon as the JSON document of /status."""
        live, not_ready, maintenance = self.is_live, self.not_ready, self._maintenance()
        with self._lock:
            failure = self._recent.failures[-1] if self._recent.failures else None
            running, sources = self._running, self._sources()
            return {
                "pipeline": self._pipeline,
                "version": self._version,
                "build": self._build,
                "state": self._state,
                "since": utc_text(self._since),
                "live": live,
                "ready": not_ready is None,
                "not_ready": not_ready,
                "restarts": self._restarts,
                "executors": self._executors.count,
                "last_error": failure
                and {"type": failure.kind, "message": failure.message, "at": utc_text(failure.at)},
                "batch": {
                    "running": running and running.batch_id,
                    "seconds": running and round(self._ticks() - running.begun, 3),
                    "phases": running and dict(running.phases),
                    "finished": self._finished_batch,
                    "seconds_since_poll": round(self._watchdog.seconds, 3),
                },
                "tables": self._table_documents(total_lag(sources)),
                "sources": sources,
                "maintenance": maintenance,
                "recent": {**self._recent.document(), "schemas": self._schemas.document()},
            }

    def console_document(self) -> dict[str, Any]:
        """Return the document of /status, with configuration, samples and time for the console."""
        with self._lock:
            samples = self._recent.samples.all()
        shown = {"configuration": self._configuration(), "samples": samples, "now": self._clock()}
        return {**self.document(), **shown}

    def saved_history(self) -> SavedHistory:
        """Return the part of the history that is saved for the next process."""
        with self._lock:
            return self._recent.saved()

    def restore(self, saved: SavedHistory) -> None:
        """Add the saved history of an earlier process."""
        with self._lock:
            self._recent.restore(saved, self._clock())

    def _table_documents(self, lag: int | None) -> dict[str, Any]:
        lags = self._freshness(self._clock(), lag)
        return {
            name: {
                "snapshot_id": table.snapshot_id,
                "result": table.result,
                "committed_at": None if table.at is None else utc_text(table.at),
                "rows": table.rows,
                "files": table.files,
                "lag_seconds": lags.get(name),
                "schema_id": self._schemas.schema_id(name),
            }
            for name, table in sorted(self._tables.items())
        }

    def _freshness(self, now: float, lag: int | None) -> Mapping[str, float]:
        """Return the known lags of tables in seconds; those of silent sources are unknown.

        `lag` is the lag of all sources in records. If it is 0, the lag of each table is known
        before its first rows: it is 0.
        """
        silent = {name for name, reachable in self._reachable.items() if reachable is False}
        known = self._lag_tracker.freshness(now, silent)
        if all(self._reachable.values()) and lag == 0:
            return {**dict.fromkeys(self._tables, 0.0), **known}
        return known

    def _sources(self) -> dict[str, Any]:
        return {name: self._source(name) for name in sorted(self._reachable)}

    def _source(self, name: str) -> dict[str, Any]:
        return {
            "reachable": self._reachable[name],
            "error": self._why_silent.get(name),
            "topics": self._lag_tracker.document(name, silent=self._reachable[name] is False),
            "set_aside": self.set_aside.document(name),
        }


class SetAsidePage:
    """Lists the topics and partitions that are set aside, by source; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._topics: dict[str, dict[str, dict[str, Any]]] = {}

    def clear(self) -> None:
        """Remove all topics and partitions, at the start of a run, which reads them again."""
        with self._lock:
            self._topics.clear()

    def add(self, topic: SetAside, message: str) -> None:
        """Add a topic that is no longer read in this run; `message` states the reason."""
        shown = {
            "unreadable": False,
            "looks_like": topic.guess.data_format,
            "offsets": {str(partition): at for partition, at in sorted(topic.offsets.items())},
            "message": redact(message),
        }
        with self._lock:
            self._topics.setdefault(topic.source, {})[topic.topic] = shown

    def add_partition(self, unread: OffsetRange, message: str) -> None:
        """Add a topic partition that is no longer read in this run, from `unread.start` on.

        The message of a topic has a line for each of its unreadable partitions.
        """
        with self._lock:
            of_source = self._topics.setdefault(unread.source, {})
            before = of_source.get(unread.topic, {"offsets": {}, "message": ""})
            of_source[unread.topic] = {
                "unreadable": True,
                "looks_like": None,
                "offsets": {**before["offsets"], str(unread.partition): unread.start},
                "message": f"{before['message']}\n{redact(message)}".strip(),
            }

    def document(self, source: str) -> dict[str, Any]:
        """Return the set-aside topics and partitions of a source, by topic, for /status.

        A source without any has an empty document.
        """
        with self._lock:
            return dict(self._topics.get(source, {}))
