"""A small pipeline in one process: tables in memory, decoded batches made by hand, no Kafka.

Records carry a list of changes as JSON; `JsonChanges` is the data format that reads them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from ingestd.cdc.base import (
    RecordChunk,
)
from ingestd.ingest.dead_letters.dead_letter import dead_letter_schema
from ingestd.ingest.key_changes.completion import complete_rows
from ingestd.ingest.rows.blobs import as_bytes
from ingestd.ingest.rows.chunk_cache import ChunkCache
from ingestd.ingest.schemas.schema_evolution import plan
from ingestd.ingest.schemas.table_limits import within_limits
from ingestd.ingest.settings.context import (
    BatchContext,
    CoveredOffsets,
    QualifiedSourceTable,
    RoutingConfig,
    SourceSettings,
    TableContext,
    TableSettings,
)
from ingestd.ingest.settings.rejection import SourceRejection
from ingestd.ingest.stages.batch_result import AttemptResult, merge_outcomes
from ingestd.ingest.stages.decode_stage import decode_ranges
from ingestd.ingest.stages.decode_view import decode_view
from ingestd.ingest.stages.truncates import TruncateLookup, Truncates
from ingestd.ingest.stages.write_stage import write_slot
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import publish_schema
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.write.commit_message import ManifestCommittable

DATABASE = "lake"
DEAD_LETTERS = f"{DATABASE}.ingestd_dead_letters"


@dataclass
class RigLog:
    """The logs of a rig, for reading records again."""

    rig: "Rig"

    def ranges(self, source: KafkaSource, topic: str) -> list[OffsetRange]:
        """What the logs of a topic have."""
        return [
            OffsetRange(source.name, topic, partition, 0, end)
            for (name, partition), end in self.rig.ends().items()
            if name == topic
        ]

    def read(
        self, source: KafkaSource, offset_range: OffsetRange, *, headers: bool
    ) -> Iterator[RecordChunk]:
        """Records of a range."""
        del headers
        return self.rig.fetch(source, offset_range)


@dataclass
class Rig:
    """Tables in memory, logs of topic partitions, and batches run over them."""

    routing: RoutingConfig = field(default_factory=RoutingConfig)
    defaults: TableSettings = field(default_factory=TableSettings)
    settings: Mapping[str, TableSettings] = field(default_factory=dict)
    slots: int = 1
    data_format: str = "json"
    key: bytes | None = b"k"
    overrides: Mapping[str, Any] = field(default_factory=dict)
    io: MemoryFileIO = field(default_factory=MemoryFileIO)
    tables: dict[str, FileStoreTable] = field(default_factory=dict)
    states: dict[str, TableState] = field(default_factory=dict)
    logs: dict[tuple[str, int], list[bytes | None]] = field(default_factory=dict)
    committed: dict[tuple[str, int], int] = field(default_factory=dict)
    identifier: int = 0
    cache: ChunkCache | None = None
    fetched: list[int] = field(default_factory=list)
    before: CoveredOffsets | None = None
    begins: dict[tuple[str, int], int] = field(default_factory=dict)
    source_tables: dict[str, frozenset[QualifiedSourceTable]] = field(default_factory=dict)
    owners: dict[str, frozenset[QualifiedSourceTable]] = field(default_factory=dict)
    refused: dict[str, SourceRejection] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.create(DEAD_LETTERS, dead_letter_schema(0))

    def create(self, name: str, schema: TableSchema) -> None:
        """Create a table."""
        table = FileStoreTable(f"/warehouse/{name}", schema, self.io, name)
        assert publish_schema(self.io, table.paths, schema)
        self.tables[name], self.states[name] = table, load_state(table)

    def produce(self, *values: bytes | None, topic: str = "orders", partition: int = 0) -> None:
        """Append records to a topic partition."""
        self.logs.setdefault((topic, partition), []).extend(values)

    def context(self, **changes: Any) -> BatchContext:
        """The context of the next batch."""
        tables = {name: self.table_context(name) for name in self.tables}
        for name, one in changes.pop("table_changes", {}).items():
            tables[name] = replace(tables[name], **one)
        for name, emptying in changes.pop("emptied", {}).items():
            tables[name] = tables[name].truncated(emptying)
        return BatchContext(
            pipeline="test",
            database=DATABASE,
            tables=tables,
            routing=self.routing,
            sources={"src": SourceSettings(KafkaSource("src", ("orders",)), self.data_format)},
            dead_letters=DEAD_LETTERS,
            slots=self.slots,
            defaults=self.defaults,
            settings=self.settings,
            **{**self.overrides, **changes},
        )

    def table_context(self, name: str) -> TableContext:
        """The context of one table, as if nothing of the logs were in it."""
        table, state = self.tables[name], self.states[name]
        return TableContext(
            name,
            table,
            index_entries=state.index_entries,
            sequence_base=state.max_sequence_number + 1,
            assigners=table.options.dynamic_bucket_assigners,
            snapshot_id=state.snapshot.id if state.snapshot else None,
            source_tables=self.source_tables.get(name, frozenset()),
        )

    def ends(self) -> dict[tuple[str, int], int]:
        """Where the logs end."""
        return {where: len(log) for where, log in self.logs.items()}

    def fetch(self, source: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        """Records of a range in chunks of three."""
        log = self.logs[wanted.topic, wanted.partition]
        for start in range(wanted.start, wanted.until, 3):
            values = log[start : min(start + 3, wanted.until)]
            offsets = np.arange(start, start + len(values), dtype=np.int64)
            keys = [self.key] * len(values)
            self.fetched.extend(offsets.tolist())
            yield RecordChunk(
                wanted.topic, wanted.partition, offsets, offsets + 1000, keys, values, None
            )

    def ranges(self) -> list[OffsetRange]:
        """What is in the logs and not committed yet."""
        return [
            OffsetRange(
                "src", topic, partition, self.committed.get((topic, partition), 0), len(log)
            )
            for (topic, partition), log in sorted(self.logs.items())
        ]

    def round(self, context: BatchContext, ranges: Sequence[OffsetRange]) -> AttemptResult:
        """Both stages over the ranges, a decode task for each, a write task for each slot."""
        slots: dict[int, list[bytes]] = {}
        view = decode_view(context, ranges)
        for index, range_ in enumerate(ranges):
            pairs = decode_ranges(
                view,
                [range_],
                task_index=index,
                fetch=self.fetch,
                cache=self.cache,
            )
            for slot, blob in pairs:
                slots.setdefault(slot, []).append(as_bytes(blob))
        complete = partial(complete_rows, log=RigLog(self))
        outcomes = [write_slot(context, blobs, complete) for blobs in slots.values()]
        return merge_outcomes(context, outcomes)

    def lookup(
        self, held: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    ) -> TruncateLookup:
        """The logs beside a batch, over tables that were changed so for it."""
        return TruncateLookup(
            partitions=lambda _, topic: sum(name == topic for name, _ in self.logs),
            held=lambda name: held.get(name, {}).get("covered", {}),
            source_topics=lambda name: [
                (source, topic)
                for source, topics in held.get(name, {}).get("covered", {}).items()
                for topic in topics
            ],
            before=lambda *_: self.before,
            begins=lambda places: {
                SourcePartition(source, topic, one): self.begins.get((topic, one), 0)
                for source, topic, one in places
                if (topic, one) in self.logs
            },
        )

    def run(self, **changes: Any) -> AttemptResult:
        """One batch over everything that is new, evolving schemas as often as needed."""
        ranges = self.ranges()
        truncates = Truncates(self.lookup(changes.get("table_changes", {})))
        for _ in range(5):
            context = self.context(
                emptied=truncates.accepted,
                refused_truncates=truncates.refused,
                refused_tables=self.refused,
                owners=self.owners,
                **changes,
            )
            result = self.round(context, truncates.reading(ranges))
            if not result.runs_again:
                break
            assert result.contested or not result.messages
            self.owners.update(result.contested)
            truncates.settle(context, result)
            self.evolve(context, result)
        assert not result.runs_again
        self.evolve(context, result)
        self.owners.clear()
        self.refused.clear()
        for name, source_tables in result.source_tables.items():
            self.source_tables[name] = self.source_tables.get(name, frozenset()) | source_tables
        self.commit(result, frozenset(truncates.accepted))
        self.committed.update({(range_.topic, range_.partition): range_.until for range_ in ranges})
        return result

    def evolve(self, context: BatchContext, result: AttemptResult) -> None:
        """Create and change tables as planned."""
        existing = [one for name, one in self.tables.items() if name != DEAD_LETTERS]
        planned = plan(context, result.discoveries, now_ms=1)
        evolution = within_limits(planned, existing, self.routing.limits, 1)
        self.refused.update(evolution.refused)
        for name, schema in evolution.creates.items():
            self.create(name, schema)
        for name, changes in evolution.changes.items():
            table = self.tables[name]
            schema = apply_changes(table.schema, changes, 1)
            assert publish_schema(self.io, table.paths, schema)
            self.tables[name] = table.with_schema(schema)

    def commit(self, result: AttemptResult, truncated: frozenset[str] = frozenset()) -> None:
        """One snapshot for each table that was written or truncated."""
        self.identifier += 1
        for name in {*result.messages, *truncated}:
            committable = ManifestCommittable(
                self.identifier, result.messages.get(name, ()), overwrite=name in truncated
            )
            done = commit(
                self.tables[name], "tester", committable, state=self.states[name], now_ms=1
            )
            self.states[name] = done.state

    def rows(self, name: str, *columns: str) -> list[dict[str, Any]]:
        """The rows of a table, in order of their text."""
        found = read_table(self.tables[f"{DATABASE}.{name}"], columns=columns or None).to_pylist()
        return sorted(found, key=repr)
