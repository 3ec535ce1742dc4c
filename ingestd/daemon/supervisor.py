"""Run one pipeline: start it, restart it after retryable errors, and stop it on signals.

The query runs in a separate thread; the main thread only waits, so that it handles signals at any
time.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Protocol

from ingestd.config.effective import Setting
from ingestd.daemon.batch_log import BatchLog
from ingestd.daemon.batch_trace import BatchTrace
from ingestd.daemon.console.table_details import DetailsReader
from ingestd.daemon.end_offset_poller import EndOffsetPoller
from ingestd.daemon.heartbeat_thread import heartbeat
from ingestd.daemon.history_file import HistoryFile, history_path
from ingestd.daemon.http_access import HttpAccess
from ingestd.daemon.http_server import HttpServer
from ingestd.daemon.maintenance import Maintenance, MaintenanceSettings
from ingestd.daemon.maintenance_process import Opening
from ingestd.daemon.notices import Notices
from ingestd.daemon.restarts import RestartBudget, RestartPolicy
from ingestd.daemon.status import BATCH_SECONDS, BuildInfo, Status, build_info
from ingestd.daemon.watchdog import MISSING_SECONDS
from ingestd.errors import IngestdError, RetryableError, SourceSilentError, has_full_disk
from ingestd.ingest.batch_events import BatchListener
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.log import LogFormat
from ingestd.metrics_page import MetricsPage
from ingestd.spark.pipeline import Pipeline
from ingestd.telemetry.spans import SpanSink

_SAME_SIGNAL_SECONDS = 0.5
"""Two signals within this time count as one: tools signal a process and then its group."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class SignalRequests:
    """The requests made by signals: to stop, and to reload the configuration."""

    stop: threading.Event = field(default_factory=threading.Event)
    reload: threading.Event = field(default_factory=threading.Event)

    def take(self, event: threading.Event) -> bool:
        """Return whether a signal has made the request `event`, and clear it.

        `event` is `stop` or `reload` of this object.
        """
        was_set = event.is_set()
        event.clear()
        return was_set


@contextmanager
def _handled_signals(requests: SignalRequests) -> Iterator[None]:
    """Handle signals in the block: SIGHUP requests a reload, SIGTERM and SIGINT a stop.

    A second SIGTERM or SIGINT, more than half a second later, exits the process at once.
    """
    first: float | None = None

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal first
        if number == signal.SIGHUP:
            requests.reload.set()
            return
        now = time.monotonic()
        if first is None:
            first = now
            requests.stop.set()
        elif now - first > _SAME_SIGNAL_SECONDS:
            os._exit(128 + number)

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_LOG = logging.getLogger(__name__)
_TICK_SECONDS = 1.0
UNEXPECTED = 1


