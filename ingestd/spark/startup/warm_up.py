"""A job that is run for what it leaves behind: loaded classes, a worker daemon and a worker.

The first batch would otherwise wait for all of it; this runs beside the planning of that batch.
"""

import logging
import threading
from collections.abc import Iterable, Iterator

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

_LOG = logging.getLogger(__name__)


def warm_up(spark: SparkContext) -> threading.Thread:
    """Begin one task; its end is not waited for, and its failure is only a line in the log."""
    thread = threading.Thread(target=_run, args=(spark,), name="warm-up", daemon=True)
    thread.start()
    return thread


def _run(spark: SparkContext) -> None:
    try:
        spark.parallelize([[0]], 1).mapPartitionsWithIndex(_indexed).mapPartitions(_same).collect()
    except (Py4JError, PySparkException, OSError) as error:
        _LOG.debug("warm_up_failed", extra={"ctx": {"error": str(error)}})


def _indexed(index: int, groups: Iterable[list[int]]) -> Iterator[tuple[int, bytes]]:
    for group in groups:
        yield index, bytes(group)


def _same(pairs: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    yield from pairs
