"""How far one range of offsets has been read, and what the client's words mean for it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from confluent_kafka import KafkaError

from ingestd.errors import OffsetLostError
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import OffsetRange
from ingestd.kafka.records import Event, Problem, Records

OnLost = Callable[[OffsetRange], None]
"""Told of a range that the log does not have any more."""

_LOG = logging.getLogger(__name__)
_ASK_SECONDS = 10.0
_OUT_OF_RANGE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


@dataclass(slots=True)
class Reading:
    """How far one range has been read; `problems` is what the client said beside records.

    `misplaced` says that the client must be told anew where to read.
    """

    source: KafkaSource
    wanted: OffsetRange
    on_lost: OnLost
    position: int = field(init=False)
    misplaced: bool = False
    problems: list[Problem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.position = self.wanted.start

    @property
    def left(self) -> int:
        """Offsets that are still to be read; 0: the range is done."""
        return max(self.wanted.until - self.position, 0)

    @property
    def where(self) -> str:
        """The place for messages."""
        return f"{self.wanted.topic}/{self.wanted.partition} of source {self.source.name}"

    def take(self, records: Records) -> Records:
        """Those of the records that belong to the range, without the events.

        Raises OffsetLostError if the log does not have the range any more and the policy of the
        source is to fail.
        """
        if len(records):
            # Before the events, which may move the position further.
            self.position = max(self.position, int(records.offsets[-1]) + 1)
        for event in records.events:
            self._on_event(event)
        return records.first(int(np.searchsorted(records.offsets, self.wanted.until)))

    def _on_event(self, event: Event) -> None:
        problem = event.problem
        if problem.code == KafkaError._PARTITION_EOF:
            # Stands behind markers and aborted records too; later data gives another one.
            self.position = max(self.position, event.offset)
        elif problem.code in _OUT_OF_RANGE:
            if self.left:
                self._on_lost(problem)
        else:
            self.problems.append(problem)

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
        self.position = low if goes_on else wanted.until
        self.misplaced = goes_on

    def check_gone(self) -> None:
        """OffsetLostError if the topic partition exists no more."""
        cluster = OffsetClient(self.source, request_seconds=_ASK_SECONDS)
        if self.wanted.partition not in cluster.list_topic_partitions().get(self.wanted.topic, ()):
            raise OffsetLostError(
                f"{self.where} exists no more, offsets {self.position} to {self.wanted.until} "
                "were to be read: was the topic deleted? If so, take it out of the source"
            )
