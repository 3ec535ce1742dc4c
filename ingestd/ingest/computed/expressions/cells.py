"""Values of an expression over the rows of a batch, with marks of rows for which it fails.

A failing row, as one that divides by zero, is null and marked. Whoever does not need its value,
as a CASE that takes another branch, drops the mark; what is left at the end is for the error
policy.
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
    """An Arrow array, and the rows that failed; None: none did."""

    values: Values
    failed: Mask | None = None

    @property
    def marks(self) -> Mask:
        """Whether each row failed."""
        return np.zeros(len(self.values), np.bool_) if self.failed is None else self.failed


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows that an expression is run on: columns of one length, and the time in milliseconds."""

    columns: Mapping[str, Values]
    rows: int
    now_ms: int = 0


Kernel = Callable[[Sequence[ExpressionCells]], ExpressionCells]
"""Values of arguments, all of one length, to those of the result."""
PlainKernel = Callable[..., Values]
"""The same on bare Arrow arrays; may raise `BAD_VALUES` for values that it does not take."""


def either(*masks: Mask | None) -> Mask | None:
    """Rows that at least one mask marks."""
    marks = [mask for mask in masks if mask is not None]
    return np.logical_or.reduce(marks) if marks else None


def only(failed: Mask | None, rows: Mask) -> Mask | None:
    """The failed rows among some rows."""
    return None if failed is None else failed & rows


def true_rows(condition: Values) -> Mask:
    """Marks of the rows where a condition is true, neither false nor null."""
    filled: Values = pc.fill_null(condition, False)
    return np.asarray(filled)


def strict(kernel: PlainKernel, arrow_type: pa.DataType) -> Kernel:
    """The kernel of a function that fails where any of its arguments does, or where it raises."""

    def run(arguments: Sequence[ExpressionCells]) -> ExpressionCells:
        made = attempted(kernel, [one.values for one in arguments], arrow_type)
        failed = either(made.failed, *(one.failed for one in arguments))
        return ExpressionCells(made.values, failed)

    return run


def attempted(
    kernel: PlainKernel, arrays: Sequence[Values], arrow_type: pa.DataType
) -> ExpressionCells:
    """What a kernel gives, without the rows for which it raises."""
    size = len(arrays[0])
    kind: Values = arrow_type
    try:
        return ExpressionCells(kernel(*arrays))
    except BAD_VALUES:
        if size <= 1:
            return ExpressionCells(pa.nulls(size, kind), np.ones(size, np.bool_))
    # Halving finds a few bad values among many good ones in few steps.
    half = size // 2
    left = attempted(kernel, [one.slice(0, half) for one in arrays], arrow_type)
    right = attempted(kernel, [one.slice(half) for one in arrays], arrow_type)
    marks = np.concatenate([left.marks, right.marks])
    return ExpressionCells(pa.concat_arrays([left.values, right.values]), marks)
