"""A bounded history for the console: rate, lag, batches, errors, rejected records, schemas."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ingestd.daemon.samples import SAMPLE_SECONDS, Sample, Samples
from ingestd.ingest.batch_events import BatchSummary
from ingestd.ingest.values.counts import RejectedSample
from ingestd.log import redact
from ingestd.paimon.spec.data_types import DataType, encode_type
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.wording import counted

_BATCHES = 50
_ERRORS = 20
_REJECTED = 20
_SCHEMA_CHANGES = 20
_FAILURE_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class RecentFailure:
    """An error that ended the query: its class and message; `at` is in seconds since 1970."""

    kind: str
    message: str
    at: float


@dataclass(frozen=True, slots=True)
class FinishedBatch:
    """A finished batch: the durations of its phases in seconds, and its snapshot ids by table.

    `at` is in seconds since 1970.
    """

    batch_id: str
    at: float
    records: int
    rejected: int
    seconds: Mapping[str, float]
    snapshots: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SavedHistory:
    """The history that the history file stores for the next process; lists are oldest first.

    `rejected` has each record with the time when its batch finished, in seconds since 1970.
    """

    samples: list[Sample]
    batches: list[FinishedBatch]
    failures: list[RecentFailure]
    rejected: list[tuple[float, RejectedSample]]


@dataclass(slots=True)
class Recent:
    """Bounded lists of samples, batches, failures and rejected records, oldest first.

    The times `now` are in seconds since 1970. Not thread-safe.
    """

    samples: Samples = field(default_factory=Samples)
    batches: deque[FinishedBatch] = field(default_factory=lambda: deque(maxlen=_BATCHES))
    failures: deque[RecentFailure] = field(default_factory=lambda: deque(maxlen=_ERRORS))
    rejected: deque[tuple[float, RejectedSample]] = field(
        default_factory=lambda: deque(maxlen=_REJECTED)
    )
    _records: int = 0
    _longest: float | None = None
    _sampled: float | None = None

    def sample(self, now: float, lag: int | None, freshness: float | None) -> None:
        """Add a sample of the records read since the last sample, unless that is too recent.

        The last sample must be at least 10 seconds old. The first sample of a process is added at
        once, without records, and so is one after the clock was set back. `lag` is in records,
        `freshness` is the largest lag of a table in seconds; None if unknown.
        """
        seconds = 0.0 if self._sampled is None else now - self._sampled
        if self._sampled is None or not 0 <= seconds < SAMPLE_SECONDS:
            records = self._records if seconds > 0 else 0
            sample = Sample(now, seconds, records, lag, freshness, self._longest)
            self.samples.add(sample)
            self._records, self._longest, self._sampled = 0, None, now

    def saved(self) -> SavedHistory:
        """Return the part of the history that is saved for the next process."""
        return SavedHistory(
            self.samples.all(), list(self.batches), list(self.failures), list(self.rejected)
        )

    def restore(self, saved: SavedHistory, now: float) -> None:
        """Add the history of an earlier process, without failures older than a day.

        Samples after `now`, from a wrong clock, are left out, too.
        """
        self.samples.restore(saved.samples, now)
        self.batches.extend(saved.batches)
        self.failures.extend(
            failure for failure in saved.failures if now - failure.at < _FAILURE_SECONDS
        )
        self.rejected.extend(saved.rejected)

    def finished(self, summary: BatchSummary, now: float) -> None:
        """Add a finished batch, if it has records or commits, and its rejected records."""
        counts = summary.counts
        records = sum(counts.records.values())
        self._records += records
        self.rejected.extend((now, rejected_record) for rejected_record in summary.rejected)
        if records or summary.commits:
            snapshots = {
                commit.table: commit.snapshot_id
                for commit in summary.commits
                if commit.snapshot_id is not None
            }
            rejected = sum(counts.rejected.values())
            seconds = dict(summary.seconds)
            self._longest = max(self._longest or 0.0, seconds.get("total", 0.0))
            batch = FinishedBatch(summary.batch_id, now, records, rejected, seconds, snapshots)
            self.batches.append(batch)

    def rates(self) -> list[tuple[float, float]]:
        """Return records per second in the last hour, as (seconds since 1970, rate)."""
        samples = self.samples.last_hour
        return [(sample.at, sample.rate) for sample in samples if sample.rate is not None]

    def lags(self) -> list[tuple[float, float]]:
        """Return the known lags in records in the last hour, as (seconds since 1970, lag)."""
        samples = self.samples.last_hour
        return [(sample.at, float(sample.lag)) for sample in samples if sample.lag is not None]

    def document(self) -> dict[str, Any]:
        """Return the history for /status; times are seconds since 1970.

        Rates and lags are oldest first, all other lists newest first.
        """
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
                    "source": rejected_record.source,
                    "topic": rejected_record.topic,
                    "partition": rejected_record.partition,
                    "offset": rejected_record.offset,
                    "stage": rejected_record.stage,
                    "reason": rejected_record.reason,
                    "message": redact(rejected_record.message),
                }
                for at, rejected_record in reversed(self.rejected)
            ],
        }


@dataclass(frozen=True, slots=True)
class SchemaChanged:
    """One change of a table's schema; `at` is in seconds since 1970, `what` describes it."""

    at: float
    table: str
    schema_id: int
    what: str


