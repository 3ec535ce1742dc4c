"""Find how sample records would change the tables of a pipeline, without writing anything.

The decode stage, the router and schema evolution are the same as in the daemon; only the table
registry uses a catalog that simulates changes. Records are processed even if tables already cover
their offsets. The daemon stops at the first problem, but a dry run continues, to report the
problems of all tables.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ingestd.cdc.base import RecordChunk, load_data_format
from ingestd.errors import ConfigError, FatalError, SchemaConflictError
from ingestd.ingest.rows.blobs import KIND, Report, as_bytes, receive
from ingestd.ingest.rows.router import Router, check_sharing
from ingestd.ingest.schemas.discovery import Discovery
from ingestd.ingest.schemas.schema_evolution import plan
from ingestd.ingest.schemas.table_limits import within_limits
from ingestd.ingest.settings.context import BatchContext, Feed
from ingestd.ingest.settings.topic_trial import TopicTrial, TrialLimits
from ingestd.ingest.stages.decode_stage import decode_ranges
from ingestd.ingest.stages.outcome import WriteOutcome, merge_outcomes
from ingestd.ingest.stages.truncates import Stream, Truncates
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.ingest.values.counts import Counts, RejectedSample
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import OffsetRange
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.options import refuse_unsupported
from ingestd.paimon.spec.table_schema import TableSchema

_MAX_ATTEMPTS = 8
_TRIAL = TrialLimits()

Sample = Mapping[OffsetRange, Sequence[RecordChunk]]


@dataclass(slots=True)
class DryRun:
    """The results of a dry run; tables are named by identifier, topics as (source, topic).

    `before` are the schemas of existing tables, and `after` the schemas that all tables would have.
    `rows` counts rows that would be written, by (table, row kind). `table_problems` maps tables to
    the reason why their rows cannot be written, `topic_problems` maps topics to the reason why they
    would stop the pipeline, and `set_aside` to the reason why they would not be read. `excluded`
    counts rows of source tables that routing excludes.
    """

    before: dict[str, TableSchema] = field(default_factory=dict)
    after: dict[str, TableSchema] = field(default_factory=dict)
    feeds: dict[str, frozenset[Feed]] = field(default_factory=dict)
    topics: dict[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    rows: Counter[tuple[str, RowKind]] = field(default_factory=Counter)
    table_problems: dict[str, str] = field(default_factory=dict)
    topic_problems: dict[tuple[str, str], str] = field(default_factory=dict)
    set_aside: dict[tuple[str, str], str] = field(default_factory=dict)
    excluded: Counter[Feed] = field(default_factory=Counter)
    truncates: Truncates = field(default_factory=Truncates)
    counts: Counts = field(default_factory=Counts)
    rejected: tuple[RejectedSample, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the pipeline would run without errors."""
        return not (self.table_problems or self.topic_problems or self.set_aside)


def run_dry(
    registry: TableRegistry,
    sample: Sample,
    *,
    slots: int,
    now_ms: Callable[[], int],
    trial: TrialLimits = _TRIAL,
) -> DryRun:
    """Run a batch over the sample up to the point where files would be written.

    `registry` must be open and use a `DryRunCatalog`, which does not apply changes to the
    warehouse. Raises RetryableError if the schema registry or the warehouse does not respond.
    """
    found = DryRun(before={name: one.table.schema for name, one in registry.tables.items()})
    found.before.pop(registry.dead_letters, None)
    run = _Run(registry, sample, slots, now_ms, found)
    changed = run.round()
    for _ in range(1, _MAX_ATTEMPTS):
        if not changed:
            break
        changed = run.round()
    for table in changed:
        found.table_problems[table] = f"still changes its schema after {_MAX_ATTEMPTS} attempts"
    found.after = {
        name: registry.tables[name].table.schema for name in found.feeds if name in registry.tables
    }
    sources = registry.context(slots, {}).sources
    for one in TopicTrial(trial).judge(found.counts):
        problem = one.message(sources[one.source].data_format)
        found.set_aside[one.source, one.topic] = problem
    if found.counts.skipped["", "excluded"]:
        _count_excluded(found, registry.context(slots, {}), sample)
    return found


