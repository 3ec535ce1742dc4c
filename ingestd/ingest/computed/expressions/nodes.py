"""What an expression is, once its text has been read: columns, constants, calls and casts.

Plain values that travel to tasks; operators, CASE and IN are calls of functions, too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from ingestd.errors import ConfigError
from ingestd.paimon.spec.data_types import DataType

_INSTANT = DataType("TIMESTAMP_LTZ", precision=3)
CLOCK: Mapping[str, DataType] = {
    "now": _INSTANT,
    "current_timestamp": _INSTANT,
    "current_date": DataType("DATE"),
}
"""Functions that give the time of the batch, with their types."""
Constant = bool | int | float | Decimal | str | None


@dataclass(frozen=True, slots=True)
class ColumnNode:
    """A column by name; `at` is the place in the text, from 0."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class ConstantNode:
    """A value that stands in the text; None is NULL, a Decimal was written without exponent."""

    value: Constant
    at: int


@dataclass(frozen=True, slots=True)
class CallNode:
    """A function or an operator by its name in lower case, as `coalesce`, `+` or `is null`.

    CASE is `case` with condition and value in turn, and the value of ELSE at the end.
    """

    function: str
    arguments: tuple["Node", ...]
    at: int


@dataclass(frozen=True, slots=True)
class CastNode:
    """A value as another type; `lenient` makes NULL of what cannot be cast."""

    argument: "Node"
    type: DataType
    lenient: bool
    at: int


Node = ColumnNode | ConstantNode | CallNode | CastNode


def columns_of(node: Node) -> Iterator[ColumnNode]:
    """The columns that an expression is made from, as often as they occur."""
    if isinstance(node, ColumnNode):
        yield node
    elif isinstance(node, CastNode):
        yield from columns_of(node.argument)
    elif isinstance(node, CallNode):
        for one in node.arguments:
            yield from columns_of(one)


def wrong(node: Node, problem: str) -> ConfigError:
    """The error about a part of an expression, with its place for people, from 1."""
    return ConfigError(f"at character {node.at + 1}: {problem}")
