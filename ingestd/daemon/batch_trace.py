"""One trace per batch: its phases, its commits by table, and its error."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ingestd.errors import IngestdError
from ingestd.ingest.batch_events import BatchSummary, TableCommit
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.log import redact
from ingestd.telemetry.spans import Attribute, Span, SpanError, SpanSink

_COMMIT = "commit"
_MOST_RANGES = 100
"""Maximum number of ranges in the attributes of a span; a batch may have thousands."""


@dataclass(slots=True)
class _Running:
    """The trace of the batch in progress; `begun` is in ns since 1970."""

    begun: int
    attributes: dict[str, Attribute]
    phases: list[Span] = field(default_factory=list)


class BatchTrace:
    """Sends the trace of each batch to a sink, as a span with child spans.

    `clock` returns nanoseconds since 1970. Not thread-safe: it is called by the thread that
    runs batches, or by a thread that has waited for the batch to end.
    """

    def __init__(self, sink: SpanSink, clock: Callable[[], int] = time.time_ns) -> None:
        self._sink = sink
        self._clock = clock
        self._running: _Running | None = None

    def started(self, batch_id: str, ranges: Iterable[OffsetRange]) -> None:
        """Begin the trace of a batch that reads these offset ranges; drop an unfinished trace."""
        read = [range_ for range_ in ranges if range_.rows]
        attributes: dict[str, Attribute] = {
            "ingestd.batch.id": batch_id,
            "ingestd.batch.offsets": sum(offset_range.rows for offset_range in read),
            "ingestd.batch.ranges": tuple(
                _text(offset_range) for offset_range in read[:_MOST_RANGES]
            ),
        }
        self._running = _Running(self._clock(), attributes)

    def phase(self, name: str, seconds: float) -> None:
        """Add a phase that has just finished, with its duration in seconds.

        Has no effect if no batch is being traced.
        """
        if self._running is not None:
            now = self._clock()
            self._running.phases.append(Span(name, now - int(seconds * 1e9), now))

    def finished(self, summary: BatchSummary) -> None:
        """Send the trace of a committed batch, unless the batch had neither records nor commits."""
        running, self._running = self._running, None
        records = sum(summary.counts.records.values())
        if running is None or not (records or summary.commits):
            return
        rejected = sum(summary.counts.rejected.values())
        counts = {"ingestd.batch.records": records, "ingestd.batch.rejected": rejected}
        attributes = {**running.attributes, **counts}
        phases = tuple(_with_commits(running.phases, summary))
        self._sink.take(Span("batch", running.begun, self._clock(), attributes, phases))

    def failed(self, error: IngestdError) -> None:
        """Send the trace of the batch in progress, if any, with the error that ended it."""
        running, self._running = self._running, None
        if running is None:
            return
        what = SpanError(type(error).__name__, redact(error.message))
        phases = tuple(running.phases)
        span = Span("batch", running.begun, self._clock(), running.attributes, phases, what)
        self._sink.take(span)


def _with_commits(phases: Iterable[Span], summary: BatchSummary) -> Iterator[Span]:
    """Yield the phases; the commit phase has a child span for each table."""
    for phase in phases:
        if phase.name != _COMMIT:
            yield phase
            continue
        tables = tuple(_commit(commit, summary, phase) for commit in summary.commits)
        yield Span(phase.name, phase.begun, phase.ended, children=tables)


def _commit(commit: TableCommit, summary: BatchSummary, phase: Span) -> Span:
    rows = sum(n for (table, _), n in summary.counts.rows.items() if table == commit.table)
    attributes: dict[str, Attribute] = {
        "ingestd.table": commit.table,
        "ingestd.commit.result": commit.status,
        "ingestd.commit.attempts": commit.attempts,
        "ingestd.commit.rows": rows,
    }
    if commit.snapshot_id is not None:
        attributes["ingestd.snapshot.id"] = commit.snapshot_id
    begun = min(max(int(commit.begun * 1e9), phase.begun), phase.ended)
    ended = min(begun + int(commit.seconds * 1e9), phase.ended)
    return Span("commit table", begun, ended, attributes)


def _text(offset_range: OffsetRange) -> str:
    source, topic, partition = offset_range.source_partition
    return f"{source}/{topic}/{partition}:{offset_range.start}-{offset_range.until}"
