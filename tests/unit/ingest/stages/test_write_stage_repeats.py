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
@pytest.mark.parametrize("partitions", [1, 2])
def test_equal_rows_of_one_copy_are_all_kept(slots: int, partitions: int) -> None:
    """PostgreSQL writes many rows of a COPY as one log record: all have its position."""
    rig = Rig(slots=slots)
    for partition in range(partitions):
        rig.produce(insert("a", 5), insert("a", 5), insert("b", 5), partition=partition)
    rig.run()
    assert whats(rig) == [*["a"] * 2 * partitions, *["b"] * partitions]


@pytest.mark.parametrize(("position", "snapshot"), [(-1, False), (7, True), (7, False)])
def test_equal_rows_are_all_kept_whatever_their_position(position: int, snapshot: bool) -> None:
    rig = Rig()
    rig.produce(*(insert("a", position, snapshot=snapshot) for _ in range(3)))
    rig.produce(insert("b"), insert("b"), insert("c", 5))
    rig.run()
    assert whats(rig) == ["a", "a", "a", "b", "b", "c"]


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
