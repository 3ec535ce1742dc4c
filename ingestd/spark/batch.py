"""What one batch knows and gathers on its way from offsets to snapshots."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ingestd.ingest.maintenance.batch_summary import BatchListener, TableCommit
from ingestd.ingest.schemas.discovery import CachedChunk
from ingestd.ingest.settings.context import Feed
from ingestd.ingest.settings.rejection import SourceRejection
from ingestd.ingest.stages.truncates import Stream, Truncates
from ingestd.ingest.tables.batch_span import BatchSpan
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.kafka.ranges import BatchOffsets, OffsetRange


@dataclass(slots=True)
class Batch:
    """One batch: its ranges, what it covers, and the batch that follows if that is settled.

    What it gathers: how truncates are settled, the tables that were discovered, chunks kept for its
    next run, times of its changes, seconds by phase, commits, owners of tables that several source
    tables claimed, and tables that are refused.
    """

    batch_id: str
    ranges: list[OffsetRange]
    span: BatchSpan
    started: float
    listener: BatchListener
    stream: Stream
    following: BatchOffsets | None = None
    truncates: Truncates = field(default_factory=Truncates)
    found: set[str] = field(default_factory=set)
    kept: list[CachedChunk] = field(default_factory=list)
    times: BatchTimes = field(default_factory=BatchTimes)
    seconds: dict[str, float] = field(default_factory=dict)
    commits: list[TableCommit] = field(default_factory=list)
    owners: dict[str, frozenset[Feed]] = field(default_factory=dict)
    refused: dict[str, SourceRejection] = field(default_factory=dict)

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
