"""The daemon's driver and its tasks in one process: no broker, no Spark, everything else real.

What Spark adds to a batch does not depend on the tables, and would hide what does. Contexts and
outcomes cross the border between driver and task as they do in Spark: pickled.
"""

import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import msgspec
import numpy as np
from pyspark import cloudpickle

from ingestd.cdc.base import RecordChunk
from ingestd.ingest.batch_events import BatchSummary, OpenedTable
from ingestd.ingest.key_changes.completion import complete_rows
from ingestd.ingest.rows.blobs import Blob
from ingestd.ingest.settings.context import (
    BatchContext,
    RoutingConfig,
    SourceSettings,
    TableSettings,
)
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.stages.batch_result import WriteOutcome
from ingestd.ingest.stages.decode_stage import decode_ranges
from ingestd.ingest.stages.write_stage import write_slot
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.kafka.offset_ranges import BatchOffsets, OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.catalog.filesystem import FilesystemCatalog
from ingestd.paimon.io.file_io import FileIO, file_io_for
from ingestd.paimon.io.local import LocalFileIO
from ingestd.spark import micro_batch, prefetch

SOURCE = "bench"
DATABASE = "bench"
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Spent:
    """What something took: CPU of this process and time on the wall, milliseconds."""

    cpu_ms: float
    wall_ms: float


def spent(work: Callable[[], object]) -> Spent:
    """Do it; what it took."""
    begun, used = time.perf_counter(), time.process_time()
    work()
    cpu, wall = time.process_time() - used, time.perf_counter() - begun
    return Spent(cpu * 1e3, wall * 1e3)


class _Silent:
    def tables_opened(self, tables: Mapping[str, OpenedTable]) -> None: ...
    def table_created(self, table: str, schema: object) -> None: ...
    def schema_changed(self, table: str, before: object, after: object) -> None: ...
    def offsets_lost(self, source: str, topic: str, records: int) -> None: ...
    def losses_accepted(self, reasons: Sequence[str]) -> None: ...
    def topic_set_aside(self, topic: object, message: str) -> None: ...
    def partition_set_aside(self, left: object, message: str) -> None: ...
    def batch_started(self, batch_id: int, ranges: tuple[OffsetRange, ...]) -> None: ...
    def phase(self, name: str, seconds: float) -> None: ...
    def batch_finished(self, summary: BatchSummary) -> None: ...
    def between_batches(self, stopping: Event) -> None: ...


