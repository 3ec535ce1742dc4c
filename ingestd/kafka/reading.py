"""How far one range of offsets has been read, and what the client's words mean for it."""

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
    """How far one range has been read; `problems` is what the client said beside records."""

    source: KafkaSource
    wanted: OffsetRange
    position: int = field(init=False)
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

        Raises LogChangedError if the log does not have the range any more.
        """
        if len(records):
            # Before the events, which may move the position further.
            self.position = max(self.position, int(records.offsets[-1]) + 1)
        for event in records.events:
            self._on_event(event)
        return records.first(int(np.searchsorted(records.offsets, self.wanted.until)))

    def _on_event(self, event: LogEvent) -> None:
        problem = event.problem
        if problem.code == KafkaError._PARTITION_EOF:
            # Stands after markers and aborted records too; later data gives another one.
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
            f"offsets {self.position} to {wanted.until} of {self.where} are not in the log any "
            f"more, it has {low} to {high} ({problem.text})"
        )

    def check_gone(self) -> None:
        """LogChangedError if the topic partition exists no more."""
        cluster = OffsetClient(self.source, request_seconds=_ASK_SECONDS)
        if self.wanted.partition not in cluster.list_topic_partitions().get(self.wanted.topic, ()):
            raise LogChangedError(
                f"{self.where} exists no more, offsets {self.position} to {self.wanted.until} "
                "were to be read"
            )
