"""Counts of records and rows of a task, for metrics and for the properties of a snapshot."""

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from ingestd.cdc.base import RejectedRecord


class TopicPartition(NamedTuple):
    """A Kafka topic partition of one configured source."""

    source: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class RejectedSample:
    """Coordinates and cause of a rejected record, without its bytes; for logs."""

    source: str
    topic: str
    partition: int
    offset: int
    stage: str
    reason: str
    message: str

    @classmethod
    def of(cls, source: str, rejected: RejectedRecord) -> "RejectedSample":
        """Return the sample of one rejected record."""
        return cls(
            source,
            rejected.topic,
            rejected.partition,
            rejected.offset,
            rejected.stage,
            rejected.reason,
            rejected.message,
        )


@dataclass(slots=True)
class Counts:
    """Sums over the records of a task or of a whole batch.

    `records` and `bytes` count fetched records by topic partition; `control` messages without a
    row; `rejected` records by (stage, reason), and `dropped` those of them that are not stored.
    `rows` counts written rows by (table, row kind), before rows of one key are merged; `skipped`
    rows left out by (table, reason): "covered" (the table contains them), "truncated" (older than a
    truncate), "repeated" (sent twice by the source), "ignored" (by the table's options), "excluded"
    (by routing; the table is ""). `unusable` are rejected records that may indicate a wrong data
    format, by (source, topic), and `looks` counts the formats that some of them seem to have, by
    (source, topic, format). `files` and `file_bytes` count data files by table; `unknown` cells by
    table that are null because the source left out a value and no older row has it; `registry`
    counts requests to schema registries, by the names of `ingestd.kafka.registry_http`.
    """

    records: Counter[TopicPartition] = field(default_factory=Counter)
    bytes: Counter[TopicPartition] = field(default_factory=Counter)
    control: int = 0
    rejected: Counter[tuple[str, str]] = field(default_factory=Counter)
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    rows: Counter[tuple[str, int]] = field(default_factory=Counter)
    skipped: Counter[tuple[str, str]] = field(default_factory=Counter)
    unusable: Counter[tuple[str, str]] = field(default_factory=Counter)
    looks: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    file_bytes: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    registry: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Counts") -> None:
        """Add the counts of another task."""
        for one in fields(self):
            mine, theirs = getattr(self, one.name), getattr(other, one.name)
            if isinstance(mine, Counter):
                mine.update(theirs)
            else:
                setattr(self, one.name, mine + theirs)

    def skip(self, table: str, reason: str, count: int) -> None:
        """Count skipped rows."""
        if count:
            self.skipped[table, reason] += count

    def rows_of(self, table: str) -> int:
        """Return the number of rows written to a table, of all kinds."""
        return sum(count for (name, _), count in self.rows.items() if name == table)
