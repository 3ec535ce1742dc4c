"""The state of one micro-batch."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ingestd.ingest.batch_events import BatchListener, TableCommit
from ingestd.ingest.settings.context import (
    QualifiedSourceTable,
)
from ingestd.ingest.settings.rejection import SourceRejection
from ingestd.ingest.stages.truncates import Truncates
from ingestd.ingest.tables.batch_span import BatchSpan
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.kafka.offset_ranges import (
    BatchOffsets,
    OffsetRange,
)


@dataclass(slots=True)
class Batch:
    """The state of one micro-batch: its offset ranges, what its commits cover, and its results.

    `started` is in seconds of the monotonic clock; `following` is the next batch, if it is planned
    already. `truncates` and the fields from `discovered` on are filled while the batch runs:
    decisions on truncates, tables with discoveries, event times, seconds by phase, commits, owners
    of tables that several source tables claim, and the reasons why tables are not created.
    """

    batch_id: str
    ranges: list[OffsetRange]
    span: BatchSpan
    started: float
    listener: BatchListener
    truncates: Truncates
    following: BatchOffsets | None = None
    discovered: set[str] = field(default_factory=set)
    times: BatchTimes = field(default_factory=BatchTimes)
    seconds: dict[str, float] = field(default_factory=dict)
    commits: list[TableCommit] = field(default_factory=list)
    owners: dict[str, frozenset[QualifiedSourceTable]] = field(default_factory=dict)
    refused: dict[str, SourceRejection] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the duration of the block to a phase in `seconds`, and report it to the listener."""
        begin = time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - begin
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
            self.listener.phase(name, seconds)
