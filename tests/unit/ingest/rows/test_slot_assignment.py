"""Which slot and bucket rows go to."""

import pickle

import pyarrow as pa
import pytest

from ingestd.ingest.rows.blobs import BUCKET, HASH, POSITION
from ingestd.ingest.rows.slot_assignment import assign_slots
from ingestd.ingest.settings.context import TableContext
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.ingest_rig import Rig
from tests.support.json_changes import Change, record

SLOTS = 4


def target(
    bucket: int, keys: tuple[str, ...], partitions: tuple[str, ...] = (), assigners: int = 1
) -> TableContext:
    columns = [("id", DataType("INT")), ("day", DataType("STRING"))]
    schema = new_schema(columns, keys, partitions, {"bucket": str(bucket)}, 0)
    table = FileStoreTable("/t", schema, MemoryFileIO(), "lake.t")
    return TableContext("lake.t", table, assigners=assigners)


def some_rows(count: int = 400) -> pa.Table:
    days = [f"d{i % 5}" for i in range(count)]
    return pa.table({"id": pa.array(range(count), pa.int32()), "day": days})


@pytest.mark.parametrize("partitions", [(), ("day",)])
def test_rows_of_a_fixed_bucket_share_a_slot_and_buckets_spread(
    partitions: tuple[str, ...],
) -> None:
    keys = (*partitions, "id")
    rows, slots = assign_slots(target(8, keys, partitions), some_rows(), SLOTS, 0)
    seen: dict[tuple[object, int], set[int]] = {}
    buckets = rows.column(BUCKET).to_pylist()
    groups = rows.column("day").to_pylist() if partitions else [None] * rows.num_rows
    for group, bucket, slot in zip(groups, buckets, slots.tolist(), strict=True):
        seen.setdefault((group, bucket), set()).add(slot)
    assert all(len(used) == 1 for used in seen.values())
    assert set(slots.tolist()) == set(range(SLOTS))


@pytest.mark.parametrize("partitions", [(), ("day",)])
def test_keys_of_an_assigner_share_a_slot_and_a_key_always_goes_the_same_way(
    partitions: tuple[str, ...],
) -> None:
    one = target(-1, (*partitions, "id"), partitions, assigners=SLOTS)
    rows, slots = assign_slots(one, some_rows(), SLOTS, 0)
    again, same = assign_slots(one, some_rows(), SLOTS, 3)
    assert HASH in rows.column_names
    assert rows.equals(again)
    assert slots.tolist() == same.tolist()
    assert set(slots.tolist()) == set(range(SLOTS))


def test_single_assigner_means_a_single_slot() -> None:
    _, slots = assign_slots(target(-1, ("id",), assigners=1), some_rows(), SLOTS, 0)
    assert len(set(slots.tolist())) == 1


@pytest.mark.parametrize(("task", "slot"), [(6, 2), (1, 1)])
def test_append_rows_stay_with_their_task(task: int, slot: int) -> None:
    rows = some_rows(100).append_column(POSITION, pa.array([-1] * 50 + list(range(50))))
    _, slots = assign_slots(target(-1, ()), rows, SLOTS, task)
    assert slots.tolist() == [slot] * 100


@pytest.mark.parametrize("assigners", [1, 3])
def test_a_key_that_moves_between_partitions_stays_in_its_slot(assigners: int) -> None:
    one = target(-1, ("id",), ("day",), assigners)
    rows = some_rows(60)
    moved = rows.set_column(1, "day", pa.array(["elsewhere"] * 60))
    _, slots = assign_slots(one, rows, SLOTS, 0)
    _, others = assign_slots(one, moved, SLOTS, 3)
    assert slots.tolist() == others.tolist()
    assert len(set(slots.tolist())) == assigners


def test_rows_that_wait_for_their_bucket_are_spread_by_key_and_partition() -> None:
    one = target(-2, ("id", "day"), ("day",))
    assigned, slots = assign_slots(one, some_rows(), SLOTS, 0)
    assert slots.tolist() == assign_slots(one, some_rows(), SLOTS, 2)[1].tolist()
    assert set(slots.tolist()) == set(range(SLOTS))
    assert assigned.column_names == some_rows().column_names


@pytest.mark.usefixtures("json_changes")
def test_context_and_outcomes_travel_between_processes() -> None:
    rig = Rig(slots=2)
    rig.produce(record(Change({"id": 1})))
    rig.run()
    context = rig.context()
    copy = pickle.loads(pickle.dumps(context))
    assert copy.tables["lake.orders"].table.schema == context.tables["lake.orders"].table.schema
    rig.produce(record(Change({"id": 2})), b"{")
    result = rig.round(copy, rig.ranges())
    assert pickle.loads(pickle.dumps(result)) == result
