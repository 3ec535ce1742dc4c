"""Run one micro-batch from offsets to snapshots; called by `foreachBatch`.

    1. read the offset ranges that Spark planned for the batch
    2. run the stages; if they discover new tables, columns or truncates, apply those and run again;
       stop if too many records were rejected
    3. commit dead letters, then the other tables in parallel
    4. write the claims file, which is only a cache

After a crash at any point the next start continues from the least advanced table; tasks skip the
offsets that a table already covers.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from pyspark import SparkContext

from ingestd.crash_points import CrashPoint, reach
from ingestd.errors import (
    ArgumentError,
    CommitConflictError,
    ConfigError,
    FormatError,
    SchemaConflictError,
    WorkerLostError,
)
from ingestd.ingest.batch_events import BatchListener, BatchSummary, TableCommit
from ingestd.ingest.maintenance.backlog import is_cut
from ingestd.ingest.maintenance.table_maintenance import TableGrowth
from ingestd.ingest.recovery.start_warnings import log_warnings, table_warnings
from ingestd.ingest.recovery.truncate_lookup import truncate_lookup
from ingestd.ingest.schemas.discovery import Discovery
from ingestd.ingest.schemas.schema_evolution import plan
from ingestd.ingest.schemas.table_limits import within_limits
from ingestd.ingest.settings.context import BatchContext
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.rejection import RejectionLimiter, SourceRejection
from ingestd.ingest.settings.routing_rules import TableLimits
from ingestd.ingest.stages.batch_result import AttemptResult, merge_outcomes
from ingestd.ingest.stages.truncates import TruncateLookup, Truncates
from ingestd.ingest.tables.batch_span import TableStep, with_fingerprints
from ingestd.ingest.tables.log_positions import TopicKeys
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.ingest.tables.watermarks import Watermarks
from ingestd.ingest.values.counts import Counts
from ingestd.ingest.values.source_points import NO_POINT
from ingestd.kafka.offset_ranges import BatchOffsets, OffsetRange, Offsets, split, starts_of
from ingestd.log import bind
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.manifest import BucketKey
from ingestd.paimon.spec.schema_change import SchemaChange
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.commit.table_commit import CommitResult
from ingestd.spark.batch import Batch
from ingestd.spark.prefetch import Prefetch
from ingestd.spark.set_aside import SetAsideTopics
from ingestd.spark.stages import run_stages

_LOG = logging.getLogger(__name__)
_MAX_ATTEMPTS = 8
_COMMIT_THREADS = 8


class CommitGuard(Protocol):
    """Checks before a batch is read and committed; `CommitPreconditions` implements it."""

    @property
    def keys(self) -> TopicKeys:
        """The topic keys of all topics read so far, by source and topic."""

    def learn(self, ranges: list[OffsetRange]) -> None:
        """Look up and store the keys of topics in `ranges` that are read for the first time.

        Raises LogChangedError if such a topic was deleted, and SourceError if brokers do not
        respond.
        """

    def check(self, ranges: list[OffsetRange]) -> None:
        """Raise FencedError if leadership is lost, LogChangedError if a topic was recreated.

        The topics are those of `ranges`. Raises SourceError if brokers do not respond, and
        StorageError if the warehouse does not.
        """


class MicroBatch:
    """Runs the micro-batches of a pipeline, from planned offsets to committed snapshots.

    `read_offsets` returns the offsets planned for a batch id. `commit_guard` checks leadership and
    topics before a batch is read and committed, and `listener` gets the events of batches.
    """

    def __init__(
        self,
        spark: SparkContext,
        settings: PipelineSettings,
        registry: TableRegistry,
        read_offsets: Callable[[int], BatchOffsets],
        commit_guard: CommitGuard,
        listener: BatchListener,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._registry = registry
        self._read_offsets = read_offsets
        self._commit_guard = commit_guard
        self._listener = listener
        self._rejection_limiter = RejectionLimiter(settings.rejection_limits)
        self.set_aside = SetAsideTopics(settings, listener)
        self._prefetch = Prefetch(spark)
        self._settled = False
        self._watermarks = Watermarks(settings.watermark_rules, time.monotonic)
        self._begun = datetime.now(UTC)

    def close(self) -> None:
        """Discard a prefetched batch, and kill a running retry of an unreadable partition.

        Then wait until Iceberg metadata is written.
        """
        self._prefetch.close()
        self.set_aside.close()
        self._registry.iceberg.close()

    def refresh_records(self) -> None:
        """Commit progress records again to tables whose newest snapshot has none, or an old one.

        Otherwise the expiry of another writer could remove a table's last record. Call this between
        batches only. Raises FencedError if the process has lost leadership, and the errors of a
        commit.
        """
        self._commit_guard.check([])
        refreshed = self._registry.refresh_records()
        if refreshed:
            self._registry.write_claims()
            _LOG.info("records_refreshed", extra={"ctx": {"tables": refreshed}})

    def run(self, batch_id: int) -> Offsets:
        """Run and commit one batch; return the next offset to read of each topic partition.

        Topics that are set aside are left out of the result; for a topic partition that is set
        aside, the offset is the first that is not read. Raises the error that prevented a commit.
        """
        try:
            return self._run(batch_id)
        except BaseException as error:  # noqa: BLE001  (it is raised again)
            try:
                self._prefetch.forget()
            finally:
                raise error  # not the error of `forget` in a JVM that has ended

    def _run(self, batch_id: int) -> Offsets:
        planned, clock = self._read_offsets(batch_id), time.monotonic()
        self._commit_guard.learn(planned.all_ranges())
        self._registry.keys = self._commit_guard.keys
        lookup = truncate_lookup(self._registry, self._settings, planned.until)
        self._registry.begin(planned)  # with the first offsets of topics that are set aside
        offsets = self.set_aside.without(planned)
        batch = self._batch(batch_id, offsets, clock, lookup)
        self._listener.batch_started(batch.batch_id, tuple(batch.ranges))
        reach(CrashPoint.BATCH_PLANNED)
        result = None
        while batch.ranges and (result := self._run_readable(batch)) is None:
            self._prefetch.forget()
            offsets = self.set_aside.without(offsets)
            batch = self._batch(batch_id, offsets, clock, lookup)
        reach(CrashPoint.BATCH_COLLECTED)
        if result is not None:
            self._rejection_limiter.check(result.counts, result.rejected)
            batch.span = with_fingerprints(batch.span, result.last_records, self._registry.keys)
            with batch.phase("commit"):
                self._commit(batch, result)
        with batch.phase("claims"):
            self._registry.finish(batch.span)
        batch.seconds["total"] = time.monotonic() - batch.started
        self._listener.batch_finished(
            BatchSummary(
                batch_id=batch.batch_id,
                until=offsets.until,
                commits=tuple(sorted(batch.commits, key=lambda commit: commit.table)),
                counts=result.counts if result else Counts(),
                rejected=result.rejected if result else (),
                seconds=batch.seconds,
                cut=is_cut(offsets, self._settings.max_offsets_per_trigger),
                times=batch.times,
                topics=result.topics if result else {},
                iceberg_failures=tuple(self._registry.iceberg.take_failures()),
            )
        )
        reach(CrashPoint.BATCH_DONE)
        return offsets.until

    def _run_readable(self, batch: Batch) -> AttemptResult | None:
        """Run a batch up to its commits and return the result.

        Returns None if topics or partitions were set aside: the batch has to run again without
        them.
        """
        try:
            result = self._run_attempts(batch)
        except WorkerLostError:
            if self._gives_up(batch) or self.set_aside.find_culprits(batch.ranges):
                return None
            raise
        return None if self.set_aside.judge(result, batch.ranges) else result

    def _gives_up(self, batch: Batch) -> bool:
        """Return whether a worker was lost because of records that truncates read again.

        The truncates that need them are then refused.
        """
        own = starts_of(batch.ranges)
        again = []
        for read in batch.truncates.reading(batch.ranges):
            start = own.get(read.source_partition, read.until)
            again.append(replace(read, until=start))
        again = [read for read in again if read.rows]
        unreadable = self.set_aside.culprits(again) if again else []
        return batch.truncates.give_up(unreadable, batch.ranges)

    def _batch(
        self, number: int, offsets: BatchOffsets, started: float, lookup: TruncateLookup
    ) -> Batch:
        span, ranges = self._registry.begin(offsets), offsets.ranges()
        name, truncates = batch_name(self._begun, number), Truncates(lookup)
        return Batch(name, ranges, span, started, self._listener, truncates, offsets.following)

    def _run_attempts(self, batch: Batch) -> AttemptResult:
        """Run the stages until an attempt needs no further one, and return its result.

        No attempt follows one that found an unreadable range in the batch itself. Raises
        SchemaConflictError if the last allowed attempt needs a further one.
        """
        context, groups = self._reading(batch)
        if self._settled and batch.following is not None and len(groups) > 1:
            self._prefetch.follow(context, groups)  # so that the next batch can be prefetched too
        with self._prefetch.exchange(context, groups) as exchange:
            for _ in range(_MAX_ATTEMPTS):
                # While this batch makes discoveries, the view of the next one would be outdated.
                exchange.on_submit = partial(self._follow, batch) if self._settled else None
                with batch.phase("stages"), self._planned_on_existing(batch):
                    outcomes = run_stages(self._spark, context, groups, exchange)
                result = merge_outcomes(context, outcomes)
                batch.times = result.times
                self._settled = not result.runs_again
                if self._settled:
                    self._take_comments(batch, context, result)
                given_up = batch.truncates.give_up(result.unreadable, batch.ranges)
                if self._settled or (result.unreadable and not given_up):
                    return result
                self._prefetch.forget()
                if not given_up:
                    self._evolve(batch, context, result)
                context, groups = self._reading(batch)
        raise SchemaConflictError(
            f"batch {batch.batch_id} still discovers schema changes after {_MAX_ATTEMPTS} "
            f"attempts: {'; '.join(map(str, result.discoveries[:3]))}"
        )

    @contextmanager
    def _planned_on_existing(self, batch: Batch) -> Iterator[None]:
        """Raise CommitConflictError if tasks fail because a snapshot was expired or rolled back."""
        try:
            yield
        except (FormatError, ArgumentError) as error:
            changed = self._registry.refresh(batch.ranges)
            if not changed:
                raise
            raise CommitConflictError(
                f"{error.message}: others have changed {', '.join(changed)} while a batch read it; "
                "the batch is planned again"
            ) from error

    def _evolve(self, batch: Batch, context: BatchContext, result: AttemptResult) -> None:
        with batch.phase("evolve"):
            limits = self._settings.routing.limits
            _act_on_findings(self._registry, self._listener, limits, context, batch, result)

    def _take_comments(self, batch: Batch, context: BatchContext, result: AttemptResult) -> None:
        """Apply comments of the source, which need no further run of the batch."""
        if result.discoveries:
            with batch.phase("evolve"):
                evolution = plan(context, result.discoveries, int(time.time() * 1000))
                _alter(self._registry, self._listener, evolution.changes)

    def _reading(self, batch: Batch) -> tuple[BatchContext, list[list[OffsetRange]]]:
        """Return the context of a batch's next attempt, and the ranges to read, grouped by task."""
        truncates = batch.truncates
        reading = truncates.reading(batch.ranges)
        self._registry.refresh(reading)
        context = self._registry.context(
            self._slots(), truncates.accepted, reading, batch.discovered
        )
        context = replace(
            context,
            refused_truncates=truncates.refused,
            refused_tables=batch.refused,
            owners=batch.owners,
        )
        return context, self._groups(reading)

    def _follow(self, batch: Batch) -> None:
        """Prefetch the next batch if it is planned and large enough for several tasks.

        A batch with a topic that is not read yet is not prefetched: its start looks up the key.
        """
        ranges = [] if batch.following is None else batch.following.ranges()
        groups, keys = self._groups(ranges), self._registry.keys
        if len(groups) > 1 and all((range_.source, range_.topic) in keys for range_ in ranges):
            self._prefetch.follow(self._registry.context(self._slots(), {}, ranges), groups)

    def _slots(self) -> int:
        return self._settings.limits.write_tasks or self._spark.defaultParallelism

    def _groups(self, ranges: list[OffsetRange]) -> list[list[OffsetRange]]:
        if sum(range_.rows for range_ in ranges) <= self._settings.limits.small_batch_records:
            return [ranges]
        return split(ranges, self._spark.defaultParallelism)

    def _commit(self, batch: Batch, result: AttemptResult) -> None:
        """Commit the table of dead letters, then the other tables in parallel.

        In this order no table covers the offset of a rejected record before its dead letter is
        committed.
        """
        # Includes ranges read again: offsets of a recreated topic refer to other records.
        self._commit_guard.check(batch.truncates.reading(batch.ranges))
        self._watermarks.note(batch.times)
        names = sorted({*result.messages, *batch.truncates.accepted})
        self._registry.mark(names)
        first = [name for name in names if name == self._registry.dead_letters]
        for group in (first, [name for name in names if name not in first]):
            with ThreadPoolExecutor(_COMMIT_THREADS, "commit") as pool:
                steps = {name: self._step(name, batch, result) for name in group}
                done = [
                    pool.submit(self._commit_table, name, batch, result, step)
                    for name, step in steps.items()
                ]
            batch.commits.extend(future.result() for future in done)
            reach(
                CrashPoint.DEAD_LETTERS_COMMITTED if group is first else CrashPoint.TABLES_COMMITTED
            )

    def _commit_table(
        self, name: str, batch: Batch, result: AttemptResult, step: TableStep
    ) -> TableCommit:
        begin, begun = time.monotonic(), time.time()
        messages, truncate = result.messages.get(name, ()), batch.truncates.accepted.get(name)
        if truncate is not None and truncate.covered is not None:
            self._registry.lower(name, batch.truncates.lookup.held(name))
        with bind(batch_id=batch.batch_id, table=name):  # runs in a pool thread
            committed = self._registry.commit(
                name, messages, batch.span, step, overwrite=truncate is not None
            )
        return TableCommit(
            table=name,
            status=committed.status,
            snapshot_id=committed.snapshot.id if committed.snapshot else None,
            attempts=committed.attempts,
            seconds=time.monotonic() - begin,
            growth=self._growth(name, result, committed),
            begun=begun,
        )

    def _growth(
        self, name: str, result: AttemptResult, committed: CommitResult
    ) -> TableGrowth | None:
        if committed.status != "committed" or committed.snapshot is None:
            return None
        files = Counter[BucketKey]()
        for message in result.messages.get(name, ()):
            if message.bucket >= 0:  # files of postponed buckets are in no sorted run
                files[message.partition, message.bucket] += len(message.new_files)
        schema = self._registry.tables[name].table.schema
        return TableGrowth(schema, committed.snapshot.id, files)

    def _step(self, name: str, batch: Batch, result: AttemptResult) -> TableStep:
        topics = result.topics.get(name, frozenset())
        return TableStep(
            topic_keys=frozenset(self._registry.keys[topic] for topic in topics),
            source_tables=result.source_tables.get(name, frozenset()),
            rows={
                kind.name.lower(): result.counts.rows[name, kind]
                for kind in RowKind
                if (name, kind) in result.counts.rows
            },
            truncated=batch.truncates.lasting_point(name, result),
            reached=result.reached.get(name, NO_POINT),
            batch=batch.batch_id,
            watermark=self._watermarks.of(
                name, partial(self._registry.topic_partitions, name, topics)
            ),
        )