class SchemaLog:
    """Remembers the newest schemas of tables, and their recent changes. Not thread-safe."""

    def __init__(self) -> None:
        self._known: dict[str, TableSchema] = {}
        self._changes: deque[SchemaChanged] = deque(maxlen=_SCHEMA_CHANGES)

    def opened(self, schemas: Mapping[str, TableSchema], now: float) -> None:
        """Record the schemas of tables, by name, at the start of a run.

        The first schema of a table adds no change. One with another id than the known schema, from
        another writer, adds a change.
        """
        for table, schema in schemas.items():
            if table in self._known:
                self.committed(table, schema, now)
            self._known[table] = schema

    def committed(self, table: str, schema: TableSchema, now: float) -> None:
        """Record the schema of a commit to a table, and add a change if its id is new.

        The first schema of an unknown table is such a change, too.
        """
        known = self._known.get(table)
        if known is not None and known.id == schema.id:
            return
        what = f"new, {counted(len(schema.fields), 'column')}"
        if known is not None:
            what = "; ".join(schema_differences(known, schema))
        self._known[table] = schema
        self._changes.append(SchemaChanged(now, table, schema.id, what))

    def schema_id(self, table: str) -> int | None:
        """Return the id of the newest schema of a table, or None if no schema is known."""
        return self._known[table].id if table in self._known else None

    def document(self) -> list[dict[str, Any]]:
        """Return the recent changes for /status, newest first."""
        return [
            {
                "at": change.at,
                "table": change.table,
                "schema_id": change.schema_id,
                "what": change.what,
            }
            for change in reversed(self._changes)
        ]


def schema_differences(before: TableSchema, after: TableSchema) -> list[str]:
    """Return descriptions of the changes of columns between two schemas of a table.

    Without such a change, the only description is "options or comments".
    """
    return list(_differences(before, after)) or ["options or comments"]


def _differences(before: TableSchema, after: TableSchema) -> Iterator[str]:
    """Yield descriptions of added, renamed, changed and dropped columns, matched by field id."""
    old = {column.id: column for column in before.fields}
    new = {column.id: column for column in after.fields}
    for number, column in new.items():
        was = old.get(number)
        if was is None:
            yield f"added {column.name} {type_text(column.type)}"
        elif was.name != column.name:
            yield f"renamed {was.name} to {column.name}"
        if was is not None and was.type != column.type:
            yield f"{column.name} from {type_text(was.type)} to {type_text(column.type)}"
    for number, column in old.items():
        if number not in new:
            yield f"dropped {column.name}"


def type_text(of: DataType) -> str:
    """Format a type as SQL; a nested type as its name without its fields, such as ROW."""
    text = encode_type(of)
    return text if isinstance(text, str) else of.root
