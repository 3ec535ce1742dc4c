"""What happened lately: rate and lag over an hour, batches, errors, rejected records; bounded."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ingestd.ingest.maintenance.batch_summary import BatchSummary
from ingestd.ingest.values.counts import RejectedSample
from ingestd.log import redact

SAMPLE_SECONDS = 10.0
_SAMPLES = 360
_BATCHES = 50
_ERRORS = 20
_REJECTED = 20


@dataclass(frozen=True, slots=True)
class Sample:
    """Records read since the start and records behind the topics' ends; `at` in epoch seconds.

    `lag` is None while a position or an end is unknown.
    """

    at: float
    records: int
    lag: int | None


@dataclass(frozen=True, slots=True)
class RecentFailure:
    """An error that ended the query."""

    kind: str
    message: str
    at: float


@dataclass(frozen=True, slots=True)
class FinishedBatch:
    """A batch that has landed; seconds by phase, and the snapshots it gave by table."""

    batch_id: str
    at: float
    records: int
    rejected: int
    seconds: Mapping[str, float]
    snapshots: Mapping[str, int]


@dataclass(slots=True)
class Recent:
    """Bounded lists, oldest first; whoever shares it between threads locks it."""

    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=_SAMPLES))
    batches: deque[FinishedBatch] = field(default_factory=lambda: deque(maxlen=_BATCHES))
    failures: deque[RecentFailure] = field(default_factory=lambda: deque(maxlen=_ERRORS))
    rejected: deque[tuple[float, RejectedSample]] = field(
        default_factory=lambda: deque(maxlen=_REJECTED)
    )
    records: int = 0

    def sample(self, now: float, lag: int | None) -> None:
        """Remember rate and lag, unless the newest sample is younger than `SAMPLE_SECONDS`."""
        if not self.samples or now - self.samples[-1].at >= SAMPLE_SECONDS:
            self.samples.append(Sample(now, self.records, lag))

    def finished(self, summary: BatchSummary, now: float) -> None:
        """Remember a batch and the records that it could not use."""
        counts = summary.counts
        records = sum(counts.records.values())
        self.records += records
        self.rejected.extend((now, rejected_record) for rejected_record in summary.rejected)
        if records or summary.commits:
            snapshots = {
                commit.table: commit.snapshot_id
                for commit in summary.commits
                if commit.snapshot_id is not None
            }
            rejected = sum(counts.rejected.values())
            seconds = dict(summary.seconds)
            batch = FinishedBatch(summary.batch_id, now, records, rejected, seconds, snapshots)
            self.batches.append(batch)

    def rates(self) -> list[tuple[float, float]]:
        """Return records a second between samples, as (time, rate)."""
        return [
            (after.at, (after.records - before.records) / (after.at - before.at))
            for before, after in pairwise(self.samples)
        ]

    def lags(self) -> list[tuple[float, float]]:
        """Return records behind, as (time, lag), where it was known."""
        return [(sample.at, float(sample.lag)) for sample in self.samples if sample.lag is not None]

    def document(self) -> dict[str, Any]:
        """Return all of it for /status, newest first; times are seconds since 1970."""
        return {
            "rates": self.rates(),
            "lags": self.lags(),
            "batches": [
                {
                    "batch_id": batch.batch_id,
                    "at": batch.at,
                    "records": batch.records,
                    "rejected": batch.rejected,
                    "seconds": {name: round(spent, 3) for name, spent in batch.seconds.items()},
                    "snapshots": dict(batch.snapshots),
                }
                for batch in reversed(self.batches)
            ],
            "errors": [
                {"type": failure.kind, "message": failure.message, "at": failure.at}
                for failure in reversed(self.failures)
            ],
            "rejected": [
                {
                    "at": at,
                    "source": one.source,
                    "topic": one.topic,
                    "partition": one.partition,
                    "offset": one.offset,
                    "stage": one.stage,
                    "reason": one.reason,
                    "message": redact(one.message),
                }
                for at, one in reversed(self.rejected)
            ],
        }


def total_lag(sources: Mapping[str, Any]) -> int | None:
    """Return records behind, summed over all topic partitions; None while one is unknown."""
    lags = [
        one["lag"]
        for source in sources.values()
        for topic in source["topics"].values()
        for one in topic.values()
    ]
    return None if not lags or None in lags else sum(lags)
