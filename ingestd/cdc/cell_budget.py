"""Limit the cells of one message, because its size in bytes does not limit its size in memory.

An array of empty records, or of records with a thousand absent fields, takes few bytes in a message
but many in a column. Elements of arrays, entries of maps and fields of nested records are counted
before memory is allocated for them. The fields of a row itself are limited by its schema, and are
not counted.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

LEAST_CELLS = 10_000
"""The number of cells that every message may have, whatever its size."""
CELLS_PER_BYTE = 8
"""The number of additional cells for each byte of a message."""
Size = TypeVar("Size", int, npt.NDArray[np.int64])


class CellBudgetError(ValueError):
    """A message of `size` bytes exceeds its cell budget."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"more than {most_cells(size):,} cells in arrays, maps and nested records, the budget "
            f"of {size:,} bytes ({LEAST_CELLS:,} cells and {CELLS_PER_BYTE} for each byte)"
        )


class CellBudget:
    """Counts the cells that a message, or a single JSON value in it, may still have.

    A cell is an array element, a map entry or a field of a nested record. `size` is the size of the
    message or value in bytes, and `left` the number of remaining cells, by default the whole
    budget.
    """

    def __init__(self, size: int, left: int | None = None) -> None:
        self._size = size
        self.left = most_cells(size) if left is None else left

    def spend(self, cells: int) -> None:
        """Count cells before they are allocated.

        Raises CellBudgetError if the budget is exceeded.
        """
        self.left -= cells
        if self.left < 0:
            raise CellBudgetError(self._size)


def most_cells(size: Size) -> Size:
    """Return the maximum number of cells of a message of `size` bytes.

    It is a fixed number, plus some cells for each byte. If `size` is an array (n,) of sizes, the
    result is an array (n,).
    """
    return LEAST_CELLS + CELLS_PER_BYTE * size
