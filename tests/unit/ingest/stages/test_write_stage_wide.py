"""Tables of thousands of columns, and batches of thousands of partitions, through both stages.

With INGESTD_LONG=1: 5,000 columns and 10,000 partitions.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from ingestd.cdc.base import RecordChunk
from ingestd.errors import SchemaConflictError
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.ingest_rig import Rig

LONG = "INGESTD_LONG" in os.environ
COLUMNS = 5_000 if LONG else 1_000
PARTITIONS = 10_000 if LONG else 300
SCATTERED = 5_000 if LONG else 1_500


@dataclass
class _Chunked(Rig):
    """Fetches a range as one chunk, as a real consumer does."""

    def fetch(self, source: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        values = self.logs[wanted.topic, wanted.partition][wanted.start : wanted.until]
        offsets = np.arange(wanted.start, wanted.until, dtype=np.int64)
        keys: list[bytes | None] = [None] * len(values)
        yield RecordChunk(wanted.topic, wanted.partition, offsets, offsets + 1, keys, values, None)


def _wide(number: int, columns: int) -> bytes:
    return json.dumps({"id": number, **{f"c{i}": number * i for i in range(columns)}}).encode()


def wide_settings(columns: int) -> dict[str, TableSettings]:
    return {"orders": TableSettings(evolution=EvolutionPolicy(max_columns=columns + 2))}


def test_a_table_of_thousands_of_columns_takes_rows_and_one_column_more() -> None:
    rig = _Chunked(data_format="json", settings=wide_settings(COLUMNS))
    rig.produce(*(_wide(number, COLUMNS) for number in range(10)))
    rig.run()
    rig.produce(*(_wide(number, COLUMNS + 1) for number in range(10, 20)))
    rig.run()
    table = rig.tables["lake.orders"]
    assert len(table.schema.fields) == COLUMNS + 2
    assert table.schema.id == 1, "one schema for all columns of a batch"
    last = f"c{COLUMNS}"
    rows = sorted((row["id"], row[last]) for row in rig.rows("orders", "id", last))
    assert rows == [(n, None if n < 10 else n * COLUMNS) for n in range(20)]
    assert verify(table) == []


def test_a_batch_that_touches_thousands_of_partitions_is_one_snapshot() -> None:
    settings = TableSettings(("p", "id"), ("p",), {"bucket": "1"}, {})
    rig = _Chunked(data_format="json", settings={"orders": settings})
    numbers = range(2 * PARTITIONS)
    rig.produce(
        *(json.dumps({"id": n, "p": f"p{n % PARTITIONS}", "v": n}).encode() for n in numbers)
    )
    result = rig.run()
    assert len(result.messages["lake.orders"]) == PARTITIONS
    state = rig.states["lake.orders"]
    assert state.snapshot is not None
    assert (state.snapshot.id, state.snapshot.total_record_count) == (1, 2 * PARTITIONS)
    assert len(rig.rows("orders", "id")) == 2 * PARTITIONS


def _scattered(rig: Rig, count: int) -> None:
    rig.produce(*(json.dumps({"id": n, f"x{n}": n}).encode() for n in range(count)))


def test_records_that_bring_a_column_each_stop_the_pipeline_by_the_name_of_the_limit() -> None:
    policy = EvolutionPolicy(on_refused="fail", max_columns=300)
    rig = _Chunked(data_format="json", settings={"orders": TableSettings(evolution=policy)})
    rig.produce(b'{"id": -1}')
    rig.run()
    _scattered(rig, SCATTERED)
    with pytest.raises(SchemaConflictError, match=r"brings .*schema\.max-columns, 300"):
        rig.run()
    assert list(rig.tables["lake.orders"].schema.field_names) == ["id"]


def test_records_that_bring_a_column_each_fill_the_table_and_keep_their_rows() -> None:
    policy = EvolutionPolicy(on_refused="ignore", max_columns=300)
    rig = _Chunked(data_format="json", settings={"orders": TableSettings(evolution=policy)})
    _scattered(rig, SCATTERED)
    rig.run()
    table = rig.tables["lake.orders"]
    assert len(table.schema.fields) == 300
    rows = {row["id"]: row["x7"] for row in rig.rows("orders", "id", "x7")}
    assert rows == {n: 7 if n == 7 else None for n in range(SCATTERED)}
    assert verify(table) == []
