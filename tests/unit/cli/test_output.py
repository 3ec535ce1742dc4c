import json

import pytest

from ingestd.cli.output import cell_text, print_json, print_table, say, timestamp_text
from tests.support.screen import Screen


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (1234567, "1,234,567"),
        (True, "yes"),
        (False, "no"),
        (["a", "b"], "a, b"),
        ("two\nlines\x1b[2J", "two\\nlines\\x1b[2J"),
    ],
)
def test_a_cell_is_one_harmless_line(value: object, text: str) -> None:
    assert cell_text(value) == text


def test_times_are_utc() -> None:
    assert timestamp_text(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert timestamp_text(None) is None


def test_json_keeps_letters_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "Grün"})
    text = capsys.readouterr().out
    assert "Grün" in text
    assert json.loads(text) == {"name": "Grün"}


def test_a_table_cuts_nothing_off_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table([{"file_name": "x" * 200, "n": 5}], ("file_name", "n"), none="nothing")
    text = capsys.readouterr().out
    assert "x" * 200 in text
    assert "file name" in text


def test_cells_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([{"a": "[bold]x[/bold]"}], ("a",), none="nothing")
    assert "[bold]x[/bold]" in capsys.readouterr().out


def test_no_rows_are_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([], ("a",), none="nothing here")
    assert capsys.readouterr().out.strip() == "nothing here"


def test_a_narrow_terminal_cuts_off_neither_texts_nor_numbers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    row = {"table": "shop.orders_of_a_year", "records": 1234567, "path": "x" * 90}
    print_table([row], tuple(row), none="nothing")
    screen = Screen(200)
    screen.feed(capsys.readouterr().out.replace("\n", "\r\n"))
    text = screen.plain()
    assert "shop.orders_of_a_year" in text
    assert "1,234,567" in text
    assert text.count("x") == 90
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 60


def test_numbers_that_name_something_can_be_typed_in_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table([{"snapshot_id": 1234, "rows": 1234}], ("snapshot_id", "rows"), none="")
    assert capsys.readouterr().out.splitlines()[-1].split() == ["1234", "1,234"]


def test_lines_in_a_pipe_end_where_their_words_end(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([{"a": "x", "b": "y"}, {"a": "long", "b": "longer"}], ("a", "b"), none="")
    lines = capsys.readouterr().out.splitlines()
    assert lines == [line.rstrip() for line in lines]


EVIL = "a\x1b]0;owned\x07\x9b2Jb\u2028c"


def test_nothing_that_is_printed_commands_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"{EVIL}\tof two\nlines", colour=None)
    print_table([{EVIL: EVIL, "list": [EVIL]}], (EVIL, "list"), none="", titles=False)
    print_json({EVIL: EVIL})
    shown = capsys.readouterr().out
    assert {one for one in shown if not one.isprintable()} <= {"\n", "\t"}
    assert "\tof two\nlines" in shown
    document = json.loads(shown[shown.index("{\n") :])
    assert document == {EVIL: EVIL}
