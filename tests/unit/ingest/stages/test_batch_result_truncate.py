"""Truncates: what was there goes, what came later in the source stays."""

from dataclasses import replace

import pytest

from ingestd.ingest.stages.truncates import outlives_batch
from ingestd.ingest.values.source_points import SourcePoint
from tests.support.ingest_rig import DEAD_LETTERS, Rig
from tests.support.json_changes import Change, record

ORDERS = "lake.orders"


pytestmark = pytest.mark.usefixtures("json_changes")


def insert(
    key: int, position: int, *, snapshot: bool = False, keys: tuple[str, ...] = ("id",)
) -> bytes:
    return record(Change({"id": key}, position=position, snapshot=snapshot, keys=keys))


def truncate(position: int, schema: str = "shop") -> bytes:
    return record(Change({}, truncate=True, position=position, schema=schema))


def test_truncate_empties_the_table_and_keeps_later_rows_of_the_batch() -> None:
    rig = Rig()
    rig.produce(insert(1, 10), insert(2, 20))
    rig.run()
    rig.produce(insert(3, 30), truncate(40), insert(4, 50))
    result = rig.run()
    assert rig.rows("orders") == [{"id": 4}]
    assert result.counts.skipped[ORDERS, "truncated"] == 1


def test_truncate_as_the_last_record_leaves_an_empty_table() -> None:
    rig = Rig()
    rig.produce(insert(1, 10))
    rig.run()
    rig.produce(truncate(40))
    rig.run()
    assert rig.rows("orders") == []


def test_rows_of_other_partitions_are_judged_by_their_position() -> None:
    rig = Rig()
    rig.produce(insert(1, 10), partition=0)
    rig.run()
    rig.produce(truncate(40), partition=0)
    rig.produce(insert(2, 30), insert(3, 50), partition=1)
    rig.run()
    assert rig.rows("orders") == [{"id": 3}]


def test_row_without_position_is_judged_by_its_neighbours() -> None:
    rig = Rig()
    rig.produce(insert(1, 10))
    rig.run()
    rig.produce(insert(2, 20), insert(3, -1), truncate(40), insert(4, 50), insert(5, -1))
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [4, 5]


def test_rows_before_the_first_position_are_as_old_as_it() -> None:
    rig = Rig()
    rig.produce(insert(1, 10))
    rig.run()
    rig.produce(insert(2, -1), insert(3, 20), truncate(40), insert(4, -1), insert(5, 50))
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [4, 5]


def test_rows_among_which_no_position_is_known_are_kept() -> None:
    rig = Rig()
    rig.produce(insert(1, 10))
    rig.run()
    rig.produce(truncate(40), insert(2, -1), insert(3, -1))
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [2, 3]


def test_keys_written_after_a_truncate_get_buckets_of_their_own_index() -> None:
    rig = Rig(slots=2)
    rig.produce(*(insert(i, i) for i in range(10)))
    rig.run()
    rig.produce(truncate(40), *(insert(i, 50 + i) for i in range(5)))
    rig.run()
    assert len(rig.rows("orders")) == 5
    kept = rig.states[ORDERS].index_entries.values()
    assert sum(entry.row_count for entry in kept) == 5


def test_truncate_that_the_table_holds_already_is_left_out() -> None:
    rig = Rig()
    rig.produce(insert(1, 10), truncate(40), insert(2, 50))
    covered = {"covered": {"src": {"orders": {0: 2}}}}
    rig.run()
    rig.committed.clear()
    result = rig.round(rig.context(table_changes={ORDERS: covered}), rig.ranges())
    assert not result.truncates
    assert result.counts.rows_of(ORDERS) == 1


def test_truncate_of_a_table_that_does_not_exist_needs_nothing() -> None:
    rig = Rig()
    rig.produce(truncate(40))
    assert rig.run().counts.records
    assert ORDERS not in rig.tables


def test_truncate_before_the_first_rows_of_a_new_table() -> None:
    rig = Rig()
    rig.produce(insert(1, 10), truncate(40), insert(2, 50))
    rig.run()
    assert rig.rows("orders") == [{"id": 2}]


def test_position_that_goes_back_in_the_only_partition_does_not_stop() -> None:
    rig = Rig()
    rig.produce(insert(1, 10))
    rig.run()
    rig.produce(truncate(40), insert(2, 45))
    rig.run(table_changes={ORDERS: {"reached": SourcePoint(50)}})
    assert rig.rows("orders") == [{"id": 2}]


def test_snapshot_rows_do_not_show_how_far_the_log_got() -> None:
    rig = Rig()
    rig.produce(insert(1, 90, snapshot=True), insert(2, 10))
    assert rig.run().reached == {ORDERS: SourcePoint(10, 1001)}


def test_truncate_is_remembered_only_where_other_partitions_may_lag() -> None:
    rig = Rig()
    rig.produce(insert(1, 10), truncate(40))
    assert not outlives_batch(ORDERS, {}, rig.run(), rig.lookup())
    rig.produce(insert(2, 50), partition=1)
    rig.produce(insert(3, 60), partition=0)
    assert outlives_batch(ORDERS, {}, rig.run(), rig.lookup())


def test_a_truncate_of_a_table_that_was_left_out_asks_for_the_table() -> None:
    rig = Rig()
    rig.produce(insert(1, 10))
    rig.run()
    rig.produce(truncate(40))
    context = rig.context()
    left_out = replace(
        context, tables={DEAD_LETTERS: context.tables[DEAD_LETTERS]}, others=frozenset({ORDERS})
    )
    result = rig.round(left_out, rig.ranges())
    assert result.runs_again
    assert [discovery.table for discovery in result.discoveries] == [ORDERS]
    [found] = rig.round(context, rig.ranges()).truncates
    assert (found.table, found.point, found.offset) == (ORDERS, SourcePoint(40, 1001), 1)
