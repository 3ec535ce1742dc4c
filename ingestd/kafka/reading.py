"""Progress of reading one offset range, and the meaning of the client's events for it."""

from dataclasses import dataclass, field

import numpy as np
from confluent_kafka import KafkaError

from ingestd.errors import LogChangedError
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import OffsetRange
from ingestd.kafka.records import LogEvent, Problem, Records

_ASK_SECONDS = 10.0
_OUT_OF_RANGE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


@dataclass(slots=True)
class Reading:
    """Progress of reading one range; `problems` are errors that the client reported."""

    source: KafkaSource
    wanted: OffsetRange
    position: int = field(init=False)
    problems: list[Problem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.position = self.wanted.start

    @property
    def left(self) -> int:
        """Number of offsets still to read; 0 if the range is complete."""
        return max(self.wanted.until - self.position, 0)

    @property
    def where(self) -> str:
        """The topic partition, for messages."""
        return f"{self.wanted.topic}/{self.wanted.partition} of source {self.source.name}"

    def take(self, records: Records) -> Records:
        """Return the records that belong to the range, without the events.

        Raises LogChangedError if the log no longer has the range.
        """
        if len(records):
            # Before the events, which may advance the position further.
            self.position = max(self.position, int(records.offsets[-1]) + 1)
        for event in records.events:
            self._on_event(event)
        return records.first(int(np.searchsorted(records.offsets, self.wanted.until)))

    def _on_event(self, event: LogEvent) -> None:
        problem = event.problem
        if problem.code == KafkaError._PARTITION_EOF:
            # The position is past markers and aborted records, too; later data corrects it.
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
        raise LogChangedError(
            f"offsets {self.position} to {wanted.until} of {self.where} are no longer in the log, "
            f"which has {low} to {high} ({problem.text})"
        )

    def check_gone(self) -> None:
        """Raise LogChangedError if the topic partition no longer exists."""
        cluster = OffsetClient(self.source, request_seconds=_ASK_SECONDS)
        if self.wanted.partition not in cluster.list_topic_partitions().get(self.wanted.topic, ()):
            raise LogChangedError(
                f"{self.where} no longer exists, offsets {self.position} to {self.wanted.until} "
                "were still to be read"
            )
