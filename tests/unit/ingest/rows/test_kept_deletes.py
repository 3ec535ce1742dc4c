"""`on-delete: keep`: deletes become updates with the last values and the time of the delete."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ingestd.ingest.computed.computed_columns import parse_computed
from ingestd.ingest.computed.row_filter import parse_filter
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.paimon.spec.data_types import DataType
from tests.support.ingest_rig import Rig
from tests.support.json_changes import (
    DELETE,
    INSERT,
    UNAVAILABLE,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    Change,
    record,
)

pytestmark = pytest.mark.usefixtures("json_changes")


def rig_with(shape: dict[str, Any] | None = None, slots: int = 1, **settings: Any) -> Rig:
    columns = ShapeSettings(on_delete="keep", **(shape or {}))
    return Rig(settings={"orders": TableSettings(shape=columns, **settings)}, slots=slots)


def row(identity: int, kind: int = INSERT, position: int = -1, **values: Any) -> bytes:
    return record(Change({"id": identity, **values}, kind, position=position))


def gone(identity: int, position: int = -1) -> bytes:
    return row(identity, DELETE, position)


def at(offset: int) -> datetime:
    """The time of the record at an offset."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=1000 + offset)


def reasons(rig: Rig) -> set[str]:
    return {letter["reason"] for letter in rig.rows("ingestd_dead_letters")}


@pytest.mark.parametrize("slots", [1, 3])
def test_a_delete_keeps_the_values_of_the_table_until_the_key_returns(slots: int) -> None:
    rig = rig_with(slots=slots)
    rig.produce(*(row(key, n=key, doc=f"doc {key}") for key in range(5)))
    rig.run()
    rig.produce(*(gone(key) for key in range(5)))
    result = rig.run()
    assert rig.rows("orders") == [
        {"id": key, "n": key, "doc": f"doc {key}", "deleted_at": at(5 + key)} for key in range(5)
    ]
    assert result.counts.rows["lake.orders", UPDATE_AFTER] == 5
    assert result.counts.unknown["lake.orders"] == 0
    rig.produce(row(1, n=10, doc=None), row(2, UPDATE_AFTER, n=20, doc=UNAVAILABLE))
    rig.run()
    found = {row["id"]: (row["n"], row["doc"], row["deleted_at"]) for row in rig.rows("orders")}
    assert found[1] == (10, None, None)
    assert found[2] == (20, "doc 2", None)
    assert found[3][2] == at(8)


def test_values_come_from_earlier_rows_of_the_batch() -> None:
    rig = rig_with()
    rig.produce(row(1, n=1, doc="old"))
    rig.run()
    rig.produce(row(1, UPDATE_AFTER, n=2, doc=UNAVAILABLE), gone(1), gone(1))
    rig.produce(row(2, n=3, doc="a"), gone(2), row(2, n=4, doc="b"), row(3, n=5), gone(3))
    rig.run()
    assert [tuple(row.values()) for row in rig.rows("orders")] == [
        (1, 2, "old", at(3)),
        (2, 4, "b", None),
        (3, 5, None, at(8)),
    ]


def test_a_delete_of_a_key_that_the_table_does_not_have_changes_nothing() -> None:
    rig = rig_with()
    rig.produce(row(1, n=1), gone(2), gone(2))
    result = rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [1]
    assert result.counts.rows["lake.orders", DELETE] == 2
    assert result.counts.unknown["lake.orders"] == 0
    rig.produce(gone(3), row(3, UPDATE_AFTER, n=UNAVAILABLE))
    result = rig.run()
    assert rig.rows("orders")[1] == {"id": 3, "n": None, "deleted_at": None}
    assert result.counts.unknown["lake.orders"] == 1


def test_records_that_are_read_again_change_nothing() -> None:
    rig = rig_with()
    rig.produce(row(1, n=1))
    rig.run()
    rig.produce(gone(1))
    rig.run()
    kept = rig.rows("orders")
    covered = {"lake.orders": {"covered": {"src": {"orders": {0: 2}}}}}
    rig.committed.clear()
    result = rig.run(table_changes=covered)
    assert result.counts.skipped["lake.orders", "covered"] == 2
    assert rig.rows("orders") == kept


