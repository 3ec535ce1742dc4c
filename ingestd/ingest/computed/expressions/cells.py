"""The values of an expression for the rows of a batch, and the rows for which it failed.

If an expression fails for a row, for instance because of a division by zero, the value is null and
marked as failed. A function that does not use the value, such as a CASE that takes another branch,
removes the mark. Rows that are marked in the final result are handled by the error policy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.arrow import Values
from ingestd.paimon.spec.row_selection import Mask

BAD_VALUES = (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnsupportedError)


@dataclass(frozen=True, slots=True)
class ExpressionCells:
    """The values of an expression for n rows.

    `values` is an Arrow array (n,), and `failed` a mask (n,) of the rows for which evaluation
    failed; it is None if no row failed.
    """

    values: Values
    failed: Mask | None = None

    @property
    def marks(self) -> Mask:
        """The mask (n,) of failed rows; all false if no row failed."""
        return np.zeros(len(self.values), np.bool_) if self.failed is None else self.failed


@dataclass(frozen=True, slots=True)
class Frame:
    """The input of an expression: columns of `rows` values, and the time in ms since the epoch."""

    columns: Mapping[str, Values]
    rows: int
    now_ms: int = 0


Kernel = Callable[[Sequence[ExpressionCells]], ExpressionCells]
"""A function that takes arguments of equal length, and returns a result of the same length."""
PlainKernel = Callable[..., Values]
"""Like `Kernel`, on Arrow arrays; may raise one of `BAD_VALUES` if a value is invalid."""


def either(*masks: Mask | None) -> Mask | None:
    """Return the union of masks (n,); None stands for a mask that is false for all rows.

    Returns None if all masks are None.
    """
    marks = [mask for mask in masks if mask is not None]
    return np.logical_or.reduce(marks) if marks else None


def only(failed: Mask | None, rows: Mask) -> Mask | None:
    """Restrict a mask of failed rows to the mask `rows`; None, for no failures, stays None."""
    return None if failed is None else failed & rows


def true_rows(condition: Values) -> Mask:
    """Convert a boolean column to a mask (n,) of the rows for which it is true; null is false."""
    filled: Values = pc.fill_null(condition, False)
    return np.asarray(filled)


def strict(kernel: PlainKernel, arrow_type: pa.DataType) -> Kernel:
    """Wrap a kernel: a row fails if an argument has failed, or if the kernel raises for it.

    `arrow_type` is the type of the result.
    """

    def run(arguments: Sequence[ExpressionCells]) -> ExpressionCells:
        result = attempted(kernel, [argument.values for argument in arguments], arrow_type)
        failed = either(result.failed, *(argument.failed for argument in arguments))
        return ExpressionCells(result.values, failed)

    return run


def attempted(
    kernel: PlainKernel, arrays: Sequence[Values], arrow_type: pa.DataType
) -> ExpressionCells:
    """Run a kernel on arrays (n,); mark the rows for which it raises an error as failed.

    The errors of invalid values are ArrowInvalid, ArrowNotImplementedError and UnsupportedError;
    others are raised. Values of failed rows are null. `arrow_type` is the type of the result.
    """
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
