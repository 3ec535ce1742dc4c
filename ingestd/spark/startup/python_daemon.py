"""The process from which Spark forks its Python workers (`spark.python.daemon.module`).

Without it, every task would import large packages, read the archives on the path at each
`importlib.invalidate_caches()`, and visit all objects of imported modules in a garbage collection.
No code in it may start a thread, since a fork copies only the calling thread.
"""

import ctypes
import gc
import importlib
import importlib.util
import os
import pkgutil
import platform
import resource
import signal
import socket
import sys
import zipimport
from collections.abc import Callable, Iterator, Mapping, Sequence

from ingestd.errors import storage_error
from ingestd.spark.startup.settings import (
    EXCHANGE_PORT,
    EXCHANGE_PORT_SETTING,
    PRIVATE_UMASK,
    UMASK,
    WORKER_MEMORY,
)

NAME = "ingestd-worker"
"""The process name of Spark's workers and of their daemon."""
_FILE_SERVER = "ingestd-files"
_ARCHIVES = (".zip", ".jar", ".egg")
_PRELOADED = (
    "importlib.metadata",  # imported by every invalidate_caches()
    "numpy",
    "pyarrow",
    "pyarrow.compute",
    "pyarrow.json",
    "pyarrow.parquet",
    "fastavro",
    "msgspec",
    "confluent_kafka",
    "pyspark",
    "pyspark.worker",
)
_PACKAGES = (
    "ingestd.kafka",
    "ingestd.cdc",
    "ingestd.paimon",
    "ingestd.ingest",
)
_OF_EXTRAS = ("ingestd.kafka.msk_tokens", "ingestd.paimon.io.hdfs", "ingestd.paimon.io.hdfs_client")
"""Modules that need packages of extras; a task that uses one imports it."""
_ENVIRONMENT: Mapping[str, str] = {
    # Read by numpy and by Arrow's allocator at import; otherwise both start threads.
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    # Memory that is returned after each chunk would be faulted in again for the next one.
    "MIMALLOC_PURGE_DELAY": "10000",
    # In KiB. Reserved memory counts against a worker's limit; the default is 1 GiB.
    "MIMALLOC_ARENA_RESERVE": "65536",
}
_SET_NAME = 15  # of prctl.h
_GARBAGE_OBJECTS = 1_000_000
_MALLOC_TRIM_THRESHOLD, _MALLOC_TOP_PAD, _MALLOC_MMAP_THRESHOLD = -1, -2, -3  # of malloc.h
_KEPT_BYTES = 256 << 20
Serve = Callable[[socket.socket, bool], int]
_STAGES = "ingestd.spark.stages"
_EXCHANGE = "ingestd.spark.exchange.executor_files"  # imports Arrow, as preload() does
_TASKS = "pyspark.worker"


def main() -> None:
    """Prepare this process and fork workers until Spark closes the pipe.

    SIGTERM is blocked here and in workers: if it is sent to all processes, the driver needs the
    workers to finish the batch in flight before it ends. If Spark sends SIGTERM, it closes the
    pipe, too. Other users cannot open the daemon's socket; files of workers have the umask of the
    driver.
    """
    own = os.umask(PRIVATE_UMASK)
    mask = int(os.environ.get(UMASK) or format(own, "o"), 8)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    name_process(NAME)
    forget_archives()
    tasks = sys.argv[1:] == [_TASKS]  # daemons for planning need no packages of tasks
    if tasks:
        preload()
    daemon = importlib.import_module("pyspark.daemon")
    daemon.__dict__["worker"] = _wrap_worker(daemon.__dict__["worker"], mask)
    gc.collect()
    gc.freeze()  # a worker collects garbage after each task, but not these objects
    if tasks:
        if port := os.environ.get(EXCHANGE_PORT):
            _start_file_server(int(port))
        # In a task the collector would visit every waiting record repeatedly and free nothing.
        gc.set_threshold(_GARBAGE_OBJECTS)
        keep_memory()
        limit_memory()
    daemon.manager()


def prepare_imports() -> None:
    """Set the environment variables that large packages read at import, unless they are set."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)


def name_process(name: str) -> None:
    """Set the name of this process in process lists (Linux only; at most 15 bytes)."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_SET_NAME, name.encode())


def forget_archives() -> None:
    """Remove zip archives from Python's import path, and never read their directories again.

    They stay on the path if PySpark itself can only be imported from one of them. Archives do not
    change while Spark runs, so their directories need not be read again.
    """
    zipimport.zipimporter.invalidate_caches = _keep_caches  # type: ignore[method-assign,assignment]  # see the docstring
    before = list(sys.path)
    sys.path[:] = [entry for entry in sys.path if not entry.endswith(_ARCHIVES)]
    if importlib.util.find_spec("pyspark") is None:
        sys.path[:] = before
        return
    for entry in [entry for entry in sys.path_importer_cache if entry.endswith(_ARCHIVES)]:
        del sys.path_importer_cache[entry]


def preload(more: Sequence[str] = ()) -> None:
    """Import all modules that a task may use, and the modules `more`, without starting a thread.

    Modules that need packages of extras are left out.
    """
    prepare_imports()
    for name in (*_PRELOADED, *_modules(), _STAGES, *more):
        importlib.import_module(name)


def keep_memory() -> None:
    """Set the C library to keep up to 256 MiB of freed memory for the next chunk (glibc only)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MALLOC_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MALLOC_TOP_PAD, 16 << 20)
        mallopt(_MALLOC_MMAP_THRESHOLD, 32 << 20)


def limit_memory() -> None:
    """Apply the memory limit in the variable `WORKER_MEMORY` to this process and its workers.

    The limit (RLIMIT_DATA) counts private writable memory, not mapped files. It is not raised above
    an existing hard limit. Without the variable, or with 0, nothing is limited.
    """
    limit_bytes = int(os.environ.get(WORKER_MEMORY, "0"))
    if limit_bytes:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = limit_bytes if hard == resource.RLIM_INFINITY else min(limit_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _start_file_server(port: int) -> None:
    """Fork the process that serves the exchange files of this executor to the others.

    Raises StorageError if the port cannot be used.
    """
    files = importlib.import_module(_EXCHANGE)
    try:
        listener = files.listening_socket(port)
    except OSError as error:
        raise storage_error(
            f"port {port} of {platform.node()}: an executor cannot serve exchange files there "
            f"({error}); set {EXCHANGE_PORT_SETTING} to a port that no other executor or program "
            "of the machine uses, to 0 for any free port, or to '' for Spark's shuffle",
            error,
        ) from error
    if listener is None:
        return
    daemon = os.getpid()
    if os.fork() == 0:
        name_process(_FILE_SERVER)
        files.serve_files(listener, daemon)
    listener.close()


def _modules() -> Iterator[str]:
    for package in _PACKAGES:
        folders = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(folders, prefix=f"{package}."):
            if module.name not in _OF_EXTRAS:
                yield module.name


def _wrap_worker(serve: Serve, mask: int) -> Serve:
    """Wrap Spark's worker loop: it sets a umask first, and returns 1 if Spark disconnects."""

    def worker(connection: socket.socket, authenticated: bool) -> int:
        os.umask(mask)
        try:
            return serve(connection, authenticated)
        except (BrokenPipeError, ConnectionResetError):
            return 1

    return worker


def _keep_caches(importer: zipimport.zipimporter) -> None:
    """Do nothing, in place of `zipimporter.invalidate_caches`."""


if __name__ == "__main__":
    main()
