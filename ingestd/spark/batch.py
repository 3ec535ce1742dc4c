"""What one batch knows and gathers on its way from offsets to snapshots."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ingestd.ingest.schemas.discovery import KeptChunk
from ingestd.ingest.settings.context import Coverage
from ingestd.ingest.stages.truncates import Stream, Truncates
from ingestd.ingest.upkeep.batch_summary import BatchListener, TableCommit
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.kafka.ranges import BatchOffsets, OffsetRange


@dataclass(slots=True)
class Batch:
    """One batch: its ranges, those lost before them, and the batch that follows if that is settled.

    What it gathers: how truncates are settled, the tables that were discovered, chunks kept for its
    next run, times of its changes, seconds by phase, and commits.
    """

    batch_id: int
    ranges: list[OffsetRange]
    started: float
    listener: BatchListener
    stream: Stream
    lost: tuple[OffsetRange, ...] = ()
    following: BatchOffsets | None = None
    truncates: Truncates = field(default_factory=Truncates)
    found: set[str] = field(default_factory=set)
    kept: list[KeptChunk] = field(default_factory=list)
    times: BatchTimes = field(default_factory=BatchTimes)
    seconds: dict[str, float] = field(default_factory=dict)
    commits: list[TableCommit] = field(default_factory=list)
    by_topic: dict[tuple[str, str], list[OffsetRange]] = field(default_factory=dict)

    def ranges_of(
        self, topics: Iterable[tuple[str, str]], coverage: Coverage
    ) -> tuple[OffsetRange, ...]:
        """The ranges of these topics, lost ones too, and of those that the coverage names."""
        if not self.by_topic:
            for one in (*self.lost, *self.ranges):
                self.by_topic.setdefault((one.source, one.topic), []).append(one)
        known = {(source, topic) for source, by_topic in coverage.items() for topic in by_topic}
        found = sorted(known.union(topics) & self.by_topic.keys())
        return tuple(one for topic in found for one in self.by_topic[topic])

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the block to a phase."""
        begin = time.monotonic()
        try:
            yield
        finally:
            spent = time.monotonic() - begin
            self.seconds[name] = self.seconds.get(name, 0.0) + spent
            self.listener.phase(name, spent)
