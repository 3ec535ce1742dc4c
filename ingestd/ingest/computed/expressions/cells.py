"""Values of an expression for the rows of a batch, with marks of rows for which it failed.

A failed row, for instance one that divides by zero, is null and marked. A function that does not
need its value, such as a CASE that takes another branch, drops the mark; the error policy handles
rows that are marked at the end.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import UnsupportedError
from ingestd.ingest.values.row_groups import Values

Mask = npt.NDArray[np.bool_]
BAD_VALUES = (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnsupportedError)


@dataclass(frozen=True, slots=True)
class ExpressionCells:
    """An Arrow array and a mask of failed rows, None if no row failed."""

    values: Values
    failed: Mask | None = None

    @property
    def marks(self) -> Mask:
        """Return the failed rows as a mask."""
        return np.zeros(len(self.values), np.bool_) if self.failed is None else self.failed


@dataclass(frozen=True, slots=True)
class Frame:
    """Input rows of an expression: columns of equal length, and the time in milliseconds."""

    columns: Mapping[str, Values]
    rows: int
    now_ms: int = 0


Kernel = Callable[[Sequence[ExpressionCells]], ExpressionCells]
"""A function from arguments of equal length to the result."""
PlainKernel = Callable[..., Values]
"""The same on Arrow arrays; may raise `BAD_VALUES` for invalid values."""


def either(*masks: Mask | None) -> Mask | None:
    """Return the union of masks."""
    marks = [mask for mask in masks if mask is not None]
    return np.logical_or.reduce(marks) if marks else None


def only(failed: Mask | None, rows: Mask) -> Mask | None:
    """Return the failed rows that are also in `rows`."""
    return None if failed is None else failed & rows


def true_rows(condition: Values) -> Mask:
    """Return the rows for which a condition is true, neither false nor null."""
    filled: Values = pc.fill_null(condition, False)
    return np.asarray(filled)


def strict(kernel: PlainKernel, arrow_type: pa.DataType) -> Kernel:
    """Wrap a function that fails where any of its arguments failed, or where it raises."""

    def run(arguments: Sequence[ExpressionCells]) -> ExpressionCells:
        made = attempted(kernel, [argument.values for argument in arguments], arrow_type)
        failed = either(made.failed, *(argument.failed for argument in arguments))
        return ExpressionCells(made.values, failed)

    return run


def attempted(
    kernel: PlainKernel, arrays: Sequence[Values], arrow_type: pa.DataType
) -> ExpressionCells:
    """Run a kernel, and mark the rows for which it raises."""
    size = len(arrays[0])
    kind: Values = arrow_type
    try:
        return ExpressionCells(kernel(*arrays))
    except BAD_VALUES:
        if size <= 1:
            return ExpressionCells(pa.nulls(size, kind), np.ones(size, np.bool_))
    # Bisection finds a few bad values among many good ones in few steps.
    half = size // 2
    left = attempted(kernel, [array.slice(0, half) for array in arrays], arrow_type)
    right = attempted(kernel, [array.slice(half) for array in arrays], arrow_type)
    marks = np.concatenate([left.marks, right.marks])
    return ExpressionCells(pa.concat_arrays([left.values, right.values]), marks)
