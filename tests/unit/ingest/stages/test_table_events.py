"""Statements of the source that rename and drop columns, followed once and in order with rows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ingestd.cdc.base import SchemaChangeEvent
from ingestd.errors import SchemaConflictError
from ingestd.ingest.schemas.column_history import COLUMN_HISTORY_OPTION
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from tests.support.ingest_rig import DEAD_LETTERS, Rig
from tests.support.json_changes import UPDATE_AFTER, Change, JsonChanges, record, statement

pytestmark = pytest.mark.usefixtures("json_changes")

FOLLOW = EvolutionPolicy(on_rename="rename", on_drop="drop")


def rig_with(policy: EvolutionPolicy = FOLLOW) -> Rig:
    return Rig(settings={"orders": TableSettings(evolution=policy)})


def row(identity: int, position: int, **values: Any) -> bytes:
    return record(Change({"id": identity, **values}, UPDATE_AFTER, position=position))


def columns(rig: Rig) -> Mapping[str, int]:
    return {field.name: field.id for field in rig.tables["lake.orders"].schema.fields}


def dead_letters(rig: Rig) -> list[tuple[Any, ...]]:
    found = rig.rows(DEAD_LETTERS.partition(".")[2])
    return [(one["offset"], one["stage"], one["reason"]) for one in found]


def test_renamed_column_keeps_its_values_and_its_id() -> None:
    rig = rig_with()
    rig.produce(row(1, 10, n="a"))
    rig.run()
    rig.produce(row(2, 20, n="b"), row(3, 40, m="c"))
    rig.produce(statement(30, n="m"), topic="ddl")
    rig.run()
    assert columns(rig) == {"id": 0, "m": 1}
    assert [row["m"] for row in rig.rows("orders")] == ["a", "b", "c"]
    assert rig.tables["lake.orders"].schema.id == 1


def test_rows_that_come_late_have_the_old_name_and_later_ones_mean_another_column() -> None:
    rig = rig_with()
    rig.produce(row(1, 10, n="a"))
    rig.run()
    rig.produce(statement(30, n="m"), topic="ddl")
    rig.run()
    rig.produce(row(2, 20, n="late"), partition=1)
    rig.run()
    assert list(columns(rig)) == ["id", "m"]
    rig.produce(row(3, 50, m="c", n="new"))
    rig.run()
    assert columns(rig) == {"id": 0, "m": 1, "n": 2}
    assert rig.rows("orders", "id", "m", "n") == [
        {"id": 1, "m": "a", "n": None},
        {"id": 2, "m": "late", "n": None},
        {"id": 3, "m": "c", "n": "new"},
    ]


def test_dropped_column_goes_with_older_rows_and_may_come_back_with_newer_ones() -> None:
    rig = rig_with()
    rig.produce(row(1, 10, n="a", x="gone"))
    rig.run()
    rig.produce(statement(30, x=None), topic="ddl")
    rig.produce(row(2, 20, n="b", x="gone too"), row(3, 40, n="c"))
    rig.run()
    assert list(columns(rig)) == ["id", "n"]
    rig.produce(row(4, 50, n="d", x="again"))
    rig.run()
    assert columns(rig) == {"id": 0, "n": 1, "x": 3}
    assert [row["x"] for row in rig.rows("orders", "id", "x")] == [None, None, None, "again"]


def test_a_statement_that_is_read_again_does_nothing() -> None:
    rig = rig_with()
    rig.produce(row(1, 10, n="a"))
    rig.run()
    rig.produce(statement(30, n=None), topic="ddl")
    rig.run()
    rig.produce(row(2, 50, n="back"))
    rig.run()
    version = rig.tables["lake.orders"].schema.id
    rig.produce(statement(30, n=None), topic="ddl")
    rig.run()
    assert rig.tables["lake.orders"].schema.id == version
    assert list(columns(rig)) == ["id", "n"]


def test_several_statements_of_a_batch_are_one_version_in_their_order() -> None:
    rig = rig_with()
    rig.produce(row(1, 10, n="a", x="x"))
    rig.run()
    rig.produce(statement(50, m="k"), statement(30, n="m"), statement(40, x=None), topic="ddl")
    rig.produce(row(2, 20, n="b"), row(3, 35, m="c"), row(4, 60, k="d"))
    rig.run()
    assert columns(rig) == {"id": 0, "k": 1}
    assert rig.tables["lake.orders"].schema.id == 1
    assert [row["k"] for row in rig.rows("orders", "id", "k")] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(("away", "left"), [(None, []), ("c", ["c"])])
def test_a_name_that_one_statement_frees_is_taken_by_the_next(
    away: str | None, left: list[str]
) -> None:
    rig = rig_with()
    rig.produce(row(1, 10, a="a", b="x"))
    rig.run()
    rig.produce(statement(30, a=away), statement(40, b="a"), topic="ddl")
    rig.produce(row(2, 20, a="gone", b="y"), row(3, 60, a="z"))
    rig.run()
    assert sorted(columns(rig)) == ["a", *left, "id"]
    assert [row["a"] for row in rig.rows("orders", "id", "a")] == ["x", "y", "z"]
    assert dead_letters(rig) == []


def test_table_is_created_under_the_names_of_today() -> None:
    rig = rig_with()
    rig.produce(row(1, 10, n="a", x="x"), row(2, 40, m="b"))
    rig.produce(statement(30, n="m", x=None), topic="ddl")
    rig.run()
    assert list(columns(rig)) == ["id", "m"]
    assert [row["m"] for row in rig.rows("orders")] == ["a", "b"]
    assert COLUMN_HISTORY_OPTION in rig.tables["lake.orders"].schema.options


def test_statements_about_tables_that_are_not_there_change_nothing() -> None:
    rig = rig_with()
    rig.produce(statement(30, n="m"), topic="ddl")
    rig.run()
    assert list(rig.tables) == [DEAD_LETTERS]
    assert dead_letters(rig) == []


def test_without_being_asked_a_table_keeps_both_columns() -> None:
    rig = rig_with(EvolutionPolicy())
    rig.produce(row(1, 10, n="a"))
    rig.run()
    rig.produce(statement(30, n="m"), topic="ddl")
    rig.produce(row(2, 40, m="b"))
    rig.run()
    assert list(columns(rig)) == ["id", "n", "m"]
    assert COLUMN_HISTORY_OPTION not in rig.tables["lake.orders"].schema.options


@pytest.mark.parametrize(
    ("at", "reason"),
    [(30, "'m': that exists already"), (None, "'m': that exists already")],
)
def test_what_cannot_be_followed_stops_the_pipeline(at: int | None, reason: str) -> None:
    rig = rig_with(replace(FOLLOW, on_refused="fail"))
    rig.produce(row(1, 10, n="a"), row(2, 40, m="b"))
    rig.run()
    rig.produce(statement(at, n="m"), topic="ddl")
    with pytest.raises(SchemaConflictError, match=f"rename n to m.*{reason}.*ddl/0 at offset 0"):
        rig.run()


@pytest.mark.parametrize("on_refused", ["dead-letter", "ignore", "string", "new-column"])
def test_what_cannot_be_followed_becomes_a_letter_and_leaves_both_columns(on_refused: Any) -> None:
    rig = rig_with(EvolutionPolicy(None, on_refused, on_rename="rename"))
    rig.produce(row(1, 10, n="a"), row(2, 40, m="b"))
    rig.run()
    rig.produce(statement(30, n="m"), topic="ddl")
    rig.run()
    assert dead_letters(rig) == [(0, "schema", "refused-change")]
    assert list(columns(rig)) == ["id", "n", "m"]


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("name", ["_KEY_n", "_SEQUENCE_NUMBER", " "])
def test_a_name_that_no_column_can_have_is_refused_by_policy(name: str, is_there: bool) -> None:
    rig = rig_with(EvolutionPolicy(None, "dead-letter", on_rename="rename"))
    rig.produce(row(1, 10, n="a"))
    if is_there:
        rig.run()
    rig.produce(statement(30, n=name), topic="ddl")
    rig.run()
    assert dead_letters(rig) == [(0, "schema", "refused-change")]
    assert list(columns(rig)) == ["id", "n"]
    assert rig.rows("orders") == [{"id": 1, "n": "a"}]


def test_a_statement_without_a_position_is_ordered_by_its_record() -> None:
    rig = rig_with()
    rig.produce(row(1, -1, x="a"), row(2, -1, x="b"))
    rig.run()
    gone = statement(None, x=None)
    rig.produce(row(3, -1, x="c"), gone, row(4, -1, v="d"), row(5, -1, x="e"))
    rig.run()
    found = rig.rows("orders", "id", "x", "v")
    assert [one["x"] for one in found] == [None, None, None, None, "e"]
    assert [one["v"] for one in found] == [None, None, None, "d", None]
    rig.produce(gone, row(6, -1, x="f"))
    rig.run()
    assert [row["x"] for row in rig.rows("orders", "id", "x")] == [None] * 5 + ["f"]


def test_a_statement_without_a_position_that_is_read_again_does_nothing() -> None:
    rig = rig_with()
    rig.produce(row(1, -1, x="a"), statement(None, x=None), row(2, -1, x="b"))
    rig.run()
    ids = columns(rig)
    rig.committed.clear()
    rig.run()
    assert columns(rig) == ids


def test_key_can_be_renamed_but_not_dropped() -> None:
    rig = rig_with(replace(FOLLOW, on_refused="fail"))
    rig.produce(row(1, 10, n="a"))
    rig.run()
    rig.produce(statement(30, id="nr"), topic="ddl")
    rig.produce(record(Change({"nr": 1, "n": "b"}, UPDATE_AFTER, keys=("nr",), position=40)))
    rig.run()
    assert rig.tables["lake.orders"].schema.primary_keys == ("nr",)
    assert rig.rows("orders") == [{"nr": 1, "n": "b"}]
    rig.produce(statement(50, nr=None), topic="ddl")
    with pytest.raises(SchemaConflictError, match="'nr' cannot be dropped"):
        rig.run()


def sorted_runs(json_changes: JsonChanges, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every record with a column m also tells that m was n."""
    plain = json_changes.decode

    def decode(chunk: Any, known: Any, declared: Any) -> Any:
        found = plain(chunk, known, declared)
        for batch in found.batches:
            if "m" in batch.types:
                at = int(batch.offset[0])
                event = SchemaChangeEvent(
                    batch.source, chunk.partition, at, 0, (("n", "m"),), is_repeated=True
                )
                found.schema_changes.append(event)
        return found

    monkeypatch.setattr(json_changes, "decode", decode)


