"""Functions of texts."""

from typing import Any

import pytest

from ingestd.errors import ConfigError
from tests.support.sql_values import FAILED, Columns, values

COLUMNS: Columns = {
    "s": ("STRING", ["Größe", " a ", None]),
    "n": ("INT", [1, None, 3]),
    "p": ("STRING", ["a-b-c", "", None]),
    "x": ("BYTES", [b"\xff\x00", b"", None]),
}


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("concat(lower(s), '-', n)", ["größe-1", None, None]),
        ("s || '!'", ["Größe!", " a !", None]),
        ("concat_ws('-', s, n)", ["Größe-1", " a ", "3"]),
        ("upper(s)", ["GRÖẞE", " A ", None]),
        ("trim(s)", ["Größe", "a", None]),
        ("ltrim(s) || '|'", ["Größe|", "a |", None]),
        ("length(s)", [5, 3, None]),
        ("length(x)", [2, 0, None]),
        ("substring(s, 1, 3)", ["Grö", " a ", None]),
        ("substring(s, 0, 2)", ["Gr", " a", None]),
        ("substring(s, -2)", ["ße", "a ", None]),
        ("substring(s, -4, 2)", ["rö", " ", None]),
        ("left(s, 2)", ["Gr", " a", None]),
        ("right(s, 2)", ["ße", "a ", None]),
        ("right(s, 0)", ["", "", None]),
        ("lpad(n, 3, '0')", ["001", None, "003"]),
        ("rpad(s, 3)", ["Grö", " a ", None]),
        ("replace(s, 'ö', 'oe')", ["Groeße", " a ", None]),
        ("regexp_replace(s, '[a-z]', '*')", ["G*öß*", " * ", None]),
        ("mask(s)", ["Xxxxx", " x ", None]),
        ("mask('Öl A1-' || p)", ["Xx Xn-x-x-x", "Xx Xn-", None]),
        ("mask('aB1-', 'a', 'B', 'X', '0') || p", ["BaX0a-b-c", "BaX0", None]),
        ("mask('aB1-', NULL, '*', NULL, '.') || p", ["*B1.a-b-c", "*B1.", None]),
        ("reverse(p)", ["c-b-a", "", None]),
        ("starts_with(s, 'Gr')", [True, False, None]),
        ("contains(s, 'a')", [False, True, None]),
        ("split_part(p, '-', 2)", ["b", "", None]),
        ("split_part(p, '-', 4)", ["", "", None]),
    ],
)
def test_values(sql: str, wanted: list[Any]) -> None:
    assert values(sql, COLUMNS) == wanted


@pytest.mark.parametrize(
    ("sql", "growing", "short"),
    [
        (f"replace(s, 'a', '{'x' * 3000}')", "a" * 800_000, "x" * 3000),
        (f"regexp_replace(s, 'a', '{'x' * 3000}')", "a" * 800_000, "x" * 3000),
        ("regexp_replace(s, '(a+)', '" + r"\1" * 20 + "')", "a" * 1000, "a" * 20),
    ],
)
def test_replacements_that_would_fill_the_memory_fail_for_their_row(
    sql: str, growing: str, short: str
) -> None:
    """Beyond 2 GiB the library makes an array that is broken."""
    rare = "b" * 300_000 + "c"
    found = values(sql, {"s": ("STRING", [growing, "a", None, rare])})
    assert found == [FAILED, short, None, rare]


@pytest.mark.parametrize(("sql", "message"), [
    ("mask(s, 'ab')", "a replacement of mask is one character, or NULL"),
    ("mask(s, '')", "a replacement of mask is one character, or NULL"),
    ("mask(s, s)", "must be a constant text"),
    ("mask(1)", "mask does not take INT"),
])  # fmt: skip
def test_other_replacements_of_mask_are_refused(sql: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        values(sql, COLUMNS)


@pytest.mark.parametrize("pattern", [r"\C", r"^(\C)", r"a\\\C"])
def test_no_pattern_cuts_a_character(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"does not take \\C"):
        values(f"regexp_replace(s, '{pattern}', '')", COLUMNS)


def test_an_escaped_backslash_before_a_capital_c_is_a_backslash() -> None:
    assert values(r"regexp_replace('a\C', '\\C', '-')", {}) == ["a-"]
