"""A source that is truncated now and then, its topic partitions, and batches that lag in some.

Its positions begin again now and then, and its connector sends records again. Batches are real but
for Spark and Kafka: `MicroBatch`, both stages, and tables in a folder, which are opened again and
rolled back.
"""

import contextlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa

from ingestd.cdc.base import RecordChunk
from ingestd.crash_points import CrashPoint, watch
from ingestd.errors import WorkerLostError
from ingestd.ingest.key_changes.completion import complete_rows
from ingestd.ingest.rows.blobs import as_bytes
from ingestd.ingest.settings.context import (
    BatchContext,
    RoutingConfig,
    SourceSettings,
    TableSettings,
)
from ingestd.ingest.settings.pipeline_settings import BatchLimits, PipelineSettings
from ingestd.ingest.settings.rejection import RejectionLimits
from ingestd.ingest.settings.truncate_policy import TruncatePolicy
from ingestd.ingest.stages.batch_result import WriteOutcome
from ingestd.ingest.stages.decode_stage import decode_ranges
from ingestd.ingest.stages.write_stage import write_slot
from ingestd.ingest.tables.claims import claims_path
from ingestd.ingest.tables.log_positions import by_name
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.ingest.values.source_points import MAX_SKEW_MS
from ingestd.kafka.fetch import Bounds
from ingestd.kafka.isolated_fetch import Unreadable
from ingestd.kafka.offset_ranges import BatchOffsets, OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.catalog.filesystem import FilesystemCatalog
from ingestd.paimon.io.local import LocalFileIO
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot, snapshot_ids
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from ingestd.spark.micro_batch import MicroBatch
from tests.support.crash_scene import SameTopics, _Local, _Silent, same_topics

FAIL = TableSettings(truncates=TruncatePolicy(on_refused="fail"))
TOPIC = "pg.shop.orders"
TABLE = "lake.orders"
PARTITIONS = 3
_KEYS = 12


class DiedError(BaseException):
    """The daemon has ended at a step."""


class Record(NamedTuple):
    """A record of a log; `time` is its timestamp in ms since the epoch."""

    key: bytes | None
    value: bytes
    time: int


