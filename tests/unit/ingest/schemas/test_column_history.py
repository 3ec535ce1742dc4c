"""What a table remembers of renamed and dropped columns, and rows by it."""

import pytest

from ingestd.errors import FormatError, SchemaConflictError
from ingestd.ingest.schemas.column_history import (
    COLUMN_HISTORY_OPTION,
    MAX_ENTRIES,
    ProvenChange,
    StatementOrigin,
    column_history_text,
    followed_types,
    not_applied,
    read_column_history,
    with_old_names,
)
from ingestd.paimon.spec.data_types import DataType

CHAIN = (ProvenChange(30, "n", "m"), ProvenChange(40, "x"), ProvenChange(50, "m", "k"))
INT, TEXT, BYTES = DataType("INT"), DataType("STRING"), DataType("BYTES")


def test_list_is_read_as_it_was_written_oldest_first() -> None:
    text = column_history_text(reversed(CHAIN))
    assert read_column_history({COLUMN_HISTORY_OPTION: text}, "t") == CHAIN
    assert read_column_history({}, "t") == ()


NOW = 1_700_000_000_000


def stated(position: int, old: str, new: str = "", seconds: int = 0) -> ProvenChange:
    return ProvenChange(position, old, new, StatementOrigin(NOW + seconds * 1000, "ddl", 0, 1))


def test_a_statement_is_applied_once_and_in_the_order_of_the_source() -> None:
    applied = (stated(30, "n", "m"), stated(50, "m", "k"))
    assert not_applied([stated(51, "x")], applied) == (stated(51, "x"),)
    assert not_applied([stated(51, "x")], ()) == (stated(51, "x"),)
    assert not_applied([stated(50, "m", "k"), stated(40, "x")], applied) == ()
    assert not_applied([stated(30, "n", "m", 3_600)], applied) == (), "it was sent again"


def test_statements_of_positions_that_began_again_are_applied_and_are_the_newest() -> None:
    old, new = stated(50, "m", "k"), stated(3, "k", "j", 3_600)
    assert not_applied([new], (old,)) == (new,)
    assert sorted([new, old]) == [old, new]
    assert followed_types({"m": INT}, (new, old)) == {"j": INT}


def test_only_the_newest_changes_are_kept() -> None:
    many = [ProvenChange(at, f"c{at}") for at in range(MAX_ENTRIES + 5)]
    kept = read_column_history({COLUMN_HISTORY_OPTION: column_history_text(many)}, "t")
    assert (len(kept), kept[0].position) == (MAX_ENTRIES, 5)


@pytest.mark.parametrize("text", ["", "{", "[5]", '[["a", "b", "c"]]'])
def test_damage_is_reported_with_the_table(text: str) -> None:
    with pytest.raises(FormatError, match=r"table lake\.t: option 'ingestd\.column-changes'"):
        read_column_history({COLUMN_HISTORY_OPTION: text}, "lake.t")


def test_types_have_the_names_of_today_and_those_before() -> None:
    assert followed_types({"n": INT, "x": TEXT, "id": INT}, CHAIN) == {"k": INT, "id": INT}
    assert with_old_names({"k": TEXT, "id": INT}, CHAIN) == {
        "k": TEXT, "m": TEXT, "n": TEXT, "id": INT,
    }  # fmt: skip


def test_types_of_both_names_have_to_go_together() -> None:
    assert followed_types({"n": INT, "m": DataType("BIGINT")}, CHAIN[:1]) == {
        "m": DataType("BIGINT")
    }
    with pytest.raises(SchemaConflictError, match="'n' is BYTES, and INT under its new name 'm'"):
        followed_types({"n": BYTES, "m": INT}, CHAIN[:1])
