"""A delete has the sequence of the row that it deletes; in Paimon, NULL is older than all others.

https://paimon.apache.org/docs/1.4/primary-key-table/sequence-rowkind/#sequence-field
"""

import json
from typing import Any

import pytest

from ingestd.ingest.computed.computed_columns import parse_computed
from ingestd.ingest.computed.row_filter import parse_filter
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.settings.shape_settings import ShapeSettings
from tests.support.ingest_rig import Rig
from tests.support.json_changes import DELETE, UPDATE_AFTER, Change, record

changes = pytest.mark.usefixtures("json_changes")


def sequenced(*fields: str, **options: str) -> Rig:
    """A rig whose table takes the row with the largest sequence."""
    own = {"bucket": "1", "sequence.field": ",".join(fields), **options}
    return Rig(defaults=TableSettings(primary_keys=("id",), options=own))


def row(key: int, n: int | None, m: int = 0) -> bytes:
    return record(Change({"id": key, "n": n, "m": m}, UPDATE_AFTER))


def gone(key: int, **values: int) -> bytes:
    return record(Change({"id": key, **values}, DELETE))


@changes
@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.parametrize("split", [True, False])
def test_a_delete_with_the_key_alone_deletes_its_row(split: bool, order: str) -> None:
    rig = sequenced("n", **{"sequence.field.sort-order": order})
    rig.produce(row(1, 5), row(2, 5), row(3, None))
    if split:
        rig.run()
    rig.produce(gone(1), gone(3))
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [2]


@changes
def test_a_delete_is_newer_than_the_newest_row_before_it_by_all_fields() -> None:
    rig = sequenced("n", "m")
    rig.produce(row(1, 5, 1), row(1, 5, 9), row(2, 1), row(1, 4, 2))
    rig.run()
    rig.produce(row(1, 5, 3), gone(1), gone(7))
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [2]
    rig.produce(row(1, 5, 8))
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [2]
    rig.produce(row(1, 5, 9))
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [1, 2]


@changes
def test_a_row_after_the_delete_stays() -> None:
    rig = sequenced("n")
    rig.produce(row(1, 5), gone(1), row(1, 6), row(2, 3), gone(2), row(2, 2))
    rig.run()
    assert rig.rows("orders") == [{"id": 1, "n": 6, "m": 0}]


@changes
@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"computed": (parse_computed("at", "= n + 1"),)},
        {"aliases": {"at": "n"}},
    ],
)
def test_the_sequence_of_a_row_before_the_delete_is_not_trusted(columns: dict[str, Any]) -> None:
    """The connector for PostgreSQL makes up values of NOT NULL columns that it does not know."""
    aliases = EvolutionPolicy(aliases=columns.get("aliases", {}))
    shape = ShapeSettings(computed=columns.get("computed", ()))
    options = {"bucket": "1", "sequence.field": "at" if columns else "n"}
    settings = TableSettings(primary_keys=("id",), options=options, shape=shape, evolution=aliases)
    rig = Rig(settings={"orders": settings})
    rig.produce(row(1, 5), row(2, 5))
    rig.run()
    rig.produce(gone(1, n=4))
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [2]


@changes
def test_a_row_that_does_not_pass_a_condition_is_deleted_in_its_own_order() -> None:
    shape = ShapeSettings(where=parse_filter("m < 5"))
    options = {"bucket": "1", "sequence.field": "n"}
    settings = TableSettings(primary_keys=("id",), options=options, shape=shape)
    rig = Rig(settings={"orders": settings})
    rig.produce(row(1, 5), row(2, 5))
    rig.run()
    rig.produce(row(1, 4, 9), row(2, 6, 9))
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [1]


@changes
def test_rows_in_several_runs_of_a_task_are_before_the_delete() -> None:
    rig = sequenced("n")
    rig.overrides = {"write_buffer_size": 1}
    rig.produce(*(row(1, n) for n in range(9)), gone(1))
    rig.run()
    assert rig.rows("orders") == []


def message(op: str, before: Any, after: Any) -> bytes:
    source = {"connector": "mysql", "db": "db", "table": "orders", "file": "b.1", "pos": 4}
    return json.dumps({"op": op, "before": before, "after": after, "source": source}).encode()


def fed(
    options: dict[str, str], *messages: bytes, key: bytes | None = None
) -> list[dict[str, Any]]:
    """The rows of a table after each message, with this key, was a batch of its own."""
    settings = TableSettings(primary_keys=("id",), options={"bucket": "1", **options})
    rig = Rig(defaults=settings, data_format="debezium-json", key=key)
    for one in messages:
        rig.produce(one)
        rig.run()
    return rig.rows("orders")


def test_debezium_deletes_a_row_of_a_table_with_a_sequence_field() -> None:
    messages = message("c", None, {"id": 1, "v": 5}), message("d", {"id": 1, "v": 0}, None)
    for key in (None, b'{"id":1}'):
        assert fed({"sequence.field": "v"}, *messages, key=key) == []


def test_an_update_of_the_key_deletes_the_row_of_the_old_key_by_sequence() -> None:
    old, new = {"id": 1, "v": 5}, {"id": 2, "v": 6}
    assert fed({"sequence.field": "v"}, message("c", None, old), message("u", old, new)) == [new]


def test_a_deleted_row_is_taken_out_of_a_sum() -> None:
    options = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
    rows = [{"id": 1, "v": v} for v in (5, 7)]
    messages = [message("c", None, row) for row in rows]
    assert fed(options, *messages, message("d", rows[0], None)) == [{"id": 1, "v": 7}]


def test_a_deleted_row_takes_the_values_of_its_sequence_group_back() -> None:
    options = {"merge-engine": "partial-update", "fields.n.sequence-group": "v"}
    row = {"id": 1, "n": 3, "v": 5}
    assert fed(options, message("c", None, row), message("d", row, None)) == [
        {"id": 1, "n": 3, "v": None}
    ]
    late = message("d", {**row, "n": 2}, None)
    assert fed(options, message("c", None, row), late) == [row]
