"""Texts of computed columns are read with their quotes."""

import pytest

from ingestd.errors import ConfigError
from ingestd.ingest.computed.functions import called_function, parse_call


@pytest.mark.parametrize(
    ("text", "function", "arguments"),
    [
        ("now()", "now", ()),
        (" YEAR( ts ) ", "year", ("ts",)),
        ("date_format(ts,yyyy=MM)", "date_format", ("ts", "yyyy=MM")),
        ("date_format(ts, 'yyyy, MM')", "date_format", ("ts", "yyyy, MM")),
        ("date_format(\"a,b\" , 'it''s')", "date_format", ("a,b", "it's")),
        ('upper("say ""hi""")', "upper", ('say "hi"',)),
        ("cast('', STRING)", "cast", ("", "STRING")),
        ("cast(1, DECIMAL(5))", "cast", ("1", "DECIMAL(5)")),
        ("cast('(', STRING)", "cast", ("(", "STRING")),
    ],
)
def test_calls(text: str, function: str, arguments: tuple[str, ...]) -> None:
    call = parse_call(text)
    assert (call.function, call.arguments) == (function, arguments)
    assert str(call) == text.strip()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ts", "is not a function"),
        ("f(a", "is not a function"),
        ("f(a,)", "argument 2 is empty"),
        ("f(,a)", "argument 1 is empty"),
        ("f('a'b)", "does not begin an argument; put texts"),
        ("f('a)", "does not begin an argument; put texts"),
    ],
)
def test_what_is_no_call_is_said(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_call(text)


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("Upper(a)", "upper"),
        ("date_format(at, 'a)b')", "date_format"),
        ("date_format(at, yyyy(MM))", "date_format"),
        ("cast(2024-01-01, DATE)", "cast"),
        ("cast('x as int', STRING)", "cast"),
        ("now()", "now"),
        ("upper(a) || lower(b)", None),
        ("upper(concat(a, b))", None),
        ("cast(a as int)", None),
        ("CAST(a AS INT)", None),
        ("a + 1", None),
        ("(upper(a))", None),
    ],
)
def test_plain_calls_are_distinguished_from_other_expressions(
    text: str, function: str | None
) -> None:
    assert called_function(text) == function
