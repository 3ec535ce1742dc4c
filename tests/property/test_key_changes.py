"""Rows whose key changes keep the large values that the source left out, wherever these are.

A database of few keys lives a random life. Its changes are in the partitions of a topic by key, in
batches of random size, and some are sent again. The table must equal the database in the end, also
if it has only the rows of a condition, and keeps those that the source deletes.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestd.cdc.base import RecordChunk, record_checksum
from ingestd.ingest.computed.computed_columns import parse_computed
from ingestd.ingest.computed.row_filter import parse_filter
from ingestd.ingest.key_changes import value_search
from ingestd.ingest.key_changes.completion import complete_rows
from ingestd.ingest.rows.blobs import as_bytes
from ingestd.ingest.settings.context import BatchContext, SourceSettings, TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.ingest.stages.batch_result import WriteOutcome, merge_outcomes
from ingestd.ingest.stages.decode_stage import decode_ranges
from ingestd.ingest.stages.write_stage import write_slot
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.table.read.table_read import read_table
from tests.support.truth_rig import Kafka, Log, Topic, Truth

TOPIC = "shop.orders"
LEFT_OUT = "__debezium_unavailable_value"
Row = dict[str, Any]


@dataclass
class Messages(Kafka):
    """Logs of keys and values instead of numbers; those of `late` partitions are not sent yet."""

    late: set[int] = field(default_factory=set)
    waiting: list[tuple[str, Row, Row]] = field(default_factory=list)

    def send(self, topic: str, key: Row, value: Row) -> None:
        """Append a message to the partition of its key."""
        logs = self.topics[topic].logs
        number = key.get("id", 0) % len(logs)
        if number in self.late:
            self.waiting.append((topic, key, value))
            return
        record: Any = json.dumps(key).encode() if key else None, json.dumps(value).encode()
        logs[number].records.append((record, 0))

    def send_late(self) -> None:
        """Append the messages of late partitions."""
        self.late.clear()
        waiting, self.waiting = self.waiting, []
        for message in waiting:
            self.send(*message)

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
    slots: int = 1
    unknown: int = 0
    data_format: str = "debezium-json"
    table_settings: TableSettings = field(default_factory=TableSettings)

    @property
    def settings(self) -> PipelineSettings:
        plain = super().settings
        sources = {
            name: SourceSettings(one.kafka, self.data_format) for name, one in plain.sources.items()
        }
        options = dict(self.options)
        partition_keys = tuple(filter(None, options.pop("partition", "").split(",")))
        ordering: Any = options.pop("ordering", None)
        table = TableSettings(None, partition_keys, options, ordering=ordering)
        tables = {"orders": self.table_settings}
        return replace(plain, sources=sources, defaults=table, tables=tables)

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
    """Rows by key, and the changes as Debezium's connector for PostgreSQL sends them.

    `target` has the rows that the table is to have: with `filters` those that are not drafts, with
    `keeps` also deleted ones.
    """

    kafka: Messages
    filters: bool = False
    keeps: bool = False
    rows: dict[int, Row] = field(default_factory=dict)
    target: dict[int, Row] = field(default_factory=dict)
    position: int = 100
    sent: list[tuple[str, Row, Row]] = field(default_factory=list)
    sent_after_delete: bool = False
    topic: str = TOPIC

    def put(self, key: int, big: str | None) -> None:
        """Insert or update a row; without `big` an update leaves it as it is."""
        old = self.rows.get(key)
        left_out = old is not None and big is None
        row = self._row(key, old["big"] if old is not None and big is None else big)
        before = self._live(key)
        self._change("c" if old is None else "u", key, shown(row) if left_out else row)
        self._write({**row, "big": (before or {}).get("big")} if left_out else row)

    def delete(self, key: int) -> None:
        self.position += 1
        del self.rows[key]
        self._remove(key)

    def move(self, old: int, new: int) -> None:
        """Change the key of a row; its large value is left out of both messages."""
        row, before = self._row(new, self.rows.pop(old)["big"]), self._live(old)
        self._remove(old)
        self._change("c", new, shown(row))
        self._write({**row, "big": (before or {}).get("big")})

    def truncate(self) -> None:
        """Delete all rows; the message has no key."""
        self.position += 1
        self.rows.clear()
        self.target.clear()
        self.send("t", {}, None)

    def again(self, count: int) -> None:
        """Send the last changes again, as a connector that was killed does."""
        for number, message in enumerate(self.sent[-count:], max(len(self.sent) - count, 0)):
            if (message[2]["after"] or {}).get("big") == LEFT_OUT:
                deleted = [key for _, key, value in self.sent[number + 1 :] if value["op"] == "d"]
                self.sent_after_delete |= message[1] in deleted
            self.kafka.send(*message)

    def _row(self, key: int, big: str | None) -> Row:
        self.position += 1
        region, draft = f"r{self.position % 3}", self.position % 4 == 0
        row = {"id": key, "n": self.position, "big": big, "region": region, "draft": draft}
        self.rows[key] = row
        return row

    def _live(self, key: int) -> Row | None:
        row = self.target.get(key)
        return row if row is not None and row["deleted"] is None else None

    def _write(self, row: Row) -> None:
        self.target.pop(row["id"], None)
        if not (self.filters and row["draft"]):
            self.target[row["id"]] = {**row, "deleted": None}

    def _remove(self, key: int) -> None:
        self._change("d", key, None)
        row = self.target.pop(key, None)
        if self.keeps and row is not None:
            self.target[key] = {**row, "deleted": row["deleted"] or self.position}

    def _change(self, operation: str, key: int, after: Row | None) -> None:
        self.send(operation, {"id": key}, after)

    def send(self, operation: str, key: Row, after: Row | None) -> None:
        """Send a change at the current position."""
        at = self.position
        source = {"db": "shop", "schema": "s", "table": "orders", "lsn": at, "ts_ms": at}
        before = {"n": None, "big": None, **key} if operation == "d" else None
        value = {"op": operation, "before": before, "after": after}
        message = self.topic, key, value | {"source": source | {"snapshot": "false"}}
        self.sent.append(message)
        self.kafka.send(*message)


def shown(row: Row) -> Row:
    """The row as messages have it if the update did not change its large value."""
    return {**row, "big": LEFT_OUT if row["big"] is not None else None}


@st.composite
def actions(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    often = ["put", "keep", "move", "move", "move", "delete", "again"]
    kinds = st.sampled_from([*often, *often, "truncate"])
    keys = st.integers(0, 5)
    return draw(st.lists(st.tuples(kinds, keys, keys), min_size=4, max_size=30))


def apply(database: Database, action: tuple[str, int, int]) -> None:
    kind, key, other = action
    if kind == "truncate":
        database.truncate()
        return
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
    "keys across partitions": {"bucket": "-1", "partition": "region"},
    "order of the source": {"bucket": "2", "ordering": "source-position"},
    "lookup": {"bucket": "1", "changelog-producer": "lookup"},
    "aggregation": {
        "bucket": "1",
        "merge-engine": "aggregation",
        "fields.default-aggregate-function": "last_value",
        "aggregation.remove-record-on-delete": "true",
    },
}


@pytest.mark.timeout(7200 if "INGESTD_LONG" in os.environ else 900)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@settings(
    max_examples=400 if "INGESTD_LONG" in os.environ else 8,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    life=actions(),
    partitions=st.integers(1, 3),
    batch_rows=st.integers(1, 12),
    crashes=st.sets(st.integers(0, 6), max_size=2),
    pauses=st.sets(st.integers(0, 30), max_size=3),
    slots=st.integers(1, 2),
    filters=st.booleans(),
    keeps=st.booleans(),
)
def test_the_table_equals_the_database(
    options: dict[str, str],
    life: list[tuple[str, int, int]],
    partitions: int,
    batch_rows: int,
    crashes: set[int],
    pauses: set[int],
    slots: int,
    filters: bool,
    keeps: bool,
) -> None:
    keeps &= options.get("merge-engine") != "partial-update"
    with TemporaryDirectory() as folder:
        pipeline = new_pipeline(Path(folder), options, partitions)
        pipeline.batch_rows, pipeline.slots = batch_rows, slots
        pipeline.table_settings = TableSettings(shape=shape(filters=filters, keeps=keeps))
        database = Database(pipeline.kafka, filters, keeps)
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
        rows, expected = found(pipeline), wanted(database)
        if filters and "merge-engine" in options:
            # If a row is deleted and comes back, its nulls may be older values, as in Java.
            expected = [
                (key, n, row[2] if big is None else big, deleted)
                for row, (key, n, big, deleted) in zip(rows, expected, strict=True)
            ]
        assert rows == expected
        # A change that is sent again after the delete of its row has no value until that delete is.
        assert pipeline.unknown == 0 or filters or database.sent_after_delete


def shape(*, filters: bool = False, keeps: bool = False) -> ShapeSettings:
    """The settings for a table without drafts, and for one with deleted rows."""
    where = parse_filter("not draft") if filters else None
    return ShapeSettings(where=where, on_delete="keep" if keeps else None)


def new_pipeline(folder: Path, options: dict[str, str], partitions: int = 2) -> Pipeline:
    pipeline = Pipeline(folder, batch_rows=1000, options=options)
    pipeline.kafka.topics[TOPIC] = Topic("id of orders", [Log() for _ in range(partitions)])
    return pipeline


Found = list[tuple[int, int, str | None, int | None]]
"""Key, n, large value, and time of the delete of each row."""


def found(pipeline: Pipeline) -> Found:
    rows = read_table(pipeline.table("orders")).to_pylist()
    return sorted(
        (row["id"], row["n"], row["big"], milliseconds(row.get("deleted_at"))) for row in rows
    )


def milliseconds(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)


def wanted(database: Database) -> Found:
    return sorted((k, r["n"], r["big"], r["deleted"]) for k, r in database.target.items())


def values(pipeline: Pipeline) -> list[str | None]:
    """The large values in the table, in the order of the keys."""
    return [big for _, _, big, _ in found(pipeline)]


def run(pipeline: Pipeline) -> None:
    """Read to the ends of the logs, with as many starts as crashes require."""

    def begins(_: object, places: Iterable[SourcePartition]) -> Mapping[SourcePartition, int]:
        topics = pipeline.kafka.topics
        return {place: topics[place[1]].logs[place[2]].first for place in places}

    with mock.patch("ingestd.ingest.recovery.truncate_lookup._begins", begins):
        while True:
            try:
                pipeline.live()
            except ProcessEndError:
                continue
            return


def moved_with_late(folder: Path, partition: int) -> tuple[Pipeline, Database]:
    """A row that was read, and whose key then changed: records of a partition are sent later."""
    pipeline = new_pipeline(folder, OPTIONS["fixed buckets"])
    database = Database(pipeline.kafka)
    database.put(0, "of the moved row")
    run(pipeline)
    pipeline.kafka.late.add(partition)
    database.move(0, 1)
    return pipeline, database


def test_a_delete_that_was_committed_before_its_insert(tmp_path: Path) -> None:
    pipeline, database = moved_with_late(tmp_path, partition=1)
    database.put(0, "of another row")
    run(pipeline)
    pipeline.kafka.send_late()
    run(pipeline)
    assert found(pipeline) == wanted(database)
    assert pipeline.unknown == 0


def test_an_insert_that_comes_before_the_last_change_of_the_old_key(tmp_path: Path) -> None:
    pipeline = new_pipeline(tmp_path, OPTIONS["fixed buckets"])
    pipeline.batch_rows = 2
    database = Database(pipeline.kafka)
    database.put(0, "old")
    database.put(1, "other")
    run(pipeline)
    database.put(0, None)
    database.put(0, "new")
    for _ in range(4):
        database.put(0, None)
    database.delete(1)
    database.move(0, 1)
    pipeline.live(batches=1)
    assert (1, database.rows[1]["n"], "new", None) not in found(pipeline)
    run(pipeline)
    assert found(pipeline) == wanted(database)


@pytest.mark.parametrize("last", range(2, 14, 2))
def test_a_chain_over_tasks_of_which_a_part_was_committed_before(tmp_path: Path, last: int) -> None:
    pipeline = new_pipeline(tmp_path, {"bucket": "4"})
    pipeline.slots = 4
    database = Database(pipeline.kafka)
    database.put(0, "of all keys")
    run(pipeline)
    pipeline.kafka.late.add(1)
    database.move(0, 1)
    database.put(100, "keeps the position of the table behind the first move")
    run(pipeline)
    database.move(1, last)
    pipeline.kafka.send_late()
    run(pipeline)
    assert found(pipeline) == wanted(database)
    assert pipeline.unknown == 0


UNKNOWN_IN = {
    "deduplicate": {"bucket": "1"},
    "partial-update": OPTIONS["partial-update"],
}


@pytest.mark.parametrize("options", UNKNOWN_IN.values(), ids=UNKNOWN_IN)
def test_a_value_without_the_old_row_is_null_and_counted(
    options: dict[str, str], tmp_path: Path
) -> None:
    pipeline = new_pipeline(tmp_path, options)
    database = Database(pipeline.kafka)
    database.put(2, "known")
    database.rows[0] = {"id": 0, "n": 1, "big": "never sent", "region": "r1", "draft": False}
    database.move(0, 1)
    database.move(2, 3)
    run(pipeline)
    assert values(pipeline) == [None, "known"]
    assert pipeline.unknown == 1


def test_a_value_whose_snapshot_has_expired_is_null_and_counted(tmp_path: Path) -> None:
    pipeline, _ = moved_with_late(tmp_path, partition=1)
    run(pipeline)
    table = pipeline.table("orders")
    table.io.delete_quietly(table.paths.snapshot(1))
    pipeline.kafka.send_late()
    run(pipeline)
    assert values(pipeline) == [None]
    assert pipeline.unknown == 1


def test_a_delete_that_never_comes_is_waited_for_and_then_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_search, "WAIT_SECONDS", 0.2)
    pipeline, _ = moved_with_late(tmp_path, partition=0)
    run(pipeline)
    assert values(pipeline) == ["of the moved row", None]
    assert pipeline.unknown == 1


def test_values_that_the_table_aggregates_are_not_values_of_the_source(tmp_path: Path) -> None:
    options = {**OPTIONS["aggregation"], "fields.big.aggregate-function": "max"}
    pipeline = new_pipeline(tmp_path, options)
    database = Database(pipeline.kafka)
    database.put(0, "z")
    database.put(0, "a")
    run(pipeline)
    database.move(0, 1)
    run(pipeline)
    assert values(pipeline) == [None]
    assert pipeline.unknown == 1


def test_a_value_of_a_row_that_did_not_pass_the_filter_is_not_used(tmp_path: Path) -> None:
    pipeline = new_pipeline(tmp_path, OPTIONS["fixed buckets"])
    pipeline.table_settings = TableSettings(shape=shape(filters=True))
    database = Database(pipeline.kafka, filters=True, position=103)
    database.put(0, "of a draft")
    database.move(0, 1)
    run(pipeline)
    assert values(pipeline) == [None]
    assert pipeline.unknown == 1


def test_an_unknown_value_is_not_that_of_the_deleted_row_of_the_new_key(tmp_path: Path) -> None:
    pipeline = new_pipeline(tmp_path, OPTIONS["fixed buckets"])
    pipeline.table_settings = TableSettings(shape=shape(keeps=True))
    database = Database(pipeline.kafka, keeps=True)
    database.put(1, "of the deleted row")
    database.delete(1)
    run(pipeline)
    database.rows[0] = {"id": 0, "big": "never sent"}
    database.move(0, 1)
    database.put(1, None)
    run(pipeline)
    assert found(pipeline) == [(1, database.position, None, None)]
    assert pipeline.unknown == 1


REPLACED = ShapeSettings(
    computed=(parse_computed("region", "concat('region ', cast(n as string))"),),
    exclude=("region",),
)
SETTINGS = {
    "replaced column": TableSettings(shape=REPLACED),
    "renamed column": TableSettings(evolution=EvolutionPolicy(aliases={"big": "large"})),
}


@pytest.mark.parametrize("table_settings", SETTINGS.values(), ids=SETTINGS)
def test_records_are_read_again_with_the_settings_of_the_table(
    table_settings: TableSettings, tmp_path: Path
) -> None:
    pipeline = new_pipeline(tmp_path, OPTIONS["fixed buckets"])
    pipeline.table_settings = table_settings
    database = Database(pipeline.kafka)
    for operation, key, big, position in [
        ("c", 0, "value", 101),
        ("d", 0, None, 102),
        ("c", 1, LEFT_OUT, 102),
    ]:
        database.position = position
        name = "large" if table_settings.evolution.aliases else "big"
        row = {"id": key, "n": 1, "region": "r1", name: big}
        database.send(operation, {"id": key}, None if operation == "d" else row)
    run(pipeline)
    assert found(pipeline) == [(1, 1, "value", None)]


def test_updates_at_equal_positions_of_two_databases_are_other_updates(tmp_path: Path) -> None:
    """As long as their tables are in topics of their own."""
    pipeline = new_pipeline(tmp_path, OPTIONS["fixed buckets"])
    pipeline.kafka.topics["copy.orders"] = Topic("id of the copy", [Log(), Log()])
    databases = Database(pipeline.kafka), Database(pipeline.kafka)
    for number, topic in enumerate(("shop.orders", "copy.orders")):
        databases[number].topic = topic
        databases[number].put(10 * number, f"of {topic}")
        databases[number].move(10 * number, 10 * number + 1)
    run(pipeline)
    assert values(pipeline) == ["of shop.orders", "of copy.orders"]


@pytest.mark.parametrize("number", [0, 1], ids=["insert in first log", "delete in first log"])
def test_an_update_of_a_part_of_the_message_key_that_the_table_does_not_have(
    number: int, tmp_path: Path
) -> None:
    pipeline = new_pipeline(tmp_path, OPTIONS["fixed buckets"])
    pipeline.table_settings = TableSettings(primary_keys=("n",))
    database = Database(pipeline.kafka)
    first, second = number + 1, number + 2
    events = [("c", first, "of both", 101), ("d", first, None, 102), ("c", second, LEFT_OUT, 102)]
    for operation, key, big, position in events:
        database.position = position
        row = {"id": key, "n": 7, "big": big}
        database.send(operation, {"id": key, "n": 7}, None if operation == "d" else row)
    run(pipeline)
    assert found(pipeline) == [(second, 7, "of both", None)]
