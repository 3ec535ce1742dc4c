"""The process that Spark's Python workers are forked from; Spark starts it as a module.

Every task would otherwise pay for what this does once: archives on the path are read again by
each `importlib.invalidate_caches()`, heavy imports, and a collection of garbage over all objects
of the imported modules. Nothing here may start a thread, since a fork takes only one along.
"""

import ctypes
import gc
import importlib
import importlib.util
import os
import pkgutil
import resource
import signal
import socket
import sys
import zipimport
from collections.abc import Callable, Iterator, Mapping, Sequence

from ingestd.spark.startup.settings import PRIVATE_UMASK, UMASK, WORKER_MEMORY

NAME = "ingestd-worker"
"""What Spark's workers, and the daemon that they are forked from, are called."""
_ARCHIVES = (".zip", ".jar", ".egg")
_PRELOADED = (
    "importlib.metadata",  # asked for by every invalidate_caches()
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
_ENVIRONMENT: Mapping[str, str] = {
    # Read by numpy and by Arrow's allocator when they are imported; otherwise both start threads.
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    # Chunk follows chunk: memory given back at once is faulted in again, page by page.
    "MIMALLOC_PURGE_DELAY": "10000",
    # In KiB. What is reserved counts against a worker's limit; by itself it is 1 GiB at once.
    "MIMALLOC_ARENA_RESERVE": "65536",
}
_SET_NAME = 15  # of prctl.h
_GARBAGE_OBJECTS = 1_000_000
_MALLOC_TRIM_THRESHOLD, _MALLOC_TOP_PAD, _MALLOC_MMAP_THRESHOLD = -1, -2, -3  # of malloc.h
_KEPT_BYTES = 256 << 20
Serve = Callable[[socket.socket, bool], int]
_STAGES = "ingestd.spark.stages"
_TASKS = "pyspark.worker"


def main() -> None:
    """Prepare this process and serve forks until Spark closes the pipe.

    SIGTERM is blocked, in its forks as well: one to all processes is for the driver to obey, which
    needs them for the batch in flight. Spark closes the pipe whenever it sends one itself. The
    daemon's socket is for this user alone; what workers write has the umask of the driver.
    """
    own = os.umask(PRIVATE_UMASK)
    mask = int(os.environ.get(UMASK) or format(own, "o"), 8)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    name_process(NAME)
    forget_archives()
    tasks = sys.argv[1:] == [_TASKS]  # Spark has daemons for planning too, which need none of it
    if tasks:
        preload()
    daemon = importlib.import_module("pyspark.daemon")
    daemon.__dict__["worker"] = _prepared(daemon.__dict__["worker"], mask)
    gc.collect()
    gc.freeze()  # a worker collects garbage after each task: not over these
    if tasks:
        # In a task it would look at every waiting record, time and again, to find nothing.
        gc.set_threshold(_GARBAGE_OBJECTS)
        keep_memory()
        limit_memory()
    daemon.manager()


def prepare_imports() -> None:
    """Set what heavy packages read when they are imported."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)


def name_process(name: str) -> None:
    """Call this process so where its threads are listed (Linux only)."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_SET_NAME, name.encode())


def forget_archives() -> None:
    """Take archives off the path and make those that stay cheap to keep.

    They stay only where PySpark itself is in one. Archives do not change while Spark runs, so
    nothing is lost by not reading their directories again.
    """
    zipimport.zipimporter.invalidate_caches = _nothing  # type: ignore[method-assign,assignment]  # see above
    before = list(sys.path)
    sys.path[:] = [entry for entry in sys.path if not entry.endswith(_ARCHIVES)]
    if importlib.util.find_spec("pyspark") is None:
        sys.path[:] = before
        return
    for entry in [entry for entry in sys.path_importer_cache if entry.endswith(_ARCHIVES)]:
        del sys.path_importer_cache[entry]


def preload(more: Sequence[str] = ()) -> None:
    """Import everything that a task may need, and `more`, without starting a thread."""
    prepare_imports()
    for name in (*_PRELOADED, *_modules(), _STAGES, *more):
        importlib.import_module(name)


def keep_memory() -> None:
    """Have the C library keep up to 256 MiB of freed memory for the next chunk (glibc only)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MALLOC_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MALLOC_TOP_PAD, 16 << 20)
        mallopt(_MALLOC_MMAP_THRESHOLD, 32 << 20)


def limit_memory() -> None:
    """Give this process, and each worker forked from it, the limit of memory in the environment.

    It counts memory of its own that can be written, not files that are mapped.
    """
    wanted = int(os.environ.get(WORKER_MEMORY, "0"))
    if wanted:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _modules() -> Iterator[str]:
    for package in _PACKAGES:
        places = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(places, prefix=f"{package}."):
            yield module.name


def _prepared(serve: Serve, mask: int) -> Serve:
    """Spark's loop of a worker with this umask, ending without a word when Spark has gone."""

    def worker(connection: socket.socket, authenticated: bool) -> int:
        os.umask(mask)
        try:
            return serve(connection, authenticated)
        except (BrokenPipeError, ConnectionResetError):
            return 1

    return worker


def _nothing(importer: zipimport.zipimporter) -> None:
    """Stand in for `zipimporter.invalidate_caches`."""


if __name__ == "__main__":
    main()
