"""A captured stream with `on-delete: keep`, judged by the same stream without its deletes."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from ingestd.cdc import base
from ingestd.cdc.base import FormatSettings, RecordChunk
from ingestd.cdc.formats import debezium_json
from ingestd.cdc.schema_lookup import RegisteredSchema, SchemaId
from ingestd.ingest.settings.context import BatchContext, SourceSettings, TableSettings
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from tests.support import captured_avro, corpus
from tests.support.ingest_rig import Rig

TABLES = ("customers", "inventory", "orders", "order_items", "products")
CHUNK = 200


class SavedRegistry:
    """The schemas of the capture in Avro."""

    def find(self, schema_id: SchemaId) -> RegisteredSchema:
        text, references = captured_avro.schema_texts(int(schema_id))
        inner = tuple(RegisteredSchema("AVRO", reference) for reference in references)
        return RegisteredSchema("AVRO", text, inner)

    def earlier(self, schema_id: SchemaId) -> tuple[RegisteredSchema, ...]:
        return ()


@dataclass
class StreamRig(Rig):
    """A rig that reads records with their keys, timestamps and offsets."""

    source: SourceSettings = field(
        default_factory=lambda: SourceSettings(KafkaSource("src", ()), "debezium-json")
    )
    records: dict[tuple[str, int], list[corpus.Record]] = field(default_factory=dict)

    def context(self, **changes: Any) -> BatchContext:
        return replace(super().context(**changes), sources={"src": self.source})

    def add(self, records: list[corpus.Record]) -> None:
        for record in records:
            where = record.topic, record.partition
            self.records.setdefault(where, []).append(record)
            self.produce(record.value, topic=record.topic, partition=record.partition)

    def fetch(self, source: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        log = self.records[wanted.topic, wanted.partition]
        for start in range(wanted.start, wanted.until, CHUNK):
            part = log[start : min(start + CHUNK, wanted.until)]
            yield RecordChunk(
                wanted.topic,
                wanted.partition,
                np.arange(start, start + len(part)),
                np.array([record.timestamp_ms for record in part], np.int64),
                [record.key for record in part],
                [record.value for record in part],
                None,
            )


def captured(mode: corpus.Mode) -> list[corpus.Record]:
    topics = {f"shop.{table}" for table in TABLES}
    return [one for one in corpus.captured(mode) if one.topic.partition(".")[2] in topics]


def ingest(
    records: list[corpus.Record], source: SourceSettings | None = None, *, keep: bool
) -> dict[str, dict[Any, dict[str, Any]]]:
    """The rows of each table by key."""
    shape = ShapeSettings(on_delete="keep" if keep else None)
    rig = StreamRig(defaults=TableSettings(options={"bucket": "2"}, shape=shape))
    rig.source = source or rig.source
    middle = len(records) // 2
    for part in (records[:middle], records[middle:]):
        rig.add(part)
        assert not rig.run().rejected
    rows = {}
    for table in TABLES:
        keys = rig.tables[f"lake.{table}"].schema.primary_keys
        rows[table] = {tuple(row[key] for key in keys): row for row in rig.rows(table)}
    return rows


def is_delete(record: corpus.Record) -> bool:
    return record.value is None or json.loads(record.value)["op"] == "d"


def milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000)


@pytest.mark.parametrize("decoder", ["native", "python"])
def test_kept_rows_are_those_of_the_stream_without_deletes(
    decoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "_THREAD", threading.local())
    if decoder == "python":
        monkeypatch.setattr(debezium_json, "native_module", lambda: None)
    records = captured("json")
    kept = ingest(records, keep=True)
    never_deleted = ingest([record for record in records if not is_delete(record)], keep=False)
    applied = ingest(records, keep=False)
    times: dict[Any, int] = {}
    for record in records:
        if record.value is not None and is_delete(record) and record.key is not None:
            event = json.loads(record.value)
            key = tuple(json.loads(record.key).values())
            times[event["source"]["table"], key] = event["source"]["ts_ms"]
    deleted = 0
    for table, rows in kept.items():
        gone = {key: row.pop("deleted_at") for key, row in rows.items()}
        # Values of a row whose key changed cannot be found without the delete of its old key.
        assert rows == {**never_deleted[table], **applied[table]}
        assert {key for key, time in gone.items() if time is None} == applied[table].keys()
        for key, time in gone.items():
            if time is not None:
                deleted += 1
                assert milliseconds(time) == times[table, key]
    assert deleted > 50


def test_messages_without_a_time_that_is_read_have_that_of_their_record() -> None:
    settings = FormatSettings(schemas=SavedRegistry())
    source = SourceSettings(KafkaSource("src", ()), "debezium-avro", settings)
    records = captured("avro")
    kept, applied = ingest(records, source, keep=True), ingest(records, source, keep=False)
    stamps = {record.timestamp_ms for record in records}
    for table, rows in kept.items():
        gone = {key: row["deleted_at"] for key, row in rows.items()}
        assert {key for key, time in gone.items() if time is None} == applied[table].keys()
        assert {milliseconds(time) for time in gone.values() if time is not None} <= stamps
        assert all(len(row) - list(row.values()).count(None) > 2 for row in rows.values())
    assert any(len(kept[table]) > len(applied[table]) for table in TABLES)
