"""A bounded history for the console: rate, lag, batches, errors, rejected records, schemas."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ingestd.ingest.batch_events import BatchSummary
from ingestd.ingest.values.counts import RejectedSample
from ingestd.log import redact
from ingestd.paimon.spec.data_types import DataType, encode_type
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.wording import counted

SAMPLE_SECONDS = 10.0
_SAMPLES = 360
_BATCHES = 50
_ERRORS = 20
_REJECTED = 20
_SCHEMA_CHANGES = 20


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of the number of records read since the start, and of the lag in records.

    `at` is in seconds since 1970. `lag` is None while a position or an end offset is unknown.
    """

    at: float
    records: int
    lag: int | None


@dataclass(frozen=True, slots=True)
class RecentFailure:
    """An error that ended the query; `at` is in seconds since 1970."""

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


@dataclass(slots=True)
class Recent:
    """Bounded lists of samples, batches, failures and rejected records, oldest first.

    `records` is the number of records read since the start. Not thread-safe.
    """

    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=_SAMPLES))
    batches: deque[FinishedBatch] = field(default_factory=lambda: deque(maxlen=_BATCHES))
    failures: deque[RecentFailure] = field(default_factory=lambda: deque(maxlen=_ERRORS))
    rejected: deque[tuple[float, RejectedSample]] = field(
        default_factory=lambda: deque(maxlen=_REJECTED)
    )
    records: int = 0

    def sample(self, now: float, lag: int | None) -> None:
        """Add a sample of rate and lag, unless the newest is younger than `SAMPLE_SECONDS`."""
        if not self.samples or now - self.samples[-1].at >= SAMPLE_SECONDS:
            self.samples.append(Sample(now, self.records, lag))

    def finished(self, summary: BatchSummary, now: float) -> None:
        """Add a finished batch, if it has records or commits, and its rejected records."""
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
        """Return the records per second between samples, as (time, rate)."""
        return [
            (after.at, (after.records - before.records) / (after.at - before.at))
            for before, after in pairwise(self.samples)
        ]

    def lags(self) -> list[tuple[float, float]]:
        """Return the known lags in records, as (time, lag)."""
        return [(sample.at, float(sample.lag)) for sample in self.samples if sample.lag is not None]

    def document(self) -> dict[str, Any]:
        """Return the history for /status, newest first; times are seconds since 1970."""
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


def total_lag(sources: Mapping[str, Any]) -> int | None:
    """Return the total lag of all topic partitions in records, or None while a lag is unknown."""
    lags = [
        partition["lag"]
        for source in sources.values()
        for topic in source["topics"].values()
        for partition in topic.values()
    ]
    return None if not lags or None in lags else sum(lags)


@dataclass(frozen=True, slots=True)
class SchemaChanged:
    """One change of a table's schema; `at` is in seconds since 1970, `what` is a description."""

    at: float
    table: str
    schema_id: int
    what: str


class SchemaLog:
    """The newest schemas of tables, and their recent changes. Not thread-safe."""

    def __init__(self) -> None:
        self._known: dict[str, TableSchema] = {}
        self._changes: deque[SchemaChanged] = deque(maxlen=_SCHEMA_CHANGES)

    def opened(self, schemas: Mapping[str, TableSchema], now: float) -> None:
        """Note the schemas at the start of a run; other writers may have changed known schemas."""
        for table, schema in schemas.items():
            if table in self._known:
                self.committed(table, schema, now)
            self._known[table] = schema

    def committed(self, table: str, schema: TableSchema, now: float) -> None:
        """Note the schema of a commit to a table, which is a change if its id is new."""
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
    """Return descriptions of what differs between two schemas of a table."""
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
    """Return a type as SQL; of a type with fields, only its name."""
    text = encode_type(of)
    return text if isinstance(text, str) else of.root
