"""The daemon's end of an maintenance process: started when there is something to do, asked, ended.

Where Spark's Python processes are forks of one that has imported everything, this is one as well.
A process that has once given way to others does not do what ingest waits for: another one does.
"""

import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from ingestd.daemon.maintenance_process import Asking, Opening
from ingestd.daemon.niceness import arguments
from ingestd.errors import RetryableError
from ingestd.ingest.maintenance.jobs import Done
from ingestd.ingest.maintenance.scheduler import Job
from ingestd.spark.startup.jvm import forked_python
from ingestd.spark.startup.settings import worker_path

_LOG = logging.getLogger(__name__)
_MODULE = "ingestd.daemon.maintenance_start"
_POLL_SECONDS = 0.25
_ABANDON_SECONDS = 3.0
_ENVIRONMENT: Mapping[str, str] = {
    # One thread each: what is idle of the machine belongs to ingest.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONSAFEPATH": "1",
}


class MaintenanceClient:
    """One process, used by one thread at a time but for `pid`."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._process: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None
        self._listener: Connection | None = None
        self._gives_way = False

    @property
    def pid(self) -> int | None:
        """That of the process, None while there is none."""
        return self._pid

    def do(self, job: Job, stopping: threading.Event, grace: float) -> Done | None:
        """Have a job done; None if it was given up, `grace` seconds after `stopping` was set.

        RetryableError when the process ended instead of answering.
        """
        if job.urgent and self._gives_way:
            self.close()
        try:
            listener = self._listener or self._start(urgent=job.urgent)
            self._gives_way = not job.urgent
            if self._pid is None:
                self._pid = self._client_errors(listener, stopping, grace)
                if self._pid is None:
                    return None
                _LOG.info("maintenance_process_started", extra={"ctx": {"pid": self._pid}})
            listener.send(Asking(job, logging.getLogger().level))
            done: Done | None = self._client_errors(listener, stopping, grace)
        except (EOFError, OSError) as error:
            code = self._reap()
            raise RetryableError(
                f"the maintenance process ended{f' with {code}' if code else ''} during a job for "
                f"table {job.table}; it is started again"
            ) from error
        return done

    def close(self) -> None:
        """End it; a job under way is given up."""
        if self._process is None:
            return
        if self._listener is not None:
            try:
                self._listener.send(None)
            except OSError:
                _LOG.debug("maintenance_process_ended")
        self._reap()

    def _start(self, *, urgent: bool) -> Connection:
        ours, theirs = socket.socketpair()
        forked = forked_python()
        command, variables = (sys.executable, _ENVIRONMENT) if forked is None else forked
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  (nothing of it comes from outside)
                [command, "-m", _MODULE, *arguments(urgent=urgent)],
                stdin=theirs.fileno(),
                env={**os.environ, **_ENVIRONMENT, **variables, "PYTHONPATH": worker_path()},
            )
        self._listener = Connection(ours.detach())
        self._listener.send(self._opening)
        return self._listener

    @staticmethod
    def _client_errors(listener: Connection, stopping: threading.Event, grace: float) -> Any:  # noqa: ANN401  (whatever was pickled)
        """What it says next; None if that does not come in time."""
        end: float | None = None
        while not listener.poll(_POLL_SECONDS):
            if stopping.is_set() and end is None:
                end = time.monotonic() + grace
            if end is not None and time.monotonic() >= end:
                return None
        return listener.recv()

    def _reap(self) -> int | None:
        """The exit code, once it has ended; it is killed if it takes long."""
        process, self._process, self._pid = self._process, None, None
        if process is None:
            return None
        try:
            return process.wait(_ABANDON_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        finally:
            if self._listener is not None:
                self._listener.close()  # if it has not ended, that ends it
                self._listener = None
