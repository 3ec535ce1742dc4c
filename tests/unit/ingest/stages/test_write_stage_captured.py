"""A captured change stream through both stages gives the tables that the database ended with."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from ingestd.cdc.base import RecordChunk
from ingestd.ingest.settings.context import BatchContext, SourceSettings, TableSettings
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.casts.rows_json import json_lines
from ingestd.paimon.spec.data_types import encode_type
from ingestd.paimon.table.read.table_read import read_table
from tests.support import corpus, state
from tests.support.ingest_rig import Rig

CHUNK = 100


@dataclass
class CaptureRig(Rig):
    """A rig whose logs are those of a capture, read in a number of batches."""

    records: dict[tuple[str, int], list[corpus.Record]] = field(default_factory=dict)
    until: Counter[tuple[str, int]] = field(default_factory=Counter)

    def context(self, **changes: Any) -> BatchContext:
        source = SourceSettings(KafkaSource("src", ()), "debezium-json")
        return replace(super().context(**changes), sources={"src": source})

    def ranges(self) -> list[OffsetRange]:
        return [
            OffsetRange("src", *where, self.committed.get(where, 0), until)
            for where, until in sorted(self.until.items())
            if until > self.committed.get(where, 0)
        ]

    def ends(self) -> dict[tuple[str, int], int]:
        return {where: len(log) for where, log in self.records.items()}

    def fetch(self, source: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        log = self.records[wanted.topic, wanted.partition]
        for start in range(wanted.start, wanted.until, CHUNK):
            part = log[start : min(start + CHUNK, wanted.until)]
            yield RecordChunk(
                wanted.topic,
                wanted.partition,
                np.array([one.offset for one in part], np.int64),
                np.array([one.timestamp_ms for one in part], np.int64),
                [one.key for one in part],
                [one.value for one in part],
                None,
            )


def ingest(mode: corpus.Mode, batches: int, slots: int, options: dict[str, str]) -> CaptureRig:
    rig = CaptureRig(slots=slots, defaults=TableSettings(options=options))
    captured = list(corpus.captured(mode))
    for one in captured:
        rig.records.setdefault((one.topic, one.partition), []).append(one)
    for batch in range(batches):
        seen = captured[: len(captured) * (batch + 1) // batches]
        rig.until = Counter((one.topic, one.partition) for one in seen)
        assert not rig.run().rejected
    return rig


def rows_of(rig: CaptureRig, table: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    found = rig.tables[f"lake.{table}"]
    fields = found.schema.fields
    rows = [json.loads(line) for line in json_lines(read_table(found), fields)]
    return rows, {field.name: encode_type(field.type) for field in fields}


@pytest.mark.parametrize(
    ("batches", "slots", "options"),
    [(1, 1, {}), (7, 3, {}), (4, 2, {"bucket": "4"})],
    ids=["one batch", "dynamic buckets", "fixed buckets"],
)
def test_stream_with_schemas_gives_the_tables_of_the_database(
    batches: int, slots: int, options: dict[str, str]
) -> None:
    rig = ingest("json-schema", batches, slots, options)
    repeats = corpus.repeated_inserts("json-schema")
    problems: list[str] = []
    for name in state.database_tables():
        rows, types = rows_of(rig, name.partition(".")[2])
        problems += state.compare(name, rows, types, repeats=repeats.get(name))
    assert problems == []


def test_stream_without_schemas_keeps_every_value_as_it_came() -> None:
    rig = ingest("json", 5, 2, {})
    problems: list[str] = []
    folded = corpus.folded("json")
    for name in folded.keys() & state.database_tables().keys():
        rows, _ = rows_of(rig, name.partition(".")[2])
        key = state.database_tables()[name].key
        problems += state.compare_as_it_came(name, key, folded[name], rows)
    assert problems == []
