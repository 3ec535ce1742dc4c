"""The syntax tree of an expression: columns, constants, calls and casts.

The nodes are plain values that can be sent to tasks. Operators, CASE and IN are calls, too.
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
"""Functions that return the time of the batch, and their types."""
Constant = bool | int | float | Decimal | str | None


@dataclass(frozen=True, slots=True)
class ColumnNode:
    """A column by name; `at` is its position in the text, starting at 0."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class ConstantNode:
    """A constant. None is NULL; a Decimal was written without an exponent, a float with it."""

    value: Constant
    at: int


@dataclass(frozen=True, slots=True)
class CallNode:
    """A call of a function or operator.

    Its name is in lower case, such as `coalesce`, `+` or `is null`. The arguments of `case` are
    alternating conditions and values, then the value of ELSE.
    """

    function: str
    arguments: tuple["Node", ...]
    at: int


@dataclass(frozen=True, slots=True)
class CastNode:
    """A cast to a type. If `lenient`, it returns NULL for invalid values."""

    argument: "Node"
    type: DataType
    lenient: bool
    at: int


Node = ColumnNode | ConstantNode | CallNode | CastNode


def column_nodes(node: Node) -> Iterator[ColumnNode]:
    """Yield the column nodes of an expression, with duplicates."""
    if isinstance(node, ColumnNode):
        yield node
    elif isinstance(node, CastNode):
        yield from column_nodes(node.argument)
    elif isinstance(node, CallNode):
        for argument in node.arguments:
            yield from column_nodes(argument)


def wrong(node: Node, problem: str) -> ConfigError:
    """Return a ConfigError that states a problem of a node and its position, counted from 1."""
    return ConfigError(f"at character {node.at + 1}: {problem}")
