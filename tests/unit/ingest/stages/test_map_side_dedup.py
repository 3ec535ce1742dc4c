"""What leaves a decode task at once, what waits for later rows, and what never leaves it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from ingestd.ingest.rows.blobs import KIND, OFFSET, RowBlob, receive
from ingestd.ingest.rows.slot_assignment import assign_slots
from ingestd.ingest.settings.context import BatchContext, TableContext, TableSettings
from ingestd.ingest.stages import map_side_dedup
from ingestd.ingest.stages.map_side_dedup import MapSideDedup
from ingestd.ingest.values.counts import Counts
from ingestd.kafka.offset_ranges import SourcePartition
from ingestd.paimon.spec.data_types import DataType, RowKind
from ingestd.paimon.spec.schema import new_schema
from tests.support.ingest_rig import Rig
from tests.support.json_changes import UPDATE_AFTER, Change, record

TABLE = "lake.t"
WHERE = SourcePartition("src", "orders", 0)


def context(options: Mapping[str, str], **changes: Any) -> BatchContext:
    rig = Rig()
    columns = [("id", DataType("INT")), ("text", DataType("STRING"))]
    rig.create(TABLE, new_schema(columns, ("id",), (), {"bucket": "1", **options}, 0))
    return rig.context(**changes)


def rows(first: int, *ids: int, kind: int = RowKind.INSERT) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int32()),
            "text": [f"{first + at}" for at in range(len(ids))],
            KIND: pa.array([kind] * len(ids), pa.int8()),
            OFFSET: pa.array(range(first, first + len(ids)), pa.int64()),
        }
    )


def blobs(pairs: Any) -> list[RowBlob]:
    received = receive(blob for _, blob in pairs)
    return received.rows.get(TABLE, [])


@pytest.fixture(autouse=True)
def few_rows_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_side_dedup, "_LEAST_ROWS", 2)


def added(held: MapSideDedup, target: TableContext, where: SourcePartition, some: pa.Table) -> Any:
    return held.add(target, where, *assign_slots(target, some, 1, 0))


def test_of_several_chunks_only_the_newest_row_of_a_key_leaves_the_task() -> None:
    counts = Counts()
    there = context({})
    held = MapSideDedup(there, counts)
    target = there.tables[TABLE]
    assert blobs(added(held, target, WHERE, rows(10, 1, 2, 1))) == []
    assert blobs(added(held, target, WHERE, rows(13, 2, 3, kind=RowKind.DELETE))) == []
    (found,) = blobs(held.release())
    assert found.rows.column("text").to_pylist() == ["12", "13", "14"]
    assert found.rows.column(KIND).to_pylist() == [0, 3, 3]
    assert found.origin.offset == 12
    assert counts.rows == Counter({(TABLE, 0): 2})
    assert blobs(held.release()) == []


def test_topic_partitions_are_not_compared_with_each_other() -> None:
    there = context({})
    held = MapSideDedup(there, Counts())
    target = there.tables[TABLE]
    for partition in (0, 1):
        where = WHERE._replace(partition=partition)
        assert blobs(added(held, target, where, rows(0, 1, 1))) == []
    found = blobs(held.release())
    assert [one.origin.partition for one in found] == [0, 1]
    assert [one.rows.column("text").to_pylist() for one in found] == [["1"], ["1"]]


def test_offsets_say_which_row_is_newer_where_batches_of_a_chunk_have_them_in_turn() -> None:
    there = context({})
    held = MapSideDedup(there, Counts())
    target = there.tables[TABLE]
    whole = rows(0, 1, 2, 1, 2)
    list(added(held, target, WHERE, whole.take([1, 2])))
    list(added(held, target, WHERE, whole.take([0, 3])))
    (found,) = blobs(held.release())
    assert found.rows.column(OFFSET).to_pylist() == [2, 3]


def test_a_table_that_needs_every_row_gets_them_at_once() -> None:
    there = context({"merge-engine": "aggregation"})
    held = MapSideDedup(there, Counts())
    (found,) = blobs(added(held, there.tables[TABLE], WHERE, rows(0, 1, 1)))
    assert found.rows.num_rows == 2
    assert not held.is_full
    assert blobs(held.release()) == []


def test_few_rows_leave_as_they_came() -> None:
    there = context({})
    held, counts = MapSideDedup(there, Counts()), Counts()
    with mock.patch.object(map_side_dedup, "_LEAST_ROWS", 5):
        list(added(held, there.tables[TABLE], WHERE, rows(0, 1, 1)))
        list(added(held, there.tables[TABLE], WHERE, rows(2, 1, 1)))
        found = blobs(held.release())
    assert [one.rows.num_rows for one in found] == [2, 2]
    assert not counts.rows


def test_what_is_held_back_is_bounded_and_leaves_in_pieces() -> None:
    there = context({}, max_chunk_bytes=1500)
    held = MapSideDedup(there, Counts())
    target = there.tables[TABLE]
    list(added(held, target, WHERE, rows(0, *range(50))))
    assert not held.is_full
    list(added(held, target, WHERE, rows(50, *range(40, 140))))
    assert held.is_full
    found = blobs(held.release())
    assert not held.is_full
    assert len(found) > 1
    texts = [text for one in found for text in one.rows.column("text").to_pylist()]
    assert texts == [str(at) for at in range(150) if not 40 <= at < 50]


def test_a_task_gives_out_all_it_holds_and_counts_what_it_left_out(
    json_changes: object,
) -> None:
    settings = TableSettings(options={"bucket": "-1"})
    rig = Rig(defaults=settings, overrides={"max_chunk_bytes": 200}, slots=2)
    for position in range(30):
        change = Change({"id": position % 4, "n": position}, UPDATE_AFTER, position=position)
        rig.produce(record(change), partition=position % 2)
    done = rig.run()
    assert done.counts.rows == Counter({("lake.orders", UPDATE_AFTER): 30})
    assert rig.rows("orders") == [{"id": key, "n": max(range(key, 30, 4))} for key in range(4)]
    assert rig.states["lake.orders"].max_sequence_number < 29
