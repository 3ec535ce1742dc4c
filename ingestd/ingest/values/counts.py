"""Counts of records and rows of a task, for metrics and for snapshot properties."""

from collections import Counter
from dataclasses import dataclass, field, fields

from ingestd.cdc.base import RejectedRecord
from ingestd.kafka.offset_ranges import SourcePartition


@dataclass(frozen=True, slots=True)
class RejectedSample:
    """The coordinates and the cause of a rejected record, without its bytes, for log messages."""

    source: str
    topic: str
    partition: int
    offset: int
    stage: str
    reason: str
    message: str

    @classmethod
    def of(cls, source: str, rejected: RejectedRecord) -> "RejectedSample":
        """Return the sample for a rejected record."""
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
    """Counts of the records and rows of a task or a batch.

    `records` and `bytes` count fetched records and their bytes by topic partition, and `control`
    counts messages without a row. `rejected` counts rejected records by (stage, reason), and
    `dropped` the rejected records that are not stored. `rows` counts written rows by (table, row
    kind), before rows with the same key are merged. `skipped` counts rows that are not written, by
    (table, reason): "covered" (the table contains the row), "truncated" (older than a truncate),
    "ignored" (by table options), "filtered" (by `where`; tables with a primary key write deletes
    instead) or "excluded" (by routing; the table is "").

    `unusable` counts rejected records that may indicate a wrong data format, by (source, topic),
    and `looks` the formats that samples of these records seem to have, by (source, topic, format).
    `files` and `file_bytes` count data files and their bytes by table. `unknown` counts, by table,
    values that are null because the source omitted the value and no older row has it.
    `unknown_keys` counts, by table, updates of rows whose old primary key is unknown. `registry`
    counts requests to schema registries, by the names in `ingestd.kafka.registry_http`.
    `index_lookups` counts lookups of bucket indexes and key indexes by "hit" (in the cache of the
    process) and "miss" (read from the table).
    """

    records: Counter[SourcePartition] = field(default_factory=Counter)
    bytes: Counter[SourcePartition] = field(default_factory=Counter)
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
    unknown_keys: Counter[str] = field(default_factory=Counter)
    registry: Counter[str] = field(default_factory=Counter)
    index_lookups: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Counts") -> None:
        """Add the counts of another task to these."""
        for counter_field in fields(self):
            mine, theirs = getattr(self, counter_field.name), getattr(other, counter_field.name)
            if isinstance(mine, Counter):
                mine.update(theirs)
            else:
                setattr(self, counter_field.name, mine + theirs)

    def skip(self, table: str, reason: str, count: int) -> None:
        """Add `count` rows of a table to `skipped`, under a reason that `Counts` lists."""
        if count:
            self.skipped[table, reason] += count

    def rows_of(self, table: str) -> int:
        """Return the number of rows written to a table, of all row kinds."""
        return sum(count for (name, _), count in self.rows.items() if name == table)
