"""Determine how sample records would change the tables of a pipeline, without writing anything.

The decode stage, the router and schema evolution are the same as in the daemon; only the table
registry uses a catalog that simulates changes. Records are processed even if tables already cover
their offsets. The daemon stops at the first problem, but a dry run continues, to report the
problems of all tables.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ingestd.cdc.base import ColumnTypes, RecordChunk, load_data_format
from ingestd.errors import ConfigError, FatalError, SchemaConflictError
from ingestd.ingest.rows.blobs import KIND, Report, as_bytes, receive
from ingestd.ingest.rows.router import check_sharing
from ingestd.ingest.rows.targets import Targets
from ingestd.ingest.schemas.discovery import Discovery
from ingestd.ingest.schemas.schema_evolution import plan
from ingestd.ingest.schemas.table_limits import within_limits
from ingestd.ingest.settings.context import BatchContext, QualifiedSourceTable
from ingestd.ingest.settings.wrong_format import WrongFormatDetector, WrongFormatThreshold
from ingestd.ingest.stages.batch_result import WriteOutcome, merge_outcomes
from ingestd.ingest.stages.decode_stage import decode_ranges
from ingestd.ingest.stages.truncates import TruncateLookup, Truncates
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.ingest.values.counts import Counts, RejectedSample
from ingestd.ingest.values.source_points import NO_POINT
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, DataType, RowKind
from ingestd.paimon.spec.options import refuse_unsupported
from ingestd.paimon.spec.table_schema import TableSchema

_MAX_ATTEMPTS = 8
_THRESHOLD = WrongFormatThreshold()

Sample = Mapping[OffsetRange, Sequence[RecordChunk]]


@dataclass(slots=True)
class DryRun:
    """The results of a dry run; tables are named by identifier, topics as (source, topic).

    `before` are the schemas of existing tables, and `after` the schemas that tables with rows in
    the sample would have. `rows` counts rows that would be written, by (table, row kind).
    `source_tables` and `topics` map tables to the source tables and topics of their rows.
    `table_problems` maps tables to the reason why their rows cannot be written, `topic_problems`
    maps topics to the reason why they would stop the pipeline, and `set_aside` maps topics to the
    reason why they would no longer be read. `excluded` counts rows of source tables that routing
    excludes. `text_keys` maps (table, column) to the type of the source, for text columns of
    existing primary keys whose source type is not text. `filters` maps tables to the condition on
    their rows, and `kept_deletes` maps them to the column with the time of deletes. `truncates` are
    the decisions on truncates in the sample, and `rejected` some of its rejected records.
    """

    truncates: Truncates
    before: dict[str, TableSchema] = field(default_factory=dict)
    after: dict[str, TableSchema] = field(default_factory=dict)
    source_tables: dict[str, frozenset[QualifiedSourceTable]] = field(default_factory=dict)
    topics: dict[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    rows: Counter[tuple[str, RowKind]] = field(default_factory=Counter)
    table_problems: dict[str, str] = field(default_factory=dict)
    topic_problems: dict[tuple[str, str], str] = field(default_factory=dict)
    set_aside: dict[tuple[str, str], str] = field(default_factory=dict)
    excluded: Counter[QualifiedSourceTable] = field(default_factory=Counter)
    text_keys: dict[tuple[str, str], DataType] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    rejected: tuple[RejectedSample, ...] = ()
    filters: dict[str, str] = field(default_factory=dict)
    kept_deletes: dict[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether no problem was found, and no topic would be set aside."""
        return not (self.table_problems or self.topic_problems or self.set_aside)