def _act_on_findings(
    registry: TableRegistry,
    listener: BatchListener,
    limits: TableLimits,
    context: BatchContext,
    batch: Batch,
    result: AttemptResult,
) -> None:
    """Apply what an attempt discovered: truncates, claims to tables, and schema changes.

    Decisions are stored in the batch for its next attempt.
    """
    batch.truncates.settle(context, result)
    batch.owners.update(result.contested)
    for table, owners in result.contested.items():
        names = sorted(map(str, owners))
        _LOG.warning("table_contested", extra={"ctx": {"table": table, "rows_of": names}})
    batch.discovered.update(discovery.table for discovery in result.discoveries)
    new = _new_discoveries(registry, context, result)
    _warn_of_adopted(registry, context, result)
    now_ms = int(time.time() * 1000)
    known = registry.tables
    existing = [known[name].table for name in known if name != registry.dead_letters]
    evolution = within_limits(plan(context, new, now_ms), existing, limits, now_ms)
    refused = {**evolution.refused, **_create(registry, listener, context, evolution.creates)}
    batch.refused.update(refused)
    for name, refusal in refused.items():
        at = {
            "table": name,
            "stage": refusal.stage,
            "reason": refusal.reason,
            "problem": refusal.message,
        }
        _LOG.warning("table_refused", extra={"ctx": at})
    _alter(registry, listener, evolution.changes)


