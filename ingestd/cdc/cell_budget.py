"""Limit the cells of one message: its bytes on the wire do not bound its size in memory.

An array of records without bytes, or items of a record whose thousand fields are absent, take few
bytes in a message and many in a column. The elements of arrays, the entries of maps and the fields
of nested records are counted before memory is allocated for them. The fields of a row itself are
bounded by its schema, and not counted.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

LEAST_CELLS = 10_000
"""Cells that every message may have."""
CELLS_PER_BYTE = 8
"""Additional cells for each byte of a message."""
Size = TypeVar("Size", int, npt.NDArray[np.int64])


class CellBudgetError(ValueError):
    """A message of `size` bytes has more cells than its budget allows."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"more than {most_cells(size):,} cells in arrays, maps and nested records, the budget "
            f"of {size:,} bytes ({LEAST_CELLS:,} cells and {CELLS_PER_BYTE} for each byte)"
        )


class CellBudget:
    """The rest of the budget of one message, or of one JSON value in it."""

    def __init__(self, size: int, left: int | None = None) -> None:
        self._size = size
        self.left = most_cells(size) if left is None else left

    def spend(self, cells: int) -> None:
        """Count cells before they are allocated. Raises CellBudgetError."""
        self.left -= cells
        if self.left < 0:
            raise CellBudgetError(self._size)


def most_cells(size: Size) -> Size:
    """Return the budget of a message of `size` bytes."""
    return LEAST_CELLS + CELLS_PER_BYTE * size
