"""One micro-batch from offsets to snapshots: what `foreachBatch` calls.

    1. read the offset ranges that Spark planned for the batch
    2. leave out what the tables hold already; stop at a gap
    3. run the stages; as long as they discover new tables, columns or truncates, act and run again;
       stop if too many records were rejected
    4. commit dead letters, then the other tables, several at once
    5. write the mirror, which is only a hint

A crash anywhere is repaired by the replay of the same batch: step 2 recognises what landed.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark import SparkContext

from ingestd.crash_points import Point, reach
from ingestd.errors import OffsetGapError, SchemaConflictError
from ingestd.ingest.schemas.discovery import KeptChunk
from ingestd.ingest.schemas.schema_evolution import plan
from ingestd.ingest.settings.context import BatchContext, Coverage
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.rejection import RejectionGauge
from ingestd.ingest.stages.outcome import RoundResult, merge_outcomes
from ingestd.ingest.stages.truncates import Stream, Truncates, outlives_batch
from ingestd.ingest.tables.lake import Lake
from ingestd.ingest.tables.progress import Gap, Skip, Step, judge
from ingestd.ingest.upkeep.backlog import is_cut
from ingestd.ingest.upkeep.batch_summary import BatchListener, BatchSummary, TableCommit
from ingestd.ingest.upkeep.table_work import TableGrowth
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.counts import Counts
from ingestd.kafka.ranges import BatchOffsets, OffsetRange, Offsets, split
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.table.commit.table_commit import CommitResult
from ingestd.spark.read_again import missing_nothing, stream_of
from ingestd.spark.stages import hand_over_folder, run_stages

_LOG = logging.getLogger(__name__)
_MAX_ROUNDS = 8
_COMMIT_THREADS = 8

TopicIds = Mapping[tuple[str, str], str | None]


@dataclass(slots=True)
class _Batch:
    """What one batch gathers on its way."""

    batch_id: int
    ranges: list[OffsetRange]
    started: float
    listener: BatchListener
    stream: Stream
    lost: tuple[OffsetRange, ...] = ()
    truncates: Truncates = field(default_factory=Truncates)
    found: set[str] = field(default_factory=set)
    kept: list[KeptChunk] = field(default_factory=list)
    times: BatchTimes = field(default_factory=BatchTimes)
    seconds: dict[str, float] = field(default_factory=dict)
    commits: list[TableCommit] = field(default_factory=list)
    by_topic: dict[tuple[str, str], list[OffsetRange]] = field(default_factory=dict)

    def ranges_of(
        self, topics: Iterable[tuple[str, str]], coverage: Coverage
    ) -> tuple[OffsetRange, ...]:
        """The ranges of these topics, lost ones too, and of those that the coverage names."""
        if not self.by_topic:
            for one in (*self.lost, *self.ranges):
                self.by_topic.setdefault((one.source, one.topic), []).append(one)
        known = {(source, topic) for source, by_topic in coverage.items() for topic in by_topic}
        found = sorted(known.union(topics) & self.by_topic.keys())
        return tuple(one for topic in found for one in self.by_topic[topic])

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the block to a phase."""
        begin = time.monotonic()
        try:
            yield
        finally:
            spent = time.monotonic() - begin
            self.seconds[name] = self.seconds.get(name, 0.0) + spent
            self.listener.phase(name, spent)


