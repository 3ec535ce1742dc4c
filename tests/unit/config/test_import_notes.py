from typing import Any

from ingestd.config.import_notes import ImportNotes, Note, Piece, assemble


def judge(tree: dict[str, Any]) -> str | None:
    """A configuration needs 'base' and takes no 'bad' and no 'late' without 'early'."""
    if "base" not in tree:
        return "base is missing"
    if "bad" in tree:
        return "bad is unknown"
    return "late needs early" if "late" in tree and "early" not in tree else None


def carried(*pieces: Piece) -> ImportNotes:
    return ImportNotes([Piece("--base", {("base", "x"): "1"}, needed=True), *pieces])


def test_what_loads_is_taken_whole_and_judged_once() -> None:
    calls = []

    def counting(tree: dict[str, Any]) -> str | None:
        calls.append(tree)
        return judge(tree)

    one = carried(Piece("--a", {("a",): ["1"]}), Piece("--b", {("a",): ["2"], ("c", "d"): "e"}))
    tree, notes = assemble(one, counting)
    assert tree == {"base": {"x": "1"}, "a": ["1", "2"], "c": {"d": "e"}}
    assert notes == []
    assert len(calls) == 1


def test_only_what_does_not_load_is_left_out() -> None:
    one = carried(
        Piece("--early", {("early",): "1"}),
        Piece("--bad", {("bad",): "1"}, essential=False),
        Piece("--late", {("late",): "1"}),
    )
    one.leave("--gone", "has no counterpart")
    tree, notes = assemble(one, judge)
    assert tree == {"base": {"x": "1"}, "early": "1", "late": "1"}
    assert notes == [
        Note("--gone", "has no counterpart"),
        Note("--bad", "bad is unknown", essential=False),
    ]


def test_what_needs_something_that_is_left_out_is_left_out_too() -> None:
    one = carried(
        Piece("--bad", {("bad",): "1", ("early",): "1"}), Piece("--late", {("late",): ""})
    )
    tree, notes = assemble(one, judge)
    assert tree == {"base": {"x": "1"}}
    assert [note.argument for note in notes] == ["--bad", "--late"]
    assert all(note.essential for note in notes)


def test_if_nothing_loads_that_is_an_essential_note() -> None:
    one = ImportNotes([Piece("--bad", {("bad",): "1"}, needed=True)])
    tree, notes = assemble(one, judge)
    assert tree == {"bad": "1"}
    assert notes == [Note("the configuration", "base is missing", essential=True)]


def test_values_of_pieces_are_not_shared() -> None:
    values = ["1"]
    one = carried(Piece("--a", {("a",): values}), Piece("--b", {("a",): ["2"]}))
    assemble(one, judge)
    assert values == ["1"]
