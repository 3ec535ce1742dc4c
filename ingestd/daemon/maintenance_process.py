"""The maintenance process, which compacts and expires tables, and its client in the daemon.

The daemon sends jobs over a socket, one at a time. The process has its own memory and interpreter,
one Arrow thread, and a low priority except for urgent jobs, so that it does not slow down ingest.
It can be killed at any time, which only leaves orphan files. At the request of the daemon it
abandons the job in progress and deletes the files that the job has written; it exits at once when
the daemon exits.

If Spark's Python processes are forks of the prefork server, the maintenance process is one too.
"""

import logging
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

import pyarrow as pa

from ingestd.daemon.maintenance_start import arguments, lower_priority
from ingestd.errors import RetryableError
from ingestd.ingest.maintenance.jobs import Done, do_job
from ingestd.ingest.maintenance.scheduler import Job
from ingestd.log import LogFormat, add_secrets, bind, configure_logging, is_secret_name
from ingestd.paimon.catalog.base import load_catalog
from ingestd.paimon.catalog.branch_catalog import BranchCatalog
from ingestd.paimon.table.metadata.file_store_scan import MANIFEST_CACHE
from ingestd.spark.startup.jvm import forked_python
from ingestd.spark.startup.python_daemon import name_process
from ingestd.spark.startup.settings import worker_path

_LOG = logging.getLogger(__name__)
NAME = "ingestd-maint"
"""The process name; the kernel truncates names to 15 bytes."""
KEPT_ENTRIES = 100_000
"""Maximum number of manifest entries cached between jobs, about 1.1 kB each."""
_DAEMON_EXITED = 1
_ABANDON = signal.SIGUSR1
"""The signal that the process sends itself to abandon the job in progress."""
_MODULE = "ingestd.daemon.maintenance_start"
_POLL_SECONDS = 0.25
_ABANDON_SECONDS = 3.0
_ENVIRONMENT: Mapping[str, str] = {
    # One thread each: idle cores are for ingest.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONSAFEPATH": "1",
}


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request to the maintenance process: a job, and the current log level of the daemon."""

    job: Job
    level: int


Requests = queue.SimpleQueue[JobRequest | None]


@dataclass(frozen=True, slots=True)
class Opening:
    """The first message to a maintenance process: the pipeline, its catalog, and logging."""

    pipeline: str
    metastore: str
    warehouse: str
    catalog_options: Mapping[str, str] = field(repr=False)
    log_level: str = "INFO"
    log_format: LogFormat = "auto"

    @property
    def commit_user(self) -> str:
        """The commit user of compactions.

        It contains a dot, unlike any commit user of a pipeline.
        """
        return f"ingestd-{self.pipeline}.compact"


class MaintenanceClient:
    """A client of one maintenance process; starts it for the first job, and again after its exit.

    Only `pid` may be read by other threads. A process that has lowered its priority cannot raise it
    again, so an urgent job is then run by a new process.
    """

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._process: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None
        self._connection: Connection | None = None
        self._low_priority = False

    @property
    def pid(self) -> int | None:
        """The id of the process, or None while no process runs."""
        return self._pid

    def do(self, job: Job, stopping: threading.Event, grace: float) -> Done | None:
        """Run a job and return its result, or None if the job was abandoned.

        A job is abandoned `grace` seconds after `stopping` was set. Raises RetryableError if the
        process exits before it sends the result.
        """
        if job.urgent and self._low_priority:
            self.close()
        try:
            connection = self._connection or self._start(urgent=job.urgent)
            self._low_priority = not job.urgent
            if self._pid is None:
                self._pid = self._receive(connection, stopping, grace)
                if self._pid is None:
                    return None
                _LOG.info("maintenance_process_started", extra={"ctx": {"pid": self._pid}})
            connection.send(JobRequest(job, logging.getLogger().level))
            done: Done | None = self._receive(connection, stopping, grace)
        except (EOFError, OSError) as error:
            code = self._reap()
            raise RetryableError(
                f"the maintenance process ended{f' with {code}' if code else ''} during a job for "
                f"table {job.table}; the process is started again"
            ) from error
        return done

    def close(self) -> None:
        """Stop the process, which abandons a job in progress; kill it after 3 seconds."""
        if self._process is None:
            return
        if self._connection is not None:
            try:
                self._connection.send(None)
            except OSError:
                _LOG.debug("maintenance_process_ended")
        self._reap()

    def _start(self, *, urgent: bool) -> Connection:
        ours, theirs = socket.socketpair()
        forked = forked_python()
        command, variables = (sys.executable, _ENVIRONMENT) if forked is None else forked
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  (no external input)
                [command, "-m", _MODULE, *arguments(urgent=urgent)],
                stdin=theirs.fileno(),
                env={**os.environ, **_ENVIRONMENT, **variables, "PYTHONPATH": worker_path()},
            )
        self._connection = Connection(ours.detach())
        self._connection.send(self._opening)
        return self._connection

    @staticmethod
    def _receive(connection: Connection, stopping: threading.Event, grace: float) -> Any:  # noqa: ANN401  (a pickled object)
        """Return the next message, or None if none arrives until `grace` seconds after `stopping`.

        Raises EOFError or OSError if the process has exited.
        """
        end: float | None = None
        while not connection.poll(_POLL_SECONDS):
            if stopping.is_set() and end is None:
                end = time.monotonic() + grace
            if end is not None and time.monotonic() >= end:
                return None
        return connection.recv()

    def _reap(self) -> int | None:
        """Wait for the process to exit, or kill it after a timeout; return its exit code.

        Returns None if there is no process.
        """
        process, self._process, self._pid = self._process, None, None
        if process is None:
            return None
        try:
            return process.wait(_ABANDON_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        finally:
            if self._connection is not None:
                self._connection.close()  # a forked process exits when the connection is closed
                self._connection = None


def main(*, low_priority: bool) -> None:
    """Run jobs that the daemon sends over the socket at standard input, until it sends None.

    `low_priority` is whether the priority of this process has already been lowered.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # sent by a terminal: the daemon ends this process
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # sent to the process group: the same applies
    signal.signal(_ABANDON, _abandon)
    name_process(NAME)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    with Connection(sys.stdin.fileno()) as connection:
        serve(connection, low_priority=low_priority)