class MicroBatch:
    """Runs batches of one pipeline; `read_offsets` gives what Spark planned for a batch id."""

    def __init__(
        self,
        spark: SparkContext,
        settings: PipelineSettings,
        lake: Lake,
        read_offsets: Callable[[int], BatchOffsets],
        topic_ids: Callable[[list[OffsetRange]], TopicIds],
        listener: BatchListener,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._lake = lake
        self._read_offsets = read_offsets
        self._topic_ids = topic_ids
        self._listener = listener
        self._gauge = RejectionGauge(settings.rejection_limits)

    def run(self, batch_id: int) -> Offsets:
        """Run one batch to its commits; the next offsets to read.

        Raises the IngestdError that kept the batch from its commits.
        """
        offsets = self._read_offsets(batch_id)
        stream = stream_of(self._lake, self._settings.commit_user, offsets.until)
        clock, lost = time.monotonic(), offsets.lost
        batch = _Batch(batch_id, offsets.ranges(), clock, self._listener, stream, lost)
        self._listener.batch_started(batch_id, tuple(batch.ranges))
        batch.ranges = self._new_ranges(batch.ranges)
        reach(Point.BATCH_PLANNED)
        result = self._run_rounds(batch) if batch.ranges or batch.lost else None
        reach(Point.BATCH_COLLECTED)
        if result is not None:
            self._gauge.check(result.counts, result.rejected)
            with batch.phase("commit"):
                self._commit(batch, result)
        with batch.phase("mirror"):
            self._lake.finish(offsets.until)
        batch.seconds["total"] = time.monotonic() - batch.started
        self._listener.batch_finished(
            BatchSummary(
                batch_id=batch_id,
                until=offsets.until,
                commits=tuple(sorted(batch.commits, key=lambda commit: commit.table)),
                counts=result.counts if result else Counts(),
                rejected=result.rejected if result else (),
                seconds=batch.seconds,
                cut=is_cut(offsets, self._settings.max_offsets_per_trigger),
                times=batch.times,
                topics=result.topics if result else {},
            )
        )
        reach(Point.BATCH_DONE)
        return offsets.until

    def _new_ranges(self, ranges: list[OffsetRange]) -> list[OffsetRange]:
        """Ranges that some table may still need; OffsetGapError if a table misses offsets."""
        return [one for one in ranges if not self._is_everywhere(one)]

    def _is_everywhere(self, one: OffsetRange) -> bool:
        """Whether every table that the topic ever fed holds the whole range, and none is missing.

        A batch that died between two commits may have been about to feed a new table, which has
        no record yet: only a finished batch is left out.
        """
        verdicts = []
        for name in self._lake.fed_by(one.source, one.topic):
            partitions = self._lake.tables[name].coverage[one.source][one.topic]
            verdict = judge(one, partitions.get(one.partition))
            if isinstance(verdict, Gap):
                self._on_gap(name, one, verdict)
            verdicts.append(verdict)
        held = bool(verdicts) and all(isinstance(verdict, Skip) for verdict in verdicts)
        return held and self._lake.has_finished(one)

    def _on_gap(self, table: str, one: OffsetRange, gap: Gap) -> None:
        """OffsetGapError, unless the source's policy lets it go on past lost offsets."""
        policy = self._settings.sources[one.source].kafka.on_offset_out_of_range
        if policy == "fail":
            raise OffsetGapError(_gap_message(table, one, gap))
        where = {"topic": one.topic, "partition": one.partition, "policy": policy}
        lost = {"table": table, "start": gap.start, "until": gap.until}
        _LOG.warning("offsets_skipped", extra={"ctx": {**where, **lost}})

    def _run_rounds(self, batch: _Batch) -> RoundResult:
        """Run the stages until they discover nothing more."""
        slots = self._settings.limits.slots or self._spark.defaultParallelism
        with hand_over_folder(self._spark, self._groups(batch.ranges)) as folder:
            for _ in range(_MAX_ROUNDS):
                reading = batch.truncates.reading(batch.ranges, batch.stream)
                context = self._lake.context(slots, batch.truncates.emptied, reading, batch.found)
                refused = batch.truncates.refused
                context = replace(context, lost=batch.lost, refused_truncates=refused)
                if reading != batch.ranges:
                    context = missing_nothing(context)
                groups = self._groups(reading)
                with batch.phase("stages"):
                    outcomes = run_stages(self._spark, context, groups, folder, batch.kept)
                result = merge_outcomes(context, outcomes)
                batch.times.add(result.times)  # kept chunks told theirs in the run that kept them
                if not result.runs_again:
                    return result
                batch.kept.extend(result.kept)
                with batch.phase("evolve"):
                    self._evolve(context, batch, result)
        raise SchemaConflictError(
            f"batch {batch.batch_id} still discovers changes of its schemas after {_MAX_ROUNDS} "
            f"rounds: {'; '.join(map(str, result.discoveries[:3]))}"
        )

    def _groups(self, ranges: list[OffsetRange]) -> list[list[OffsetRange]]:
        if sum(one.rows for one in ranges) <= self._settings.limits.small_batch_records:
            return [ranges]
        return split(ranges, self._spark.defaultParallelism)

    def _evolve(self, context: BatchContext, batch: _Batch, result: RoundResult) -> None:
        """Open, create and alter tables for what was discovered: one new schema a table."""
        batch.truncates.settle(context, result, batch.stream)
        batch.found.update(found.table for found in result.discoveries)
        new = [
            found
            for found in result.discoveries
            if found.table in context.tables or self._lake.adopt(found.table) is None
        ]
        evolution = plan(context, new, now_ms=int(time.time() * 1000))
        self._lake.ensure_all(evolution.creates)
        for name, schema in evolution.creates.items():
            columns = [column.name for column in schema.fields]
            _LOG.info("table_created", extra={"ctx": {"table": name, "columns": columns}})
        for name, changes in evolution.changes.items():
            self._lake.alter(name, changes)
            done = [str(change) for change in changes]
            _LOG.info("schema_changed", extra={"ctx": {"table": name, "changes": done}})

    def _commit(self, batch: _Batch, result: RoundResult) -> None:
        """Dead letters first, so that a rejected record is never between two stools."""
        # Of what was read again, too: offsets of a topic that is another one mean other records.
        topic_ids = self._topic_ids(batch.truncates.reading(batch.ranges, batch.stream))
        names = sorted({*result.messages, *batch.truncates.emptied})
        first = [name for name in names if name == self._lake.dead_letters]
        for group in (first, [name for name in names if name not in first]):
            with ThreadPoolExecutor(_COMMIT_THREADS, "commit") as pool:
                steps = {name: self._step(name, batch, result, topic_ids) for name in group}
                done = [
                    pool.submit(self._commit_table, name, batch, result, step)
                    for name, step in steps.items()
                ]
            batch.commits.extend(one.result() for one in done)
            reach(Point.LETTERS_COMMITTED if group is first else Point.TABLES_COMMITTED)

    def _commit_table(
        self, name: str, batch: _Batch, result: RoundResult, step: Step
    ) -> TableCommit:
        begin = time.monotonic()
        committed = self._lake.commit(
            name, result.messages.get(name, ()), step, overwrite=name in batch.truncates.emptied
        )
        return TableCommit(
            table=name,
            status=committed.status,
            snapshot_id=committed.snapshot.id if committed.snapshot else None,
            attempts=committed.attempts,
            seconds=time.monotonic() - begin,
            growth=self._growth(name, result, committed),
        )

    def _growth(
        self, name: str, result: RoundResult, committed: CommitResult
    ) -> TableGrowth | None:
        if committed.status != "committed" or committed.snapshot is None:
            return None
        files: Counter[tuple[bytes, int]] = Counter()
        for message in result.messages.get(name, ()):
            if message.bucket >= 0:  # what waits for its bucket is in no sorted run
                files[message.partition, message.bucket] += len(message.new_files)
        schema = self._lake.tables[name].table.schema
        return TableGrowth(schema, committed.snapshot.id, files)

    def _step(self, name: str, batch: _Batch, result: RoundResult, topic_ids: TopicIds) -> Step:
        emptied = batch.truncates.emptied.get(name)
        lasting = emptied if outlives_batch(name, result, batch.stream) else None
        topics = result.topics.get(name, frozenset())
        return Step(
            job=self._settings.name,
            epoch=self._lake.epoch,
            batch=str(batch.batch_id),
            ranges=batch.ranges_of(topics, self._lake.tables[name].coverage),
            topics=topics,
            topic_ids=topic_ids,
            rows={
                kind.name.lower(): result.counts.rows[name, kind]
                for kind in RowKind
                if (name, kind) in result.counts.rows
            },
            truncated=lasting.position if lasting else None,
            feeds=result.feeds.get(name, frozenset()),
            position=result.positions.get(name, -1),
        )


def _gap_message(table: str, one: OffsetRange, gap: Gap) -> str:
    return (
        f"table {table} holds {one.topic}/{one.partition} of source {one.source} up to offset "
        f"{gap.start}, but the batch starts at {gap.until}: the table was rolled back or restored "
        "while the pipeline ran; start it again, and it reads on from the table's own offsets"
    )
