"""Changes as values: how they name columns and how they are shown."""

from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    Move,
    MoveType,
    UpdateColumnType,
    dotted_name,
    path_of,
)


def test_a_name_is_a_path_of_one() -> None:
    assert path_of("a.b") == ("a.b",)
    assert path_of(("a", "element", "b")) == ("a", "element", "b")
    assert dotted_name(("a", "element", "b")) == "a.element.b"


def test_changes_are_shown_as_words() -> None:
    assert str(AddColumn(("r", "x"), parse_type("INT"))) == "add r.x INT"
    assert str(UpdateColumnType("v", parse_type("BIGINT"))) == "change v to BIGINT"
    assert str(Move(MoveType.AFTER, "k")) == "after k"
    assert str(Move(MoveType.FIRST)) == "first"
