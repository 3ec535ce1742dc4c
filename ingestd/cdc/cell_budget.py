"""How many cells one message may make: bytes on the wire do not bound what they become in memory.

An array of records without bytes, or items of a record whose thousand fields are absent, take next
to nothing in a message and much in a column. Counted are the elements of arrays, the entries of
maps and the fields of nested records, before memory is taken for them. The fields of a row itself
are bounded by its schema, and not counted.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

LEAST_CELLS = 10_000
"""Cells that any message may make."""
CELLS_PER_BYTE = 8
"""Cells more for each byte of a message."""
Size = TypeVar("Size", int, npt.NDArray[np.int64])


class CellBudgetError(ValueError):
    """A message of `size` bytes makes more cells than its budget allows."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"more than {most_cells(size):,} cells in arrays, maps and nested records, the budget "
            f"of {size:,} bytes ({LEAST_CELLS:,} cells and {CELLS_PER_BYTE} for each byte)"
        )


class CellBudget:
    """What is left of the budget of one message, or of one JSON value in it."""

    def __init__(self, size: int, left: int | None = None) -> None:
        self._size = size
        self.left = most_cells(size) if left is None else left

    def spend(self, cells: int) -> None:
        """Count cells before they are made. Raises CellBudgetError."""
        self.left -= cells
        if self.left < 0:
            raise CellBudgetError(self._size)


def most_cells(size: Size) -> Size:
    """Return how many cells a message of this many bytes may make."""
    return LEAST_CELLS + CELLS_PER_BYTE * size