def test_an_existing_table_gets_the_column() -> None:
    rig = Rig()
    rig.produce(row(1, n=1), row(2, n=2))
    rig.run()
    rig.settings = rig_with({"deleted_at": "gone"}).settings
    rig.produce(gone(1))
    rig.run()
    assert [row["gone"] for row in rig.rows("orders")] == [at(2), None]
    assert rig.tables["lake.orders"].schema.field("gone").type == DataType(
        "TIMESTAMP_LTZ", precision=3
    )


@pytest.mark.parametrize("on_refused", ["dead-letter", "ignore"])
def test_no_row_is_deleted_if_the_column_may_not_be_added(on_refused: Any) -> None:
    rig = Rig()
    rig.produce(row(1, n=1), row(2, n=2))
    rig.run()
    policy = EvolutionPolicy(mode="none", on_refused=on_refused)
    rig.settings = rig_with(evolution=policy).settings
    rig.produce(gone(1), row(2, UPDATE_AFTER, n=3))
    rig.run()
    assert [row["n"] for row in rig.rows("orders")] == [1, 3]
    assert reasons(rig) == {"refused-change"}


def test_a_key_that_an_update_replaces_is_kept_with_the_time() -> None:
    rig = rig_with()
    rig.produce(row(1, n=1))
    rig.run()
    rig.produce(record(Change({"id": 1}, DELETE), Change({"id": 2, "n": 1}, UPDATE_AFTER)))
    rig.run()
    assert [(row["id"], row["n"], row["deleted_at"]) for row in rig.rows("orders")] == [
        (1, 1, at(1)),
        (2, 1, None),
    ]


def test_computed_columns_keep_their_values_and_metadata_is_that_of_the_delete() -> None:
    shape = {
        "computed": (parse_computed("label", "= coalesce(state, 'none')"),),
        "metadata": ("offset",),
        "exclude": ("state",),
    }
    rig = rig_with(shape)
    rig.produce(row(1, state="paid"))
    rig.run()
    rig.produce(gone(1))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "offset": 1, "deleted_at": at(1), "label": "paid"}]


def test_a_row_that_leaves_the_filter_is_deleted_and_a_deleted_row_is_kept() -> None:
    rig = rig_with({"where": parse_filter("state <> 'draft'")})
    rig.produce(row(1, state="paid"), row(2, state="paid"), row(3, state="draft"))
    rig.run()
    rig.produce(row(1, UPDATE_AFTER, state="draft"), gone(1), gone(2), gone(3))
    rig.run()
    assert rig.rows("orders") == [{"id": 2, "state": "paid", "deleted_at": at(5)}]
    rig.produce(row(2, UPDATE_AFTER, state="draft"))
    rig.run()
    assert rig.rows("orders") == []


def test_a_row_whose_partition_is_not_in_its_key_stays_in_it() -> None:
    rig = rig_with(partition_keys=("day",), options={"bucket": "-1"})
    rig.produce(row(1, day="mon", n=1), row(2, day="mon", n=2))
    rig.run()
    rig.produce(row(2, UPDATE_AFTER, day="tue", n=3), gone(1), gone(2), gone(3))
    rig.run()
    assert [(row["id"], row["day"], row["n"], row["deleted_at"]) for row in rig.rows("orders")] == [
        (1, "mon", 1, at(3)),
        (2, "tue", 3, at(4)),
    ]


POSITIONS = {"metadata": ("source_position",)}


def test_deletes_are_in_the_order_of_source_positions() -> None:
    """A late insert does not undo a delete, whether the table has the row or not."""
    rig = rig_with(POSITIONS, ordering="source-position", options={"bucket": "1"})
    rig.produce(row(1, position=1, n=1))
    rig.run()
    rig.produce(gone(1, position=9), row(1, UPDATE_AFTER, position=5, n=2))
    rig.produce(gone(2, position=8), row(2, position=4, n=3), gone(3, position=7))
    rig.run()
    rig.produce(row(3, position=3, n=4), row(1, UPDATE_AFTER, position=6, n=5))
    rig.run()
    assert [(row["id"], row["deleted_at"]) for row in rig.rows("orders")] == [
        (1, at(1)),
        (2, at(3)),
    ]


