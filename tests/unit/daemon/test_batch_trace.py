"""What a batch tells of itself becomes one span, with phases and commits below it."""

from collections import Counter

import pytest

from ingestd.daemon.batch_trace import BatchTrace
from ingestd.errors import SourceError
from ingestd.ingest.batch_events import BatchSummary, TableCommit
from ingestd.ingest.values.counts import Counts
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition
from ingestd.log import add_secrets
from ingestd.telemetry.spans import Span, SpanError

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


class Sink:
    def __init__(self) -> None:
        self.spans: list[Span] = []

    def take(self, span: Span) -> None:
        self.spans.append(span)

    def close(self) -> None:
        pass


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def trace(sink: Sink, clock: Clock) -> BatchTrace:
    return BatchTrace(sink, clock)


def summary(*commits: TableCommit, records: int = 3) -> BatchSummary:
    counts = Counts(
        records=Counter({SourcePartition("s", "t", 0): records} if records else {}),
        rejected=Counter({("decode", "bad-json"): 1}),
        rows=Counter({("db.a", 0): 2, ("db.a", 3): 1, ("db.b", 0): 9}),
    )
    return BatchSummary("7", {}, commits, counts)


def test_a_batch_is_a_span_with_its_offsets_and_its_phases(
    trace: BatchTrace, sink: Sink, clock: Clock
) -> None:
    trace.started(7, [OffsetRange("s", "t", 0, 10, 13), OffsetRange("s", "t", 1, 5, 5)])
    clock.now += 2 * SECOND
    trace.phase("stages", 1.5)
    clock.now += SECOND
    trace.phase("claims", 0.25)
    trace.finished(summary())
    [span] = sink.spans
    assert (span.name, span.begun, span.ended) == ("batch", START, START + 3 * SECOND)
    assert span.attributes == {
        "ingestd.batch.id": 7,
        "ingestd.batch.offsets": 3,
        "ingestd.batch.ranges": ("s/t/0:10-13",),
        "ingestd.batch.records": 3,
        "ingestd.batch.rejected": 1,
    }
    assert span.error is None
    assert [(child.name, child.begun, child.ended) for child in span.children] == [
        ("stages", START + SECOND // 2, START + 2 * SECOND),
        ("claims", START + 3 * SECOND - SECOND // 4, START + 3 * SECOND),
    ]


def test_the_commit_of_each_table_lies_in_the_phase_of_commits(
    trace: BatchTrace, sink: Sink, clock: Clock
) -> None:
    trace.started(7, [])
    clock.now += 4 * SECOND
    trace.phase("commit", 3.0)
    first = TableCommit("db.a", "committed", 9, 2, 0.5, begun=START / SECOND + 2)
    late = TableCommit("db.b", "replayed", None, 0, 99.0, begun=START / SECOND + 3)
    trace.finished(summary(first, late))
    [phase] = sink.spans[0].children
    one, other = phase.children
    assert (one.begun, one.ended) == (START + 2 * SECOND, START + 5 * SECOND // 2)
    assert one.attributes == {
        "ingestd.table": "db.a",
        "ingestd.commit.result": "committed",
        "ingestd.commit.attempts": 2,
        "ingestd.commit.rows": 3,
        "ingestd.snapshot.id": 9,
    }
    assert (other.begun, other.ended) == (START + 3 * SECOND, phase.ended)
    assert "ingestd.snapshot.id" not in other.attributes


def test_a_batch_that_fails_is_reported_with_its_error_and_without_secrets(
    trace: BatchTrace, sink: Sink, clock: Clock
) -> None:
    add_secrets(["hunter2-of-traces"])
    trace.started(7, [])
    clock.now += SECOND
    trace.phase("stages", 1.0)
    trace.failed(SourceError("no broker, said hunter2-of-traces"))
    [span] = sink.spans
    assert span.error == SpanError("SourceError", "no broker, said ******")
    assert [child.name for child in span.children] == ["stages"]
    trace.failed(SourceError("between two batches"))
    assert len(sink.spans) == 1


def test_a_batch_that_brought_nothing_is_not_reported(trace: BatchTrace, sink: Sink) -> None:
    trace.started(7, [])
    trace.finished(summary(records=0))
    assert sink.spans == []


def test_a_span_names_a_bounded_number_of_ranges(trace: BatchTrace, sink: Sink) -> None:
    trace.started(7, [OffsetRange("s", "t", n, 0, 1) for n in range(1000)])
    trace.finished(summary())
    ranges = sink.spans[0].attributes["ingestd.batch.ranges"]
    assert isinstance(ranges, tuple)
    assert len(ranges) == 100
    assert sink.spans[0].attributes["ingestd.batch.offsets"] == 1000
