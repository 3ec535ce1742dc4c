"""Rejected records as rows of their table."""

from datetime import UTC, datetime

import numpy as np

from ingestd.cdc.base import RecordChunk, RejectedRecord
from ingestd.ingest.dead_letters.dead_letter import (
    COLUMNS,
    DeadLetter,
    columns_to_add,
    dead_letter_rows,
    dead_letter_schema,
)
from ingestd.ingest.rows.blobs import KIND, OFFSET
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.schema import new_schema


def rejected(offset: int, timestamp: int = 1000) -> RejectedRecord:
    return RejectedRecord("t", 3, offset, timestamp, "decode", "not-json", "why", None, b"\xff\x00")


def test_schema_is_an_append_table_without_buckets() -> None:
    schema = dead_letter_schema(7)
    assert schema.primary_keys == ()
    assert bucket_mode(schema) is BucketMode.BUCKET_UNAWARE
    assert schema.field_names == tuple(name for name, _ in COLUMNS)


def test_rows_are_in_offset_order_and_keep_every_byte() -> None:
    dead_letters = [DeadLetter(rejected(9), "lake.orders"), DeadLetter(rejected(2, timestamp=-1))]
    rows = dead_letter_rows("job", "src", dead_letters)
    assert rows.column(OFFSET).to_pylist() == rows.column("offset").to_pylist() == [2, 9]
    assert rows.column(KIND).to_pylist() == [0, 0]
    first, second = rows.select([name for name, _ in COLUMNS]).to_pylist()
    assert first["timestamp"] is None
    assert first["table"] is None
    assert second == {
        "source": "src",
        "topic": "t",
        "partition": 3,
        "offset": 9,
        "timestamp": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        "stage": "decode",
        "reason": "not-json",
        "message": "why",
        "key": None,
        "value": b"\xff\x00",
        "job": "job",
        "table": "lake.orders",
        "headers": None,
    }


def test_headers_of_a_record_are_kept_where_its_chunk_has_them() -> None:
    headers: list[list[tuple[str, bytes | None]] | None] = [[("a", b"1"), ("a", None)], None, []]
    offsets = np.array([2, 5, 9], np.int64)
    chunk = RecordChunk("t", 3, offsets, offsets, [None] * 3, [None] * 3, headers)
    dead_letters = [DeadLetter(rejected(offset)) for offset in (9, 2, 5)]
    rows = dead_letter_rows("job", "src", dead_letters, chunk)
    kept = [{"name": "a", "value": b"1"}, {"name": "a", "value": None}]
    assert rows.column("headers").to_pylist() == [kept, None, []]


def test_a_table_of_an_older_version_gets_what_it_lacks() -> None:
    old = new_schema(COLUMNS[:-1], (), (), {"bucket": "-1"}, 0)
    (change,) = columns_to_add("db.t", old)
    assert str(change).startswith("add headers ARRAY<ROW<")
    assert columns_to_add("db.t", dead_letter_schema(0)) == []