def run_dry(
    registry: TableRegistry,
    sample: Sample,
    *,
    slots: int,
    now_ms: Callable[[], int],
    trial: WrongFormatThreshold = _THRESHOLD,
) -> DryRun:
    """Run a batch over the sample up to the point where files would be written.

    `registry` must be open and use a `DryRunCatalog`, which does not change the warehouse. `slots`
    is the number of write tasks, `now_ms` returns milliseconds since the epoch. `trial` is the
    condition for setting a topic aside. Problems of tables and topics are recorded in the result.
    Raises RetryableError if the schema registry or the warehouse does not respond.
    """
    before = {name: managed.table.schema for name, managed in registry.tables.items()}
    dry_run = DryRun(Truncates(sample_lookup(sample)), before)
    dry_run.before.pop(registry.dead_letters, None)
    run = _Run(registry, sample, slots, now_ms, dry_run)
    changed = run.round()
    for _ in range(1, _MAX_ATTEMPTS):
        if not changed:
            break
        changed = run.round()
    for table in changed:
        dry_run.table_problems[table] = f"still changes its schema after {_MAX_ATTEMPTS} attempts"
    dry_run.after = {
        name: registry.tables[name].table.schema
        for name in dry_run.source_tables
        if name in registry.tables
    }
    context = registry.context(slots, {})
    _note_shapes(dry_run, context)
    for topic in WrongFormatDetector(trial).judge(dry_run.counts):
        problem = topic.message(context.sources[topic.source].data_format)
        dry_run.set_aside[topic.source, topic.topic] = problem
    if dry_run.counts.skipped["", "excluded"] or any(map(_text_key, dry_run.before.values())):
        _note_sources(dry_run, context, sample)
    return dry_run


def _text_key(schema: TableSchema) -> bool:
    """Return whether a primary key column of a table is text."""
    return any(schema.field(name).type.root in CHARACTER_ROOTS for name in schema.primary_keys)


def _note_shapes(dry_run: DryRun, context: BatchContext) -> None:
    for name in dry_run.source_tables:
        shape = context.settings_of(name).shape
        if shape.where is not None:
            dry_run.filters[name] = str(shape.where.expression)
        if shape.deletion_column is not None:
            dry_run.kept_deletes[name] = shape.deletion_column


def sample_lookup(sample: Sample) -> TruncateLookup:
    """Return functions for decisions on truncates, as if all logs contained only the sample.

    The tables have no rows and cover no offsets.
    """
    partitions = {offset_range.source_partition for offset_range in sample}
    return TruncateLookup(
        partitions=lambda *topic: sum(partition[:2] == topic for partition in partitions),
        held=lambda _: {},
        source_topics=lambda _: (),
        before=lambda *_: {},
        begins=lambda _: {},
    )


class _Run:
    """The attempts of one dry run; each attempt uses the schema changes of the previous attempt."""

    def __init__(
        self,
        registry: TableRegistry,
        sample: Sample,
        slots: int,
        now_ms: Callable[[], int],
        dry_run: DryRun,
    ) -> None:
        self._registry = registry
        self._sample = sample
        self._slots = slots
        self._now_ms = now_ms
        self._dry_run = dry_run

    def round(self) -> set[str]:
        """Process the sample with the current schemas, and apply the changes that it requires.

        Returns the tables with schema changes or truncates.
        """
        dry_run = self._dry_run
        self._start_over()
        context = self._registry.context(self._slots, dry_run.truncates.accepted)
        context = replace(context, refused_truncates=dry_run.truncates.refused)
        dry_run.rows.clear()
        reports = [
            report
            for offset_range in self._sample
            for report in self._decode(context, offset_range)
        ]
        dry_run.counts = Counts()
        for report in reports:
            dry_run.counts.add(report.counts)
        dry_run.rejected = tuple(
            rejected_record for report in reports for rejected_record in report.rejected
        )
        changed: set[str] = set()
        for table in sorted({name for report in reports for name in report.source_tables}):
            own = tuple(_only(report, table) for report in reports if table in report.source_tables)
            if table not in dry_run.table_problems and self._settle(context, table, own):
                changed.add(table)
        return changed

    def _start_over(self) -> None:
        """Reset the covered offsets of all tables, so that no record is skipped."""
        for name, table in self._registry.tables.items():
            fresh = table.progress and replace(table.progress, truncated=None, reached=NO_POINT)
            self._registry.tables[name] = replace(table, covered={}, progress=fresh)

    def _decode(self, context: BatchContext, offset_range: OffsetRange) -> Iterator[Report]:
        """Decode one offset range, count its rows, and yield its reports.

        If its topic would stop the pipeline, records the problem and yields nothing.
        """
        topic = (offset_range.source, offset_range.topic)
        if topic in self._dry_run.topic_problems:
            return
        try:
            pairs = decode_ranges(context, [offset_range], fetch=self._recorded)
            received = receive(as_bytes(blob) for _, blob in pairs)
        except (FatalError, ConfigError) as error:
            self._dry_run.topic_problems[topic] = error.message
            return
        for table, blobs in received.rows.items():
            for blob in blobs:
                kinds, counts = np.unique(blob.rows.column(KIND).to_numpy(), return_counts=True)
                for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
                    self._dry_run.rows[table, RowKind(kind)] += count
        for report in received.reports:
            for (table, kind), count in report.counts.rows.items():  # rows that were skipped
                self._dry_run.rows[table, RowKind(kind)] += count
        yield from received.reports

    def _recorded(self, source: KafkaSource, offset_range: OffsetRange) -> Iterator[RecordChunk]:
        return iter(self._sample[offset_range])

    def _settle(self, context: BatchContext, table: str, reports: tuple[Report, ...]) -> bool:
        """Apply the reports for one table; return whether its schema changed or it has truncates.

        A problem of the table is recorded, not raised.
        """
        dry_run = self._dry_run
        claims = [report.source_tables[table] for report in reports]
        try:
            result = merge_outcomes(context, [WriteOutcome(reports=reports)])
            dry_run.source_tables[table], dry_run.topics[table] = (
                result.source_tables[table],
                result.topics[table],
            )
            check_sharing(context.routing, table, context.owners_of(table).union(*claims))
            if table in dry_run.before:
                refuse_unsupported(dry_run.before[table], for_write=True)
            dry_run.truncates.settle(context, result)
            return self._evolve(context, table, result.discoveries) or bool(result.truncates)
        except (FatalError, ConfigError) as error:
            dry_run.source_tables[table] = frozenset(
                source_table for report in reports for source_table in report.source_tables[table]
            )
            dry_run.topics[table] = frozenset(
                at for report in reports for at in report.topics[table]
            )
            dry_run.table_problems[table] = error.message
            return False

    def _evolve(self, context: BatchContext, table: str, discoveries: Sequence[Discovery]) -> bool:
        registry = self._registry
        adopted = None if table in context.tables else registry.adopt(table)
        if adopted is not None:
            self._dry_run.before[table] = adopted.schema
            return True
        now_ms, limits = self._now_ms(), context.routing.limits
        existing = [
            managed.table
            for name, managed in registry.tables.items()
            if name != registry.dead_letters
        ]
        evolution = within_limits(plan(context, discoveries, now_ms), existing, limits, now_ms)
        for rejection_reason in evolution.refused.values():
            raise SchemaConflictError(rejection_reason.message)
        for name, schema in evolution.creates.items():
            registry.ensure(name, schema)
        for name, changes in evolution.changes.items():
            registry.alter(name, changes)
        return bool(evolution.creates or evolution.changes)


