"""A pipeline without Spark and Kafka: topics that lose records and come back, lives that end.

The start of the pipeline, the planning of batches, the batches and the tables are the real ones.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from ingestd.cdc.base import RecordChunk, record_checksum
from ingestd.errors import LogChangedError
from ingestd.ingest.key_changes.completion import complete_rows
from ingestd.ingest.recovery.logs import TopicKeyCheck
from ingestd.ingest.recovery.start import recover
from ingestd.ingest.rows.blobs import as_bytes
from ingestd.ingest.settings.context import (
    BatchContext,
    RoutingConfig,
    SourceSettings,
    TableSettings,
)
from ingestd.ingest.settings.pipeline_settings import (
    DEAD_LETTER_TABLE,
    BatchLimits,
    PipelineSettings,
)
from ingestd.ingest.stages.batch_result import WriteOutcome, merge_outcomes
from ingestd.ingest.stages.decode_stage import decode_ranges
from ingestd.ingest.stages.write_stage import write_slot
from ingestd.ingest.tables.pipeline_warehouse import open_catalog
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.kafka.offset_ranges import BatchOffsets, OffsetRange, decode, encode
from ingestd.kafka.planner import Planner
from ingestd.kafka.properties import KafkaSource, OutOfRangePolicy, StartupMode
from ingestd.paimon.catalog.base import Catalog, Identifier
from ingestd.paimon.catalog.branch_catalog import BranchCatalog
from ingestd.paimon.catalog.filesystem import FilesystemCatalog
from ingestd.paimon.io.file_io import FileIO, LocalFileIO
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.table.commit.overwrite import truncate_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.table_read import read_table
from ingestd.spark.micro_batch import MicroBatch
from ingestd.spark.pipeline import CommitPreconditions, lead
from tests.support.crash_scene import _Local, _Silent

DATABASE = "lake"
_IO = LocalFileIO(sync=False)
_MAPPING = {"copy.orders": "orders", "shop.orders": "orders"}


@dataclass
class Log:
    """One partition: (number, leader epoch) of each record; the first `first` records are gone."""

    records: list[tuple[int, int]] = field(default_factory=list)
    first: int = 0
    epoch: int = 0

    def end_of_epoch(self, epoch: int) -> int:
        """Where the newest epoch ends that is at most `epoch`, as brokers answer it."""
        ends = [at + 1 for at, (_, one) in enumerate(self.records) if one <= epoch]
        return max(self.first, *ends, 0)


@dataclass
class Topic:
    """Logs by partition."""

    topic_id: str
    logs: list[Log] = field(default_factory=lambda: [Log()])


def message(number: int, offset: int) -> bytes:
    """The record of a number; that of a negative one is rejected, in one of two stages."""
    refused = isinstance(number, int) and number < 0
    if refused and number % 2:
        return f"garbage {number}".encode()
    return json.dumps({"id": number, "at": f"garbage {number}" if refused else offset}).encode()


@dataclass
class Kafka:
    """The cluster as the start, planning and fetching see it."""

    topics: dict[str, Topic] = field(default_factory=dict)
    selects: Callable[[str], bool] = lambda _: True

    def of(self, source: KafkaSource) -> "Kafka":
        """The same cluster as the client of a source sees it."""
        client = copy(self)
        client.selects = source.selects
        return client

    def add_topics(self, *topics: str, numbers: Iterable[int] = range(10)) -> None:
        """Create topics with rows of these ids."""
        for topic in topics:
            self.topics[topic] = Topic(f"id of {topic}")
            self.produce(topic, *numbers)

    def produce(self, topic: str, *numbers: int, partition: int = 0) -> None:
        """Append rows with these ids."""
        log = self.topics[topic].logs[partition]
        log.records.extend((number, log.epoch) for number in numbers)

    def list_topic_partitions(self) -> Mapping[str, tuple[int, ...]]:
        return {
            name: tuple(range(len(one.logs)))
            for name, one in self.topics.items()
            if self.selects(name)
        }

    def beginning_offsets(self, partitions: Mapping[str, tuple[int, ...]]) -> Any:
        return {
            name: {n: self.topics[name].logs[n].first for n in ones}
            for name, ones in partitions.items()
        }

    def end_offsets(self, partitions: Mapping[str, tuple[int, ...]]) -> Any:
        return {
            name: {n: len(self.topics[name].logs[n].records) for n in ones}
            for name, ones in partitions.items()
        }

    def leader_epochs(self, ends: Mapping[str, Mapping[int, int]]) -> Any:
        return {
            name: {n: self.topics[name].logs[n].epoch for n in ones} for name, ones in ends.items()
        }

    def divergences(self, positions: Mapping[tuple[str, int], tuple[int, int]]) -> Any:
        ends = {
            (topic, one): self.topics[topic].logs[one].end_of_epoch(epoch)
            for (topic, one), (_, epoch) in positions.items()
        }
        return {at: end for at, end in ends.items() if end < positions[at][0]}

    def fingerprints(self, offsets: Mapping[tuple[str, int], int]) -> Any:
        found = {}
        for (topic, one), offset in offsets.items():
            records = self.topics[topic].logs[one].records
            if offset > len(records):
                continue  # a broker has no record there either
            number, _ = records[offset - 1]
            value = message(number, offset - 1)
            found[topic, one] = record_checksum(offset - 1 + 1000, None, value)
        return found

    def topic_keys(self, topics: list[str]) -> Mapping[str, str]:
        return {name: self.topics[name].topic_id for name in topics if name in self.topics}

    def cluster_id(self) -> str:
        return "cluster"

    def close(self) -> None: ...

    def fetch(self, source: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        """Records of a range; LogChangedError if it is not in the log, as a real fetch says."""
        log = self.topics[wanted.topic].logs[wanted.partition]
        if wanted.start < log.first or wanted.until > len(log.records):
            raise LogChangedError(f"{wanted} is not in the log")
        numbers = [number for number, _ in log.records[wanted.start : wanted.until]]
        offsets = np.arange(wanted.start, wanted.until, dtype=np.int64)
        keys: list[bytes | None] = [None] * len(numbers)
        values: list[bytes | None] = [
            message(number, offset)
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
    name: str = "truth"
    formerly: tuple[str, ...] = ()
    database: str = DATABASE
    source: str = "src"
    second_source: str | None = None
    second_topics: tuple[str, ...] = ()
    """The topics of the second source, which the first one leaves out; all of them by default."""
    startup: StartupMode = "earliest-offset"
    merge_shards: bool = False
    pattern: str = ".*"
    mapping: Mapping[str, str] = field(default_factory=lambda: dict(_MAPPING))
    options: Mapping[str, str] = field(default_factory=lambda: {"bucket": "-1"})
    tables: Mapping[str, TableSettings] = field(default_factory=dict)
    dead_letter_table: str = DEAD_LETTER_TABLE
    metastore: str = "filesystem"
    catalog_options: Mapping[str, str] = field(default_factory=dict)
    now_ms: Callable[[], int] = lambda: int(time.time() * 1000)
    io: FileIO = _IO
    between: Callable[[], object] = lambda: None
    """Runs after the reading of each batch, before its commits."""
    reported: list[str] = field(default_factory=list)
    """The reasons of the dead letters that starts have reported."""

    def live(self, batches: int = 1 << 30) -> TableRegistry:
        """Start, go on to the ends of all topics, and end; at most this many batches."""
        settings = self.settings
        clusters = {name: self.kafka.of(one.kafka) for name, one in settings.sources.items()}
        with mock.patch("ingestd.spark.pipeline.this_process", lambda: self.holder):
            leadership = lead(settings, self.io)
        registry = TableRegistry(settings, self.catalog, self.io, self.now_ms)
        registry.open()
        start = recover(registry, settings, clusters)  # type: ignore[arg-type]
        self.reported += start.dead_letters
        topics = TopicKeyCheck(registry.keys, clusters)  # type: ignore[arg-type]
        planned: list[BatchOffsets] = []
        batch = MicroBatch(
            _Local(),  # type: ignore[arg-type]
            settings,
            registry,
            planned.__getitem__,
            CommitPreconditions(leadership, topics),
            _Silent(),
        )
        planner = Planner(
            {name: one.kafka for name, one in settings.sources.items()},
            settings.max_offsets_per_trigger,
            start.epochs,
            start.covered,
            connect=self.kafka.of,  # type: ignore[arg-type]
        )
        reached = start.offsets
        with mock.patch("ingestd.spark.micro_batch.run_stages", self._run_stages):
            for number in range(batches):
                following = planner.next_batch(reached, bounded=True)
                if following is None:
                    break
                planned.append(decode(json.loads(json.dumps(encode(following)))))
                reached = batch.run(number)
        return registry

    @property
    def settings(self) -> PipelineSettings:
        names = [self.source, *([self.second_source] if self.second_source else [])]
        sources = {
            name: KafkaSource(
                name,
                (),
                topic_pattern="|".join(self.second_topics)
                if name == self.second_source and self.second_topics
                else self.pattern,
                topic_exclude=() if name == self.second_source else self.second_topics,
                on_offset_out_of_range=self.policy,
                startup_mode=self.startup,
            )
            for name in names
        }
        return PipelineSettings(
            name=self.name,
            formerly=self.formerly,
            warehouse=str(self.root / "warehouse"),
            metastore=self.metastore,
            catalog_options=self.catalog_options,
            database=self.database,
            sources={name: SourceSettings(one, "json") for name, one in sources.items()},
            routing=RoutingConfig(
                merge_shards=self.merge_shards,
                table_mapping=dict(self.mapping),
            ),
            defaults=TableSettings((), (), dict(self.options), {"at": DataType("BIGINT")}),
            tables=self.tables,
            dead_letter_table=self.dead_letter_table,
            max_offsets_per_trigger=dict.fromkeys(names, self.batch_rows),
            limits=BatchLimits(write_tasks=1),
        )

    @property
    def catalog(self) -> Catalog:
        if self.metastore == "filesystem":
            return BranchCatalog(FilesystemCatalog(str(self.root / "warehouse"), self.io))
        return open_catalog(self.settings)

    def folder(self, name: str) -> Path:
        """Where a table lies."""
        return self.root / "warehouse" / f"{self.database}.db" / name

    def table(self, name: str) -> FileStoreTable:
        return self.catalog.get_table(Identifier(self.database, name))

    def truncate(self, name: str) -> None:
        """Empty a table, as `ingestd truncate` does."""
        truncate_table(self.table(name), now_ms=self.now_ms())

    def ids(self, name: str) -> list[int]:
        """The ids in a table, sorted, each as often as it is there."""
        return sorted(row["id"] for row in read_table(self.table(name)).to_pylist())

    def dead_letters(self) -> list[str]:
        """Messages of the dead letters."""
        rows = read_table(self.table(self.dead_letter_table)).to_pylist()
        return sorted(row["message"] for row in rows)

    def _run_stages(
        self, spark: object, context: BatchContext, groups: list[list[OffsetRange]], *_: Any
    ) -> list[WriteOutcome]:
        ranges = [one for group in groups for one in group]
        pairs = decode_ranges(context, ranges, fetch=self.kafka.fetch)
        blobs = [as_bytes(blob) for _, blob in pairs]
        outcomes = [write_slot(context, blobs, complete_rows)] if blobs else []
        if not merge_outcomes(context, outcomes).runs_again:
            self.between()
        return outcomes
