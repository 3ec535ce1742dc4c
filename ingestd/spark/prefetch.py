"""Run stage 1 of the next batch while the current one is written and committed, during a backlog.

Stage 1 depends only on its ranges and its view of the context, and only stage 2 of its batch reads
its output. So stage 1 may run early, with lower priority than the stages of the current batch. When
its batch starts, the result is used if the batch has the same ranges and the same view, and
discarded otherwise. No other part of a batch runs early, and no result outlives this process. Tasks
that failed early run again with the batch.
"""

import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from threading import Event
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from ingestd.errors import RetryableError
from ingestd.ingest.settings.context import BatchContext
from ingestd.ingest.stages.decode_view import decode_view
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.spark.pyspark_internals import submit_map_stage, wait_for_stage
from ingestd.spark.stages import Exchange, ExchangeFolder, Pairs, decoded, exchange_folder
from ingestd.spark.startup.settings import uses_internals

_LOG = logging.getLogger(__name__)

_POLL_SECONDS = 0.01
_STAGE_WAIT_SECONDS = 0.5
_PATIENCE_SECONDS = 1.0

Groups = list[list[OffsetRange]]


@dataclass(frozen=True, slots=True)
class _Begun:
    """A stage 1 that is submitted in another thread: its input, exchange folder, and job.

    `stack` releases the folder. Setting `ending` cancels the wait before the submission. `running`
    returns the pairs of the stage and the JVM's future.
    """

    view: BatchContext
    groups: Groups
    folder: ExchangeFolder
    stack: ExitStack
    ending: Event
    running: Future[tuple[Pairs, Any]]

    def pairs(self) -> Pairs | None:
        """Wait for the submission; return the pairs of the stage, or None if it failed."""
        with suppress(Py4JError, PySparkException):
            return self.running.result()[0]
        return None

    def discard(self) -> None:
        """Cancel the tasks of the stage and remove its files."""
        self.ending.set()
        with self.stack, suppress(Py4JError, PySparkException):
            self.running.result()[1].cancel()


class Prefetch:
    """Holds at most one prefetched stage 1, which fetches and decodes the records of a batch.

    A prefetched stage runs while the batch before it is written. Not thread-safe.
    """

    def __init__(self, spark: SparkContext) -> None:
        self._spark = spark
        self._pool = ThreadPoolExecutor(1, "prefetch")  # starts its thread on first use
        self._begun: _Begun | None = None
        self._has_turn = False
        self._running_stage: Any = None

    @contextmanager
    def exchange(self, context: BatchContext, groups: Groups) -> Iterator[Exchange]:
        """Yield the exchange of a batch, with the prefetched stage 1 if it was made for this batch.

        `groups` are the offset ranges of each task of stage 1. A prefetched stage 1 with other
        groups or another context is discarded. The exchange must not be used after the block, which
        releases its folder. Raises StorageError if the folder cannot be created.
        """
        begun, self._begun = self._begun, None
        with ExitStack() as stack:
            stack.callback(self._end_turn)
            self._has_turn = True
            pairs = None if begun is None else self._taken(begun, context, groups, stack)
            if begun is not None and pairs is not None:
                yield Exchange(begun.folder, pairs)
            else:
                yield Exchange(stack.enter_context(exchange_folder(self._spark, groups)))

    def follow(self, context: BatchContext, groups: Groups) -> None:
        """Submit stage 1 of a batch before the batch needs it, unless one is prefetched already.

        `groups` are the offset ranges of each task of stage 1. The batch is the next one or, before
        `exchange` is called, the current one. Does nothing if Spark's unpublished interfaces are
        disabled (`uses_internals`). Call this method when the stages of the current batch are about
        to be submitted, since the cores go to the job submitted first. If stage 1 of the current
        batch was prefetched, too, the new stage is submitted only after that stage has ended:
        otherwise both would end before the current batch commits, and the cores would be idle
        meanwhile.
        """
        if self._begun is not None or not uses_internals():
            return
        stack = ExitStack()
        try:
            folder = stack.enter_context(exchange_folder(self._spark, groups))
        except RetryableError:
            return  # the batch itself raises the error
        view = _view(context, groups)
        ending, before, waits = Event(), self._running_stage, self._has_turn

        def submitted() -> tuple[Pairs, Any]:
            pairs = decoded(self._spark, view, groups, folder)
            if waits:
                self._wait_for_turn(before, ending)
            return pairs, submit_map_stage(self._spark, pairs)

        running = self._pool.submit(submitted)
        self._begun = _Begun(view, groups, folder, stack, ending, running)

    def _wait_for_turn(self, before: Any, ending: Event) -> None:  # noqa: ANN401  (of the JVM)
        """Wait until `before` has ended and the current batch runs a job, or until `ending` is set.

        `before` is the JVM's future of the previous prefetched stage 1, or None. The job is awaited
        for at most one second.
        """
        while before is not None and not ending.is_set():
            if wait_for_stage(self._spark, before, _STAGE_WAIT_SECONDS):
                break
        tracker, patience = self._spark.statusTracker(), time.monotonic() + _PATIENCE_SECONDS
        while not ending.wait(_POLL_SECONDS):
            if tracker.getActiveJobsIds() or time.monotonic() > patience:
                return

    def forget(self) -> None:
        """Discard the prefetched stage 1, if there is one; its output is not used."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.discard()

    def close(self) -> None:
        """Discard the prefetched stage 1, and end the thread that submits stages."""
        self.forget()
        self._pool.shutdown()

    def _end_turn(self) -> None:
        self._has_turn, self._running_stage = False, None

    def _taken(
        self, begun: _Begun, context: BatchContext, groups: Groups, stack: ExitStack
    ) -> Pairs | None:
        same = begun.groups == groups and begun.view == _view(context, groups)
        pairs = begun.pairs() if same else None
        if pairs is None:
            _LOG.info("prefetch_discarded", extra={"ctx": {"same_ranges": begun.groups == groups}})
            begun.discard()
            return None
        _LOG.debug("prefetch_used", extra={"ctx": {"ranges": sum(map(len, groups))}})
        stack.enter_context(begun.stack)
        self._running_stage = begun.running.result()[1]
        return pairs


def _view(context: BatchContext, groups: Groups) -> BatchContext:
    return decode_view(context, chain.from_iterable(groups))
