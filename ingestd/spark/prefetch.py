"""Stage 1 of the next batch while this one is written and committed, as long as a backlog lasts.

Stage 1 depends on the ranges that it reads and on its view of the context alone, and what it
leaves is read by nobody but stage 2 of its batch. So it may run early: behind the stages of the
batch before, which come first on every core. When its batch begins, what ran is taken if ranges and
view are the very ones, and thrown away otherwise. Nothing else of a batch is done early, and
nothing is written down that outlives the process. Tasks that fail here are run again by the batch.
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
from ingestd.kafka.ranges import OffsetRange
from ingestd.spark.pyspark_internals import submit_map_stage, uses_optional_internals
from ingestd.spark.stages import HandOver, Pairs, decoded, exchange_folder

_LOG = logging.getLogger(__name__)

_POLL_SECONDS = 0.01
_STAGE_POLL_SECONDS = 0.05
_PATIENCE_SECONDS = 1.0

Groups = list[list[OffsetRange]]


class _ThrownAwayError(Exception):
    """Ends the folder of a stage 1 that nobody will read."""


@dataclass(frozen=True, slots=True)
class _Begun:
    """A stage 1 that was begun: of what, where its files are, and its pairs with what runs them."""

    view: BatchContext
    groups: Groups
    folder: str | None
    stack: ExitStack
    ending: Event
    running: Future[tuple[Pairs, Any]]

    def pairs(self) -> Pairs | None:
        """Its pairs, None if it could not be begun."""
        with suppress(Py4JError, PySparkException):
            return self.running.result()[0]
        return None

    def throw_away(self) -> None:
        """End what runs of it, and remove its files."""
        self.ending.set()
        with suppress(_ThrownAwayError), self.stack:
            with suppress(Py4JError, PySparkException):
                self.running.result()[1].cancel()
            raise _ThrownAwayError


class Prefetch:
    """At most one stage 1 that has begun before its batch. Not shared between threads."""

    def __init__(self, spark: SparkContext) -> None:
        self._spark = spark
        self._pool = ThreadPoolExecutor(1, "ahead")  # no thread until it is needed
        self._begun: _Begun | None = None
        self._has_turn = False
        self._taken_one: Any = None

    @contextmanager
    def hand_over(self, context: BatchContext, groups: Groups) -> Iterator[HandOver]:
        """How the stages of a batch hand over: with the stage 1 that has begun, if it is its own.

        It must be taken by the end of the block, for the folder is gone then.
        """
        begun, self._begun = self._begun, None
        with ExitStack() as stack:
            stack.callback(self._end_turn)
            self._has_turn = True
            pairs = None if begun is None else self._taken(begun, context, groups, stack)
            if begun is not None and pairs is not None:
                yield HandOver(begun.folder, pairs)
            else:
                yield HandOver(stack.enter_context(exchange_folder(self._spark, groups)))

    def follow(self, context: BatchContext, groups: Groups) -> None:
        """Begin stage 1 of the next batch, or that of a batch itself, unless one has begun.

        To be called when the stages of the batch before are about to be submitted: what is
        submitted first has the cores first. Its stage 1 ends before this one begins, even if it ran
        early itself: else both would be done when it commits, and nothing be left for the cores.
        """
        if self._begun is not None or not uses_optional_internals():
            return
        stack = ExitStack()
        try:
            folder = stack.enter_context(exchange_folder(self._spark, groups))
        except RetryableError:
            return  # the batch itself will say so
        view = _view(context, groups)
        ending, before, waits = Event(), self._taken_one, self._has_turn

        def submitted() -> tuple[Pairs, Any]:
            pairs = decoded(self._spark, view, groups, folder)
            if waits:
                self._wait_behind(before, ending)
            return pairs, submit_map_stage(self._spark, pairs)

        running = self._pool.submit(submitted)
        self._begun = _Begun(view, groups, folder, stack, ending, running)

    def _wait_behind(self, before: Any, ending: Event) -> None:  # noqa: ANN401  (of the JVM)
        """Until a stage 1 that ran early has ended, and its batch has a job to have the cores.

        The end of a stage is asked for less often: every question costs two processes, and there
        is time to begin the next one until the stage 2 behind it lets go of the first core.
        """
        while before is not None and not ending.wait(_STAGE_POLL_SECONDS):
            if before.isCompleted():
                break
        tracker, patience = self._spark.statusTracker(), time.monotonic() + _PATIENCE_SECONDS
        while not ending.wait(_POLL_SECONDS):
            if tracker.getActiveJobsIds() or time.monotonic() > patience:
                return

    def forget(self) -> None:
        """Throw away what was begun."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.throw_away()

    def close(self) -> None:
        """Forget, and begin nothing more."""
        self.forget()
        self._pool.shutdown()

    def _end_turn(self) -> None:
        self._has_turn, self._taken_one = False, None

    def _taken(
        self, begun: _Begun, context: BatchContext, groups: Groups, stack: ExitStack
    ) -> Pairs | None:
        same = begun.groups == groups and begun.view == _view(context, groups)
        pairs = begun.pairs() if same else None
        if pairs is None:
            _LOG.info("prefetch_discarded", extra={"ctx": {"same_ranges": begun.groups == groups}})
            begun.throw_away()
            return None
        _LOG.debug("prefetch_used", extra={"ctx": {"ranges": sum(map(len, groups))}})
        stack.enter_context(begun.stack)
        self._taken_one = begun.running.result()[1]
        return pairs


def _view(context: BatchContext, groups: Groups) -> BatchContext:
    return decode_view(context, chain.from_iterable(groups))
