"""Tables without a key: every insert counts once, nothing else can be applied."""

import pytest

from ingestd.ingest.settings.context import TableSettings
from tests.support.ingest_rig import Rig
from tests.support.json_changes import DELETE, UPDATE_AFTER, UPDATE_BEFORE, Change, record

pytestmark = pytest.mark.usefixtures("json_changes")


def insert(what: str, position: int = -1, *, snapshot: bool = False) -> bytes:
    return record(Change({"what": what}, keys=(), position=position, snapshot=snapshot))


def whats(rig: Rig) -> list[str]:
    return [row["what"] for row in rig.rows("orders")]


@pytest.mark.parametrize("slots", [1, 4])
def test_repeats_meet_although_they_came_through_different_partitions(slots: int) -> None:
    rig = Rig(slots=slots)
    positions = range(100, 1100, 100)
    rig.produce(*(insert(f"p{at}", at) for at in positions), partition=0)
    rig.produce(*(insert(f"p{at}", at) for at in positions), partition=1)
    result = rig.run()
    assert whats(rig) == sorted(f"p{at}" for at in positions)
    assert result.counts.skipped["lake.orders", "repeated"] == len(positions)
    assert result.counts.rows_of("lake.orders") == len(positions)


def test_equal_rows_at_different_positions_are_both_kept() -> None:
    rig = Rig()
    rig.produce(insert("a", 1), insert("a", 2))
    rig.run()
    assert whats(rig) == ["a", "a"]


def test_different_rows_at_one_position_are_both_kept() -> None:
    rig = Rig()
    rig.produce(insert("a", 1), insert("b", 1))
    rig.run()
    assert whats(rig) == ["a", "b"]


@pytest.mark.parametrize(("position", "snapshot"), [(-1, False), (7, True)])
def test_rows_without_a_position_of_their_own_are_never_repeats(
    position: int, snapshot: bool
) -> None:
    rig = Rig()
    rig.produce(*(insert("a", position, snapshot=snapshot) for _ in range(3)))
    rig.run()
    assert whats(rig) == ["a", "a", "a"]


def test_rows_without_position_beside_rows_with_one_are_all_kept() -> None:
    rig = Rig()
    rig.produce(insert("a"), insert("a"), insert("b", 5), insert("b", 5))
    rig.run()
    assert whats(rig) == ["a", "a", "b"]


def test_same_position_in_another_topic_is_no_repeat() -> None:
    rig = Rig()
    rig.produce(insert("a", 5), topic="orders")
    rig.produce(insert("a", 5), topic="orders-2")
    rig.run()
    assert whats(rig) == ["a", "a"]


def test_updates_and_deletes_become_dead_letters_once_a_record() -> None:
    rig = Rig()
    before = Change({"what": "a"}, UPDATE_BEFORE, keys=())
    after = Change({"what": "b"}, UPDATE_AFTER, keys=())
    rig.produce(insert("a"), record(before, after), record(Change({"what": "a"}, DELETE, keys=())))
    rig.run()
    assert whats(rig) == ["a"]
    dead_letters = rig.rows("ingestd_dead_letters", "offset", "stage", "reason")
    assert dead_letters == [
        {"offset": offset, "stage": "key", "reason": "change-without-key"} for offset in (1, 2)
    ]


def test_default_bucket_count_is_for_tables_with_a_key_only() -> None:
    rig = Rig(defaults=TableSettings(options={"bucket": "4"}))
    rig.produce(insert("a"), record(Change({"id": 1}, table="keyed")))
    rig.run()
    assert rig.tables["lake.orders"].options.bucket == -1
    assert rig.tables["lake.keyed"].options.bucket == 4


def test_table_can_be_told_to_have_no_key() -> None:
    rig = Rig(settings={"orders": TableSettings(primary_keys=())})
    rig.produce(*(record(Change({"id": 1, "what": "a"})) for _ in range(2)))
    rig.run()
    assert whats(rig) == ["a", "a"]