class OneProcess:
    """A pipeline over topics that this object makes up; one topic partition per table.

    `storage` are the options of an object store, if the warehouse is not a folder.
    """

    def __init__(
        self,
        folder: Path | str,
        options: Mapping[str, str],
        partition_keys: Sequence[str],
        tasks: int = 1,
        storage: Mapping[str, str] | None = None,
    ) -> None:
        self.io: FileIO = LocalFileIO(sync=False)
        if storage is not None:
            self.io = file_io_for(str(folder), storage)
        self.catalog = FilesystemCatalog(str(folder), self.io)
        defaults = TableSettings(None, tuple(partition_keys), dict(options))
        kafka = KafkaSource(SOURCE, (), topic_pattern=".*", properties={"bootstrap.servers": "-"})
        self._settings = PipelineSettings(
            name="growth",
            warehouse=str(folder),
            metastore="filesystem",
            database=DATABASE,
            sources={SOURCE: SourceSettings(kafka, "debezium-json")},
            routing=RoutingConfig(),
            defaults=defaults,
            tables={},
            max_offsets_per_trigger={},
            catalog_options=storage or {},
        )
        self._logs: dict[str, list[tuple[bytes, bytes]]] = {}
        self._done: dict[str, int] = {}
        self._sent = 0
        self._batch: micro_batch.MicroBatch | None = None
        self._lake: TableRegistry | None = None
        self._numbers = 0
        self._tasks = tasks
        self._chunk = self._settings.limits.max_chunk_records

    def open(self) -> None:
        """Open the lake as a daemon does when it starts."""
        lake = TableRegistry(self._settings, self.catalog, self.io, lambda: int(time.time() * 1000))
        lake.open()
        self._lake = lake
        spark = cast("Any", SimpleNamespace(defaultParallelism=self._tasks))
        self._batch = micro_batch.MicroBatch(
            spark, self._settings, lake, self._offsets, self, _Silent()
        )

    @property
    def keys(self) -> dict[tuple[str, str], str]:
        """The keys of the topics: no one deletes one."""
        return {(SOURCE, topic): topic for topic in self._logs}

    def learn(self, ranges: list[OffsetRange]) -> None:
        """Every topic is known."""

    def check(self, ranges: list[OffsetRange]) -> None:
        """No topic has changed."""

    def context(self) -> BatchContext:
        """Return the context of the next batch for all tables."""
        assert self._lake is not None
        return self._lake.context(1, {})

    def produce(self, table: str, rows: Sequence[Row], keys: Sequence[str]) -> None:
        """Append one update event for each row to the topic of a table."""
        log = self._logs.setdefault(table, [])
        for row in rows:
            position = len(log)
            key = {name: row[name] for name in keys}
            place = {"file": "binlog.000001", "pos": 4 + position, "row": 0}
            named = {"name": "bench", "db": "shop", "table": table}
            source = {"connector": "mysql", "snapshot": "false", **named, **place}
            value = {"before": None, "after": row, "source": source, "op": "c", "ts_ms": 1}
            log.append((msgspec.json.encode(key), msgspec.json.encode(value)))

    def run(self) -> Spent:
        """One batch over everything that is new; what it took."""
        assert self._batch is not None
        batch, number = self._batch, self._numbers
        with (
            mock.patch.object(micro_batch, "run_stages", self._stages),
            mock.patch.object(prefetch, "exchange_folder", lambda *_: nullcontext()),
        ):
            taken = spent(lambda: batch.run(number))
        self._numbers += 1
        for topic, log in self._logs.items():
            done = self._done.get(topic, 0)
            # No one asks for these again, and a long run has many.
            log[done:] = [(b"", b"")] * (len(log) - done)
        self._done = {topic: len(log) for topic, log in self._logs.items()}
        return taken

    def batch(self, rows: Mapping[str, Sequence[Row]], keys: Sequence[str]) -> Spent:
        """One batch over these rows by table; what it took without making their messages."""
        for table, own in rows.items():
            self.produce(table, own, keys)
        return self.run()

    def fetch(self, _: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        """The records of a range, in chunks as a consumer cuts them."""
        for start in range(wanted.start, wanted.until, self._chunk):
            pairs = self._logs[wanted.topic][start : min(start + self._chunk, wanted.until)]
            offsets = np.arange(start, start + len(pairs), dtype=np.int64)
            keys: list[bytes | None] = [key for key, _ in pairs]
            values: list[bytes | None] = [value for _, value in pairs]
            yield RecordChunk(wanted.topic, wanted.partition, offsets, offsets, keys, values, None)

    @property
    def sent_bytes(self) -> int:
        """Bytes of context that the driver sent to a task of the latest batch."""
        return self._sent

    def _offsets(self, _: int) -> BatchOffsets:
        until = {topic: {0: len(log)} for topic, log in self._logs.items()}
        start = {topic: {0: self._done.get(topic, 0)} for topic in self._logs}
        return BatchOffsets({SOURCE: start}, {SOURCE: until})

    def _stages(
        self, _: object, context: BatchContext, groups: list[list[OffsetRange]], *__: object
    ) -> list[WriteOutcome]:
        sent = cloudpickle.dumps((context, groups))  # type: ignore[no-untyped-call]  # untyped in PySpark
        self._sent = len(sent)
        there, work = pickle.loads(sent)
        slots: dict[int, list[Blob]] = {}
        for index, ranges in enumerate(work):
            for slot, blob in decode_ranges(there, ranges, task_index=index, fetch=self.fetch):
                slots.setdefault(slot, []).append(blob)
        return [
            pickle.loads(pickle.dumps(write_slot(there, slots[slot], complete_rows)))
            for slot in sorted(slots)
        ]
