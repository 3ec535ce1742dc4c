"""Conditions of which an index says whether a row may meet them."""

from collections.abc import Sequence
from typing import Any

from ingestd.paimon.spec.file_index_cells import sort_key

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


def holds_of_some(cells: Sequence[Any], operator: str, value: Any) -> bool:
    """Whether a value that is not null meets a condition, in the order of Java."""
    wanted = sort_key(value)
    return any(_holds(sort_key(cell), operator, wanted) for cell in cells if cell is not None)


def _holds(cell: Any, operator: str, wanted: Any) -> bool:
    below, equal = cell < wanted, cell == wanted
    answers = {"=": equal, "!=": not equal, "<": below, ">": not below and not equal}
    answers |= {"<=": below or equal, ">=": not below}
    return bool(answers[operator])
