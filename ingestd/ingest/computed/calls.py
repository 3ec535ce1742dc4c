"""Parse function calls of computed columns: `function(argument, ...)`.

An argument is either unquoted text up to the next comma outside parentheses, or quoted: 'a, b' is a
string (a quote in it is doubled), and "order no" is a column name. Whitespace around arguments is
ignored.
"""

import re
from dataclasses import dataclass

from ingestd.errors import ConfigError

_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", re.DOTALL)
_PLAIN = r"""[^'",()]*(?:\([^()'"]*\)[^'",()]*)*?"""
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")
_NESTED = re.compile(r"""\s*(?:\w+\s*\(|[^,]*\sas\s+\w)""", re.IGNORECASE)
_ARGUMENT = re.compile(rf"""\s*(?:'((?:[^']|'')*)'|"((?:[^"]|"")*)"|({_PLAIN}))\s*(?:,|$)""")


@dataclass(frozen=True, slots=True)
class Call:
    """A function call: its function in lower case, its arguments without quotes, and its text."""

    function: str
    arguments: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


def called_function(text: str) -> str | None:
    """Return the lower-case name of the function that a text calls, or None if it is not a call.

    `cast(a as INT)` and nested calls are not calls in this sense, but SQL expressions.
    """
    match = _CALL.fullmatch(text)
    if match is None:
        return None
    inside = _QUOTED.sub("''", match[2])
    return None if _NESTED.match(inside) or not _is_closed(inside) else match[1].lower()


def _is_closed(inside: str) -> bool:
    """Return whether each closing parenthesis matches an opening parenthesis before it."""
    depth = 0
    for sign in inside:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return False
    return True


def parse_call(text: str) -> Call:
    """Parse a function call. Raises ConfigError if the text is not a valid call."""
    match = _CALL.fullmatch(text)
    if match is None:
        raise ConfigError(f"'{text}' is not a function(column, ...)")
    return Call(match[1].lower(), _arguments(match[2], text), text.strip())


def _arguments(inside: str, text: str) -> tuple[str, ...]:
    if not inside.strip():
        return ()
    arguments: list[str] = []
    at, more = 0, True
    while more:
        match = _ARGUMENT.match(inside, at)
        if match is None:
            raise ConfigError(
                f"'{text}': '{inside[at:].strip()[:20]}' does not begin an argument; put "
                "texts with commas or quotes into single quotes, and write a quote in them twice"
            )
        quoted, name, plain = match.groups()
        if plain is not None and not plain.strip():
            raise ConfigError(
                f"'{text}': argument {len(arguments) + 1} is empty; write '' for an empty text"
            )
        arguments.append(_unquoted(quoted, name, plain))
        at, more = match.end(), match[0].endswith(",")
    return tuple(arguments)


def _unquoted(quoted: str | None, name: str | None, plain: str) -> str:
    if quoted is not None:
        return quoted.replace("''", "'")
    return plain.strip() if name is None else name.replace('""', '"')