GROUP = {"fields.source_position.sequence-group": "deleted_at"}
ENGINES: list[tuple[dict[str, str], Any]] = [
    ({}, [(1, 1, True), (2, 5, False), (3, 3, False)]),
    ({"changelog-producer": "lookup"}, [(1, 1, True), (2, 5, False), (3, 3, False)]),
    ({"changelog-producer": "full-compaction"}, [(1, 1, True), (2, 5, False), (3, 3, False)]),
    ({"ignore-delete": "true"}, [(1, 1, True), (2, 5, False), (3, 3, False)]),
    ({"merge-engine": "partial-update", **GROUP}, [(1, 1, True), (2, 5, False), (3, 3, False)]),
    (
        {
            "merge-engine": "aggregation",
            "fields.n.aggregate-function": "sum",
            "fields.deleted_at.aggregate-function": "last_value",
        },
        [(1, 1, True), (2, 7, False), (3, 3, False)],
    ),
    ({"merge-engine": "first-row"}, "'first-row'"),
    ({"merge-engine": "partial-update"}, "only in a sequence group"),
    (
        {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
        "'fields.deleted_at.aggregate-function' = 'last_value'",
    ),
    ({"changelog-producer": "input"}, "'lookup'"),
    ({"rowkind.field": "state"}, "remove one of them"),
    ({"sequence.field": "n"}, "column 'n' orders rows"),
    ({"bucket": "-2"}, "a number of buckets, or '-1', when the table is created"),
]


@pytest.mark.parametrize(("options", "found"), ENGINES)
def test_merge_options_have_a_meaning_or_are_refused(options: dict[str, str], found: Any) -> None:
    rig = rig_with(POSITIONS, options={"bucket": "1", **options})
    for number in (1, 2, 3):
        rig.produce(row(number, position=number, n=number, state="+I"))
    rig.run()
    rig.produce(gone(1, position=4), gone(2, position=5), gone(9, position=6))
    rig.run()
    rig.produce(row(2, UPDATE_AFTER, position=7, n=5, state="+U"))
    rig.run()
    if isinstance(found, str):
        assert rig.rows("orders") == []
        letters = rig.rows("ingestd_dead_letters")
        assert {letter["reason"] for letter in letters} == {"soft-deletes"}
        assert found in letters[0]["message"]
    else:
        rows = rig.rows("orders")
        assert [(row["id"], row["n"], row["deleted_at"] is not None) for row in rows] == found
        assert reasons(rig) == set()


def test_a_table_without_a_key_is_refused() -> None:
    rig = rig_with(primary_keys=())
    rig.produce(row(1, n=1))
    rig.run()
    assert "is for tables with a primary key" in rig.rows("ingestd_dead_letters")[0]["message"]


def test_a_table_with_another_column_of_the_name_is_refused() -> None:
    rig = Rig()
    rig.produce(row(1, deleted_at="never"))
    rig.run()
    rig.settings = rig_with().settings
    rig.produce(gone(1))
    rig.run()
    assert (
        "'deleted_at', which is STRING; set deleted-at"
        in (rig.rows("ingestd_dead_letters")[0]["message"])
    )
    assert len(rig.rows("orders")) == 1


def test_a_truncate_removes_kept_rows() -> None:
    rig = rig_with()
    rig.produce(row(1, n=1), row(2, n=2))
    rig.run()
    rig.produce(gone(1))
    rig.run()
    rig.produce(record(Change({}, truncate=True)))
    rig.run()
    assert rig.rows("orders") == []


def test_before_images_of_moved_computed_keys_are_kept_deletes() -> None:
    shape = {"computed": (parse_computed("month", "truncate(day, 7)"),)}
    rig = rig_with(shape, primary_keys=("month", "id"), options={"bucket": "1"})
    rig.produce(row(1, day="2025-06-01"))
    rig.run()
    before, after = {"id": 1, "day": "2025-06-01"}, {"id": 1, "day": "2025-07-01"}
    rig.produce(record(Change(before, UPDATE_BEFORE), Change(after, UPDATE_AFTER)))
    rig.run()
    found = [(row["month"], row["day"], row["deleted_at"]) for row in rig.rows("orders")]
    assert found == [("2025-06", "2025-06-01", at(1)), ("2025-07", "2025-07-01", None)]
