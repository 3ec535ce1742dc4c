"""Predicates on rows, and their evaluation.

Values have the Python form of `binary_row` (integers for dates and timestamps). A comparison with
null is unknown, and a row matches only if its predicate is true. As in Java, -0.0 is less than 0.0,
and NaN is equal to itself and greater than all numbers. Predicates are parsed in `predicate_text`
and evaluated on statistics in `predicate_stats`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import Array, column_of
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.float_order import float_ranks

Value: TypeAlias = Any
"""A value of a column, not null."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of a column with a value; `operator` is one of = != < <= > >=."""

    column: str
    operator: str
    value: Value


@dataclass(frozen=True, slots=True)
class IsIn:
    """A test whether a column equals one of several values."""

    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """A test whether a column is null; its result is never unknown."""

    column: str


@dataclass(frozen=True, slots=True)
class Like:
    """A test whether a whole text matches a pattern: % is any text, _ any single character.

    A backslash makes the next character an ordinary one.
    """

    column: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a predicate; the negation of unknown is unknown."""

    inner: "Predicate"


@dataclass(frozen=True, slots=True)
class And:
    """The conjunction (AND) of predicates on rows."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """The disjunction (OR) of predicates on rows."""

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


def columns_of(predicate: Predicate) -> frozenset[str]:
    """Return the columns that a predicate refers to."""
    if isinstance(predicate, Not):
        return columns_of(predicate.inner)
    if isinstance(predicate, And | Or):
        return frozenset(name for operand in predicate.parts for name in columns_of(operand))
    return frozenset((predicate.column,))


def conjuncts(predicate: Predicate | None) -> Iterator[Predicate]:
    """Yield the predicates whose conjunction is `predicate`; yield nothing if `predicate` is None.

    Nested conjunctions are flattened.
    """
    if isinstance(predicate, And):
        for operand in predicate.parts:
            yield from conjuncts(operand)
    elif predicate is not None:
        yield predicate


def all_of(parts: Sequence[Predicate]) -> Predicate | None:
    """Return the conjunction of predicates; None (true for every row) if there are none."""
    return parts[0] if len(parts) == 1 else And(tuple(parts)) if parts else None


def only_on(predicate: Predicate | None, columns: frozenset[str]) -> Predicate | None:
    """Return the conjunction of the conjuncts of a predicate that refer only to these columns.

    The result is true for every row for which `predicate` is true. None means that no such conjunct
    exists, so that every row is possible.
    """
    return all_of(
        [conjunct for conjunct in conjuncts(predicate) if columns_of(conjunct) <= columns]
    )


def holds(predicate: Predicate, rows: pa.Table, types: Mapping[str, DataType]) -> Array:
    """Evaluate a predicate on n rows to a boolean array (n,): true, false or null (unknown).

    `types` are the types of the columns by name.
    """
    if isinstance(predicate, Not):
        return _call("invert", holds(predicate.inner, rows, types))
    if isinstance(predicate, And | Or):
        name = "and_kleene" if isinstance(predicate, And) else "or_kleene"
        result = holds(predicate.parts[0], rows, types)
        for operand in predicate.parts[1:]:
            result = _call(name, result, holds(operand, rows, types))
        return result
    return _leaf_holds(predicate, rows.column(predicate.column), types[predicate.column])


def matching(
    predicate: Predicate | None, rows: pa.Table, types: Mapping[str, DataType]
) -> pa.Table:
    """Return the rows for which a predicate (None: no condition) is true, in their order.

    `types` are the types of the columns by name.
    """
    if predicate is None:
        return rows
    return rows.filter(cast("Any", holds(predicate, rows, types)))


def _leaf_holds(leaf: Leaf, column: Any, t: DataType) -> Array:  # noqa: ANN401  (chunked or not)
    if isinstance(leaf, IsNull):
        return _call("is_null", column)
    if isinstance(leaf, Like):
        return cast("Array", pc.match_substring_regex(column, like_regex(leaf.pattern)))
    values: Any = column_of([leaf.value] if isinstance(leaf, Comparison) else list(leaf.values), t)
    if t.root in ("FLOAT", "DOUBLE"):
        column, values = float_ranks(column), float_ranks(values)
    if isinstance(leaf, Comparison):
        return _call(_COMPARE[leaf.operator], column, values[0])
    matches = pc.is_in(column, value_set=values)
    return _call("if_else", _call("is_null", column), pa.scalar(None, pa.bool_()), matches)


def like_regex(pattern: str) -> str:
    """Return a regular expression (RE2) for a LIKE pattern, anchored at both ends of the text.

    A backslash escapes the next character.
    """
    parts = re.findall(r"\\.|[%_]|[^%_\\]+|\\", pattern, re.DOTALL)
    return f"(?s)\\A{''.join(map(_like_part, parts))}\\z"


def _like_part(pattern: str) -> str:
    if pattern == "%":
        return ".*"
    if pattern == "_":
        return "."
    text = pattern[1:] if len(pattern) > 1 and pattern[0] == "\\" else pattern
    return "".join(f"\\x{{{ord(char):x}}}" for char in text)


def like_prefix(pattern: str) -> tuple[str, bool]:
    """Return the common prefix of all texts that match a LIKE pattern.

    Also returns whether the prefix is the only text that matches.
    """
    prefix = ""
    for match_ in re.findall(r"\\.|.|\\", pattern, re.DOTALL):
        if match_ in ("%", "_"):
            return prefix, False
        prefix += match_[1:] if len(match_) > 1 else match_
    return prefix, True


def _call(name: str, *arguments: Any) -> Array:  # noqa: ANN401  (arrays and scalars)
    function: Callable[..., Array] = getattr(pc, name)
    return function(*arguments)
