"""A SQL expression as a column's settings keep it: its text, its nodes, and the columns it needs.

The parser is loaded only where there is a text to read, and functions only where there is an
expression at all; tasks get the nodes.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ingestd.ingest.computed.expressions.cells import Frame, Mask
from ingestd.ingest.computed.expressions.nodes import (
    CLOCK,
    CallNode,
    CastNode,
    Node,
    columns_of,
)
from ingestd.ingest.values.row_groups import Values
from ingestd.paimon.spec.data_types import DataType

if TYPE_CHECKING:
    from ingestd.ingest.computed.expressions.bound import Bound

_READER = "ingestd.ingest.computed.expressions.sql_text"
_BINDER = "ingestd.ingest.computed.expressions.bound"


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that has been read."""

    text: str
    node: Node

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is made from, each once."""
        return tuple(dict.fromkeys(one.name for one in columns_of(self.node)))

    @property
    def tells_time(self) -> bool:
        """Whether it gives another value each time."""
        return _tells_time(self.node)

    def type_with(self, types: Mapping[str, DataType]) -> DataType | None:
        """Its type with what is known of columns, None if that does not tell.

        ConfigError names what is wrong with it, and where.
        """
        return _check(self.node, types)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a column is computed to: an array, its type, and marks of rows that failed (null)."""

    values: Values
    type: DataType
    failed: Mask


def read_expression(text: str) -> Expression:
    """The expression in a text; ConfigError says what is wrong with it, and where."""
    node: Node = importlib.import_module(_READER).read_sql(text)
    _check(node, {})
    return Expression(text, node)


def run_expression(
    expression: Expression, types: Mapping[str, DataType], frame: Frame
) -> Outcome | None:
    """What an expression gives for the rows of a batch; None for NULL without a type.

    `types` are those of the frame's columns; a column that is not there is NULL. ConfigError for
    types that the expression does not take.
    """
    used = tuple((name, types[name]) for name in expression.columns if name in types)
    bound = _bound(_ByText(expression), used)
    if bound.type is None:
        return None
    made = bound.run(frame)
    return Outcome(made.values, bound.type, made.marks)


class _ByText:
    """An expression as part of a key: numbers are equal that are not the same constants."""

    def __init__(self, expression: Expression) -> None:
        self.node = expression.node
        self._text = expression.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByText) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


@lru_cache(maxsize=1024)
def _bound(expression: _ByText, types: tuple[tuple[str, DataType], ...]) -> "Bound":
    """The bound expression, once for each set of types that a process meets."""
    bound: Bound = importlib.import_module(_BINDER).bind(expression.node, dict(types))
    return bound


def _check(node: Node, types: Mapping[str, DataType]) -> DataType | None:
    found: DataType | None = importlib.import_module(_BINDER).check(node, types)
    return found


def _tells_time(node: Node) -> bool:
    if isinstance(node, CallNode):
        return node.function in CLOCK or any(map(_tells_time, node.arguments))
    return isinstance(node, CastNode) and _tells_time(node.argument)
