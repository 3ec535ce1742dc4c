"""Rejected records as rows of their table."""

from datetime import UTC, datetime

from ingestd.cdc.base import Rejected
from ingestd.ingest.blobs import KIND, OFFSET
from ingestd.ingest.dead_letter import COLUMNS, DeadLetter, dead_letter_rows, dead_letter_schema
from ingestd.paimon.spec.options import BucketMode, bucket_mode


def rejected(offset: int, timestamp: int = 1000) -> Rejected:
    return Rejected("t", 3, offset, timestamp, "decode", "not-json", "why", None, b"\xff\x00")


def test_schema_is_an_append_table_without_buckets() -> None:
    schema = dead_letter_schema(7)
    assert schema.primary_keys == ()
    assert bucket_mode(schema) is BucketMode.BUCKET_UNAWARE
    assert schema.field_names == tuple(name for name, _ in COLUMNS)


def test_rows_are_in_offset_order_and_keep_every_byte() -> None:
    letters = [DeadLetter(rejected(9), "lake.orders"), DeadLetter(rejected(2, timestamp=-1))]
    rows = dead_letter_rows("job", "src", letters)
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
    }