@dataclass
class TruncatedSource:
    """One table of PostgreSQL: its rows, and its topic of three partitions."""

    logs: list[list[Record]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])
    rows: dict[int, int] = field(default_factory=dict)
    begins: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    skews: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    """How far the clock of the broker of each partition is off, in ms."""
    lsn: int = 100
    value: int = 0
    now: int = 1_700_000_000_000
    sent: list[tuple[int, bytes | None, bytes]] = field(default_factory=list)
    """Partition, key and value of what the connector has sent since the positions began."""

    def _event(self, operation: str, after: dict[str, int] | None) -> bytes:
        self.lsn += 10
        source = {"connector": "postgresql", "db": "d", "schema": "shop", "table": "orders"}
        document = {"before": None, "after": after, "op": operation}
        return json.dumps({**document, "source": {**source, "lsn": self.lsn}}).encode()

    def put(self, key: int) -> None:
        """Insert a row, or update it."""
        self.value += 1
        self.rows[key] = self.value
        event = self._event("c", {"id": key, "v": self.value})
        self._send(key % PARTITIONS, json.dumps({"id": key}).encode(), event)

    def delete(self, key: int) -> None:
        """Delete a row."""
        del self.rows[key]
        event = self._event("d", None)
        self._send(key % PARTITIONS, json.dumps({"id": key}).encode(), event)

    def truncate(self, partition: int) -> None:
        """Empty the table; the record has no key and lands in any partition."""
        self.rows.clear()
        self._send(partition, None, self._event("t", None))

    def garbage(self, partition: int) -> None:
        """A message that is no event."""
        self._send(partition, None, b"nothing of the kind")

    def begin_again(self, after_ms: int = 3 * MAX_SKEW_MS) -> None:
        """Positions begin again, some time later."""
        self.lsn, self.now = 0, self.now + after_ms
        self.sent.clear()

    def send_again(self, count: int, after_ms: int) -> None:
        """The connector was killed, and sends its last records again, some time later."""
        self.now += after_ms
        again, self.sent[-count:] = self.sent[-count:], []
        for record in again:
            self._send(*record)

    def _send(self, partition: int, key: bytes | None, value: bytes) -> None:
        self.now += 50
        self.sent.append((partition, key, value))
        self.logs[partition].append(Record(key, value, self.now + self.skews[partition]))

    def act(self, chance: random.Random) -> None:
        """One statement."""
        dice = chance.random()
        if dice < 0.03:
            self.begin_again()
        elif dice < 0.06:
            self.send_again(chance.randrange(1, 9), chance.choice([0, 3 * MAX_SKEW_MS]))
        elif dice < 0.14:
            self.truncate(chance.randrange(PARTITIONS))
        elif dice < 0.3 and self.rows:
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
    sent_letters: list[tuple[int, int]] = field(default_factory=list)
    """Partition and offset of what was sent to the topic of dead letters."""
    max_record_bytes: int = 1 << 20
    max_rejected: int | None = None
    unreadable: set[tuple[int, int]] = field(default_factory=set)
    """Partition and offset of records that brokers have and no client can read."""
    killing: set[tuple[int, int]] = field(default_factory=set)
    """Partition and offset of records that kill the worker that reads them."""
    runs: int = 0
    """How often the stages ran."""

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        """Start: open the tables, and go on from what they cover."""
        io = LocalFileIO(sync=False)
        warehouse = str(self.root / "warehouse")
        self.table_registry = TableRegistry(
            self.settings(), FilesystemCatalog(warehouse, io), io, lambda: 1
        )
        self.table_registry.open()
        self.table_registry.keys = self.topics.keys
        floor = by_name(self.table_registry.floor(), self.topics.keys)
        covered = floor.get("src", {}).get(TOPIC, {})
        self.reached = [covered.get(one, 0) for one in range(PARTITIONS)]

    def roll_back(self, snapshot_id: int) -> None:
        """Roll the table back to a snapshot, and start."""
        table = self.table_registry.tables[TABLE].table
        target = find_snapshot(table.io, table.paths, snapshot_id)
        assert target is not None
        rollback(table, plan_rollback(table, target))
        self.open()

    def snapshots(self) -> list[int]:
        """The snapshots of the table; none if it does not exist yet."""
        managed = self.table_registry.tables.get(TABLE)
        return [] if managed is None else snapshot_ids(managed.table.io, managed.table.paths)

    def run_and_die(self, point: CrashPoint, *until: int) -> None:
        """One batch that ends at a step, if it passes it; then start."""

        def watcher(passed: CrashPoint) -> None:
            if passed is point:
                raise DiedError

        watch(watcher)
        with contextlib.suppress(DiedError):
            try:
                self.run(*until)
            finally:
                watch(None)
        self.open()

    def lose_claims(self) -> None:
        """Delete the claims file, and start."""
        Path(claims_path(str(self.root / "warehouse"), "life")).unlink(missing_ok=True)
        self.open()

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
            mock.patch(
                "ingestd.ingest.recovery.truncate_lookup.OffsetClient",
                lambda _: Cluster(self.source),
            ),
            mock.patch("ingestd.ingest.stages.write_stage.send_dead_letters", self._send),
        ):
            batch.run(self.batch_id)
        self.batch_id, self.reached = self.batch_id + 1, list(until)

    def rows(self) -> dict[int, int]:
        """What the table holds."""
        found = read_table(self.table_registry.tables[TABLE].table).to_pylist()
        return {row["id"]: row["v"] for row in found}

    def letters(self) -> list[tuple[int, int]]:
        """Partition and offset of each dead letter in the table."""
        table = self.table_registry.tables[self.table_registry.dead_letters].table
        found = read_table(table, columns=("partition", "offset")).to_pylist()
        return sorted((row["partition"], row["offset"]) for row in found)

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
            limits=BatchLimits(write_tasks=1, max_record_bytes=self.max_record_bytes),
            rejection_limits=RejectionLimits(self.max_rejected),
            dead_letter_topic=self.letters_to,
        )

    def _send(self, _: BatchContext, parts: Sequence[pa.Table]) -> int:
        rows = pa.concat_tables(parts)
        columns = (rows.column(name).to_pylist() for name in ("partition", "offset"))
        self.sent_letters += sorted(zip(*columns, strict=True))
        return rows.num_rows

    def _run_stages(
        self, spark: object, context: BatchContext, groups: list[list[OffsetRange]], *_: Any
    ) -> list[WriteOutcome]:
        ranges = [one for group in groups for one in group]
        self.fetched = ranges
        self.runs += 1
        with mock.patch("ingestd.ingest.stages.decode_stage.fetch_readable", self._readable):
            blobs = [as_bytes(blob) for _, blob in decode_ranges(context, ranges)]
        return [write_slot(context, blobs, complete_rows)] if blobs else []

    def _readable(
        self,
        source: KafkaSource,
        ranges: Sequence[OffsetRange],
        _: Bounds,
        on_unreadable: Callable[[Unreadable], None],
        *,
        headers: bool,
    ) -> Iterator[RecordChunk]:
        for wanted in ranges:
            if _in(wanted, self.killing):
                raise WorkerLostError("a worker was killed")
            bad = _in(wanted, self.unreadable)
            end = min([*bad, wanted.until])
            if wanted.start < end:
                yield from self._fetch(source, replace(wanted, until=end))
            if bad:
                on_unreadable(Unreadable(replace(wanted, start=end), "no one can read it"))

    def _fetch(self, source: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        records = self.source.logs[wanted.partition][wanted.start : wanted.until]
        offsets = np.arange(wanted.start, wanted.until, dtype=np.int64)
        keys, values = [one.key for one in records], [one.value for one in records]
        times = np.array([one.time for one in records], np.int64)
        yield RecordChunk(wanted.topic, wanted.partition, offsets, times, keys, values, None)


def _in(wanted: OffsetRange, records: set[tuple[int, int]]) -> list[int]:
    return [
        offset
        for partition, offset in records
        if partition == wanted.partition and wanted.start <= offset < wanted.until
    ]


def _offsets(numbers: list[int] | tuple[int, ...]) -> dict[str, dict[str, dict[int, int]]]:
    return {"src": {TOPIC: dict(enumerate(numbers))}}
