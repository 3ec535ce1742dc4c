"""Rows whose key changes keep the large values that the source left out, wherever these are.

A database of few keys lives a random life. Its changes are in the partitions of a topic by key, in
batches of random size, and some are sent again. The table must equal the database in the end.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestd.cdc.base import RecordChunk, record_checksum
from ingestd.ingest.key_changes.completion import complete_rows
from ingestd.ingest.rows.blobs import as_bytes
from ingestd.ingest.settings.context import BatchContext, SourceSettings, TableSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.stages.batch_result import WriteOutcome, merge_outcomes
from ingestd.ingest.stages.decode_stage import decode_ranges
from ingestd.ingest.stages.write_stage import write_slot
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.table.read.table_read import read_table
from tests.support.truth_rig import Kafka, Log, Topic, Truth

TOPIC = "shop.orders"
LEFT_OUT = "__debezium_unavailable_value"
Row = dict[str, Any]


@dataclass
class Messages(Kafka):
    """Logs of keys and values instead of numbers."""

    def send(self, key: Row, value: Row) -> None:
        """Append a message to the partition of its key."""
        logs = self.topics[TOPIC].logs
        log = logs[key["id"] % len(logs)]
        record: Any = json.dumps(key).encode(), json.dumps(value).encode()
        log.records.append((record, 0))

    def fetch(self, source: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        log: Any = self.topics[wanted.topic].logs[wanted.partition]
        for start in range(wanted.start, wanted.until, 3):
            records = [record for record, _ in log.records[start : min(start + 3, wanted.until)]]
            offsets = np.arange(start, start + len(records), dtype=np.int64)
            keys, values = [key for key, _ in records], [value for _, value in records]
            topic, number = wanted.topic, wanted.partition
            yield RecordChunk(topic, number, offsets, offsets + 1000, keys, values, None)

    def fingerprints(self, offsets: Mapping[tuple[str, int], int]) -> Any:
        found = {}
        for (topic, number), offset in offsets.items():
            records: Any = self.topics[topic].logs[number].records
            if offset <= len(records):
                key, value = records[offset - 1][0]
                found[topic, number] = record_checksum(offset - 1 + 1000, key, value)
        return found

    def ranges(self, source: KafkaSource, topic: str) -> list[OffsetRange]:
        return [
            OffsetRange(source.name, topic, number, log.first, len(log.records))
            for number, log in enumerate(self.topics[topic].logs)
        ]

    def read(
        self, source: KafkaSource, offset_range: OffsetRange, *, headers: bool
    ) -> Iterator[RecordChunk]:
        del headers
        return self.fetch(source, offset_range)


class ProcessEndError(Exception):
    """The process ends between writing files and committing them."""


@dataclass
class Pipeline(Truth):
    """A pipeline that reads Debezium's messages."""

    kafka: Messages = field(default_factory=Messages)
    ordering: Any = None
    slots: int = 1
    unknown: int = 0

    @property
    def settings(self) -> PipelineSettings:
        plain = super().settings
        sources = {
            name: SourceSettings(one.kafka, "debezium-json") for name, one in plain.sources.items()
        }
        table = TableSettings(None, (), dict(self.options), {}, ordering=self.ordering)
        return replace(plain, sources=sources, defaults=table)

    def _run_stages(
        self, spark: object, context: BatchContext, groups: list[list[OffsetRange]], *_: Any
    ) -> list[WriteOutcome]:
        context = replace(context, slots=self.slots)
        slots: dict[int, list[Any]] = {}
        for index, wanted in enumerate(one for group in groups for one in group):
            pairs = decode_ranges(context, [wanted], task_index=index, fetch=self.kafka.fetch)
            for slot, blob in pairs:
                slots.setdefault(slot, []).append(as_bytes(blob))
        complete = partial(complete_rows, log=self.kafka)
        outcomes = [write_slot(context, blobs, complete) for blobs in slots.values()]
        result = merge_outcomes(context, outcomes)
        if not result.runs_again:
            self.unknown += sum(result.counts.unknown.values())
            self.between()
        return outcomes


