"""Cells that the source left out keep the older value."""

import pytest

from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.table_state import load_state
from tests.support.ingest_rig import Rig
from tests.support.json_changes import (
    DELETE,
    UNAVAILABLE,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    Change,
    record,
)

pytestmark = pytest.mark.usefixtures("json_changes")


ORDERS = "lake.orders"


def row(key: int, n: int, doc: str | None, kind: int = UPDATE_AFTER) -> bytes:
    return record(Change({"id": key, "n": n, "doc": doc}, kind))


def docs(rig: Rig) -> dict[int, str | None]:
    return {row["id"]: row["doc"] for row in rig.rows("orders")}


@pytest.mark.parametrize("slots", [1, 3])
def test_value_comes_from_the_table(slots: int) -> None:
    rig = Rig(slots=slots)
    rig.produce(*(row(i, 0, f"doc {i}") for i in range(8)))
    rig.run()
    rig.produce(*(row(i, 1, UNAVAILABLE) for i in range(8)))
    rig.run()
    assert docs(rig) == {i: f"doc {i}" for i in range(8)}
    assert {row["n"] for row in rig.rows("orders")} == {1}


VECTORS = {"deletion-vectors.enabled": "true"}


def compact(rig: Rig) -> None:
    table = rig.tables[ORDERS]
    compact_table(table, now_ms=1, full=True)
    rig.states[ORDERS] = load_state(table)


@pytest.mark.parametrize("compacted", [0, 1])
def test_value_comes_from_a_row_that_readers_of_deletion_vectors_do_not_see_yet(
    compacted: int,
) -> None:
    rig = Rig(defaults=TableSettings(options=VECTORS))
    for number, value in enumerate(["oldest", "old", UNAVAILABLE]):
        rig.produce(row(1, number, value))
        rig.run()
        if number < compacted:
            compact(rig)
    compact(rig)
    assert rig.rows("orders") == [{"id": 1, "n": 2, "doc": "old"}]


def test_a_delete_keeps_a_row_that_readers_of_deletion_vectors_do_not_see_yet() -> None:
    shape = ShapeSettings(on_delete="keep")
    rig = Rig(settings={"orders": TableSettings(options=VECTORS, shape=shape)})
    for number, kind in enumerate([UPDATE_AFTER, DELETE]):
        rig.produce(row(1, number, "old", kind))
        rig.run()
    compact(rig)
    [kept] = rig.rows("orders")
    assert kept["doc"] == "old"


def test_value_comes_from_the_newest_earlier_row_of_the_batch() -> None:
    rig = Rig()
    rig.produce(row(1, 0, "old"))
    rig.run()
    rig.produce(
        row(1, 1, "new"),
        row(2, 1, "other"),
        row(1, 2, UNAVAILABLE),
        row(1, 3, UNAVAILABLE),
        row(2, 2, None),
        row(2, 3, UNAVAILABLE),
    )
    rig.run()
    assert docs(rig) == {1: "new", 2: None}


def test_later_rows_of_the_batch_are_not_older_values() -> None:
    rig = Rig()
    rig.produce(row(1, 0, "old"))
    rig.run()
    rig.produce(row(1, 1, UNAVAILABLE), row(2, 1, "other"))
    rig.run()
    assert docs(rig) == {1: "old", 2: "other"}


def test_value_never_comes_from_another_key() -> None:
    rig = Rig()
    rig.produce(row(1, 0, "old 1"), row(2, 0, "old 2"))
    rig.run()
    rig.produce(row(1, 1, "new 1"), row(2, 1, UNAVAILABLE), row(3, 1, UNAVAILABLE))
    rig.run()
    assert docs(rig) == {1: "new 1", 2: "old 2", 3: None}


def test_deleted_row_gives_no_value() -> None:
    rig = Rig()
    rig.produce(row(1, 0, "old"), row(2, 0, "x"))
    rig.run()
    gone = record(Change({"id": 1, "n": 0, "doc": "old"}, DELETE))
    rig.produce(gone, row(1, 1, UNAVAILABLE), row(2, 1, "y"))
    rig.run()
    assert docs(rig) == {1: None, 2: "y"}


def test_row_before_an_update_does_not_hide_the_older_value() -> None:
    rig = Rig()
    rig.produce(row(1, 0, "old"), row(2, 0, "x"))
    rig.run()
    rig.produce(
        record(Change({"id": 1, "n": 0}, UPDATE_BEFORE)), row(1, 1, UNAVAILABLE), row(2, 2, "y")
    )
    rig.run()
    assert docs(rig) == {1: "old", 2: "y"}


def test_key_without_older_value_gets_null_which_is_counted() -> None:
    rig = Rig()
    rig.produce(row(1, 0, "a"))
    rig.run()
    rig.produce(row(7, 0, UNAVAILABLE), row(8, 0, "b"), row(1, 2, UNAVAILABLE))
    result = rig.run()
    assert result.counts.unknown == {"lake.orders": 1}
    assert docs(rig) == {1: "a", 7: None, 8: "b"}


def test_column_added_since_was_null() -> None:
    rig = Rig()
    rig.produce(record(Change({"id": 1, "n": 0})))
    rig.run()
    rig.produce(row(1, 1, UNAVAILABLE), row(2, 1, "b"))
    rig.run()
    assert docs(rig) == {1: None, 2: "b"}


def test_value_that_is_not_text_and_not_known_is_null() -> None:
    rig = Rig()
    rig.produce(record(Change({"id": 1, "doc": 5})), record(Change({"id": 2, "doc": UNAVAILABLE})))
    rig.run()
    assert docs(rig) == {1: 5, 2: None}


def sequenced() -> Rig:
    """A rig whose table takes the row with the largest `n`."""
    return Rig(
        defaults=TableSettings(primary_keys=("id",), options={"bucket": "1", "sequence.field": "n"})
    )


def test_earlier_row_of_the_batch_is_earlier_by_sequence() -> None:
    rig = sequenced()
    rig.produce(row(1, 2, "second"), row(1, 1, "first"), row(1, 3, UNAVAILABLE))
    rig.run()
    assert docs(rig) == {1: "second"}


def test_value_comes_from_the_table_if_its_row_is_newer_by_sequence() -> None:
    rig = sequenced()
    rig.produce(row(1, 2, "second"))
    rig.run()
    rig.produce(row(1, 1, "first"), row(1, 3, UNAVAILABLE))
    rig.run()
    assert docs(rig) == {1: "second"}


def test_value_comes_from_the_batch_if_its_row_is_newer_by_sequence() -> None:
    rig = sequenced()
    rig.produce(row(1, 1, "first"))
    rig.run()
    rig.produce(row(1, 2, "second"), row(1, 3, UNAVAILABLE))
    rig.run()
    assert docs(rig) == {1: "second"}


def test_rows_without_the_sequence_of_a_group_have_none_of_its_values() -> None:
    """They can be of another source table."""
    options = {
        "merge-engine": "partial-update",
        "ignore-delete": "true",
        "fields.n.sequence-group": "doc",
        "fields.m.sequence-group": "note",
    }
    rig = Rig(defaults=TableSettings(options=options))
    other = record(Change({"id": 1, "m": 1, "note": "of the other table"}))
    rig.produce(row(1, 1, "old"), other)
    rig.run()
    rig.produce(row(1, 2, "new"), other, row(1, 3, UNAVAILABLE), other)
    result = rig.run()
    assert docs(rig) == {1: "new"}
    rig.produce(other, row(1, 4, UNAVAILABLE))
    rig.run()
    assert docs(rig) == {1: "new"}
    assert result.counts.unknown["lake.orders"] == 0
