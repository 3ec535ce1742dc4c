"""The two stages of a micro-batch as Spark tasks: decode to blobs, shuffle blobs, write files.

Blobs are opaque bytes to the JVM, or only names of files if both stages run in the driver's JVM. A
task returns a `FatalError` as a value, so that Spark does not retry it and the driver raises the
same error; any other error is raised, and Spark retries the task.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import TypeAlias

from py4j.protocol import Py4JJavaError
from pyspark import RDD, SparkContext
from pyspark.errors import PySparkException

from ingestd.config.spark_master import has_executors
from ingestd.errors import FatalError
from ingestd.ingest.key_changes.completion import complete_rows
from ingestd.ingest.rows.chunk_cache import ChunkCache
from ingestd.ingest.settings.context import BatchContext
from ingestd.ingest.stages.batch_result import WriteOutcome
from ingestd.ingest.stages.decode_stage import decode_ranges
from ingestd.ingest.stages.decode_view import decode_view
from ingestd.ingest.stages.write_stage import write_slot
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.spark.exchange.executor_files import ExecutorFolder, executor_folder
from ingestd.spark.exchange.local_exchange import read_blobs, write_blobs
from ingestd.spark.exchange.shared_folder import shared_folder
from ingestd.spark.exchange.spool import Spool
from ingestd.spark.exchange.temporary_files import local_directory
from ingestd.spark.failure import task_error
from ingestd.spark.pyspark_internals import use_java_serializer
from ingestd.spark.sealed_task import SealedTask, Task, seal
from ingestd.spark.startup.settings import EXCHANGE_PORT_SETTING, needs_shuffle, uses_internals
from ingestd.spark.warehouse_token import WarehouseToken, warehouse_tokens

_ERROR_MARK = b"ingestd-fatal-error\0"

Pairs = RDD[tuple[int, bytes]]
ExchangeFolder: TypeAlias = str | ExecutorFolder | None
"""Where stage 1 writes blobs for stage 2: a path on this machine, a folder in every executor, or
nowhere, so that blobs pass through Spark's shuffle."""


