"""The report of a dry run for each table: its columns, keys and buckets, and their changes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ingestd.errors import IngestdError
from ingestd.ingest.dry_run.dry_run import DryRun
from ingestd.paimon.spec.data_types import DataField, DataType, RowKind
from ingestd.paimon.spec.options import BucketMode, bucket_mode, core_options
from ingestd.paimon.spec.table_schema import TableSchema

Verdict = Literal["create", "alter", "keep", "impossible"]
"""Whether a table is created, altered, left unchanged, or cannot be written."""


@dataclass(frozen=True, slots=True)
class ColumnPreview:
    """A column after the dry run; `was` is the existing column, or None if the column is new."""

    name: str
    type: DataType
    was: DataField | None

    @property
    def change(self) -> str:
        """The change as text: new, unchanged, or the old name and type."""
        if self.was is None:
            return "new"
        changes = []
        if self.was.name != self.name:
            changes.append(f"renamed from {self.was.name}")
        if self.was.type != self.type:
            changes.append(f"widened from {self.was.type}")
        return ", ".join(changes) or "unchanged"


@dataclass(frozen=True, slots=True)
class TablePreview:
    """A target table as the sample would create or change it.

    `verdict` is "create", "alter", "keep" (no change of the schema) or "impossible". `problem` is
    the reason why the table cannot be created or changed, or None; if it is set, the columns, keys,
    buckets and options are taken from the existing table, or empty if no table exists. `rows` are
    the numbers of rows by row kind. `dropped` are the columns that would be dropped. `filtered` is
    the number of rows that do not pass the row filter `where`; with a primary key, `rows` counts
    them as deletes. If deletes are kept as updates, `deleted_at` is the column with their time, and
    `rows` counts them as updates.
    """

    table: str
    verdict: Verdict
    sources: tuple[str, ...]
    topics: tuple[str, ...]
    problem: str | None = None
    columns: tuple[ColumnPreview, ...] = ()
    primary_keys: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    buckets: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    where: str | None = None
    filtered: int = 0
    deleted_at: str | None = None


def table_previews(dry_run: DryRun) -> list[TablePreview]:
    """Return previews of all tables to which records of the sample are routed, sorted by name."""
    return [_preview(dry_run, table) for table in sorted(dry_run.source_tables)]


def _preview(dry_run: DryRun, table: str) -> TablePreview:
    before = dry_run.before.get(table)
    problem = dry_run.table_problems.get(table)
    after = before if problem else dry_run.after[table]
    sources = tuple(sorted(map(str, dry_run.source_tables[table])))
    topics = tuple(sorted({topic for _, topic in dry_run.topics[table]}))
    if after is None:
        return TablePreview(table, "impossible", sources, topics, problem)
    columns = tuple(_columns(before, after))
    kept = {column.was.id for column in columns if column.was}
    dropped = tuple(
        data_field.name
        for data_field in (before or after).fields
        if before and data_field.id not in kept
    )
    changed = dropped or any(column.change != "unchanged" for column in columns)
    verdict: Verdict = "alter" if changed else "keep"
    if problem:
        verdict = "impossible"
    elif before is None:
        verdict = "create"
    rows = {kind.name.lower(): dry_run.rows[table, kind] for kind in RowKind}
    return TablePreview(
        table,
        verdict,
        sources,
        topics,
        problem,
        columns,
        after.primary_keys,
        after.partition_keys,
        _buckets(after),
        dict(after.options),
        {kind: count for kind, count in rows.items() if count},
        dropped,
        dry_run.filters.get(table),
        dry_run.counts.skipped[table, "filtered"],
        dry_run.kept_deletes.get(table),
    )


def _columns(before: TableSchema | None, after: TableSchema) -> Iterator[ColumnPreview]:
    known = {data_field.id: data_field for data_field in before.fields} if before else {}
    for data_field in after.fields:
        yield ColumnPreview(data_field.name, data_field.type, known.get(data_field.id))


def _buckets(schema: TableSchema) -> str:
    """Return the bucket mode as text, or why the options are invalid.

    For fixed buckets, the text includes the number of buckets and the bucket keys.
    """
    try:
        mode = bucket_mode(schema)
    except IngestdError as error:
        return error.message
    if mode is not BucketMode.HASH_FIXED:
        return str(mode.value)
    options = core_options(schema)
    return f"{options.bucket} {mode.value} by {', '.join(options.bucket_keys)}"
