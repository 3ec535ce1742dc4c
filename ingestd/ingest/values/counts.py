"""Counts of what a task saw and did: the numbers behind metrics and the books of a snapshot."""

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
        """The sample of one rejected record."""
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

    `records` and `bytes` count what was fetched by topic partition; `control` messages that carry
    no row; `rejected` records by (stage, reason), and `dropped` those of them that are not kept.
    `rows` counts rows written by (table, row kind) before rows of one key are merged; `skipped`
    rows left out by (table, reason): "covered" (the table has them), "truncated" (older than a
    truncate), "repeated" (sent twice by the source), "ignored" (by the table's options), "excluded"
    (by routing; the table is ""). `unusable` are those of the rejected records that may mean a
    wrong data format, by (source, topic), and `looks` counts what some of them look like, by
    (source, topic, look). `files` and `file_bytes` count data files by table; `unknown` cells by
    table that are null because the source left out a value which no older row has; `registry` what
    was asked of schema registries, by the names of `ingestd.kafka.registry_tally`.
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
        """Count rows that were left out."""
        if count:
            self.skipped[table, reason] += count

    def rows_of(self, table: str) -> int:
        """Rows written to a table, of all kinds."""
        return sum(count for (name, _), count in self.rows.items() if name == table)
