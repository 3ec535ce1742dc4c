"""The process that compacts and expires, beside the daemon: asked over a socket, one job at a time.

It has its own memory and its own interpreter, so ingest waits for neither, and it is niced, but for
what ingest is about to wait for, and has a single thread of Arrow's, so ingest goes first. Killed
at any moment it leaves orphan files and no damage. It ends when the daemon says so or at SIGTERM,
which give the job under way up and take back the files that it knows of, and at once when the
daemon has gone.
"""

import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import FrameType

import pyarrow as pa

from ingestd.daemon.niceness import give_way
from ingestd.ingest.maintenance.jobs import do_job
from ingestd.ingest.maintenance.scheduler import Job
from ingestd.log import LogFormat, add_secrets, bind, configure_logging, is_secret_name
from ingestd.paimon.catalog.base import load_catalog
from ingestd.paimon.table.metadata.manifest_cache import KEPT
from ingestd.spark.startup.python_daemon import name_process

_LOG = logging.getLogger(__name__)
NAME = "ingestd-maint"
"""The kernel keeps 15 characters of a process's name."""
KEPT_ENTRIES = 100_000
"""Entries of manifests that are kept from job to job, some 1.1 kB each."""
_GONE = 1
_GIVE_UP = signal.SIGUSR1
"""What the process sends itself to end a job under way."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A job, and the level of the daemon's log by now."""

    job: Job
    level: int


Asked = queue.SimpleQueue[Asking | None]


@dataclass(frozen=True, slots=True)
class Opening:
    """The first thing that the process is told: who it works for, where, and how it logs."""

    pipeline: str
    metastore: str
    warehouse: str
    catalog_options: Mapping[str, str] = field(repr=False)
    log_level: str = "INFO"
    log_format: LogFormat = "auto"

    @property
    def commit_user(self) -> str:
        """That of compactions; no pipeline can have it, since names have no dot."""
        return f"ingestd-{self.pipeline}.compact"


def main(*, gives_way: bool) -> None:
    """Serve the socket that is the standard input; says whether the process has given way."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the daemon says when to end
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # of a whole group: the same
    signal.signal(_GIVE_UP, _give_up)
    name_process(NAME)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    with Connection(sys.stdin.fileno()) as listener:
        serve(listener, gives_way=gives_way)


def serve(listener: Connection, *, gives_way: bool) -> None:
    """Say which process this is, then do jobs until None comes instead of one.

    A process that has not given way does so at the first job that nobody waits for.
    """
    listener.send(os.getpid())
    opening: Opening = listener.recv()
    options = opening.catalog_options
    add_secrets(value for name, value in options.items() if is_secret_name(name))
    level, style = opening.log_level, opening.log_format
    configure_logging(level, style, stream=sys.stdout, pipeline=opening.pipeline)
    KEPT.limit(KEPT_ENTRIES)
    catalog = load_catalog(opening.metastore, opening.warehouse, options)
    asked = Asked()
    threading.Thread(target=_listen, args=(listener, asked), name="listen", daemon=True).start()
    while (asking := asked.get()) is not None:
        logging.getLogger().setLevel(asking.level)
        if not (gives_way or asking.job.urgent):
            give_way()
            gives_way = True
        with bind(table=asking.job.table):
            _LOG.debug("maintenance_job", extra={"ctx": {"kind": asking.job.kind}})
            listener.send(do_job(catalog, asking.job, opening.commit_user))
        give_memory_back()


def give_memory_back() -> None:
    """Let the system have what the last job has freed: allocators keep it for a job as large.

    The system's pool is the C library's, which all that is not Arrow's takes its memory from.
    """
    for pool in (pa.default_memory_pool(), pa.system_memory_pool()):
        pool.release_unused()


def _listen(listener: Connection, asked: Asked) -> None:
    """Hear what comes while a job is being done, above all that the daemon is no more."""
    try:
        while True:
            asking: Asking | None = listener.recv()
            asked.put(asking)
            if asking is None:
                os.kill(os.getpid(), _GIVE_UP)
    except (EOFError, OSError):
        os._exit(_GONE)


def _give_up(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
