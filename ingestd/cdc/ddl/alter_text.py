"""Parse the column renames and drops of an ALTER TABLE statement of MySQL or MariaDB.

Clauses other than explicit renames and drops are ignored. A list of the resulting columns, if the
message has one, confirms the changes.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# An unterminated token extends to the end of the text: searching its end again at every later
# position would take quadratic time.
_TOKEN = re.compile(
    r"""/\*(?:.*?\*/|.*)|--[^\n]*|\#[^\n]*"""
    r"""|'(?:[^'\\]|\\.|'')*+'?|"(?:[^"\\]|\\.|"")*+"?|`(?:[^`]|``)*+`?|[\w$]+|[^\s]""",
    re.DOTALL,
)
_COMMENTS = ("/*", "--", "#")
_NOT_COLUMNS = frozenset(
    {"INDEX", "KEY", "PRIMARY", "FOREIGN", "CONSTRAINT", "CHECK", "PARTITION", "SYSTEM", "PERIOD"}
)

_NOT_ADDED = _NOT_COLUMNS | {"UNIQUE", "FULLTEXT", "SPATIAL"}


class ColumnChange(NamedTuple):
    """A renamed column, or a dropped column if `new` is None."""

    old: str
    new: str | None


def renames_and_drops(statement: str) -> list[ColumnChange]:
    """Return the column renames and drops of an ALTER TABLE statement, in order.

    The list is empty for other statements.
    """
    return [
        change
        for alteration in _alterations(statement)
        if (change := _change(alteration)) is not None
    ]


def added_columns(statement: str) -> list[str]:
    """Return the names of the columns that an ALTER TABLE statement adds.

    The list is empty for other statements.
    """
    added: list[str] = []
    for clause in _alterations(statement):
        if clause[:1] and clause[0].upper() == "ADD":
            added += _added(clause[1:])
    return added


def _added(clause: list[str]) -> Iterator[str]:
    named = bool(clause) and clause[0].upper() == "COLUMN"
    rest = clause[1:] if named else clause
    if [token.upper() for token in rest[:3]] == ["IF", "NOT", "EXISTS"]:
        rest = rest[3:]
    if rest[:1] == ["("]:
        yield from (_name(column[0]) for column in _clauses(rest[1:-1]) if column)
    elif rest and (named or rest[0].upper() not in _NOT_ADDED):
        yield _name(rest[0])


def _alterations(statement: str) -> list[list[str]]:
    """Return the clauses of an ALTER TABLE statement, each as a list of tokens.

    The list is empty for other statements.
    """
    tokens = [token for token in _TOKEN.findall(statement) if not token.startswith(_COMMENTS)]
    words = [token.upper() for token in tokens[:6]]
    if words[:1] != ["ALTER"] or "TABLE" not in words[:4]:
        return []
    start = words.index("TABLE") + 1
    if words[start : start + 2] == ["IF", "EXISTS"]:
        start += 2
    return list(_clauses(tokens[_after_name(tokens, start) :]))


def _after_name(tokens: list[str], start: int) -> int:
    """Return the index of the first token after `table` or `database.table`."""
    return start + 3 if tokens[start + 1 : start + 2] == ["."] else start + 1


def _clauses(tokens: list[str]) -> Iterator[list[str]]:
    """Split tokens at commas outside of parentheses."""
    clause: list[str] = []
    depth = 0
    for word in tokens:
        depth += (word == "(") - (word == ")")
        if word == "," and depth == 0:
            yield clause
            clause = []
        else:
            clause.append(word)
    yield clause


def _change(clause: list[str]) -> ColumnChange | None:
    verb = clause[0].upper() if clause else ""
    if verb not in ("DROP", "CHANGE", "RENAME"):
        return None
    rest = clause[1:]
    named = bool(rest) and rest[0].upper() == "COLUMN"
    rest = rest[1:] if named else rest
    if [word.upper() for word in rest[:2]] == ["IF", "EXISTS"]:
        rest = rest[2:]
    if not rest or (not named and rest[0].upper() in _NOT_COLUMNS):
        return None
    if verb == "DROP":
        return ColumnChange(_name(rest[0]), None)
    if verb == "RENAME":
        is_column = named and len(rest) == 3 and rest[1].upper() == "TO"
        return _renamed(rest[0], rest[2]) if is_column else None
    return _renamed(rest[0], rest[1]) if len(rest) > 1 else None


def _renamed(old: str, new: str) -> ColumnChange | None:
    change = ColumnChange(_name(old), _name(new))
    return None if change.old == change.new else change


def _name(token: str) -> str:
    quote = token[0]
    if quote in '`"' and token[-1] == quote:
        return token[1:-1].replace(quote * 2, quote)
    return token


Changes = tuple[tuple[str, str | None], ...]
"""Pairs of the old and the new name of a column; the new name is None for a dropped column."""


def proven_by_columns(changes: Iterable[ColumnChange], names: Iterable[str]) -> Changes:
    """Return the renames and drops that the columns of the table after the statement confirm.

    `names` are the names of these columns. A rename is confirmed if they contain the new name but
    not the old name; a drop, if they do not contain the old name. Names are compared without case;
    new names are returned in the case of the columns. If `names` is empty, no change is confirmed.
    """
    spelled = {name.lower(): name for name in names}
    if not spelled:
        return ()
    return tuple(
        (old, None if new is None else spelled[new.lower()])
        for old, new in changes
        if old.lower() not in spelled and (new is None or new.lower() in spelled)
    )


def proven_alone(statement: str) -> Changes:
    """Return the renames and drops that an ALTER TABLE statement proves by itself.

    A change is left out if a column has its old name afterwards, because the statement adds or
    renames a column to this name.
    """
    changes = renames_and_drops(statement)
    there = {name.lower() for name in added_columns(statement)}
    there |= {new.lower() for _, new in changes if new is not None}
    return tuple((old, new) for old, new in changes if old.lower() not in there)
