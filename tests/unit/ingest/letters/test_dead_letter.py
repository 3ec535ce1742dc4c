"""Rejected records as rows of their table."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from ingestd.cdc.base import RecordChunk, Rejected
from ingestd.ingest.letters.dead_letter import (
    COLUMNS,
    DeadLetter,
    columns_to_add,
    dead_letter_rows,
    dead_letter_schema,
    gap_letter,
)
from ingestd.ingest.rows.blobs import KIND, OFFSET, receive
from ingestd.ingest.stages import decode_stage
from ingestd.ingest.stages.decode_stage import decode_ranges
from ingestd.ingest.values.counts import TopicPartition
from ingestd.kafka.ranges import OffsetRange
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.schema import new_schema
from tests.support.ingest_rig import DEAD_LETTERS, Change, JsonChanges, Rig, record


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
        "headers": None,
    }


def test_a_gap_is_a_letter_without_a_record_that_names_the_range() -> None:
    one = gap_letter(OffsetRange("s", "t", 2, 5, 17)).rejected
    assert (one.topic, one.partition, one.offset) == ("t", 2, 5)
    assert (one.stage, one.reason) == ("fetch", "offset_gap")
    assert one.message.startswith("offsets 5 to 16 (12 at the most)")
    assert (one.key, one.value) == (None, None)


def test_a_gap_before_a_batch_is_kept_and_counted(json_changes: JsonChanges) -> None:
    rig = Rig()
    rig.produce(*[record(Change({"id": number})) for number in range(5)])
    rig.committed["orders", 0] = 2
    result = rig.run(lost=(OffsetRange("src", "orders", 0, 0, 2),))
    assert [row["id"] for row in rig.rows("orders")] == [2, 3, 4]
    (letter,) = rig.rows("ingestd_dead_letters")
    assert (letter["offset"], letter["reason"]) == (0, "offset_gap")
    assert result.counts.lost == {TopicPartition("src", "orders", 0): 2}
    assert result.counts.rejected == {("fetch", "offset_gap"): 1}


def test_a_gap_that_is_met_while_reading_is_kept_and_counted(
    json_changes: JsonChanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig()
    gap = OffsetRange("src", "orders", 0, 4, 6)

    def lossy(*_: object, on_lost: Callable[[OffsetRange], None], **__: object) -> Iterator[Any]:
        on_lost(gap)
        return iter(())

    monkeypatch.setattr(decode_stage, "fetch_records", lossy)
    wanted = OffsetRange("src", "orders", 0, 4, 6)
    pairs = decode_ranges(rig.context(lost=(gap,)), [wanted], task_index=1)
    received = receive(blob for _, blob in pairs)
    ((blob,),) = received.rows.values()
    assert blob.rows.column("offset").to_pylist() == [4], "what was lost before is task 0's"
    assert received.reports[0].counts.lost == {TopicPartition("src", "orders", 0): 2}


def test_a_gap_that_the_table_holds_already_is_not_told_again(json_changes: JsonChanges) -> None:
    rig = Rig()
    rig.produce(*[record(Change({"id": number})) for number in range(4)])
    rig.committed["orders", 0] = 2
    lost = (OffsetRange("src", "orders", 0, 0, 2),)
    covered = {DEAD_LETTERS: {"covered": {"src": {"orders": {0: 4}}}}}
    result = rig.run(lost=lost, table_changes=covered)
    assert rig.rows("ingestd_dead_letters") == []
    assert not result.counts.lost


def test_headers_of_a_record_are_kept_where_its_chunk_has_them() -> None:
    headers: list[list[tuple[str, bytes | None]] | None] = [[("a", b"1"), ("a", None)], None, []]
    offsets = np.array([2, 5, 9], np.int64)
    chunk = RecordChunk("t", 3, offsets, offsets, [None] * 3, [None] * 3, headers)
    letters = [DeadLetter(rejected(offset)) for offset in (9, 2, 5)]
    rows = dead_letter_rows("job", "src", letters, chunk)
    kept = [{"name": "a", "value": b"1"}, {"name": "a", "value": None}]
    assert rows.column("headers").to_pylist() == [kept, None, []]


def test_a_table_of_an_older_version_gets_what_it_lacks() -> None:
    old = new_schema(COLUMNS[:-1], (), (), {"bucket": "-1"}, 0)
    (change,) = columns_to_add(old)
    assert str(change).startswith("add headers ARRAY<ROW<")
    assert columns_to_add(dead_letter_schema(0)) == []