def serve(connection: Connection, *, low_priority: bool) -> None:
    """Send the id of this process, then receive and run jobs until None is received.

    Unless `low_priority`, the priority is lowered before the first job that is not urgent.
    """
    connection.send(os.getpid())
    opening: Opening = connection.recv()
    options = opening.catalog_options
    add_secrets(value for name, value in options.items() if is_secret_name(name))
    level, style = opening.log_level, opening.log_format
    configure_logging(level, style, stream=sys.stdout, pipeline=opening.pipeline)
    MANIFEST_CACHE.limit(KEPT_ENTRIES)
    catalog = BranchCatalog(load_catalog(opening.metastore, opening.warehouse, options))
    requests = Requests()
    threading.Thread(
        target=_listen, args=(connection, requests), name="listen", daemon=True
    ).start()
    while (request := requests.get()) is not None:
        logging.getLogger().setLevel(request.level)
        if not (low_priority or request.job.urgent):
            lower_priority()
            low_priority = True
        with bind(table=request.job.table):
            _LOG.debug("maintenance_job", extra={"ctx": {"kind": request.job.kind}})
            connection.send(do_job(catalog, request.job, opening.commit_user))
        release_memory()


def release_memory() -> None:
    """Return freed memory to the system; the allocators would retain it for later jobs.

    Both of Arrow's pools are released. Its system pool is the allocator of the C library, which all
    other code uses, too.
    """
    for pool in (pa.default_memory_pool(), pa.system_memory_pool()):
        pool.release_unused()


def _listen(connection: Connection, requests: Requests) -> None:
    """Receive requests and queue them, also while a job runs.

    The request None also abandons the job in progress. The process exits if the daemon has exited.
    """
    try:
        while True:
            request: JobRequest | None = connection.recv()
            requests.put(request)
            if request is None:
                os.kill(os.getpid(), _ABANDON)
    except (EOFError, OSError):
        os._exit(_DAEMON_EXITED)


def _abandon(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