def test_what_schemas_of_messages_say_again_and_again_is_followed_once(
    json_changes: JsonChanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    sorted_runs(json_changes, monkeypatch)
    rig = rig_with()
    rig.produce(record(Change({"id": 1, "n": "a"})))
    rig.run()
    for identity in (2, 3):
        rig.produce(record(Change({"id": identity, "m": "b"})))
        rig.run()
    rig.produce(record(Change({"id": 4, "n": "late"})))
    rig.run()
    assert columns(rig) == {"id": 0, "m": 1}
    assert rig.tables["lake.orders"].schema.id == 1
    assert [row["m"] for row in rig.rows("orders")] == ["a", "b", "b", "late"]


def test_what_schemas_of_messages_say_too_late_leaves_both_columns(
    json_changes: JsonChanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = rig_with()
    rig.produce(record(Change({"id": 1, "n": "a"})), record(Change({"id": 2, "m": "b"})))
    rig.run()
    sorted_runs(json_changes, monkeypatch)
    rig.produce(record(Change({"id": 3, "m": "c"})))
    rig.run()
    assert list(columns(rig)) == ["id", "n", "m"]
    assert dead_letters(rig) == []


def test_a_column_that_cannot_have_its_new_name_is_not_to_be_altered() -> None:
    rig = rig_with(EvolutionPolicy(None, "fail", on_rename="rename"))
    rig.produce(row(1, 10, n="a"))
    rig.run()
    rig.produce(statement(30, n="_KEY_n"), topic="ddl")
    with pytest.raises(SchemaConflictError, match=r"at offset 0\); set schema.on-incompatible"):
        rig.run()
    rig.settings = {"orders": TableSettings(evolution=replace(FOLLOW, on_refused="dead-letter"))}
    rig.run()
    assert dead_letters(rig) == [(0, "schema", "refused-change")]
    assert list(columns(rig)) == ["id", "n"]