@dataclass(frozen=True, slots=True)
class DecodeTask:
    """Stage 1: fetches and decodes the ranges of its Spark partition into (slot, blob) pairs.

    `folder` is the exchange folder, or None to send all blobs through the shuffle.
    """

    context: BatchContext
    folder: ExchangeFolder

    def __call__(
        self, task_index: int, ranges: Iterator[OffsetRange]
    ) -> Iterator[tuple[int, bytes]]:
        """Yield (slot, bytes) pairs for the shuffle; a FatalError is yielded as the last pair."""
        try:
            folder = self.folder
            path = folder.open() if isinstance(folder, ExecutorFolder) else folder
            cache = None if path is None else ChunkCache(path)
            pairs = decode_ranges(self.context, ranges, task_index=task_index, cache=cache)
            yield from write_blobs(pairs, path)
        except FatalError as error:
            yield task_index % self.context.slots, _ERROR_MARK + pickle.dumps(error)


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Stage 2: writes the rows of its slots to data files.

    `tokens` are files by which the task first checks that it sees the warehouses of the driver.
    """

    context: BatchContext
    tokens: Sequence[WarehouseToken] = ()

    def __call__(self, pairs: Iterable[tuple[int, bytes]]) -> Iterator[WriteOutcome | FatalError]:
        """Yield one outcome for all blobs of the task, or a FatalError; nothing without blobs."""
        blobs = Spool(self.context.write_buffer_size)
        for _, blob in pairs:
            if blob.startswith(_ERROR_MARK):
                yield pickle.loads(blob[len(_ERROR_MARK) :])  # noqa: S301  (our own stage 1 wrote it)
                return
            blobs.add(blob)
        if not blobs:
            return
        try:
            for token in self.tokens:
                token.prove()
            yield write_slot(self.context, read_blobs(blobs.blobs()), complete_rows)
        except FatalError as error:
            yield error


@contextmanager
def exchange_folder(
    spark: SparkContext, groups: list[list[OffsetRange]]
) -> Iterator[ExchangeFolder]:
    """Yield the folder in which the tasks of all attempts of a batch exchange files.

    With a local master it is a folder on this machine, otherwise a folder in the local directory of
    each executor. Yields None if executors do not serve files, or if `groups` has only one group,
    which needs no exchange. The folder on this machine is removed after the block, those of
    executors by tasks of a later batch. Raises StorageError if it cannot be created.
    """
    if len(groups) > 1 and executors_serve_files(spark):
        with executor_folder() as folder:
            yield folder
        return
    with shared_folder(_folder_parent(spark) if len(groups) > 1 else None) as path:
        yield path


@dataclass(slots=True)
class Exchange:
    """The exchange between the stages of one batch: its folder, and a prefetched stage 1.

    `folder` is the folder for the blobs (None: they are sent through Spark's shuffle).
    `prefetched` is used by the first attempt only. `on_submit` is called when an attempt is about
    to be submitted.
    """

    folder: ExchangeFolder
    prefetched: "Pairs | None" = None
    on_submit: Callable[[], None] | None = None


def run_stages(
    spark: SparkContext,
    context: BatchContext,
    groups: list[list[OffsetRange]],
    exchange: Exchange,
) -> list[WriteOutcome]:
    """Run both stages over `groups` (one task of stage 1 for each) and return the outcomes.

    A single group needs no shuffle: one task runs both stages. Raises the first FatalError in the
    order of tasks; files that other tasks wrote remain as orphan files. If a task fails in all of
    Spark's attempts, raises its IngestdError, a WorkerLostError if a worker was killed or ran out
    of memory, or else a RetryableError.
    """
    pairs, exchange.prefetched = exchange.prefetched, None
    try:
        if pairs is None:
            view = decode_view(context, chain.from_iterable(groups))
            pairs = decoded(spark, view, groups, exchange.folder)
        task = _sendable(spark, WriteTask(context, warehouse_tokens(spark, context)))
        written = pairs.mapPartitions(task)
        if exchange.on_submit is not None:
            exchange.on_submit()
        results = written.collect()
    except (PySparkException, Py4JJavaError) as error:
        raise task_error(str(error)) from error
    outcomes: list[WriteOutcome] = []
    for result in results:
        if isinstance(result, FatalError):
            raise result
        outcomes.append(result)
    return outcomes


def decoded(
    spark: SparkContext,
    view: BatchContext,
    groups: list[list[OffsetRange]],
    folder: ExchangeFolder,
) -> Pairs:
    """Build stage 1 as a lazy RDD with one task for each of `groups`, lists of offset ranges.

    `view` is the context of the tasks. The blobs are shuffled by slot if there are several groups.
    `folder` is the folder for blobs in files (None: all go through the shuffle).
    """
    ranges: RDD[list[OffsetRange]] = spark.parallelize(groups, len(groups))
    task = _sendable(spark, DecodeTask(view, folder))
    pairs = ranges.mapPartitionsWithIndex(_flattened(task))
    if len(groups) == 1:
        return pairs
    shuffled = pairs.partitionBy(view.slots, _slot)
    if folder is not None and uses_internals():
        use_java_serializer(spark, shuffled)
    return shuffled


@cache
def executors_serve_files(spark: SparkContext) -> bool:
    """Return whether tasks run in executors that serve their exchange files to each other.

    Returns False also if a setting of the context needs Spark's shuffle; Spark's own files of
    defaults may contain such a setting.
    """
    if not has_executors(str(spark.master)):
        return False
    settings = dict(spark.getConf().getAll())
    return bool(settings.get(EXCHANGE_PORT_SETTING)) and not needs_shuffle(settings)


@cache
def _folder_parent(spark: SparkContext) -> str | None:
    """Return the local folder for exchange folders; None if tasks run in executors.

    Cached, since reading a setting is a call into the JVM.
    """
    if has_executors(str(spark.master)):
        return None
    return local_directory(spark.getConf().get("spark.local.dir"))


def _slot(slot: int) -> int:
    return slot


def _sendable(spark: SparkContext, task: Task) -> Task | SealedTask:
    """Return a task for Spark to send: without secrets if tasks run in executors."""
    return seal(task) if has_executors(str(spark.master)) else task


def _flattened(
    task: DecodeTask | SealedTask,
) -> Callable[[int, Iterable[list[OffsetRange]]], Iterator[tuple[int, bytes]]]:
    def run(index: int, groups: Iterable[list[OffsetRange]]) -> Iterator[tuple[int, bytes]]:
        yield from task(index, chain.from_iterable(groups))

    return run
