"""The daemon's end of an upkeep process: started when there is something to do, asked, ended.

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

from ingestd.daemon.niceness import arguments
from ingestd.daemon.upkeep_process import Asking, Opening
from ingestd.errors import RetryableError
from ingestd.ingest.upkeep.choice import Job
from ingestd.ingest.upkeep.work import Done
from ingestd.spark.early_start import forked_python
from ingestd.spark.settings import worker_path

_LOG = logging.getLogger(__name__)
_MODULE = "ingestd.daemon.upkeep_start"
_POLL_SECONDS = 0.25
_ABANDON_SECONDS = 3.0
_ENVIRONMENT: Mapping[str, str] = {
    # One thread each: what is idle of the machine belongs to ingest.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONSAFEPATH": "1",
}


class UpkeepChild:
    """One process, used by one thread at a time but for `pid`."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._process: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None
        self._door: Connection | None = None
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
            door = self._door or self._start(urgent=job.urgent)
            self._gives_way = not job.urgent
            if self._pid is None:
                self._pid = self._heard(door, stopping, grace)
                if self._pid is None:
                    return None
                _LOG.info("upkeep_process_started", extra={"ctx": {"pid": self._pid}})
            door.send(Asking(job, logging.getLogger().level))
            done: Done | None = self._heard(door, stopping, grace)
        except (EOFError, OSError) as error:
            code = self._reap()
            raise RetryableError(
                f"the upkeep process ended{f' with {code}' if code else ''} during a job for "
                f"table {job.table}; it is started again"
            ) from error
        return done

    def close(self) -> None:
        """End it; a job under way is given up."""
        if self._process is None:
            return
        if self._door is not None:
            try:
                self._door.send(None)
            except OSError:
                _LOG.debug("upkeep_process_gone")
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
        self._door = Connection(ours.detach())
        self._door.send(self._opening)
        return self._door

    @staticmethod
    def _heard(door: Connection, stopping: threading.Event, grace: float) -> Any:  # noqa: ANN401  (whatever was pickled)
        """What it says next; None if that does not come in time."""
        end: float | None = None
        while not door.poll(_POLL_SECONDS):
            if stopping.is_set() and end is None:
                end = time.monotonic() + grace
            if end is not None and time.monotonic() >= end:
                return None
        return door.recv()

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
            if self._door is not None:
                self._door.close()  # if it has not ended, that ends it
                self._door = None
