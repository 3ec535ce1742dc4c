"""A pipeline's life in one process that may be killed: batches, compaction, expiry, all real.

Everything runs as in the daemon but for Spark and Kafka: records are made where they are fetched,
and the two stages of a batch run in turn. What Spark's checkpoint keeps is a folder of marks.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any
from unittest import mock

import numpy as np

from ingestd.cdc.base import RecordChunk
from ingestd.crash_points import CrashPoint, killer, watch
from ingestd.errors import IngestdError, RetryableError
from ingestd.ingest.batch_events import BatchSummary
from ingestd.ingest.key_changes.completion import complete_rows
from ingestd.ingest.maintenance.jobs import NotDone, do_job
from ingestd.ingest.maintenance.scheduler import Job
from ingestd.ingest.rows.blobs import as_bytes
from ingestd.ingest.settings.context import (
    BatchContext,
    RoutingConfig,
    SourceSettings,
    TableSettings,
)
from ingestd.ingest.settings.pipeline_settings import BatchLimits, PipelineSettings
from ingestd.ingest.stages.batch_result import WriteOutcome
from ingestd.ingest.stages.decode_stage import decode_ranges
from ingestd.ingest.stages.write_stage import write_slot
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.kafka.offset_ranges import BatchOffsets, OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.catalog.filesystem import FilesystemCatalog
from ingestd.paimon.io.file_io import FileIO, LocalFileIO
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.rewrite.postpone_move import move_postponed
from ingestd.spark.micro_batch import MicroBatch
from tests.support.crash_kinds import BATCHES, KINDS, PARTITIONS, PER_BATCH, record

DATABASE = "lake"
TABLE = f"{DATABASE}.t"
TOPIC = "bank.t"


class _Silent:
    """Hears of batches and says nothing."""

    def tables_opened(self, tables: object) -> None: ...

    def table_created(self, table: str, schema: object) -> None: ...

    def schema_changed(self, table: str, before: object, after: object) -> None: ...

    def offsets_lost(self, source: str, topic: str, records: int) -> None: ...
    def losses_accepted(self, reasons: Sequence[str]) -> None: ...

    def topic_set_aside(self, topic: object, message: str) -> None: ...

    def partition_set_aside(self, unread: object, message: str) -> None: ...

    def batch_started(self, batch_id: str, ranges: tuple[OffsetRange, ...]) -> None: ...

    def phase(self, name: str, seconds: float) -> None: ...

    def batch_finished(self, summary: BatchSummary) -> None: ...

    def between_batches(self, stopping: Event) -> None: ...


@dataclass
class SameTopics:
    """Topics that no one deletes; `checked` are the ranges of the last check."""

    keys: dict[tuple[str, str], str]
    checked: list[OffsetRange] = field(default_factory=list)

    def learn(self, ranges: list[OffsetRange]) -> None: ...

    def check(self, ranges: list[OffsetRange]) -> None:
        self.checked = ranges


def same_topics(*topics: str) -> SameTopics:
    """Topics of the source "src" with the keys "id of TOPIC"."""
    return SameTopics({("src", topic): f"id of {topic}" for topic in topics})


class _Local:
    """As much of a Spark context as a batch of one task asks for."""

    defaultParallelism = 1  # noqa: N815  (Spark's name)


@dataclass(frozen=True)
class Scene:
    """One table of a kind in a warehouse of its own below `root`."""

    root: Path
    kind: str
    io: FileIO = field(default_factory=lambda: LocalFileIO(sync=False))

    @property
    def warehouse(self) -> str:
        return str(self.root / "warehouse")

    @property
    def catalog(self) -> FilesystemCatalog:
        return FilesystemCatalog(self.warehouse, self.io)

    def table(self) -> FileStoreTable:
        """The table as of its newest schema."""
        return self.catalog.get_table(Identifier.parse(TABLE))

    def live(self) -> None:
        """Go on where the marks say, to the end. May be called again and again, by anybody."""
        registry = TableRegistry(self._settings(), self.catalog, self.io, _now_ms)
        registry.open()
        batch = MicroBatch(
            _Local(),  # type: ignore[arg-type]
            self._settings(),
            registry,
            _offsets,
            same_topics(TOPIC),
            _Silent(),
        )
        with mock.patch("ingestd.spark.micro_batch.run_stages", self._run_stages):
            for number in range(BATCHES):
                if not self._is_marked(f"commit-{number}"):
                    batch.run(number)
                    self._mark(f"commit-{number}")
                if not self._is_marked(f"maintenance-{number}"):
                    self.maintenance(full=number + 1 == BATCHES)
                    self._mark(f"maintenance-{number}")

    def maintenance(self, *, full: bool) -> None:
        """Give waiting rows their buckets, compact, and expire, as the options say."""
        table = self.table()
        move_postponed(table, "mover", state=load_state(table), now_ms=_now_ms())
        for kind in ("full" if full else "compact", "expire"):
            done = do_job(self.catalog, Job(kind, TABLE), "compactor")
            if isinstance(done, NotDone):
                raise RetryableError(done.message)

    def _settings(self) -> PipelineSettings:
        source = SourceSettings(KafkaSource("src", (TOPIC,)), "debezium-json")
        return PipelineSettings(
            name="life",
            warehouse=self.warehouse,
            metastore="filesystem",
            database=DATABASE,
            sources={"src": source},
            routing=RoutingConfig(),
            defaults=TableSettings(),
            tables={"t": KINDS[self.kind].settings},
            max_offsets_per_trigger={},
            limits=BatchLimits(write_tasks=1),
        )

    def _run_stages(
        self, spark: object, context: BatchContext, groups: list[list[OffsetRange]], *_: Any
    ) -> list[WriteOutcome]:
        ranges = [one for group in groups for one in group]
        pairs = decode_ranges(context, ranges, fetch=self._fetch)
        blobs = [as_bytes(blob) for _, blob in pairs]
        return [write_slot(context, blobs, complete_rows)] if blobs else []

    def _fetch(self, source: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        offsets = np.arange(wanted.start, wanted.until, dtype=np.int64)
        kind = KINDS[self.kind]
        pairs = [record(kind, wanted.partition, offset) for offset in offsets.tolist()]
        keys, values = [key for key, _ in pairs], [value for _, value in pairs]
        yield RecordChunk(
            wanted.topic, wanted.partition, offsets, offsets + 1000, keys, list(values), None
        )

    def _is_marked(self, name: str) -> bool:
        return (self.root / "marks" / name).exists()

    def _mark(self, name: str) -> None:
        (self.root / "marks").mkdir(parents=True, exist_ok=True)
        (self.root / "marks" / name).touch()


def _offsets(batch_id: int) -> BatchOffsets:
    first, last = batch_id * PER_BATCH, (batch_id + 1) * PER_BATCH
    return BatchOffsets(
        {"src": {TOPIC: dict.fromkeys(range(PARTITIONS), first)}},
        {"src": {TOPIC: dict.fromkeys(range(PARTITIONS), last)}},
    )


def _now_ms() -> int:
    return int(time.time() * 1000)


def live_until(root: str, kind: str, point: str | None, times: int) -> None:
    """What a process does: live, and die at a step for the n-th time if it gets there."""
    if point is not None:
        watch(killer(point, times, Path(root) / f"killed-{time.time_ns()}"))
    Scene(Path(root), kind).live()


def live_and_tell(root: str, kind: str, report: str) -> None:
    """Live undisturbed and write down every step, one a line."""
    passed: list[CrashPoint] = []
    watch(passed.append)
    Scene(Path(root), kind).live()
    Path(report).write_text("\n".join(passed))


def live_and_confess(root: str, kind: str, told: list[str]) -> None:
    """Live, and put the error that ended it into a list."""
    try:
        Scene(Path(root), kind).live()
    except IngestdError as error:
        told.append(f"{type(error).__name__}: {error.message}")
