"""The records of exact ranges of offsets, as columns.

Offsets without a record (compacted, transaction markers, aborted) are nothing to be worried
about: a range is done when the client stands at its end. An offset that the log no longer has is
an OffsetLostError, or what the source's policy says.
"""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from confluent_kafka import KafkaError

from ingestd.cdc.base import RecordChunk
from ingestd.errors import OffsetLostError, SourceError
from ingestd.kafka.columns import Columns
from ingestd.kafka.consumers import Lent, lend_consumer
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import OffsetRange
from ingestd.kafka.records import Event, Problem, Records

_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 0.02
_POLL_RECORDS = 2_000
_ASK_SECONDS = 10.0
STALL_SECONDS = 30.0
"""How long a range may give nothing before the brokers are taken for silent."""
_GONE = frozenset(
    {
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
    }
)
_OUT_OF_RANGE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


def fetch(
    source: KafkaSource,
    wanted: OffsetRange,
    *,
    max_records: int,
    max_bytes: int,
    headers: bool = False,
    on_lost: Callable[[OffsetRange], None] = lambda _: None,
) -> Iterator[RecordChunk]:
    """The committed records of `wanted` in order of offset, in chunks.

    A chunk has at most `max_records` records and `max_bytes` bytes of keys and values, but always
    one record. `headers` of records are only taken out when asked for. `on_lost` is told of what
    the log does not have any more, if the policy lets it go on.

    Raises OffsetLostError when the log does not have the range any more and the source's policy
    is to fail; SourceError when nothing came for `STALL_SECONDS`.
    """
    with lend_consumer(source, headers=headers) as lent:
        reading = _Reading(source, wanted, lent, on_lost)
        columns = Columns(wanted.topic, wanted.partition)
        for records in reading.batches():
            columns.add(records)
            while columns.full(max_records, max_bytes):
                yield columns.take(max_records, max_bytes)
                reading.touch()
        while columns:
            yield columns.take(max_records, max_bytes)


@dataclass(slots=True)
class _Reading:
    """How far one range has been read with a lent consumer."""

    source: KafkaSource
    wanted: OffsetRange
    lent: Lent
    on_lost: Callable[[OffsetRange], None]
    position: int = field(init=False)
    deadline: float = field(init=False)

    def __post_init__(self) -> None:
        self.position = self.wanted.start
        self.touch()

    @property
    def where(self) -> str:
        """The place for messages."""
        return f"{self.wanted.topic}/{self.wanted.partition} of source {self.source.name}"

    def touch(self) -> None:
        """Time spent by the caller between chunks is not the broker's."""
        self.deadline = time.monotonic() + STALL_SECONDS

    def batches(self) -> Iterator[Records]:
        """Records of the range, never none, in order."""
        self._assign(self.position)
        while self.position < self.wanted.until:
            want = min(_POLL_RECORDS, self.wanted.until - self.position)
            records = self._consume(want)
            if len(records):
                yield records

    def _consume(self, count: int) -> Records:
        try:
            records = self.lent.reader.read(count, _POLL_SECONDS)
        except SourceError as error:
            raise SourceError(f"cannot read {self.where}: {error}") from error
        if len(records):
            # Before the events, which may move the position further.
            self.position = int(records.offsets[-1]) + 1
            self.touch()
        elif not records.events:
            self._check_stalled()
        for event in records.events:
            self._on_event(event)
        return records.first(int(np.searchsorted(records.offsets, self.wanted.until)))

    def _on_event(self, event: Event) -> None:
        problem = event.problem
        if problem.code == KafkaError._PARTITION_EOF:
            # Stands behind markers and aborted records too; later data gives another one.
            self.position = max(self.position, event.offset)
        elif problem.code in _OUT_OF_RANGE:
            self._on_lost(problem)
        else:
            self.lent.errors.append(problem)
            self._check_stalled()

    def _on_lost(self, problem: Problem) -> None:
        wanted = self.wanted
        place = {wanted.topic: (wanted.partition,)}
        cluster = OffsetClient(self.source, request_seconds=_ASK_SECONDS)
        low = cluster.beginning_offsets(place)[wanted.topic][wanted.partition]
        high = cluster.end_offsets(place)[wanted.topic][wanted.partition]
        policy = self.source.on_offset_out_of_range
        what = (
            f"offsets {self.position} to {wanted.until} of {self.where} are not in the log any "
            f"more, it has {low} to {high} ({problem.text})"
        )
        if policy == "fail":
            raise OffsetLostError(
                f"{what}: read the table anew, or accept the loss with on-offset-out-of-range: "
                "earliest"
            )
        _LOG.warning("offsets_lost", extra={"ctx": {"what": what, "policy": policy}})
        goes_on = policy == "earliest" and self.position < low < wanted.until
        self.on_lost(replace(wanted, start=self.position, until=low if goes_on else wanted.until))
        if goes_on:
            self._assign(low)
        else:
            self.position = wanted.until

    def _assign(self, offset: int) -> None:
        self.position = offset
        try:
            self.lent.reader.assign(self.wanted.topic, self.wanted.partition, offset)
        except SourceError as error:
            raise SourceError(f"cannot read {self.where}: {error}") from error

    def _check_stalled(self) -> None:
        self.lent.listen()
        failure = self.lent.failure
        if failure is not None:
            raise SourceError(f"cannot read {self.where}: {failure.text}")
        if any(one.code in _GONE for one in self.lent.errors):
            self._check_gone()
        if time.monotonic() > self.deadline:
            raise SourceError(
                f"{self.where} gave nothing for {STALL_SECONDS:.0f} s at offset "
                f"{self.position}, wanted is up to {self.wanted.until}, from "
                f"{self.source.bootstrap}{self.lent.last_words()}"
            )

    def _check_gone(self) -> None:
        """The client says "unknown" of a deleted topic, but also while brokers change roles."""
        self.lent.errors.clear()
        cluster = OffsetClient(self.source, request_seconds=_ASK_SECONDS)
        if self.wanted.partition not in cluster.list_topic_partitions().get(self.wanted.topic, ()):
            raise OffsetLostError(
                f"{self.where} exists no more, offsets {self.position} to {self.wanted.until} "
                "were to be read: was the topic deleted? If so, take it out of the source"
            )
