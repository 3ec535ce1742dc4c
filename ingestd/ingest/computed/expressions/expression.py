"""A SQL expression of a computed column or row filter: its text, syntax tree and columns.

The parser is imported only when an expression is parsed, and the functions only when an expression
is used. Tasks receive the syntax tree, and need no parser.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ingestd.ingest.computed.expressions.cells import Frame
from ingestd.ingest.computed.expressions.nodes import (
    CLOCK,
    CallNode,
    CastNode,
    Node,
    column_nodes,
)
from ingestd.paimon.spec.arrow import Values
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.row_selection import Mask

if TYPE_CHECKING:
    from ingestd.ingest.computed.expressions.bound import Bound

_READER = "ingestd.ingest.computed.expressions.sql_text"
_BINDER = "ingestd.ingest.computed.expressions.bound"


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed SQL expression: its text, and the root node of its syntax tree."""

    text: str
    node: Node

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to which the expression refers, without duplicates."""
        return tuple(dict.fromkeys(column.name for column in column_nodes(self.node)))

    @property
    def depends_on_time(self) -> bool:
        """Whether the value of the expression depends on the current time."""
        return _depends_on_time(self.node)

    def type_with(self, types: Mapping[str, DataType]) -> DataType | None:
        """Infer the type of the expression from column types; None if they do not determine it.

        Returns None also for an untyped NULL. Raises ConfigError, with the position, if the
        expression does not accept the types.
        """
        return _infer_type(self.node, types)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of evaluating an expression for n rows.

    `values` (n,) has the type `type`; `failed` is a mask (n,) of the rows for which evaluation
    failed, which are null.
    """

    values: Values
    type: DataType
    failed: Mask


def read_expression(text: str) -> Expression:
    """Parse an expression, and check it as far as possible without column types.

    Raises ConfigError, with the position where it is known, if the expression is invalid.
    """
    node: Node = importlib.import_module(_READER).read_sql(text)
    _infer_type(node, {})
    return Expression(text, node)


def run_expression(
    expression: Expression, types: Mapping[str, DataType], frame: Frame
) -> Outcome | None:
    """Evaluate an expression for the rows of a batch; return None if it is an untyped NULL.

    `types` are the types of the columns of the frame; a missing column is NULL. Raises ConfigError
    if the expression does not accept these types.
    """
    used = tuple((name, types[name]) for name in expression.columns if name in types)
    bound = _bound(_ByText(expression), used)
    if bound.type is None:
        return None
    cells = bound.run(frame)
    return Outcome(cells.values, bound.type, cells.marks)


class _ByText:
    """An expression as a cache key, compared by its text.

    Nodes do not suffice, because constants of different types can be equal (1 and 1.0).
    """

    def __init__(self, expression: Expression) -> None:
        self.node = expression.node
        self._text = expression.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByText) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


@lru_cache(maxsize=1024)
def _bound(expression: _ByText, types: tuple[tuple[str, DataType], ...]) -> "Bound":
    """Return the expression bound to column types, cached in this process."""
    bound: Bound = importlib.import_module(_BINDER).bind(expression.node, dict(types))
    return bound


def _infer_type(node: Node, types: Mapping[str, DataType]) -> DataType | None:
    data_type: DataType | None = importlib.import_module(_BINDER).infer_type(node, types)
    return data_type


def _depends_on_time(node: Node) -> bool:
    if isinstance(node, CallNode):
        return node.function in CLOCK or any(map(_depends_on_time, node.arguments))
    return isinstance(node, CastNode) and _depends_on_time(node.argument)
