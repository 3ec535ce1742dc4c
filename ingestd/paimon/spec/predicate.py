"""Predicates on rows: what they are, and which of some rows they hold for.

Values are as BinaryRow takes them (whole numbers for dates and timestamps). A comparison with
null is neither true nor false, and a row counts only if its predicate is true. How a predicate
is read from text lives in `predicate_text`, what statistics say of it in `predicate_stats`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import Array, column_of
from ingestd.paimon.spec.data_types import DataType

Value: TypeAlias = Any
"""A value of a column, not null."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column beside a value; `operator` is one of = != < <= > >=."""

    column: str
    operator: str
    value: Value


@dataclass(frozen=True, slots=True)
class IsIn:
    """A column has one of some values."""

    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """A column is null; never unknown."""

    column: str


@dataclass(frozen=True, slots=True)
class Like:
    """A text column matches a pattern: % stands for any text, _ for any one character."""

    column: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Not:
    """The contrary; unknown stays unknown."""

    inner: "Predicate"


@dataclass(frozen=True, slots=True)
class And:
    """All of them."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of them."""

    parts: tuple["Predicate", ...]


Leaf: TypeAlias = Comparison | IsIn | IsNull | Like
Predicate: TypeAlias = Leaf | Not | And | Or

_COMPARE: Mapping[str, str] = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
OPERATORS = frozenset(_COMPARE)


def columns_of(predicate: Predicate) -> frozenset[str]:
    """Return the columns that a predicate looks at."""
    if isinstance(predicate, Not):
        return columns_of(predicate.inner)
    if isinstance(predicate, And | Or):
        return frozenset(name for part in predicate.parts for name in columns_of(part))
    return frozenset((predicate.column,))


def conjuncts(predicate: Predicate | None) -> Iterator[Predicate]:
    """Yield the predicates that must all hold for this one to hold."""
    if isinstance(predicate, And):
        for part in predicate.parts:
            yield from conjuncts(part)
    elif predicate is not None:
        yield predicate


def all_of(parts: Sequence[Predicate]) -> Predicate | None:
    """One predicate of several; None (true for every row) of none."""
    return parts[0] if len(parts) == 1 else And(tuple(parts)) if parts else None


def only_on(predicate: Predicate | None, columns: frozenset[str]) -> Predicate | None:
    """Return the part of a predicate that looks at no other columns.

    It holds wherever the whole does.
    """
    return all_of(
        [conjunct for conjunct in conjuncts(predicate) if columns_of(conjunct) <= columns]
    )


def holds(predicate: Predicate, rows: pa.Table, types: Mapping[str, DataType]) -> Array:
    """For each row true, false or null (unknown). `types` are those of the columns."""
    if isinstance(predicate, Not):
        return _call("invert", holds(predicate.inner, rows, types))
    if isinstance(predicate, And | Or):
        name = "and_kleene" if isinstance(predicate, And) else "or_kleene"
        result = holds(predicate.parts[0], rows, types)
        for part in predicate.parts[1:]:
            result = _call(name, result, holds(part, rows, types))
        return result
    return _leaf_holds(predicate, rows.column(predicate.column), types[predicate.column])


def matching(
    predicate: Predicate | None, rows: pa.Table, types: Mapping[str, DataType]
) -> pa.Table:
    """Return the rows for which a predicate (None: no condition) is true."""
    if predicate is None:
        return rows
    return rows.filter(cast("Any", holds(predicate, rows, types)))


def _leaf_holds(leaf: Leaf, column: Any, t: DataType) -> Array:  # noqa: ANN401  (chunked or not)
    if isinstance(leaf, IsNull):
        return _call("is_null", column)
    if isinstance(leaf, Comparison):
        return _call(_COMPARE[leaf.operator], column, _scalar(leaf.value, t))
    if isinstance(leaf, Like):
        return cast("Array", pc.match_substring_regex(column, like_regex(leaf.pattern)))
    found = pc.is_in(column, value_set=column_of(list(leaf.values), t))
    return _call("if_else", _call("is_null", column), pa.scalar(None, pa.bool_()), found)


def like_regex(pattern: str) -> str:
    """Return a regular expression (of RE2) for a LIKE pattern.

    A backslash takes the next literally.
    """
    parts = re.findall(r"\\.|[%_]|[^%_\\]+|\\", pattern, re.DOTALL)
    return f"(?s)\\A{''.join(map(_like_part, parts))}\\z"


def _like_part(part: str) -> str:
    if part == "%":
        return ".*"
    if part == "_":
        return "."
    text = part[1:] if len(part) > 1 and part[0] == "\\" else part
    return "".join(f"\\x{{{ord(char):x}}}" for char in text)


def like_prefix(pattern: str) -> tuple[str, bool]:
    """Return the common prefix of all matching texts, and whether it is the only match."""
    prefix = ""
    for match_ in re.findall(r"\\.|.|\\", pattern, re.DOTALL):
        if match_ in ("%", "_"):
            return prefix, False
        prefix += match_[1:] if len(match_) > 1 else match_
    return prefix, True


def _scalar(value: Value, t: DataType) -> Any:  # noqa: ANN401  (of any Arrow type)
    return column_of([value], t)[0]


def _call(name: str, *arguments: Any) -> Array:  # noqa: ANN401  (arrays and scalars)
    function: Callable[..., Array] = getattr(pc, name)
    return function(*arguments)
