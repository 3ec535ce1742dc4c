"""A pipeline without Spark and Kafka: topics that lose records and come back, lives that end.

The planning of batches, the choice of a checkpoint, the batches and the tables are the real ones;
what Spark keeps in its checkpoint is written as Spark writes it.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from ingestd.cdc.base import RecordChunk
from ingestd.errors import OffsetLostError
from ingestd.ingest.rows.blobs import as_bytes
from ingestd.ingest.settings.context import (
    BatchContext,
    RoutingConfig,
    SourceSettings,
    TableSettings,
)
from ingestd.ingest.settings.pipeline_settings import BatchLimits, PipelineSettings
from ingestd.ingest.stages.decode_stage import decode_ranges
from ingestd.ingest.stages.outcome import WriteOutcome
from ingestd.ingest.stages.write_stage import write_slot
from ingestd.ingest.tables.lake import Lake
from ingestd.kafka.planner import Planner
from ingestd.kafka.properties import KafkaSource, OutOfRangePolicy
from ingestd.kafka.ranges import BatchOffsets, OffsetRange, Offsets, encode
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.catalog.filesystem import FilesystemCatalog
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.table_read import read_table
from ingestd.spark.checkpoint import Generation, choose_generation, read_batch_offsets
from ingestd.spark.micro_batch import MicroBatch
from ingestd.spark.recovery import BeforeCommit, TopicIdentity, lead
from tests.support.crash_scene import _Local, _Silent

DATABASE = "lake"
_IO = LocalFileIO(sync=False)


@dataclass
class Topic:
    """Logs by partition; `first` is how many records at the front of each are gone."""

    topic_id: str
    logs: list[list[int]] = field(default_factory=lambda: [[]])
    first: int = 0


@dataclass
class Kafka:
    """The cluster as planning, fetching and the check of topics see it."""

    topics: dict[str, Topic] = field(default_factory=dict)

    def produce(self, topic: str, *numbers: int, partition: int = 0) -> None:
        """Append rows with these ids."""
        self.topics[topic].logs[partition].extend(numbers)

    def list_topic_partitions(self) -> Mapping[str, tuple[int, ...]]:
        return {name: tuple(range(len(one.logs))) for name, one in self.topics.items()}

    def beginning_offsets(self, partitions: Mapping[str, tuple[int, ...]]) -> Any:
        return {
            name: {n: min(self.topics[name].first, len(self.topics[name].logs[n])) for n in ones}
            for name, ones in partitions.items()
        }

    def end_offsets(self, partitions: Mapping[str, tuple[int, ...]]) -> Any:
        return {
            name: {n: len(self.topics[name].logs[n]) for n in ones}
            for name, ones in partitions.items()
        }

    def topic_ids(self, topics: list[str]) -> Mapping[str, str]:
        return {name: self.topics[name].topic_id for name in topics if name in self.topics}

    def fetch(self, source: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        """Records of a range; OffsetLostError if it is not in the log, as a real fetch says."""
        one = self.topics[wanted.topic]
        log = one.logs[wanted.partition]
        if wanted.start < one.first or wanted.until > len(log):
            raise OffsetLostError(f"{wanted} is not in the log")
        numbers = log[wanted.start : wanted.until]
        offsets = np.arange(wanted.start, wanted.until, dtype=np.int64)
        keys: list[bytes | None] = [None] * len(numbers)
        values: list[bytes | None] = [
            json.dumps({"id": number, "at": offset}).encode()
            for number, offset in zip(numbers, offsets.tolist(), strict=True)
        ]
        yield RecordChunk(
            wanted.topic, wanted.partition, offsets, offsets + 1000, keys, values, None
        )


@dataclass
class Truth:
    """One pipeline over `kafka` in a folder; tables are append tables, so a double shows."""

    root: Path
    kafka: Kafka = field(default_factory=Kafka)
    policy: OutOfRangePolicy = "fail"
    batch_rows: int = 4
    holder: str = "a"
    node: str = "checkpoint"
    now_ms: Callable[[], int] = lambda: int(time.time() * 1000)
    between: Callable[[], object] = lambda: None
    """Runs after the reading of each batch, before its commits."""

    def live(self) -> Generation:
        """Start, go on to the ends of all topics, and end; the checkpoint that was chosen."""
        settings = self.settings
        with mock.patch("ingestd.spark.recovery.this_process", lambda: self.holder):
            leadership = lead(settings, _IO)
        lake = Lake(settings, self.catalog, _IO, self.now_ms)
        lake.open()
        topics = TopicIdentity(settings.sources)
        topics._clients["src"] = self.kafka  # type: ignore[assignment]
        topics.check(lake)
        checkpoint = choose_generation(_IO, settings.checkpoint, lake.start_offsets())
        batch = MicroBatch(
            _Local(),  # type: ignore[arg-type]
            settings,
            lake,
            lambda batch_id: read_batch_offsets(_IO, checkpoint.path, batch_id),
            BeforeCommit(leadership, topics),
            _Silent(),
        )
        with mock.patch("ingestd.spark.micro_batch.run_stages", self._run_stages):
            self._stream(batch, Path(checkpoint.path), checkpoint.seed)
        return checkpoint

    @property
    def settings(self) -> PipelineSettings:
        source = KafkaSource("src", (), topic_pattern=".*", on_offset_out_of_range=self.policy)
        options = {"bucket": "-1"}
        return PipelineSettings(
            name="truth",
            warehouse=str(self.root / "warehouse"),
            metastore="filesystem",
            database=DATABASE,
            checkpoint=str(self.root / self.node),
            sources={"src": SourceSettings(source, "json")},
            routing=RoutingConfig(),
            defaults=TableSettings((), (), options, {}),
            tables={},
            max_offsets_per_trigger={"src": self.batch_rows},
            limits=BatchLimits(slots=1),
        )

    @property
    def catalog(self) -> FilesystemCatalog:
        return FilesystemCatalog(str(self.root / "warehouse"), _IO)

    def folder(self, name: str) -> Path:
        """Where a table lies."""
        return self.root / "warehouse" / f"{DATABASE}.db" / name

    def table(self, name: str) -> FileStoreTable:
        return self.catalog.get_table(Identifier(DATABASE, name))

    def ids(self, name: str) -> list[int]:
        """The ids in a table, sorted, each as often as it is there."""
        return sorted(row["id"] for row in read_table(self.table(name)).to_pylist())

    def letters(self) -> list[str]:
        """Messages of the dead letters."""
        rows = read_table(self.table("ingestd_dead_letters")).to_pylist()
        return sorted(row["message"] for row in rows)

    def _stream(self, batch: MicroBatch, path: Path, seed: Offsets) -> None:
        kafka = {name: one.kafka for name, one in self.settings.sources.items()}
        limits = self.settings.max_offsets_per_trigger
        cluster: Any = self.kafka
        planner = Planner(kafka, limits, seed, connect=lambda source: cluster)
        for folder in ("offsets", "commits"):
            (path / folder).mkdir(parents=True, exist_ok=True)
        planned = sorted(int(one.name) for one in (path / "offsets").iterdir())
        reached: Offsets = {}
        for number in planned[-1:]:
            if not (path / "commits" / str(number)).exists():
                self._do(batch, path, number)
            reached = read_batch_offsets(_IO, str(path), number).until
        number = planned[-1] + 1 if planned else 0
        while (following := planner.next_batch(reached, bounded=True)) is not None:
            self._plan(path, number, following)
            self._do(batch, path, number)
            reached, number = following.until, number + 1

    def _plan(self, path: Path, number: int, following: BatchOffsets) -> None:
        document = json.dumps(encode(following))
        (path / "offsets" / str(number)).write_text(f"v1\n{{}}\n{document}")

    def _do(self, batch: MicroBatch, path: Path, number: int) -> None:
        batch.run(number)
        (path / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')

    def _run_stages(
        self, spark: object, context: BatchContext, groups: list[list[OffsetRange]], *_: Any
    ) -> list[WriteOutcome]:
        ranges = [one for group in groups for one in group]
        pairs = decode_ranges(context, ranges, fetch=self.kafka.fetch)
        blobs = [as_bytes(blob) for _, blob in pairs]
        outcomes = [write_slot(context, blobs)] if blobs else []
        self.between()
        return outcomes
