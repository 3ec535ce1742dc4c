"""The condition `where` of a table: changes to rows that do not pass it delete them."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestd.errors import SchemaConflictError, SecretLookupError
from ingestd.ingest.computed.computed_columns import parse_computed
from ingestd.ingest.computed.expressions import expression
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


def rig_with(where: str, shape: dict[str, Any] | None = None, **settings: Any) -> Rig:
    columns = ShapeSettings(where=parse_filter(where), **(shape or {}))
    return Rig(settings={"orders": TableSettings(shape=columns, **settings)})


def row(identity: int, state: str | None, kind: int = INSERT, **more: Any) -> bytes:
    return record(Change({"id": identity, "state": state, **more}, kind))


def dead_letters(rig: Rig) -> list[tuple[str, str]]:
    return [(row["stage"], row["reason"]) for row in rig.rows("ingestd_dead_letters")]


def test_only_rows_for_which_it_is_true_are_kept() -> None:
    rig = rig_with("state <> 'draft'")
    rig.produce(row(1, "paid"), row(2, "draft"), row(3, None))
    result = rig.run()
    assert rig.rows("orders") == [{"id": 1, "state": "paid"}]
    assert result.counts.skipped["lake.orders", "filtered"] == 2
    assert result.counts.rows["lake.orders", DELETE] == 2


def test_an_update_takes_its_row_out_of_the_table_and_back_into_it() -> None:
    rig = rig_with("state <> 'draft'")
    rig.produce(row(1, "paid"), row(2, "paid"))
    rig.run()
    rig.produce(row(1, "draft", UPDATE_AFTER))
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [2]
    rig.produce(row(1, "sent", UPDATE_AFTER), row(2, "draft", UPDATE_AFTER))
    rig.produce(row(2, "sent", UPDATE_AFTER), record(Change({"id": 2}, DELETE)))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "state": "sent"}]


def test_it_sees_columns_that_the_table_does_not_have_and_computed_ones() -> None:
    shape = {"computed": (parse_computed("size", "= n * 2"),), "exclude": ("secret",)}
    rig = rig_with("secret is null and size > 4", shape)
    rig.produce(row(1, "a", n=3, secret=None), row(2, "a", n=3, secret="x"))
    rig.produce(row(3, "a", n=2, secret=None))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "state": "a", "n": 3, "size": 6}]


def test_it_sees_columns_under_their_new_names() -> None:
    rig = rig_with("status = 'a'", evolution=EvolutionPolicy(aliases={"status": "state"}))
    rig.produce(row(1, "a"), row(2, "b"))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "status": "a"}]


@pytest.mark.parametrize("mode", ["latest-only", "audit", "reject"])
def test_rows_of_a_table_without_a_key_are_left_out(mode: Any) -> None:
    rig = rig_with("state <> 'draft'", primary_keys=(), keyless_table_mode=mode)
    rig.produce(
        row(1, "draft"),
        row(2, "paid"),
        record(
            Change({"id": 2, "state": "paid"}, UPDATE_BEFORE),
            Change({"id": 2, "state": "draft"}, UPDATE_AFTER),
        ),
        record(Change({"id": 1, "state": "draft"}, DELETE)),
    )
    result = rig.run()
    kept = {"audit": [("+I", 2), ("-U", 2)]}.get(mode, [(None, 2)])
    found = [(row.get("row_kind"), row["id"]) for row in rig.rows("orders")]
    assert sorted(found, key=str) == kept
    assert result.counts.rows["lake.orders", DELETE] == 0
    assert result.counts.skipped["lake.orders", "filtered"] == {"latest-only": 2}.get(mode, 3)
    assert dead_letters(rig) == []


def test_an_audit_keeps_a_delete_of_which_only_the_key_is_known() -> None:
    rig = rig_with("state <> 'draft'", primary_keys=(), keyless_table_mode="audit")
    rig.produce(row(1, "paid"), record(Change({"id": 1}, DELETE)))
    rig.run()
    assert [row["row_kind"] for row in rig.rows("orders")] == ["+I", "-D"]


MONTHLY = {
    "primary_keys": ("month", "id"),
    "partition_keys": ("month",),
    "options": {"bucket": "1"},
}


@pytest.mark.parametrize("passes", [True, False])
def test_a_row_whose_computed_partition_changes_leaves_its_old_one(passes: bool) -> None:
    shape = {"computed": (parse_computed("month", "truncate(day, 7)"),)}
    rig = rig_with("state <> 'draft'", shape, **MONTHLY)
    rig.produce(row(1, "paid", day="2025-06-01"), row(2, "paid", day="2025-06-02"))
    rig.run()
    after = {"id": 1, "state": "paid" if passes else "draft", "day": "2025-07-01"}
    before = {"id": 1, "state": "paid", "day": "2025-06-01"}
    rig.produce(record(Change(before, UPDATE_BEFORE), Change(after, UPDATE_AFTER)))
    rig.run()
    found = {row["id"]: row["month"] for row in rig.rows("orders")}
    assert found == ({1: "2025-07", 2: "2025-06"} if passes else {2: "2025-06"})


@pytest.mark.parametrize("state", ["paid", "draft"])
def test_a_row_whose_old_key_is_unknown_is_counted_whether_it_passes_or_not(state: str) -> None:
    shape = {"computed": (parse_computed("month", "truncate(day, 7)"),)}
    rig = rig_with("state <> 'draft'", shape, **MONTHLY)
    rig.produce(row(1, "paid", day="2025-06-01"))
    rig.run()
    rig.produce(row(1, state, UPDATE_AFTER, day="2025-07-01"))
    assert rig.run().counts.unknown_keys["lake.orders"] == 1


def test_a_row_whose_partition_is_not_in_its_key_is_deleted_where_it_is() -> None:
    rig = rig_with("state <> 'draft'", partition_keys=("day",), options={"bucket": "-1"})
    rig.produce(row(1, "paid", day="mon"), row(2, "paid", day="mon"))
    rig.run()
    rig.produce(row(1, "draft", UPDATE_AFTER, day="tue"))
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [2]


def test_a_condition_that_cannot_be_evaluated_is_a_dead_letter() -> None:
    rig = rig_with("10 / n > 1")
    rig.produce(row(1, "a", n=0), row(2, "a", n=1), row(3, "a", n=20))
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [2]
    assert dead_letters(rig) == [("cast", "where")]


def test_a_condition_that_fails_for_a_before_image_of_an_audit_is_a_dead_letter() -> None:
    rig = rig_with("10 / n > 1", primary_keys=(), keyless_table_mode="audit")
    before, after = (
        Change({"id": 2, "n": 0}, UPDATE_BEFORE),
        Change({"id": 2, "n": 2}, UPDATE_AFTER),
    )
    rig.produce(row(1, "a", n=1), record(Change({"id": 1, "n": 0}, DELETE)), record(before, after))
    result = rig.run()
    assert [(row["row_kind"], row["id"]) for row in rig.rows("orders")] == [("+I", 1)]
    assert dead_letters(rig) == [("cast", "where"), ("cast", "where")]
    assert result.counts.skipped["lake.orders", "filtered"] == 0


def test_a_failed_computed_column_matters_only_for_rows_that_pass() -> None:
    shape = {"computed": (parse_computed("share", "10 div n"),)}
    rig = rig_with("n <> 0", shape)
    rig.produce(row(1, "a", n=0), row(2, "a", n=5))
    rig.run()
    assert [(row["id"], row["share"]) for row in rig.rows("orders")] == [(2, 2)]
    assert dead_letters(rig) == []
    rig = rig_with("coalesce(half, 9) > 1", {"computed": (*shape["computed"], HALF)})
    rig.produce(row(1, "a", n=0), row(2, "a", n=1))
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [2]
    assert len(dead_letters(rig)) == 1


HALF = parse_computed("half", "share div 2")


def test_a_value_that_the_source_left_out_decides_nothing() -> None:
    rig = rig_with("state <> 'draft'")
    rig.produce(row(1, "paid", n=1))
    rig.run()
    rig.produce(row(1, UNAVAILABLE, UPDATE_AFTER, n=2))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "state": "paid", "n": 1}]
    assert dead_letters(rig) == [("cast", "where")]


def test_a_column_that_does_not_exist_deletes_nothing() -> None:
    rig = Rig()
    rig.produce(row(1, "paid"))
    rig.run()
    rig.settings = rig_with("stat = 'paid'").settings
    rig.produce(row(1, "sent", UPDATE_AFTER))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "state": "paid"}]
    assert dead_letters(rig) == [("schema", "impossible-columns")]
    rig.settings = rig_with("stat = 'paid'", evolution=EvolutionPolicy(on_refused="fail")).settings
    rig.produce(row(1, "sent", UPDATE_AFTER))
    with pytest.raises(SchemaConflictError, match="have no column 'stat'; correct the condition"):
        rig.run()


def test_a_declared_column_that_messages_leave_out_is_null() -> None:
    types = {"gone": DataType("STRING")}
    rig = rig_with("gone is null", {"exclude": ("gone",)}, column_types=types)
    rig.produce(row(1, "paid"))
    rig.run()
    rig.produce(row(2, "paid", gone="x"))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "state": "paid"}]


def test_a_condition_that_is_none_is_a_conflict() -> None:
    rig = rig_with("state", evolution=EvolutionPolicy(on_refused="fail"))
    rig.produce(row(1, "paid"))
    with pytest.raises(SchemaConflictError, match="it is STRING, not BOOLEAN"):
        rig.run()


ENGINES: list[tuple[dict[str, str], Any]] = [
    ({"merge-engine": "first-row"}, "'ignore-delete'"),
    ({"merge-engine": "partial-update"}, "-record-on-delete' = 'true' when the table is created"),
    (
        {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
        "'aggregation.remove-record-on-delete' = 'true' when the table is created",
    ),
    ({"changelog-producer": "input"}, "'lookup'"),
    ({"rowkind.field": "state"}, "remove one of them"),
    ({"merge-engine": "partial-update", "ignore-delete": "true"}, [(1, 4), (3, 5)]),
    (
        {
            "merge-engine": "aggregation",
            "fields.n.aggregate-function": "sum",
            "ignore-delete": "true",
        },
        [(1, 5), (3, 5)],
    ),
    (
        {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        [(1, 4), (3, 5)],
    ),
    ({"changelog-producer": "lookup"}, [(1, 4), (3, 5)]),
    ({"sequence.field": "n"}, [(1, 4), (3, 5)]),
]


@pytest.mark.parametrize(("options", "found"), ENGINES)
def test_merge_options_have_a_meaning_or_are_refused(options: dict[str, str], found: Any) -> None:
    """Row 1 passes twice, and does not in between; row 2 never does, row 3 does."""
    rig = rig_with("state <> 'draft'", options={"bucket": "1", **options})
    rig.produce(row(1, "+I", n=1), row(1, "draft", UPDATE_AFTER, n=2), row(2, "draft", n=3))
    rig.produce(row(1, "+I", UPDATE_AFTER, n=4), row(3, "+I", n=5))
    rig.run()
    if isinstance(found, str):
        assert rig.rows("orders") == []
        dead_letters = rig.rows("ingestd_dead_letters")
        assert {(dead_letter["stage"], dead_letter["reason"]) for dead_letter in dead_letters} == {
            ("schema", "row-filter")
        }
        assert found in dead_letters[0]["message"]
    else:
        assert [(row["id"], row["n"]) for row in rig.rows("orders")] == found


def test_a_delete_in_the_order_of_a_sequence_field() -> None:
    rig = rig_with("state <> 'draft'", options={"bucket": "1", "sequence.field": "n"})
    rig.produce(row(1, "paid", n=5), row(1, "draft", UPDATE_AFTER, n=4))
    rig.run()
    assert [row["n"] for row in rig.rows("orders")] == [5]
    rig.produce(row(1, "draft", UPDATE_AFTER, n=6), row(1, "paid", UPDATE_AFTER, n=3))
    rig.run()
    assert rig.rows("orders") == []


def test_a_renamed_column_of_the_condition_deletes_nothing() -> None:
    rig = rig_with("state <> 'draft'")
    rig.produce(row(1, "paid"), row(2, "paid"))
    rig.run()
    rig.produce(record(Change({"id": 1, "status": "sent"}, UPDATE_AFTER)))
    rig.produce(record(Change({"id": 2}, DELETE)))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "state": "paid"}]
    assert dead_letters(rig) == [("schema", "impossible-columns")]


REMOVING = {
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "partial-update": {"merge-engine": "partial-update"},
}


@pytest.mark.parametrize(
    ("engine", "later", "merged"), [("aggregation", 3, 3), ("partial-update", None, None)]
)
def test_values_of_a_row_that_did_not_pass_are_in_no_later_row(
    engine: str, later: int | None, merged: int | None
) -> None:
    options = {"bucket": "1", f"{engine}.remove-record-on-delete": "true", **REMOVING[engine]}
    rig = rig_with("state <> 'draft'", options=options)
    rig.produce(row(1, "draft", n=2))
    rig.run()
    rig.produce(row(1, "paid", UPDATE_AFTER, n=later), row(2, "paid", n=1))
    rig.run()
    assert [row["n"] for row in rig.rows("orders")] == [merged, 1]


def test_a_delete_that_it_writes_has_no_values_but_the_key_and_the_order() -> None:
    options = {"bucket": "1", "sequence.field": "n"}
    rig = rig_with("state <> 'draft'", options=options)
    rig.produce(row(1, "draft", n=7, secret="of another tenant"))
    rig.run()
    files = {path: data for path, data in rig.io.files.items() if path.endswith(".parquet")}
    [rows] = [
        pq.read_table(pa.BufferReader(data)) for path, data in files.items() if "orders" in path
    ]
    assert rows.select(["id", "state", "n", "secret"]).to_pylist() == [
        {"id": 1, "state": None, "n": 7, "secret": None}
    ]


def test_a_row_that_leaves_without_a_valid_order_is_a_dead_letter() -> None:
    rig = rig_with(
        "state <> 'draft'",
        options={"bucket": "1", "sequence.field": "n"},
        evolution=EvolutionPolicy(mode="add-columns"),
    )
    rig.produce(row(1, "paid", n=5))
    rig.run()
    rig.produce(row(1, "draft", UPDATE_AFTER, n="no number"))
    rig.run()
    assert len(dead_letters(rig)) == 1


@pytest.mark.parametrize(
    "where", ["state is not null", "coalesce(state, 'draft') <> 'draft'", "known <> 'draft'"]
)
def test_an_audit_keeps_before_images_that_lack_a_column(where: str) -> None:
    shape = {"computed": (parse_computed("known", "= coalesce(state, 'draft')"),)}
    rig = rig_with(where, shape, primary_keys=(), keyless_table_mode="audit")
    before = Change({"id": 1, "state": UNAVAILABLE}, UPDATE_BEFORE)
    rig.produce(row(1, "paid"), record(before, Change({"id": 1, "state": "sent"}, UPDATE_AFTER)))
    rig.produce(record(Change({"id": 1}, DELETE)))
    rig.run()
    assert sorted(row["row_kind"] for row in rig.rows("orders")) == ["+I", "+U", "-D", "-U"]


def test_a_task_that_cannot_look_up_a_key_stops_and_rejects_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEY_OF_TEST", "k")
    shape = {"computed": (parse_computed("hashed", "hmac(state, 'env:KEY_OF_TEST')"),)}
    rig = rig_with("id > 0", shape)
    rig.produce(row(1, "a"))
    rig.run()
    monkeypatch.delenv("KEY_OF_TEST")
    expression._bound.cache_clear()
    rig.produce(row(2, "a"))
    with pytest.raises(SecretLookupError, match=r"the key of hmac on .*KEY_OF_TEST"):
        rig.run()
    assert dead_letters(rig) == []
