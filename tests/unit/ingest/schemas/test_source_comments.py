"""Comments of the source become those of the table, and do not replace those of others."""

from typing import Any

import pytest

from ingestd.errors import FormatError
from ingestd.ingest.schemas import source_comments
from ingestd.ingest.schemas.source_comments import SOURCE_COMMENTS_OPTION
from ingestd.ingest.settings.context import RoutingConfig, TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import (
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateComment,
)
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.schema_manager import publish_schema
from tests.support.ingest_rig import Rig
from tests.support.json_changes import Change, documented, record

pytestmark = pytest.mark.usefixtures("json_changes")
ORDERS = "lake.orders"


def row(identity: int, schema: str = "shop", **values: Any) -> bytes:
    return record(Change({"id": identity, **values}, schema=schema))


def schema(rig: Rig) -> TableSchema:
    return rig.tables[ORDERS].schema


def comments(rig: Rig) -> tuple[str | None, dict[str, str | None]]:
    fields = schema(rig).fields
    return schema(rig).comment, {field.name: field.description for field in fields}


def alter(rig: Rig, *changes: SchemaChange) -> None:
    """Change the table as another engine."""
    table = rig.tables[ORDERS]
    changed = apply_changes(table.schema, changes, 1)
    assert publish_schema(rig.io, table.paths, changed)
    rig.tables[ORDERS] = table.with_schema(changed)


def send(rig: Rig, *values: bytes) -> None:
    rig.produce(*values)
    rig.run()


def test_a_new_table_has_them_in_its_first_schema() -> None:
    rig = Rig()
    send(rig, documented("all orders", id="number", n="amount", other="?"), row(1, n=1))
    assert comments(rig) == ("all orders", {"id": "number", "n": "amount"})
    assert schema(rig).id == 0


def test_a_new_column_has_its_comment_in_the_schema_that_adds_it() -> None:
    rig = Rig()
    send(rig, row(1))
    send(rig, documented(None, n="amount"), row(2, n=1))
    assert comments(rig) == (None, {"id": None, "n": "amount"})
    assert schema(rig).id == 1


def test_a_changed_comment_is_one_more_schema_and_the_batch_runs_once() -> None:
    rig = Rig()
    send(rig, documented("orders", n="amount"), row(1, n=1))
    for _ in range(3):
        rig.fetched.clear()
        send(rig, documented("all orders", n="sum"), row(2, n=1))
        assert len(rig.fetched) == 2
    assert comments(rig) == ("all orders", {"id": None, "n": "sum"})
    assert schema(rig).id == 1
    assert [row["id"] for row in rig.rows("orders")] == [1, 2]


def test_a_comment_of_another_engine_stays() -> None:
    rig = Rig()
    send(rig, documented("orders", n="amount"), row(1, n=1))
    alter(rig, UpdateColumnComment("n", "by hand"), UpdateComment(None))
    for amount in ("amount", "sum", "total"):
        send(rig, documented(f"orders {amount}", id="key", n=amount), row(2, n=1))
    assert comments(rig) == (None, {"id": "key", "n": "by hand"})
    assert schema(rig).id == 2


def test_a_comment_that_another_engine_set_first_is_not_that_of_the_source() -> None:
    rig = Rig()
    send(rig, row(1, n=1))
    alter(rig, UpdateColumnComment("n", "by hand"), UpdateComment("ours"))
    for amount in ("by hand", "sum"):
        send(rig, documented(amount, id=amount, n=amount), row(2, n=1))
    assert comments(rig) == ("ours", {"id": "sum", "n": "by hand"})


def test_a_comment_is_that_of_its_column_also_under_a_new_name() -> None:
    rig = Rig()
    send(rig, documented(None, n="amount", id="key"), row(1, n=1))
    alter(rig, RenameColumn("n", "total"), UpdateColumnComment("id", "by hand"))
    send(rig, documented(None, total="sum", id="number"), row(1, total=1))
    assert comments(rig) == (None, {"id": "by hand", "total": "sum"})


def test_a_damaged_option_is_an_error_with_a_way_out() -> None:
    rig = Rig()
    send(rig, documented("orders"), row(1, n=1))
    for damaged in ("[]", "{"):
        alter(rig, SetOption(SOURCE_COMMENTS_OPTION, damaged))
        with pytest.raises(FormatError, match="remove it from the table"):
            send(rig, documented("all orders"), row(1, n=1))
    alter(rig, RemoveOption(SOURCE_COMMENTS_OPTION))
    send(rig, documented("all orders"), row(1, n=1))
    assert schema(rig).comment == "orders"


def test_sources_of_one_table_do_not_alternate() -> None:
    rig = Rig(routing=RoutingConfig(merge_shards=True))
    rows = [row(1, "shop", n=1), row(2, "mall", n=1)]
    send(rig, documented(None, schema="shop", id="a"), documented(None, schema="mall"), *rows)
    for _ in range(2):
        first = documented("first", schema="shop", n="of shop")
        send(rig, first, documented("second", schema="mall", n="of mall"), *rows)
    found = comments(rig)
    assert found[1]["n"] in ("of shop", "of mall")
    assert schema(rig).id == 1
    send(rig, documented("third", schema="mall", n="later"), *rows)
    assert comments(rig) == found


def test_comments_that_change_with_every_message_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_comments, "MOST_COMMENTS", 3)
    rig = Rig()
    for number in range(6):
        send(rig, documented(f"orders {number}"), row(1, n=number))
    assert (schema(rig).comment, schema(rig).id) == ("orders 2", 2)


def test_renamed_columns_take_them_and_left_out_ones_do_not() -> None:
    settings = TableSettings(
        evolution=EvolutionPolicy(aliases={"amount": "n"}), shape=ShapeSettings(exclude=("secret",))
    )
    rig = Rig(settings={"orders": settings})
    send(rig, documented(None, n="sum", secret="x"), row(1, n=1, secret="y"))
    assert comments(rig) == (None, {"id": None, "amount": "sum"})


@pytest.mark.parametrize(
    ("policy", "found"),
    [(EvolutionPolicy(on_comment="ignore"), None), (EvolutionPolicy(mode="none"), "orders")],
)
def test_they_can_be_left_out(policy: EvolutionPolicy, found: str | None) -> None:
    rig = Rig(settings={"orders": TableSettings(evolution=policy)})
    send(rig, documented("orders"), row(1, n=1))
    assert schema(rig).comment == found
    send(rig, documented("all orders"), row(1, n=1))
    assert (schema(rig).comment, schema(rig).id) == (found, 0)


def test_comments_without_rows_create_no_table() -> None:
    rig = Rig()
    send(rig, documented("orders"))
    assert ORDERS not in rig.tables


def test_the_rows_of_a_batch_with_new_comments_are_written() -> None:
    rig = Rig()
    send(rig, documented("orders", n="amount"), row(1, n=1))
    send(rig, documented("all orders", n="sum"), row(2, n=1))
    assert [row["id"] for row in rig.rows("orders")] == [1, 2]
