"""Truncates that are read late, or that have no place in the log: in order, or refused."""

from dataclasses import replace

import pytest

from ingestd.errors import PolicyStopError
from ingestd.ingest.settings.context import RoutingConfig, TableSettings
from ingestd.ingest.settings.truncate_policy import TruncatePolicy
from ingestd.ingest.stages import truncates
from ingestd.ingest.values.source_points import SourcePoint
from ingestd.paimon.spec.snapshot import CARRIED_OPTION
from tests.support.ingest_rig import Rig
from tests.support.json_changes import UNAVAILABLE, UPDATE_AFTER, Change, record

ORDERS = "lake.orders"
FAIL = TableSettings(truncates=TruncatePolicy(on_refused="fail"))
DEAD_LETTER = TableSettings(truncates=TruncatePolicy(on_refused="dead-letter"))
IGNORE = TableSettings(truncates=TruncatePolicy(on_refused="ignore"))

pytestmark = pytest.mark.usefixtures("json_changes")


def insert(key: int, position: int, schema: str = "shop") -> bytes:
    return record(Change({"id": key}, position=position, schema=schema))


def truncate(position: int, schema: str = "shop") -> bytes:
    return record(Change({}, truncate=True, position=position, schema=schema))


def state(*covered: int, reached: int) -> dict[str, dict[str, object]]:
    """What the table holds: offsets by partition, and the source position."""
    offsets = {"src": {"orders": dict(enumerate(covered))}}
    return {ORDERS: {"reached": SourcePoint(reached), "covered": offsets}}


def late(rig: Rig) -> dict[str, dict[str, object]]:
    """A table that has rows from before and after the truncate, which is read only now."""
    rig.produce(insert(1, 10), insert(2, 30), partition=0)
    rig.produce(insert(3, 50), insert(4, 60), partition=1)
    rig.run()
    rig.produce(truncate(40), insert(5, 70), partition=0)
    rig.before = {"src": {"orders": {0: 1, 1: 0}}}
    return state(2, 2, reached=60)


def test_rows_after_a_truncate_that_is_read_late_are_read_again() -> None:
    rig = Rig(slots=2)
    result = rig.run(table_changes=late(rig))
    assert [row["id"] for row in rig.rows("orders")] == [3, 4, 5]
    assert result.counts.skipped[ORDERS, "truncated"] == 1
    assert result.counts.skipped[ORDERS, "covered"] == 0


def test_what_is_read_again_goes_into_no_other_table_twice() -> None:
    rig = Rig()
    twin = record(Change({"id": 9}, position=55, table="twins", keys=()))
    rig.produce(insert(1, 10), partition=0)
    rig.produce(insert(3, 50), twin, partition=1)
    rig.run()
    rig.produce(truncate(40), partition=0)
    rig.before = {"src": {"orders": {0: 0, 1: 0}}}
    held = {"covered": {"src": {"orders": {0: 1, 1: 2}}}}
    rig.run(table_changes={**state(1, 2, reached=50), "lake.twins": held})
    assert rig.rows("orders") == [{"id": 3}]
    assert rig.rows("twins") == [{"id": 9}]


def test_a_value_that_was_left_out_is_found_among_the_rows_that_are_read_again() -> None:
    rig = Rig()
    rig.produce(record(Change({"id": 1, "note": "old"}, position=10)), partition=0)
    rig.produce(record(Change({"id": 1, "note": "new"}, position=50)), partition=1)
    rig.run()
    rig.produce(truncate(40), partition=0)
    rig.produce(record(Change({"id": 1, "note": UNAVAILABLE}, UPDATE_AFTER, position=60)))
    rig.before = {"src": {"orders": {0: 0, 1: 0}}}
    rig.run(table_changes=state(1, 1, reached=50))
    assert rig.rows("orders") == [{"id": 1, "note": "new"}]


def test_a_truncate_does_not_empty_a_table_with_rows_of_another_pipeline() -> None:
    rig = Rig(defaults=DEAD_LETTER)
    rig.produce(insert(1, 10))
    rig.run()
    rig.produce(truncate(20))
    table = rig.tables[ORDERS]
    marked = replace(table.schema, options={**table.schema.options, CARRIED_OPTION: "other,test"})
    rig.run(table_changes={ORDERS: {"table": table.with_schema(marked)}})
    assert [row["id"] for row in rig.rows("orders")] == [1]
    [dead_letter] = rig.rows("ingestd_dead_letters", "reason", "message")
    assert "it also holds rows of pipeline other" in dead_letter["message"]


def test_without_an_older_snapshot_a_late_truncate_stops() -> None:
    rig = Rig(defaults=FAIL)
    held = late(rig)
    rig.before = None
    with pytest.raises(PolicyStopError, match=r"position 40.*on-ambiguous-truncate"):
        rig.run(table_changes=held)