class _Run:
    """The attempts of one dry run; each attempt uses the schema changes of the previous attempt."""

    def __init__(
        self,
        registry: TableRegistry,
        sample: Sample,
        slots: int,
        now_ms: Callable[[], int],
        found: DryRun,
    ) -> None:
        self._registry = registry
        self._sample = sample
        self._slots = slots
        self._now_ms = now_ms
        self._found = found

    def round(self) -> set[str]:
        """Decode the sample with the current schemas; return the tables whose schemas changed."""
        found = self._found
        self._start_over()
        context = self._registry.context(self._slots, found.truncates.emptied)
        context = replace(context, refused_truncates=found.truncates.refused)
        found.rows.clear()
        reports = [report for one in self._sample for report in self._decode(context, one)]
        found.counts = Counts()
        for report in reports:
            found.counts.add(report.counts)
        found.rejected = tuple(
            rejected_record for report in reports for rejected_record in report.rejected
        )
        changed: set[str] = set()
        for table in sorted({name for report in reports for name in report.feeds}):
            own = tuple(_only(report, table) for report in reports if table in report.feeds)
            if table not in found.table_problems and self._settle(context, table, own):
                changed.add(table)
        return changed

    def _start_over(self) -> None:
        """Reset the covered offsets of all tables, so that no record is skipped."""
        for name, one in self._registry.tables.items():
            fresh = one.progress and replace(one.progress, truncated=None, position=-1)
            self._registry.tables[name] = replace(one, covered={}, progress=fresh)

    def _decode(self, context: BatchContext, wanted: OffsetRange) -> Iterator[Report]:
        """Yield the reports of one offset range, unless its topic would stop the pipeline."""
        topic = (wanted.source, wanted.topic)
        if topic in self._found.topic_problems:
            return
        try:
            pairs = decode_ranges(context, [wanted], fetch=self._recorded)
            received = receive(as_bytes(blob) for _, blob in pairs)
        except (FatalError, ConfigError) as error:
            self._found.topic_problems[topic] = error.message
            return
        for table, blobs in received.rows.items():
            for blob in blobs:
                kinds, counts = np.unique(blob.rows.column(KIND).to_numpy(), return_counts=True)
                for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
                    self._found.rows[table, RowKind(kind)] += count
        for report in received.reports:
            for (table, kind), count in report.counts.rows.items():  # rows that were skipped
                self._found.rows[table, RowKind(kind)] += count
        yield from received.reports

    def _recorded(self, source: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        return iter(self._sample[wanted])

    def _settle(self, context: BatchContext, table: str, reports: tuple[Report, ...]) -> bool:
        """Apply the reports for one table to its schema; return whether the schema changed."""
        found = self._found
        claims = [report.feeds[table] for report in reports]
        try:
            result = merge_outcomes(context, [WriteOutcome(reports=reports)])
            found.feeds[table], found.topics[table] = result.feeds[table], result.topics[table]
            check_sharing(context.routing, table, context.owners_of(table).union(*claims))
            if table in found.before:
                refuse_unsupported(found.before[table], for_write=True)
            found.truncates.settle(context, result, self._stream())
            return self._evolve(context, table, result.discoveries) or bool(result.truncates)
        except (FatalError, ConfigError) as error:
            found.feeds[table] = frozenset(
                feed for report in reports for feed in report.feeds[table]
            )
            found.topics[table] = frozenset(at for report in reports for at in report.topics[table])
            found.table_problems[table] = error.message
            return False

    def _stream(self) -> Stream:
        """Return a stream state in which the sample is the whole stream and tables are empty."""
        places = {(one.source, one.topic, one.partition) for one in self._sample}
        return Stream(
            partitions=lambda *topic: sum(place[:2] == topic for place in places),
            held=lambda _: {},
            fed=lambda _: (),
            before=lambda *_: {},
            begins=lambda _: {},
        )

    def _evolve(self, context: BatchContext, table: str, discoveries: Sequence[Discovery]) -> bool:
        registry = self._registry
        adopted = None if table in context.tables else registry.adopt(table)
        if adopted is not None:
            self._found.before[table] = adopted.schema
            return True
        now_ms, limits = self._now_ms(), context.routing.limits
        existing = [
            one.table for name, one in registry.tables.items() if name != registry.dead_letters
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
        feeds={table: report.feeds[table]},
        topics={table: report.topics[table]},
        positions={table: report.positions.get(table, -1)},
    )


def _count_excluded(found: DryRun, context: BatchContext, sample: Sample) -> None:
    """Count excluded rows by source table; tasks count only their total."""
    router = Router(context.routing, context.database)
    for wanted, chunks in sample.items():
        if (wanted.source, wanted.topic) in found.topic_problems:
            continue
        settings = context.sources[wanted.source]
        data_format = load_data_format(settings.data_format, settings.format_settings)
        for chunk in chunks:
            for batch in data_format.decode(chunk, {}, {}).batches:
                if router.route(chunk.topic, batch.source) is None:
                    found.excluded[Feed(wanted.source, *batch.source)] += len(batch.offset)
