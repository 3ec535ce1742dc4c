"""Held against a real shell: what it makes of a text is what this makes of it."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.config.flink_command import shell_words
from ingestd.errors import ConfigError

TEXTS = [
    "a b  c",
    "'a b' \"c d\" e\\ f",
    "--x='y z'\"w\"v",
    r"topic=order\;logistic\;user",
    r"topic-pattern=users\.db_[0-9]+\.x",
    r"'users\.db'  \"q\"",
    '"a\\"b\\\\c\\n\\$d"',
    "a \\\n  b\\\nc 'd\\\ne'",
    '"in \\\nquotes"',
    "a # b 'c",
    "a#b \\#c",
    "'' \"\" a''b",
    "x=a=b --y=",
    "it\\'s",
]


def by_shell(text: str) -> list[str]:
    """The words as sh hands them to a command."""
    script = f"printf '%s\\0' {text}"
    done = subprocess.run(["sh", "-fc", script], capture_output=True, check=True, timeout=120)
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize("text", TEXTS)
def test_words_are_those_of_a_shell(text: str) -> None:
    assert shell_words(text).words == by_shell(text)


@given(st.lists(st.text(st.characters(blacklist_characters="\0'", codec="utf-8")), max_size=5))
def test_any_text_survives_in_single_quotes(words: list[str]) -> None:
    assert shell_words(" ".join(f"'{word}'" for word in words)).words == words


@given(st.text(alphabet="ab '\"\\\n;#$&", max_size=30))
def test_no_text_is_a_surprise(text: str) -> None:
    try:
        shell_words(text)
    except ConfigError as error:
        assert "unterminated" in error.message


def test_line_breaks_are_blanks_also_after_a_comment() -> None:
    text = "a \\\n # b \\\n c\nd"
    assert shell_words(text).words == ["a", "c", "d"]


@pytest.mark.parametrize(
    ("text", "rest"), [("a b; c", "; c"), ("a b > log 2>&1 &", "> log 2>&1 &"), ("a|b", "|b")]
)
def test_a_shell_would_stop_at_its_operators(text: str, rest: str) -> None:
    found = shell_words(text)
    assert found.words == text.removesuffix(rest).split()
    assert found.rest == rest


def test_variables_become_references() -> None:
    text = "--x=$HOME/\"${A_1}b\" '$C' \\$D $1"
    assert shell_words(text).words == ["--x=${env:HOME}/${env:A_1}b", "$C", "$D", "$1"]


def test_what_examples_have_in_angles_is_text() -> None:
    assert shell_words("<FLINK_HOME>/bin/flink run").words == ["<FLINK_HOME>/bin/flink", "run"]


@pytest.mark.parametrize("text", ["a 'b", 'a "b', 'a "b\\"', "x'"])
def test_a_quote_without_its_end_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="unterminated"):
        shell_words(text)


@pytest.mark.parametrize("text", ["a $(date)", "a `date`", 'a "`date`"'])
def test_commands_inside_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="another command"):
        shell_words(text)
