import io
import sys

import pytest

from ingestd.cli import prompts
from ingestd.errors import ConfigError

Capture = pytest.CaptureFixture[str]


def even(answer: str) -> None:
    if int(answer) % 2:
        raise ConfigError(f"{answer} is odd\x07")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "is_terminal", lambda: True)


@pytest.mark.usefixtures("terminal")
def test_a_question_is_asked_until_the_answer_will_do(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("3\n4\n"))
    assert prompts.ask("How many", None, "--many", even) == "4"
    told = capsys.readouterr()
    assert told.out.count("How many") == 2
    assert told.err == "3 is odd\\x07\n"


@pytest.mark.usefixtures("terminal")
def test_no_more_answers_are_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with pytest.raises(KeyboardInterrupt):
        prompts.ask("How many", None, "--many")


def test_without_a_terminal_the_default_counts_if_it_will_do(capsys: Capture) -> None:
    assert prompts.ask("How many", "2", "--many", even) == "2"
    with pytest.raises(ConfigError, match="odd"):
        prompts.ask("How many", "3", "--many", even)
    with pytest.raises(ConfigError, match="specify --many"):
        prompts.ask("How many", None, "--many", even)
    prompts.print_on_terminal("nobody hears")
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("answer", ["y\n", "YES\n"])
def test_a_yes_lets_it_go_on(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    prompts.confirm("Go on?", "--yes", given=False)


@pytest.mark.usefixtures("terminal")
def test_anything_else_is_a_no(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    with pytest.raises(ConfigError, match="nothing is done"):
        prompts.confirm("Go on?", "--yes", given=False)
    assert capsys.readouterr().out.strip() == "Go on? [y/N]:"


def test_without_a_terminal_the_option_has_to_say_yes() -> None:
    prompts.confirm("Go on?", "--yes", given=True)
    with pytest.raises(ConfigError, match="specify --yes"):
        prompts.confirm("Go on?", "--yes", given=False)