def _new_discoveries(
    registry: TableRegistry, context: BatchContext, result: AttemptResult
) -> list[Discovery]:
    """Return the discoveries in tables that were open and have no newer schema in the catalog.

    Other tables of the catalog are opened or take their newest schema, for the next attempt.
    Discoveries in tables that do not exist are returned as well.
    """
    known = {discovery.table for discovery in result.discoveries} & context.tables.keys()
    current = {name for name in known if not registry.refresh_schema(name)}
    return [
        discovery
        for discovery in result.discoveries
        if discovery.table in current or registry.adopt(discovery.table) is None
    ]


def _warn_of_adopted(registry: TableRegistry, context: BatchContext, result: AttemptResult) -> None:
    """Warn of settings that differ from existing tables which this batch is the first to write."""
    discovered = {discovery.table for discovery in result.discoveries}
    adopted = {
        name: registry.tables[name].table.schema
        for name in discovered - context.tables.keys()
        if name in registry.tables
    }
    log_warnings(table_warnings(context, adopted))


def _alter(
    registry: TableRegistry,
    listener: BatchListener,
    changes_by_table: Mapping[str, Sequence[SchemaChange]],
) -> None:
    """Alter tables, and report their new schemas."""
    for name, changes in changes_by_table.items():
        before = registry.tables[name].table.schema
        registry.alter(name, changes)
        listener.schema_changed(name, before, registry.tables[name].table.schema)
        done = [str(change) for change in changes]
        _LOG.info("schema_changed", extra={"ctx": {"table": name, "changes": done}})