@dataclass
class Database:
    """Rows by key, and the changes as Debezium's connector for PostgreSQL sends them."""

    kafka: Messages
    rows: dict[int, Row] = field(default_factory=dict)
    position: int = 100
    sent: list[tuple[Row, Row]] = field(default_factory=list)

    def put(self, key: int, big: str | None) -> None:
        """Insert or update a row; without `big` an update leaves it as it is."""
        self.position += 1
        old = self.rows.get(key)
        row = {"id": key, "n": self.position, "big": big, "more": str(self.position)}
        if old is not None and big is None:
            row["big"] = old["big"]
        self.rows[key] = row
        shown = {**row, "big": LEFT_OUT} if old is not None and big is None else row
        self._send("c" if old is None else "u", key, shown)

    def delete(self, key: int) -> None:
        self.position += 1
        del self.rows[key]
        self._send("d", key, None)

    def move(self, old: int, new: int) -> None:
        """Change the key of a row; its large value is left out of both messages."""
        self.position += 1
        row = {**self.rows.pop(old), "id": new, "n": self.position}
        self.rows[new] = row
        self._send("d", old, None)
        shown = {**row, "big": row["big"] if row["big"] is None else LEFT_OUT}
        self._send("c", new, shown)

    def again(self, count: int) -> None:
        """Send the last changes again, as a connector that was killed does."""
        for key, value in self.sent[-count:]:
            self.kafka.send(key, value)

    def _send(self, operation: str, key: int, after: Row | None) -> None:
        source = {"db": "shop", "schema": "s", "table": "orders", "lsn": self.position}
        before = {"id": key, "n": None, "big": None} if operation == "d" else None
        value = {"op": operation, "before": before, "after": after}
        message = {"id": key}, value | {"source": source | {"snapshot": "false"}}
        self.sent.append(message)
        self.kafka.send(*message)


@st.composite
def actions(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    kinds = st.sampled_from(["put", "keep", "move", "move", "move", "delete", "again"])
    keys = st.integers(0, 5)
    return draw(st.lists(st.tuples(kinds, keys, keys), min_size=4, max_size=30))


def apply(database: Database, action: tuple[str, int, int]) -> None:
    kind, key, other = action
    exists = key in database.rows
    if kind == "put" or not exists:
        database.put(key, f"big {database.position}")
    elif kind == "keep":
        database.put(key, None)
    elif kind == "move" and other not in database.rows:
        database.move(key, other)
    elif kind == "delete":
        database.delete(key)
    elif kind == "again":
        database.again(other + 1)


OPTIONS = {
    "fixed buckets": {"bucket": "2"},
    "dynamic buckets": {"bucket": "-1"},
    "partial-update": {
        "bucket": "1",
        "merge-engine": "partial-update",
        "partial-update.remove-record-on-delete": "true",
    },
    "lookup": {"bucket": "1", "changelog-producer": "lookup"},
    "aggregation": {
        "bucket": "1",
        "merge-engine": "aggregation",
        "fields.default-aggregate-function": "last_value",
        "aggregation.remove-record-on-delete": "true",
    },
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    life=actions(),
    partitions=st.integers(1, 3),
    batch_rows=st.integers(1, 12),
    crashes=st.sets(st.integers(0, 6), max_size=2),
    pauses=st.sets(st.integers(0, 30), max_size=3),
    slots=st.integers(1, 2),
)
def test_the_table_equals_the_database(
    options: dict[str, str],
    life: list[tuple[str, int, int]],
    partitions: int,
    batch_rows: int,
    crashes: set[int],
    pauses: set[int],
    slots: int,
) -> None:
    with TemporaryDirectory() as folder:
        pipeline = Pipeline(Path(folder), batch_rows=batch_rows, options=options, slots=slots)
        logs = [Log() for _ in range(partitions)]
        pipeline.kafka.topics[TOPIC] = Topic("id of orders", logs)
        database = Database(pipeline.kafka)
        batches = iter(range(10**6))

        def between() -> None:
            if next(batches) in crashes:
                raise ProcessEndError

        pipeline.between = between
        database.put(0, "first")
        for number, action in enumerate(life):
            apply(database, action)
            if number in pauses:
                run(pipeline)
        run(pipeline)
        rows = read_table(pipeline.table("orders")).to_pylist()
        found = {row["id"]: (row["n"], row["big"]) for row in rows}
        wanted = {key: (row["n"], row["big"]) for key, row in database.rows.items()}
        assert found == wanted
        assert len(rows) == len(wanted)
        assert pipeline.unknown == 0


def run(pipeline: Pipeline) -> None:
    """Read to the ends of the logs, with as many starts as crashes require."""
    while True:
        try:
            pipeline.live()
        except ProcessEndError:
            continue
        return
