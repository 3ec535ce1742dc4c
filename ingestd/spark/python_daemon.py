"""The process that Spark's Python workers are forked from; Spark starts it as a module.

Every task would otherwise pay for what this does once: archives on the path are read again by
each `importlib.invalidate_caches()`, heavy imports, and a collection of garbage over all objects
of the imported modules. Nothing here may start a thread, since a fork takes only one along.
"""

import os

# Read by numpy and by Arrow's allocator when they are imported; otherwise both start threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")

import gc
import importlib
import importlib.util
import pkgutil
import socket
import sys
import zipimport
from collections.abc import Callable, Iterator

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
_STAGES = "ingestd.spark.stages"
_TASKS = "pyspark.worker"


def main() -> None:
    """Prepare this process and serve forks until Spark closes the pipe."""
    forget_archives()
    if sys.argv[1:] == [_TASKS]:  # Spark has daemons for planning too, which need none of it
        preload()
    daemon = importlib.import_module("pyspark.daemon")
    daemon.__dict__["worker"] = _quiet(daemon.__dict__["worker"])
    gc.collect()
    gc.freeze()  # a worker collects garbage after each task: not over these
    daemon.manager()


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


def preload() -> None:
    """Import everything that a task may need."""
    for name in (*_PRELOADED, *_modules(), _STAGES):
        importlib.import_module(name)


def _modules() -> Iterator[str]:
    for package in _PACKAGES:
        places = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(places, prefix=f"{package}."):
            yield module.name


def _quiet(serve: Callable[[socket.socket, bool], int]) -> Callable[[socket.socket, bool], int]:
    """Spark's loop of a worker, ending without a word when Spark has gone."""

    def worker(connection: socket.socket, authenticated: bool) -> int:
        try:
            return serve(connection, authenticated)
        except (BrokenPipeError, ConnectionResetError):
            return 1

    return worker


def _nothing(importer: zipimport.zipimporter) -> None:
    """Stand in for `zipimporter.invalidate_caches`."""


if __name__ == "__main__":
    main()
