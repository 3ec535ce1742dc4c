"""Row images of changes, by column: the interface between decoders and the assembly of rows.

An image is the row after a change, the row before it, or the message key. Each decoder (structs,
columns of the native reader, Avro) implements `Image`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa

from ingestd.cdc.columns.arrow_calls import equal, if_else, take_or_null
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.cdc.record_errors import BUILD_ERRORS, PARSE_ERRORS, Reason, explain_cell
from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.row_selection import Indices, Mask

CELL_ERRORS = (*BUILD_ERRORS, *PARSE_ERRORS)
"""The errors that are raised if a value does not fit its column."""


class ImageColumn(Protocol):
    """A column of rows: its name and its type."""

    @property
    def name(self) -> str:
        """The name of the column."""

    @property
    def table_type(self) -> DataType | None:
        """The Paimon type of the column, or None while all values were null."""


ColumnT = TypeVar("ColumnT", bound=ImageColumn)
_ColumnT = TypeVar("_ColumnT", bound=ImageColumn, contravariant=True)


@dataclass(frozen=True, slots=True)
class Cells:
    """The values (n,) of one column, and which of them were omitted.

    `left_out` is a mask (n,) of values that the source omitted, which are null in the array. It is
    None if no value is omitted.
    """

    array: Array
    left_out: Mask | None = None


class Image(Protocol[_ColumnT]):
    """The images of one kind (after, before or key) of n changes."""

    @property
    def there(self) -> Mask:
        """A mask (n,) of the changes that have an image of this kind."""
        ...

    def lacking(self, column: _ColumnT) -> Mask:
        """Return a mask (n,) of the changes whose image exists, but lacks the column."""
        ...

    def cells(self, column: _ColumnT, wanted: Mask | None = None) -> Cells | None:
        """Return the cells (n,) of a column in its table type, or None if no image has the column.

        Only the images in the mask `wanted` (n,) are read (None: all). The cells of other changes,
        and of changes without an image, are null. Raises ValueError, TypeError, ArithmeticError,
        RecursionError, ArrowException or MsgspecError if a value does not fit.
        """
        ...

    def invalid(self, column: _ColumnT, wanted: Mask | None) -> Iterable[tuple[int, Reason]]:
        """Yield (index, reason) of each value that does not fit the column, as far as known.

        Only the images in the mask `wanted` (n,) are examined (None: all).
        """
        ...

    def overlaid(self, over: Mask, other: Self) -> "Image[_ColumnT]":
        """Return these images, replaced by images of `other` where the mask `over` (n,) is set."""
        ...


@dataclass(frozen=True, slots=True)
class OverlaidImage(Generic[_ColumnT]):
    """Two sets of images combined: `second` where the mask `over` (n,) is set, else `first`."""

    over: Mask
    first: Image[_ColumnT]
    second: Image[_ColumnT]

    @property
    def there(self) -> Mask:
        """A mask (n,) of the changes with an image in the set that `over` selects for them."""
        there: Mask = np.where(self.over, self.second.there, self.first.there)
        return there

    def lacking(self, column: _ColumnT) -> Mask:
        """Return a mask (n,) of the changes whose image exists, but lacks the column."""
        first, second = self.first.lacking(column), self.second.lacking(column)
        lacking: Mask = np.where(self.over, second, first)
        return lacking

    def cells(self, column: _ColumnT, wanted: Mask | None = None) -> Cells | None:
        """Return the cells (n,) of a column, from `second` where `over` is set, else from `first`.

        Only the images in the mask `wanted` (n,) are read (None: all). Returns None if no image has
        the column. Raises ValueError, TypeError, ArithmeticError, RecursionError, ArrowException or
        MsgspecError if a value does not fit.
        """
        above, below = self._wanted(wanted)
        first = self.first.cells(column, below)
        return (
            choose_cells(self.over, self.second.cells(column, above), first)
            if above.any()
            else first
        )

    def invalid(self, column: _ColumnT, wanted: Mask | None) -> Iterable[tuple[int, Reason]]:
        """Yield (index, reason) of each value that does not fit the column, as far as known.

        Of each change in the mask `wanted` (n,; None: all), only the image that applies to it is
        examined: an image in `first` that is replaced by `second` is not.
        """
        above, below = self._wanted(wanted)
        yield from self.first.invalid(column, below)
        yield from self.second.invalid(column, above)

    def overlaid(self, over: Mask, other: Image[_ColumnT]) -> "OverlaidImage[_ColumnT]":
        """Return these images, replaced by images of `other` where the mask `over` (n,) is set."""
        return OverlaidImage(over, self, other)

    def _wanted(self, wanted: Mask | None) -> tuple[Mask, Mask | None]:
        """Split a mask of requested images (None: all) into one for `second` and one for `first`.

        The mask for `first` is None if all its images are requested.
        """
        hidden = (self.first.there & self.over).any()
        if wanted is None:
            return self.over, ~self.over if hidden else None
        return self.over & wanted, wanted & ~self.over


def choose_cells(from_first: Mask, first: Cells | None, second: Cells | None) -> Cells | None:
    """Return the cells of `first` where the mask `from_first` (n,) is set, else cells of `second`.

    None represents a column of nulls; the result is None if both columns are None.
    """
    if first is None and second is None:
        return None
    left_out = None
    if _left_out(first) is not None or _left_out(second) is not None:
        left_out = np.where(from_first, _marks(first), _marks(second))
    array = if_else(pa.array(from_first), _values(first, second), _values(second, first))
    return Cells(array, left_out)


def _left_out(cells: Cells | None) -> Mask | None:
    return None if cells is None else cells.left_out


def _marks(cells: Cells | None) -> Any:  # noqa: ANN401  (a mask, or False for all cells)
    left_out = _left_out(cells)
    return np.False_ if left_out is None else left_out


def _values(cells: Cells | None, other: Cells | None) -> Any:  # noqa: ANN401  (an array or a scalar)
    if cells is not None:
        return cells.array
    return None if other is None else pa.scalar(None, other.array.type)


def take(cells: Cells, rows: Indices) -> Cells:
    """Return the cells at these indices; a negative index yields a null that is not omitted."""
    left_out = None if cells.left_out is None else cells.left_out[rows] & (rows >= 0)
    return Cells(take_or_null(cells.array, rows), left_out)


def stacked(first: Cells, second: Cells) -> Cells:
    """Return the n cells of the first column, followed by the m cells of the second."""
    left_out = None
    if first.left_out is not None or second.left_out is not None:
        columns = [np.broadcast_to(_marks(cells), len(cells.array)) for cells in (first, second)]
        left_out = np.concatenate(columns)
    return Cells(pa.concat_arrays([first.array, second.array]), left_out)


def known(cells: Cells) -> Mask:
    """Return a mask (n,) of the cells that are not null, or are null because they were omitted."""
    valid: Mask = cells.array.is_valid().to_numpy(zero_copy_only=False)
    return valid if cells.left_out is None else valid | cells.left_out


def differ(first: Cells, second: Cells) -> Mask:
    """Return a mask (n,) of the rows in which two columns have different values.

    A null and NaN differ from every value, also from another null or NaN. An omitted value is equal
    only to another omitted value.
    """
    same = _set_bits(equal(first.array, second.array))
    if first.left_out is not None and second.left_out is not None:
        same |= first.left_out & second.left_out
    return ~same


def _set_bits(array: Array) -> Mask:
    """Return booleans as a mask, with False for null. This is much faster than filling nulls."""
    size = len(array)
    validity, values = (
        None if buffer is None else _bits(buffer, array) for buffer in array.buffers()
    )
    if values is None:
        return np.zeros(size, np.bool_)
    return values if validity is None else values & validity


def _bits(packed: pa.Buffer, array: Array) -> Mask:
    bits = np.frombuffer(memoryview(packed), np.uint8)
    end = array.offset + len(array)
    return np.unpackbits(bits, count=end, bitorder="little").view(np.bool_)[array.offset :]


def invalid_values(
    column: WireColumn,
    values: Any,  # noqa: ANN401  (a list, or an Arrow array)
    read: Callable[[Any], object],
    start: int = 0,
) -> Iterator[tuple[int, Reason]]:
    """Yield the index and the rejection reason of each value for which `read` raises an error.

    The errors are ValueError, TypeError, ArithmeticError, RecursionError, ArrowException and
    MsgspecError. `read` takes a slice of `values`, and is called for smaller and smaller slices
    until each invalid value is found. `start` is the index of the first value.
    """
    try:
        read(values)
    except CELL_ERRORS as error:
        size = len(values)
        if size > 1:
            middle = size // 2
            yield from invalid_values(column, values[:middle], read, start)
            yield from invalid_values(column, values[middle:], read, start + middle)
        else:
            value = values[0].as_py() if isinstance(values, pa.Array) else values[0]
            yield start, explain_cell(error, column.name, value, column.table_type)