class SupervisedRun(Protocol):
    """One run of a pipeline; implemented by `ingestd.spark.pipeline.Pipeline`."""

    def start(self, *, until_latest: bool) -> None:
        """Start the query; with `until_latest`, it ends at the current end offsets of topics."""

    def await_termination(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds; return whether the query has ended.

        Raises the error that ended the query.
        """

    def is_idle(self) -> bool:
        """Return whether the query is idle: it runs no batch, and waits for its next trigger."""

    def executors(self) -> int | None:
        """Return the number of executors; None for a local master, or if it is unknown."""

    def stop(self) -> None:
        """Finish the batch in progress, then end the query; return when it has ended."""


Reload = Callable[[], PipelineSettings | None]
"""Returns the new settings of the pipeline, or None if they are unchanged."""
MakeRun = Callable[[PipelineSettings, BatchListener], SupervisedRun]


def keep_settings() -> None:
    """Return None, for unchanged settings: this is the reload function without a file."""


@dataclass(frozen=True, slots=True)
class DaemonSettings:
    """The settings of the daemon, without the settings of the pipeline.

    `listen` is the HOST:PORT of the pages. With `until_latest`, the pipeline ends at the current
    ends of the logs. The daemon is not live while a batch takes more than `batch_timeout` seconds.
    After the pipeline has failed, the pages are served for another `linger` seconds. `spans`
    receives the traces, `notices` sends events to a webhook, and `configuration` returns the
    settings in effect, which come from `config_file`.
    """

    listen: str
    version: str
    restarts: RestartPolicy = field(default_factory=RestartPolicy)
    until_latest: bool = False
    batch_timeout: float = BATCH_SECONDS
    linger: float = 0.0
    access: HttpAccess = field(default_factory=HttpAccess)
    metrics: MetricsPage = field(default_factory=MetricsPage)
    maintenance: MaintenanceSettings = field(default_factory=MaintenanceSettings)
    spans: SpanSink | None = None
    notices: Notices | None = None
    configuration: Callable[[], Sequence[Setting]] = tuple
    config_file: str = "FILE"
    log_level: str = "INFO"
    log_format: LogFormat = "auto"

    def opening(self, settings: PipelineSettings) -> Opening:
        """Return the first message to a maintenance process."""
        return Opening(
            pipeline=settings.name,
            metastore=settings.metastore,
            warehouse=settings.warehouse,
            catalog_options=settings.catalog_options,
            log_level=self.log_level,
            log_format=self.log_format,
        )


class Supervisor:
    """Runs a pipeline until it ends, is stopped, or fails; restarts it after retryable errors.

    `make_run` creates the object of each run. `maintenance` runs beside the pipeline (None: no
    maintenance).
    """

    def __init__(
        self,
        settings: PipelineSettings,
        daemon: DaemonSettings,
        status: Status,
        make_run: MakeRun = Pipeline,
        maintenance: Maintenance | None = None,
    ) -> None:
        self._settings = settings
        self._until_latest = daemon.until_latest
        self._linger = 0.0 if daemon.until_latest else daemon.linger
        self._status = status
        self._make_run = make_run
        self._budget = RestartBudget(daemon.restarts)
        trace = None if daemon.spans is None else BatchTrace(daemon.spans)
        self._notices = daemon.notices
        self._listener = BatchLog(
            status,
            self._budget.succeeded,
            maintenance=maintenance,
            trace=trace,
            notices=daemon.notices,
        )
        self._stopping = threading.Event()
        self._next: PipelineSettings | None = None
        self._run: SupervisedRun | None = None

    def run(self) -> int:
        """Run the pipeline until it ends, is stopped or fails for good; return the exit code.

        The code is 0 if it ended or was stopped, otherwise that of its error, which is logged.
        """
        while True:
            self._adopt_next()
            error = self._attempt()
            if error is None and self._next is not None and not self._stopping.is_set():
                continue
            if error is not None:
                self._status.failed(error)
            if error is None or (self._stopping.is_set() and isinstance(error, RetryableError)):
                self._status.enter("stopped")
                _log_end(error)
                self._notify_stopped(error, 0)
                return 0
            if not self._wait_for_restart(error):
                return self._give_up(error)

    def follow(self, settings: PipelineSettings) -> None:
        """Finish the batch in progress, then start the query again with these settings.

        Returns when the query in progress has ended. If the query is being started, or waits for
        its restart, it gets the settings as soon as it runs.
        """
        self._next = settings
        if self._run is not None:
            self._run.stop()

    def reopen(self) -> None:
        """Finish the batch in progress, then open the tables again and restart the query."""
        self.follow(self._next or self._settings)

    def _adopt_next(self) -> None:
        """Use the settings that `follow` has received since the last query was created."""
        following, self._next = self._next, None
        self._settings = following or self._settings

    def stop(self) -> None:
        """Finish the batch in progress, then stop the pipeline.

        Returns when the query has ended.
        """
        self._stopping.set()
        self._status.enter("draining")
        if self._run is not None:
            self._run.stop()

    def _attempt(self) -> IngestdError | None:
        """Run the query once; return the error that ended it, or None if it ended as expected."""
        if self._stopping.is_set():
            return None
        self._status.enter("starting")
        run = self._run = self._make_run(self._settings, self._listener)
        try:
            run.start(until_latest=self._until_latest)
            if self._stopping.is_set() or self._next is not None:
                run.stop()  # requested before there was a query
            else:
                self._status.enter("running")
                _LOG.info("query_running")
            while not run.await_termination(_TICK_SECONDS):
                self._status.beat()
                self._watch_executors(run.executors())
                if run.is_idle():
                    self._status.query_idled()
        except IngestdError as error:
            run.stop()
            self._listener.run_died(error)
            return error
        ends = self._until_latest or self._settings.is_bounded
        if ends or self._stopping.is_set() or self._next is not None:
            return None
        return RetryableError("the query ended unexpectedly: nothing had stopped it")

    def _watch_executors(self, count: int | None) -> None:
        missing = self._status.executors_counted(count)
        if missing:
            _LOG.warning("executors_missing", extra={"ctx": {"seconds": MISSING_SECONDS}})
        elif missing is False:
            _LOG.info("executors_returned", extra={"ctx": {"executors": count}})

    def _wait_for_restart(self, error: IngestdError) -> bool:
        """Wait before a restart.

        Return False if no restart is possible: the error is not retryable, or the restart budget is
        exhausted.
        """
        if not isinstance(error, RetryableError):
            return False
        silence = isinstance(error, SourceSilentError)
        waited_out = has_full_disk(error) or (silence and self._status.has_met_its_sources)
        seconds = self._budget.next_wait(time.monotonic(), counts=not waited_out)
        if seconds is None:
            _LOG.error("restart_budget_used_up")
            return False
        context = {"error_type": type(error).__name__, "message": error.message}
        _LOG.warning(
            "query_failed_restarting",
            extra={"ctx": {**context, "wait_seconds": round(seconds, 1)}},
        )
        self._status.restarting(error)
        self._status.enter("backoff")
        self._pause(seconds)
        return True

    def _pause(self, seconds: float) -> None:
        """Wait for `seconds` or until a stop, and report the loop as alive meanwhile."""
        end = time.monotonic() + seconds
        while not self._stopping.wait(min(_TICK_SECONDS, max(end - time.monotonic(), 0))):
            self._status.beat()
            if time.monotonic() >= end:
                break

    def _give_up(self, error: IngestdError) -> int:
        self._status.enter("failed")
        context = {"error_type": type(error).__name__, "message": error.message}
        _LOG.error("pipeline_failed", extra={"ctx": {**context, "exit_code": error.exit_code}})
        self._notify_stopped(error, error.exit_code)
        self._pause(self._linger)  # so that a scrape sees the state
        return error.exit_code

    def _notify_stopped(self, error: IngestdError | None, exit_code: int) -> None:
        if self._notices is not None:
            self._notices.pipeline_stopped(error, exit_code)


def supervise(
    settings: PipelineSettings,
    daemon: DaemonSettings,
    make_run: MakeRun = Pipeline,
    reload: Reload = keep_settings,
) -> int:
    """Run the daemon in this process to its end; return the exit code.

    Must be called on the main thread. `make_run` creates each run of the pipeline. SIGTERM or
    SIGINT ends the daemon after the batch in progress, a second one at once. After SIGHUP, `reload`
    returns new settings (None: unchanged). Raises ConfigError if the pages cannot be served.
    """
    requests = SignalRequests()
    build = build_info(daemon.version)
    with _handled_signals(requests):
        status = _status(settings, daemon)
        maintenance = Maintenance(daemon.maintenance, daemon.opening(settings))
        status.show_build(build)
        status.show_maintenance(maintenance.document)
        supervisor = Supervisor(settings, daemon, status, make_run, maintenance)
        with (
            _pages(daemon, settings, status) as lag,
            _running(maintenance),
            heartbeat(settings, supervisor.reopen),
            ThreadPoolExecutor(1, "query") as thread,
        ):
            _log_start(settings, build)
            task = thread.submit(supervisor.run)
            while not wait([task], timeout=0.1).done:
                if requests.take(requests.stop):
                    maintenance.end()
                    supervisor.stop()
                elif requests.take(requests.reload) and (reloaded := reload()) is not None:
                    status.follow(reloaded.sources)
                    lag.follow({name: source.kafka for name, source in reloaded.sources.items()})
                    supervisor.follow(reloaded)
            # The query ended by itself, or maintenance has ended.
            if task.exception() is None and task.result() == 0:
                maintenance.finish(requests.stop)
    return _exit_code(task, daemon.notices)


def _status(settings: PipelineSettings, daemon: DaemonSettings) -> Status:
    limit = daemon.batch_timeout
    status = Status(settings.name, daemon.version, settings.sources, batch_timeout=limit)
    status.show_configuration(daemon.configuration)
    return status


def _log_start(settings: PipelineSettings, build: BuildInfo) -> None:
    context = {**asdict(build), "warehouse": settings.warehouse, "pid": os.getpid()}
    _LOG.info("daemon_started", extra={"ctx": context})


@contextmanager
def _running(maintenance: Maintenance) -> Iterator[None]:
    """Run maintenance during the block."""
    maintenance.start()
    try:
        yield
    finally:
        maintenance.stop()


@contextmanager
def _pages(
    daemon: DaemonSettings, settings: PipelineSettings, status: Status
) -> Iterator[EndOffsetPoller]:
    """Serve the pages, poll for lag, and keep the history during the block."""
    history = HistoryFile(history_path(settings.warehouse, settings.name, settings.spark))
    if (saved := history.load()) is not None:
        status.restore(saved)
    tables = DetailsReader(settings, config=daemon.config_file)
    server = HttpServer(daemon.listen, status, daemon.access, daemon.metrics, tables)
    lag = EndOffsetPoller(
        {name: source.kafka for name, source in settings.sources.items()},
        status,
        sampled=lambda: None if daemon.until_latest else history.save_if_due(status.saved_history),
    )
    server.start()
    lag.start()
    try:
        yield lag
    finally:
        lag.stop()
        server.stop()
        if not daemon.until_latest:
            history.save(status.saved_history())


def _exit_code(task: Future[int], notices: Notices | None) -> int:
    error = task.exception()
    if error is None:
        return task.result()
    _LOG.error("pipeline_broke", exc_info=error)
    code = error.exit_code if isinstance(error, IngestdError) else UNEXPECTED
    if notices is not None:
        notices.pipeline_stopped(error, code)
    return code


def _log_end(error: IngestdError | None) -> None:
    if error is None:
        _LOG.info("pipeline_stopped")
    else:
        context = {"error_type": type(error).__name__, "message": error.message}
        _LOG.warning("pipeline_stopped_after_error", extra={"ctx": context})
