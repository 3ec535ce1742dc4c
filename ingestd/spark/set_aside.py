"""Set aside unreadable topic partitions, and topics whose records are mostly rejected.

A run continues without them; unreadable partitions are retried one at a time.
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from ingestd.errors import PolicyStopError, SourceError
from ingestd.ingest.batch_events import BatchListener
from ingestd.ingest.settings.error_policy import UnreadablePolicy
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.wrong_format import SetAside, Topic, WrongFormatDetector, batch_without
from ingestd.ingest.stages.batch_result import AttemptResult
from ingestd.kafka.isolated_fetch import Unreadable
from ingestd.kafka.offset_ranges import BatchOffsets, OffsetRange, SourcePartition, starts_of
from ingestd.kafka.try_range import start_try
from ingestd.kafka.unreadable_ranges import ReadableSearch, by_source, find_unreadable

_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 0.2
_FIRST_SECONDS = 60.0
_LONGEST_SECONDS = 3_600.0


class Try(Protocol):
    """A process that tries to read one record of a topic partition; exit code 0 means success."""

    def poll(self) -> int | None:
        """Return the exit code; None while the process runs."""

    def kill(self) -> None:
        """Kill the process."""

    def wait(self) -> int:
        """Wait for the exit of the process and return the exit code."""


@dataclass(slots=True)
class Tried:
    """The retry state of an unreadable offset: the number of failed tries, and when to try again.

    The next try is due at the monotonic time `due`, in seconds.
    """

    offset: int
    tries: int
    due: float


@dataclass(slots=True)
class KnownRanges:
    """Unreadable ranges of topic partitions that this process knows, over several runs.

    Delays between tries keep growing when a later run finds the same offset unreadable. `given_up`
    are ranges that the policy skips; the next start of the pipeline writes dead letters for them.
    """

    tried: dict[SourcePartition, Tried] = field(default_factory=dict)
    given_up: dict[SourcePartition, OffsetRange] = field(default_factory=dict)


_KNOWN = KnownRanges()


class QueryRetries:
    """The retries of unreadable topic partitions, one at a time, with exponential backoff.

    When an offset has been tried as often as the policy allows, the run either stops with an error,
    or searches the partition for its next readable offset. `start` starts a try of the first offset
    of a range, and `clock` returns a monotonic time in seconds.
    """

    def __init__(
        self,
        start: Callable[[OffsetRange], Try],
        known: KnownRanges,
        policy: UnreadablePolicy,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._start = start
        self._known = known
        self._policy = policy
        self._clock = clock
        self._waiting: dict[SourcePartition, OffsetRange] = {}
        self._searches: dict[SourcePartition, ReadableSearch] = {}
        self._unreached: set[SourcePartition] = set()
        self._running: tuple[SourcePartition, int, Try] | None = None

    @property
    def is_deciding(self) -> bool:
        """Whether a partition has no retries left and is not decided yet.

        The run must not end before the decision: to stop with an error or to skip the unreadable
        range.
        """
        return any(self._is_exhausted(partition) for partition in self._waiting)

    def add(self, unread: OffsetRange, *, is_reached: bool = True) -> None:
        """Add an unreadable range, and count a failed try at its first offset.

        If `is_reached` is false, records before the range are unread, and the range cannot be
        skipped.
        """
        partition = unread.source_partition
        if not is_reached:
            self._unreached.add(partition)
        before = self._known.tried.get(partition)
        tries = before.tries + 1 if before is not None and before.offset == unread.start else 1
        wait = min(_FIRST_SECONDS * 2 ** (tries - 1), _LONGEST_SECONDS)
        self._known.tried[partition] = Tried(unread.start, tries, self._clock() + wait)
        self._waiting[partition] = unread

    def poll(self) -> None:
        """Check the running retry, or start the next one that is due.

        Raises SourceError, which restarts the query, if a topic partition is readable again or its
        unreadable range is skipped; PolicyStopError if its retries are exhausted and the range must
        not be skipped.
        """
        exhausted = [partition for partition in self._waiting if self._is_exhausted(partition)]
        refused = exhausted
        if self._policy.action == "dead-letter":
            refused = [partition for partition in exhausted if partition in self._unreached]
        if refused:
            raise self._stop(refused[0])
        if self._running is None:
            self._begin(exhausted)
            return
        partition, offset, process = self._running
        code = process.poll()
        if code is None:
            return
        self._running = None
        unread = self._waiting[partition]
        if offset == unread.start and code == 0:
            raise SourceError(
                f"{unread.topic}/{unread.partition} of source {unread.source} can be read again at "
                f"offset {unread.start}: the query restarts to read it"
            )
        if partition in self._searches:
            self._searches[partition].note(offset, is_readable=code == 0)
        else:
            self.add(unread)

    def _is_exhausted(self, partition: SourcePartition) -> bool:
        most = self._policy.most_tries
        return most is not None and self._known.tried[partition].tries >= most

    def _stop(self, partition: SourcePartition) -> PolicyStopError:
        unread = self._waiting[partition]
        return PolicyStopError(
            f"{unread.topic}/{unread.partition} of source {unread.source} could not be read at "
            f"offset {unread.start} {self._known.tried[partition].tries} times "
            "(errors.max-unreadable-tries); repair the source, raise the limit to wait longer, or "
            "set errors.on-unreadable to dead-letter to continue after it, once all records "
            "before it are in the tables"
        )

    def _begin(self, exhausted: list[SourcePartition]) -> None:
        if exhausted:
            self._search(exhausted[0])
            return
        now = self._clock()
        due = [partition for partition in self._waiting if self._known.tried[partition].due <= now]
        if due:
            partition = min(due, key=lambda key: self._known.tried[key].due)
            unread = self._waiting[partition]
            self._running = partition, unread.start, self._start(unread)

    def _search(self, partition: SourcePartition) -> None:
        """Try the next offset of a search. Raises SourceError when the search has ended."""
        unread = self._waiting[partition]
        search = self._searches.setdefault(partition, ReadableSearch.of(unread))
        offset = search.next_offset()
        if offset is not None:
            self._running = partition, offset, self._start(replace(unread, start=offset))
            return
        self._known.given_up[partition] = replace(unread, until=search.readable)
        raise SourceError(
            f"{unread.topic}/{unread.partition} of source {unread.source} cannot be read at "
            f"offsets {unread.start} to {search.readable}: the query restarts and continues after "
            "them; a dead letter records them (errors.on-unreadable)"
        )

    def close(self) -> None:
        """Kill the running retry, if there is one."""
        if self._running is not None:
            self._running[2].kill()
            self._running[2].wait()
            self._running = None


class SetAsideTopics:
    """Decides which topics and topic partitions one run stops reading, and retries the partitions.

    Topics are set aside if nearly all of their first records are rejected, topic partitions if they
    cannot be read. `listener` is notified of both.
    """

    def __init__(self, settings: PipelineSettings, listener: BatchListener) -> None:
        self._settings = settings
        self._listener = listener
        self._wrong_formats = WrongFormatDetector(settings.wrong_format_threshold)
        self._topics: dict[Topic, SetAside] = {}
        self._unreadable: dict[SourcePartition, Unreadable] = {}
        self._held_at: dict[SourcePartition, int] = {}
        # Half of a worker's memory: it holds more than the records that it reads.
        self._memory = settings.worker_memory // 2
        self._retries = QueryRetries(self._start_try, _KNOWN, settings.unreadable)

    def without(self, batch: BatchOffsets) -> BatchOffsets:
        """Remove set-aside topics and partitions from a batch.

        Topics are left out; an unreadable partition ends at the offset at which it is set aside.
        """
        starts = {partition: each.range.start for partition, each in self._unreadable.items()}
        ends = {
            partition: self._held_at.get(partition, start) for partition, start in starts.items()
        }
        return batch_without(batch, self.topics, ends)

    @property
    def topics(self) -> frozenset[Topic]:
        """The topics that are set aside, as (source, name)."""
        return frozenset(self._topics)

    def judge(self, result: AttemptResult, ranges: Iterable[OffsetRange]) -> bool:
        """Check the result of a batch before its commits, and set aside topics and partitions.

        `ranges` are those of the batch. Returns whether any was set aside, so that the batch has to
        run again without it.
        """
        for unreadable in result.unreadable:
            self._add_unreadable(unreadable)
        refused = [] if result.unreadable else self._wrong_formats.judge(result.counts)
        starts = starts_of(ranges)
        for rejecting in refused:
            offsets = {
                partition: offset
                for (source, topic, partition), offset in starts.items()
                if (source, topic) == (rejecting.source, rejecting.topic)
            }
            self._add(replace(rejecting, offsets=offsets))
        return bool(refused or result.unreadable)

    def find_culprits(self, ranges: Iterable[OffsetRange]) -> bool:
        """Set aside partitions with records that exceed a worker's memory; return whether any were.

        Called after a worker was lost. The `ranges` of the batch are read again in separate
        processes to find these partitions. The batch then leaves out the partitions from its start
        on, including readable records before a large one: the client fetches ahead, and would
        exceed the memory of the next worker, too. Raises ConfigError for invalid properties, and
        SourceError if no token could be fetched.
        """
        ranges = list(ranges)
        starts, culprits = starts_of(ranges), self.culprits(ranges)
        for culprit in culprits:
            partition = culprit.range.source_partition
            self._held_at[partition] = starts[partition]
            self._add_unreadable(culprit)
        return bool(culprits)

    def culprits(self, ranges: Iterable[OffsetRange]) -> list[Unreadable]:
        """Return the ranges that need too much memory, each from its first unreadable offset.

        Each range is read again in a separate process with half of a worker's memory. Ranges that
        fail for another reason are included, unless the brokers are silent. Nothing is set aside.
        Raises ConfigError for invalid properties, and SourceError if no token could be fetched.
        """
        return [
            unreadable
            for source_ranges in by_source(ranges)
            for unreadable in find_unreadable(
                self._settings.sources[source_ranges[0].source].kafka, source_ranges, self._memory
            )
        ]

    def poll(self) -> None:
        """Check or start a retry of an unreadable partition.

        Raises SourceError, which restarts the query, if a partition is readable again or its
        unreadable range is skipped; PolicyStopError if its retries are exhausted and the range must
        not be skipped.
        """
        self._retries.poll()

    def close(self) -> None:
        """Kill the running retry, if there is one."""
        self._retries.close()

    def _start_try(self, unread: OffsetRange) -> Try:
        _LOG.info("partition_tried", extra={"ctx": {"topic": unread.topic, "offset": unread.start}})
        kafka = self._settings.sources[unread.source].kafka
        return start_try(kafka, [unread], self._memory, first_only=True)

    def refuse_end(self) -> None:
        """Raise PolicyStopError if a topic or partition is set aside, as the run is incomplete.

        Before that, waits for the decisions on partitions whose retries are exhausted. Raises
        SourceError, which restarts the query, if a partition is readable again or its unreadable
        range is skipped.
        """
        while self._retries.is_deciding:
            self._retries.poll()
            time.sleep(_POLL_SECONDS)
        unreadable = map(_unreadable_message, self._unreadable.values())
        problems = [*map(self._message, self._topics.values()), *unreadable]
        if problems:
            raise PolicyStopError("; ".join(problems))

    def _add(self, new: SetAside) -> None:
        self._topics[new.source, new.topic] = new
        topic = {"source": new.source, "topic": new.topic, "offsets": dict(new.offsets)}
        counts = {"records": new.records, "rejected": new.rejected}
        guess = {"looks_like": new.guess.data_format, "message": self._message(new)}
        _LOG.error("topic_set_aside", extra={"ctx": {**topic, **counts, **guess}})
        self._listener.topic_set_aside(new, self._message(new))

    def _add_unreadable(self, new: Unreadable) -> None:
        unread, message = new.range, _unreadable_message(new)
        self._unreadable[unread.source_partition] = new
        at = {"source": unread.source, "topic": unread.topic, "partition": unread.partition}
        _LOG.error(
            "partition_set_aside", extra={"ctx": {**at, "offset": unread.start, "message": message}}
        )
        held_at = self._held_at.get(unread.source_partition, unread.start)
        self._retries.add(unread, is_reached=held_at == unread.start)
        self._listener.partition_set_aside(unread, message)

    def _message(self, aside: SetAside) -> str:
        return aside.message(self._settings.sources[aside.source].data_format)


def _unreadable_message(unreadable: Unreadable) -> str:
    unread = unreadable.range
    return (
        f"{unread.topic}/{unread.partition} of source {unread.source} is set aside at offset "
        f"{unread.start}: {unreadable.reason}. The broker responds, so the client rejects the "
        "record or cannot decompress it; reading it is retried at intervals"
    )


def take_given_up() -> dict[SourcePartition, OffsetRange]:
    """Remove and return the ranges that the policy skips, by topic partition.

    The next start continues after them.
    """
    given_up = dict(_KNOWN.given_up)
    _KNOWN.given_up.clear()
    return given_up
