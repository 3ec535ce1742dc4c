"""Tables of other merge engines, fed by a pipeline."""

from typing import Any

import pytest

from ingestd.errors import SchemaConflictError
from ingestd.ingest.settings.context import TableSettings
from ingestd.paimon.spec.schema_apply import check_option_change
from tests.support.ingest_rig import Rig
from tests.support.json_changes import DELETE, UNAVAILABLE, UPDATE_AFTER, Change, record

pytestmark = pytest.mark.usefixtures("json_changes")


def fed(options: dict[str, str], *batches: list[Change], **overrides: Any) -> Rig:
    settings = {"orders": TableSettings(options={"bucket": "1", **options})}
    rig = Rig(settings=settings, overrides=overrides)
    for batch in batches:
        rig.produce(*(record(change) for change in batch))
        rig.run()
    return rig


def change(row: dict[str, Any], kind: int = UPDATE_AFTER) -> Change:
    return Change({"id": 1, **row}, kind)


def dead_letters(rig: Rig) -> list[dict[str, Any]]:
    return [
        {name: row[name] for name in ("stage", "reason")}
        for row in rig.rows("ingestd_dead_letters")
    ]


def test_a_partial_update_fills_in_over_batches() -> None:
    options = {"merge-engine": "partial-update"}
    rig = fed(
        options,
        [change({"a": 1, "b": None}), change({"a": 2, "b": "x"})],
        [change({"a": None, "b": "y"})],
    )
    assert rig.rows("orders") == [{"id": 1, "a": 2, "b": "y"}]


def test_values_left_out_keep_what_the_table_has() -> None:
    options = {"merge-engine": "partial-update"}
    rig = fed(options, [change({"a": 1, "b": "x"})], [change({"a": 2, "b": UNAVAILABLE})])
    assert rig.rows("orders") == [{"id": 1, "a": 2, "b": "x"}]


def test_sums_grow_and_shrink() -> None:
    options = {"merge-engine": "aggregation", "fields.a.aggregate-function": "sum"}
    rig = fed(
        options, [change({"a": 5}), change({"a": 3})], [change({"a": 3}, DELETE), change({"a": 10})]
    )
    assert rig.rows("orders") == [{"id": 1, "a": 15}]


def test_rows_of_one_key_stay_together_however_small_a_run_is() -> None:
    options = {"merge-engine": "partial-update"}
    changes = [change({"a": n if n % 2 else None, "b": str(n)}) for n in range(9)]
    rig = fed(options, write_buffer_size=1)
    rig.produce(*(record(change) for change in changes))
    result = rig.run()
    assert rig.rows("orders") == [{"id": 1, "a": 7, "b": "8"}]
    assert result.counts.files["lake.orders"] == 1


def test_deletions_that_a_table_cannot_take_are_dead_letters() -> None:
    rig = fed({"merge-engine": "partial-update"}, [change({"a": 1}), change({"a": 1}, DELETE)])
    assert rig.rows("orders") == [{"id": 1, "a": 1}]
    assert dead_letters(rig) == [{"stage": "merge", "reason": "deletion"}]
    (message,) = (row["message"] for row in rig.rows("ingestd_dead_letters"))
    removing = "partial-update.remove-record-on-delete"
    assert f"set 'ignore-delete' or, when the table is created, '{removing}' to" in message
    check_option_change(rig.tables["lake.orders"].schema.options, "ignore-delete", "true")
    with pytest.raises(SchemaConflictError):
        check_option_change(rig.tables["lake.orders"].schema.options, removing, "true")
    created = {"merge-engine": "partial-update", removing: "true"}
    rig = fed(created, [change({"a": 1})], [change({"a": 1}, DELETE)])
    assert (rig.rows("orders"), dead_letters(rig)) == ([], [])


def test_ignored_deletions_are_counted_and_left_out() -> None:
    rig = fed({"ignore-delete": "true"}, [change({"a": 1})])
    rig.produce(record(change({"a": 1}, DELETE)))
    result = rig.run()
    assert rig.rows("orders") == [{"id": 1, "a": 1}]
    assert dead_letters(rig) == []
    assert sum(n for (_, reason), n in result.counts.skipped.items() if reason == "ignored") == 1


def test_row_kinds_come_from_the_column_and_others_are_dead_letters() -> None:
    options = {"rowkind.field": "op"}
    rig = fed(
        options,
        [change({"op": "+I", "id": n}) for n in range(3)],
        [change({"op": "-D", "id": 1}), change({"op": "?", "id": 2})],
    )
    assert [row["id"] for row in rig.rows("orders")] == [0, 2]
    assert dead_letters(rig) == [{"stage": "merge", "reason": "row-kind"}]


def test_the_sequence_field_decides_against_the_order_of_arrival() -> None:
    options = {"sequence.field": "at"}
    rig = fed(
        options,
        [change({"at": 5, "v": "newest"}), change({"at": 4, "v": "late"})],
        [change({"at": 3, "v": "later"})],
    )
    assert rig.rows("orders") == [{"id": 1, "at": 5, "v": "newest"}]