def _create(
    registry: TableRegistry,
    listener: BatchListener,
    context: BatchContext,
    creates: Mapping[str, TableSchema],
) -> Mapping[str, SourceRejection]:
    """Create tables; return the reasons why the catalog refuses some of them, by table name.

    Raises ConfigError or SchemaConflictError for a refused table whose policy is `fail`, and the
    other errors of `TableRegistry.ensure`.
    """
    refused: dict[str, SourceRejection] = {}
    try:
        registry.ensure_all(creates)
    except (ConfigError, SchemaConflictError):
        for name, schema in creates.items():  # created one by one to find which is refused
            try:
                registry.ensure(name, schema)
            except (ConfigError, SchemaConflictError) as error:
                if context.settings_of(name).evolution.fails:
                    raise
                refused[name] = SourceRejection("schema", "impossible-table", error.message)
    for name, schema in creates.items():
        if name not in refused:
            listener.table_created(name, schema)
            columns = [column.name for column in schema.fields]
            _LOG.info("table_created", extra={"ctx": {"table": name, "columns": columns}})
    return refused


def batch_name(begun: datetime, number: int) -> str:
    """Return the id of a batch in logs, status and tables: start time of its query, and a number.

    Spark numbers the batches from 0 in each query, so the number alone is ambiguous.
    """
    return f"{begun:%Y%m%dT%H%M%S}.{begun.microsecond // 1000:03d}Z-{number}"
