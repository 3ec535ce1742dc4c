"""Topics with unusable records and unreadable partitions, which a run stops reading."""

import logging
import time
from collections.abc import Iterable
from dataclasses import replace

from ingestd.errors import PolicyStopError
from ingestd.ingest.maintenance.batch_summary import BatchListener
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.topic_trial import SetAside, Topic, TopicTrial, batch_without
from ingestd.ingest.stages.outcome import AttemptResult
from ingestd.kafka.isolated_fetch import Unreadable
from ingestd.kafka.ranges import BatchOffsets, OffsetRange, Place, starts_of
from ingestd.kafka.try_range import start_try
from ingestd.kafka.unreadable import by_source, find_unreadable
from ingestd.spark.retries import KnownRanges, QueryRetries, Try

_LOG = logging.getLogger(__name__)
_KNOWN = KnownRanges()
_POLL_SECONDS = 0.2


class SetAsideTopics:
    """The topics and the topic partitions that one run has set aside."""

    def __init__(self, settings: PipelineSettings, listener: BatchListener) -> None:
        self._settings = settings
        self._listener = listener
        self._trial = TopicTrial(settings.trial_limits)
        self._found: dict[Topic, SetAside] = {}
        self._unreadable: dict[Place, Unreadable] = {}
        self._held_at: dict[Place, int] = {}
        # Half of a worker's memory: it holds more than the records that it reads.
        self._memory = settings.limits.worker_memory // 2
        self._retries = QueryRetries(self._start_try, _KNOWN, settings.unreadable)

    def without(self, batch: BatchOffsets) -> BatchOffsets:
        """Return a batch without the topics and partitions that are set aside."""
        starts = {place: one.range.start for place, one in self._unreadable.items()}
        ends = {place: self._held_at.get(place, start) for place, start in starts.items()}
        return batch_without(batch, self.topics, ends)

    @property
    def topics(self) -> frozenset[Topic]:
        """The topics that are set aside, as (source, name)."""
        return frozenset(self._found)

    def judge(self, result: AttemptResult, ranges: Iterable[OffsetRange]) -> bool:
        """Check the result of a batch before its commits, and set aside topics and partitions.

        Return whether any was set aside, so that the batch has to run again without it.
        """
        for unreadable in result.unreadable:
            self._add_unreadable(unreadable)
        found = [] if result.unreadable else self._trial.judge(result.counts)
        starts = starts_of(ranges)
        for one in found:
            offsets = {
                partition: offset
                for (source, topic, partition), offset in starts.items()
                if (source, topic) == (one.source, one.topic)
            }
            self._add(replace(one, offsets=offsets))
        return bool(found or result.unreadable)

    def find_culprits(self, ranges: Iterable[OffsetRange]) -> bool:
        """Set aside the ranges that exceed the memory of a worker; return whether there are any.

        The batch reads nothing of their topic partitions: the client fetches ahead, which would
        kill the next worker too.
        """
        memory, ranges = self._memory, list(ranges)
        starts = starts_of(ranges)
        found = [
            unreadable
            for ones in by_source(ranges)
            for unreadable in find_unreadable(
                self._settings.sources[ones[0].source].kafka, ones, memory
            )
        ]
        for one in found:
            place = (one.range.source, one.range.topic, one.range.partition)
            self._held_at[place] = starts[place]
            self._add_unreadable(one)
        return bool(found)

    def poll(self) -> None:
        """Retry unreadable partitions at intervals; raises the errors of `Retries.poll`."""
        self._retries.poll()

    def close(self) -> None:
        """Kill a retry that is running."""
        self._retries.close()

    def _start_try(self, left: OffsetRange) -> Try:
        _LOG.info("partition_tried", extra={"ctx": {"topic": left.topic, "offset": left.start}})
        kafka = self._settings.sources[left.source].kafka
        return start_try(kafka, [left], self._memory, first_only=True)

    def refuse_end(self) -> None:
        """Raise PolicyStopError if anything is set aside, since the run has not read all records.

        Waits for retries that are deciding, and raises the errors of `Retries.poll`.
        """
        while self._retries.is_deciding:
            self._retries.poll()
            time.sleep(_POLL_SECONDS)
        unreadable = map(_unreadable_message, self._unreadable.values())
        problems = [*map(self._message, self._found.values()), *unreadable]
        if problems:
            raise PolicyStopError("; ".join(problems))

    def _add(self, one: SetAside) -> None:
        self._found[one.source, one.topic] = one
        place = {"source": one.source, "topic": one.topic, "offsets": dict(one.offsets)}
        seen = {"records": one.records, "rejected": one.rejected}
        like = {"looks_like": one.guess.data_format, "message": self._message(one)}
        _LOG.error("topic_set_aside", extra={"ctx": {**place, **seen, **like}})
        self._listener.topic_set_aside(one, self._message(one))

    def _add_unreadable(self, one: Unreadable) -> None:
        left, message = one.range, _unreadable_message(one)
        self._unreadable[left.source, left.topic, left.partition] = one
        at = {"source": left.source, "topic": left.topic, "partition": left.partition}
        _LOG.error(
            "partition_set_aside", extra={"ctx": {**at, "offset": left.start, "message": message}}
        )
        held_at = self._held_at.get((left.source, left.topic, left.partition), left.start)
        self._retries.add(left, is_reached=held_at == left.start)
        self._listener.partition_set_aside(left, message)

    def _message(self, one: SetAside) -> str:
        return one.message(self._settings.sources[one.source].data_format)


def _unreadable_message(one: Unreadable) -> str:
    left = one.range
    return (
        f"{left.topic}/{left.partition} of source {left.source} is set aside at offset "
        f"{left.start}: {one.reason}. The broker answers, so the record is one that the client "
        "does not take or cannot unpack; it is tried again from time to time"
    )


def take_given_up() -> dict[Place, OffsetRange]:
    """Return the ranges that the policy leaves out, for the start that reads on after them."""
    found = dict(_KNOWN.given_up)
    _KNOWN.given_up.clear()
    return found