def test_a_late_truncate_does_not_read_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(defaults=FAIL)
    held = late(rig)
    monkeypatch.setattr(truncates, "MAX_READ_AGAIN", 2)
    with pytest.raises(PolicyStopError, match="3 records would be read again"):
        rig.run(table_changes=held)


@pytest.mark.parametrize(("begins", "kept"), [({0: 2, 1: 1}, True), ({0: 1, 1: 0}, False)])
def test_a_late_truncate_is_refused_where_the_log_has_not_what_it_needs(
    begins: dict[int, int], kept: bool
) -> None:
    rig = Rig(settings={"orders": DEAD_LETTER}, slots=2)
    held = late(rig)
    rig.begins = {("orders", one): offset for one, offset in begins.items()}
    rig.run(table_changes=held)
    assert [row["id"] for row in rig.rows("orders")] == ([1, 2, 3, 4, 5] if kept else [3, 4, 5])
    dead_letters = rig.rows("ingestd_dead_letters", "reason", "message")
    assert [dead_letter["reason"] for dead_letter in dead_letters] == ["refused-truncate"] * kept
    for dead_letter in dead_letters:
        assert "from offset 1 on they were in orders/0 of source src" in dead_letter["message"]
        assert "begins at 2" in dead_letter["message"]


def test_a_refused_truncate_is_a_dead_letter_where_the_table_says_so() -> None:
    rig = Rig(settings={"orders": DEAD_LETTER})
    held = late(rig)
    rig.before = None
    rig.run(table_changes=held)
    assert [row["id"] for row in rig.rows("orders")] == [1, 2, 3, 4, 5]
    [dead_letter] = rig.rows("ingestd_dead_letters", "stage", "reason", "table", "offset")
    assert dead_letter == {
        "stage": "decode", "reason": "refused-truncate", "table": ORDERS, "offset": 2,
    }  # fmt: skip


def test_a_refused_truncate_is_left_out_where_the_table_says_so() -> None:
    rig = Rig(settings={"orders": IGNORE})
    held = late(rig)
    rig.before = None
    rig.run(table_changes=held)
    assert len(rig.rows("orders")) == 5
    assert not rig.rows("ingestd_dead_letters", "reason")


def test_a_table_may_keep_its_rows_whatever_the_source_empties() -> None:
    rig = Rig(defaults=TableSettings(truncates=TruncatePolicy("ignore")))
    rig.produce(insert(1, 10), truncate(40), insert(2, 50))
    rig.run()
    rig.produce(truncate(60))
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [1, 2]


def test_in_the_only_partition_the_offset_puts_a_truncate_in_order() -> None:
    rig = Rig()
    rig.produce(insert(1, -1))
    rig.run()
    rig.produce(insert(2, -1), truncate(-1), insert(3, -1), truncate(-1), insert(4, -1))
    rig.run()
    assert rig.rows("orders") == [{"id": 4}]


def test_without_position_a_truncate_in_one_of_several_partitions_is_refused() -> None:
    rig = Rig(defaults=FAIL)
    rig.produce(insert(1, -1))
    rig.produce(insert(2, -1), partition=1)
    rig.run()
    rig.produce(truncate(-1))
    with pytest.raises(PolicyStopError, match="no position"):
        rig.run()


def test_a_truncate_of_one_of_several_shards_is_refused() -> None:
    rig = Rig(routing=RoutingConfig(merge_shards=True), defaults=FAIL)
    rig.produce(insert(1, 10), insert(2, 20, "crm"))
    rig.run()
    rig.produce(insert(3, 30), truncate(40, "crm"))
    with pytest.raises(PolicyStopError, match="shop"):
        rig.run()
    rig.defaults = DEAD_LETTER
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [1, 2, 3]


def test_the_newest_of_several_truncates_counts() -> None:
    rig = Rig()
    rig.produce(insert(1, 10), partition=0)
    rig.produce(insert(3, 50), insert(4, 80), partition=1)
    rig.run()
    rig.produce(truncate(40), truncate(60), partition=0)
    rig.before = {"src": {"orders": {0: 0, 1: 0}}}
    rig.run(table_changes=state(1, 2, reached=80))
    assert rig.rows("orders") == [{"id": 4}]


def test_any_number_of_refused_truncates_takes_no_more_runs_of_a_batch_than_one() -> None:
    shards = [f"shard_{n}" for n in range(12)]
    rig = Rig(defaults=DEAD_LETTER, routing=RoutingConfig(merge_shards=True))
    rig.produce(*(insert(n, 10 + n, shard) for n, shard in enumerate(shards)))
    rig.run()
    rig.produce(*(truncate(40 + n, shard) for n, shard in enumerate(shards)))
    rig.run()
    assert len(rig.rows("orders")) == len(shards)
    dead_letters = rig.rows("ingestd_dead_letters", "reason")
    assert dead_letters == [{"reason": "refused-truncate"}] * len(shards)
