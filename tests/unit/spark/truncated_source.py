"""A source that is truncated now and then, its topic partitions, and batches that lag in some.

Batches are real but for Spark and Kafka: `MicroBatch`, both stages, and tables in a folder.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

from ingestd.cdc.base import RecordChunk
from ingestd.ingest.key_changes.completion import complete_rows
from ingestd.ingest.rows.blobs import as_bytes
from ingestd.ingest.settings.context import (
    BatchContext,
    RoutingConfig,
    SourceSettings,
    TableSettings,
)
from ingestd.ingest.settings.pipeline_settings import BatchLimits, PipelineSettings
from ingestd.ingest.settings.truncate_policy import TruncatePolicy
from ingestd.ingest.stages.batch_result import WriteOutcome
from ingestd.ingest.stages.decode_stage import decode_ranges
from ingestd.ingest.stages.write_stage import write_slot
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.kafka.offset_ranges import BatchOffsets, OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.catalog.filesystem import FilesystemCatalog
from ingestd.paimon.io.local import LocalFileIO
from ingestd.paimon.table.read.table_read import read_table
from ingestd.spark.micro_batch import MicroBatch
from tests.support.crash_scene import SameTopics, _Local, _Silent, same_topics

FAIL = TableSettings(truncates=TruncatePolicy(on_refused="fail"))
TOPIC = "pg.shop.orders"
TABLE = "lake.orders"
PARTITIONS = 3
_KEYS = 12


@dataclass
class TruncatedSource:
    """One table of PostgreSQL: its rows, and its topic of three partitions."""

    logs: list[list[tuple[bytes | None, bytes]]] = field(
        default_factory=lambda: [[] for _ in range(PARTITIONS)]
    )
    rows: dict[int, int] = field(default_factory=dict)
    begins: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    lsn: int = 100

    def _event(self, operation: str, after: dict[str, int] | None) -> bytes:
        self.lsn += 10
        source = {"connector": "postgresql", "db": "d", "schema": "shop", "table": "orders"}
        document = {"before": None, "after": after, "op": operation}
        return json.dumps({**document, "source": {**source, "lsn": self.lsn}}).encode()

    def put(self, key: int) -> None:
        """Insert a row, or update it."""
        self.rows[key] = self.lsn
        event = self._event("c", {"id": key, "v": self.lsn})
        self.logs[key % PARTITIONS].append((json.dumps({"id": key}).encode(), event))

    def delete(self, key: int) -> None:
        """Delete a row."""
        del self.rows[key]
        event = self._event("d", None)
        self.logs[key % PARTITIONS].append((json.dumps({"id": key}).encode(), event))

    def truncate(self, partition: int) -> None:
        """Empty the table; the record has no key and lands in any partition."""
        self.rows.clear()
        self.logs[partition].append((None, self._event("t", None)))

    def act(self, chance: random.Random) -> None:
        """One statement."""
        dice = chance.random()
        if dice < 0.08:
            self.truncate(chance.randrange(PARTITIONS))
        elif dice < 0.25 and self.rows:
            self.delete(chance.choice(sorted(self.rows)))
        else:
            self.put(chance.randrange(_KEYS))


@dataclass(frozen=True)
class Cluster:
    """The brokers, as far as the logs of the source are asked for."""

    source: TruncatedSource

    def topic_ids(self, topics: Mapping[str, object]) -> dict[str, str]:
        """All of them exist."""
        return dict.fromkeys(topics, "t")

    def beginning_offsets(
        self, partitions: Mapping[str, tuple[int, ...]]
    ) -> dict[str, dict[int, int]]:
        """What retention has left of the logs."""
        return {
            topic: {one: self.source.begins[one] for one in ones}
            for topic, ones in partitions.items()
        }

    def close(self) -> None:
        """Nothing to let go of."""


@dataclass
class Pipeline:
    """Batches over the logs of a source, into one table in a folder."""

    root: Path
    source: TruncatedSource
    table: TableSettings = FAIL
    reached: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    fetched: list[OffsetRange] = field(default_factory=list)
    topics: SameTopics = field(default_factory=lambda: same_topics(TOPIC))
    batch_id: int = 0
    letters_to: str | None = None
    dead_letters: list[tuple[int, int]] = field(default_factory=list)
    """Partition and offset of what was sent to the topic of dead letters."""

    def __post_init__(self) -> None:
        io = LocalFileIO(sync=False)
        warehouse = str(self.root / "warehouse")
        self.table_registry = TableRegistry(
            self.settings(), FilesystemCatalog(warehouse, io), io, lambda: 1
        )
        self.table_registry.open()

    def run(self, *until: int) -> None:
        """One batch up to these offsets of the partitions."""
        offsets = BatchOffsets(_offsets(self.reached), _offsets(until))
        batch = MicroBatch(
            _Local(),  # type: ignore[arg-type]
            self.settings(),
            self.table_registry,
            lambda _: offsets,
            self.topics,
            _Silent(),
        )
        with (
            mock.patch("ingestd.spark.micro_batch.run_stages", self._run_stages),
            mock.patch("ingestd.spark.batch.OffsetClient", lambda _: Cluster(self.source)),
            mock.patch("ingestd.ingest.stages.write_stage.send_dead_letters", self._send),
        ):
            batch.run(self.batch_id)
        self.batch_id, self.reached = self.batch_id + 1, list(until)

    def rows(self) -> dict[int, int]:
        """What the table holds."""
        found = read_table(self.table_registry.tables[TABLE].table).to_pylist()
        return {row["id"]: row["v"] for row in found}

    def settings(self) -> PipelineSettings:
        """The configuration of the pipeline."""
        return PipelineSettings(
            name="life",
            warehouse=str(self.root / "warehouse"),
            metastore="filesystem",
            database="lake",
            sources={"src": SourceSettings(KafkaSource("src", (TOPIC,)), "debezium-json")},
            routing=RoutingConfig(),
            defaults=self.table,
            tables={},
            max_offsets_per_trigger={},
            limits=BatchLimits(write_tasks=1),
            dead_letter_topic=self.letters_to,
        )

    def _send(self, _: BatchContext, parts: Sequence[pa.Table]) -> int:
        rows = pa.concat_tables(parts)
        columns = (rows.column(name).to_pylist() for name in ("partition", "offset"))
        self.dead_letters += sorted(zip(*columns, strict=True))
        return rows.num_rows

    def _run_stages(
        self, spark: object, context: BatchContext, groups: list[list[OffsetRange]], *_: Any
    ) -> list[WriteOutcome]:
        ranges = [one for group in groups for one in group]
        self.fetched = ranges
        pairs = decode_ranges(context, ranges, fetch=self._fetch)
        blobs = [as_bytes(blob) for _, blob in pairs]
        return [write_slot(context, blobs, complete_rows)] if blobs else []

    def _fetch(self, source: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        pairs = self.source.logs[wanted.partition][wanted.start : wanted.until]
        offsets = np.arange(wanted.start, wanted.until, dtype=np.int64)
        keys, values = [key for key, _ in pairs], [value for _, value in pairs]
        yield RecordChunk(
            wanted.topic, wanted.partition, offsets, offsets + 1000, keys, list(values), None
        )


def _offsets(numbers: list[int] | tuple[int, ...]) -> dict[str, dict[str, dict[int, int]]]:
    return {"src": {TOPIC: dict(enumerate(numbers))}}