def _only(report: Report, table: str) -> Report:
    """Return the part of a report that concerns one table."""
    return replace(
        report,
        discoveries=tuple(
            discovery for discovery in report.discoveries if discovery.table == table
        ),
        truncates=tuple(truncate for truncate in report.truncates if truncate.table == table),
        source_tables={table: report.source_tables[table]},
        topics={table: report.topics[table]},
        reached={table: report.reached.get(table, NO_POINT)},
    )


def _note_sources(dry_run: DryRun, context: BatchContext, sample: Sample) -> None:
    """Count excluded rows by source table, and record types that become text in a primary key.

    The sample is decoded again for this: tasks count only the total of excluded rows, and decode
    values in the types of existing columns.
    """
    targets = Targets(context)
    for offset_range, chunks in sample.items():
        if (offset_range.source, offset_range.topic) in dry_run.topic_problems:
            continue
        settings = context.sources[offset_range.source]
        data_format = load_data_format(settings.data_format, settings.format_settings)
        for chunk in chunks:
            for batch in data_format.decode(chunk, {}, {}).batches:
                source_table = QualifiedSourceTable(offset_range.source, *batch.source)
                target = targets.of(chunk.topic, source_table)
                if target is None:
                    dry_run.excluded[source_table] += len(batch.offset)
                elif target.table in dry_run.before and target.known is not None:
                    for name, data_type in _becoming_text(target.known, batch.types):
                        dry_run.text_keys[target.table, name] = data_type


def _becoming_text(known: ColumnTypes, decoded: ColumnTypes) -> Iterator[tuple[str, DataType]]:
    """Yield the text columns of a primary key whose values in messages have another type.

    Each column is yielded with this type. `known` are the types in the table, of which only those
    of key columns are NOT NULL.
    """
    for name, data_type in known.items():
        is_text = data_type.root in CHARACTER_ROOTS and not data_type.nullable
        if is_text and name in decoded and decoded[name].root not in CHARACTER_ROOTS:
            yield name, decoded[name]
