"""Convert columns of the native reader to Arrow arrays, and to before and after images.

The images of one kind have a cell for each change, which is null if the change has no such image.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import UNSET

from ingestd.cdc.change_images import Cells, Image, OverlaidImage, choose_cells, take
from ingestd.cdc.columns.column_reader import RAW, ColumnEncoding, PlanColumn, Value, WireType
from ingestd.cdc.native_module import Columns, NativeColumn, Path
from ingestd.cdc.record_errors import Reason
from ingestd.cdc.row_layout import ABSENT
from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.row_selection import Indices, Mask

NativeImage = Image[PlanColumn]


class IrregularError(ValueError):
    """The native reader cannot decode the messages; only Python can."""


def to_cells(native: NativeColumn, encoding: ColumnEncoding, rows: int) -> Cells:
    """Return a column of the native reader as cells (rows,) of the encoding's storage type.

    The memory of the buffers is not copied.
    """
    validity = None if native.validity is None else pa.py_buffer(native.validity)
    buffers = [validity]
    if native.offsets is not None:
        buffers.append(pa.py_buffer(native.offsets))
    buffers.append(pa.py_buffer(native.data))
    array: Array = pa.Array.from_buffers(encoding.storage, rows, buffers, native.nulls)
    left_out = None
    if native.left_out is not None:
        left_out = np.zeros(rows, np.bool_)
        left_out[np.frombuffer(native.left_out, np.uint32)] = True
    return Cells(array, left_out)


def lacking(native: NativeColumn, rows: int) -> Mask:
    """Return a mask (rows,) of the rows that lack the field of a column."""
    if native.lacking is None:
        return np.zeros(rows, np.bool_)
    marks = np.zeros(rows + 1, np.int8)
    bounds = np.frombuffer(native.lacking, np.uint32).reshape(-1, 2)
    marks[bounds[:, 0]] = 1
    marks[bounds[:, 1]] = -1
    return np.cumsum(marks[:-1], dtype=np.int8).view(np.bool_)


def kept(cells: Cells, rows: Mask) -> Cells:
    """Return the cells with null outside of the mask `rows` (n,); only validity bits are copied."""
    array = cells.array
    validity, *rest = array.buffers()
    bits = np.packbits(rows, bitorder="little")
    if validity is not None:
        bits &= np.frombuffer(memoryview(validity), np.uint8, len(bits))
    masked: Array = pa.Array.from_buffers(
        array.type, len(array), [pa.py_buffer(bits.tobytes()), *rest]
    )
    left_out = None if cells.left_out is None else cells.left_out & rows
    return Cells(masked, left_out)


def _read_texts(column: PlanColumn, cells: Cells) -> Cells:
    """Decode the JSON texts of a column with its Python reader.

    Raises one of `BUILD_ERRORS` or `PARSE_ERRORS` if a value does not fit.
    """
    if column.reader is None:
        raise ValueError(f"column {column.name} has no reader yet")
    array, placeholders = column.reader.read(_decoded(column.wire, cells.array))
    return Cells(column.as_declared(array), _either(cells.left_out, placeholders))


def _either(first: Mask | None, second: Mask | None) -> Mask | None:
    """Return the union of two masks, where None is an empty mask."""
    if first is None or second is None:
        return second if first is None else first
    return first | second


def _decoded(wire: WireType, texts: Array) -> Sequence[Value]:
    """Decode JSON texts to values of the msgspec type `wire`, with None for null."""
    cells = texts.to_pylist()
    present = [text for text in cells if text is not None]
    values = msgspec.json.decode(b"[" + b",".join(present) + b"]", type=list[wire])
    if len(present) == len(cells):
        return values
    remaining = iter(values)
    return [None if text is None else next(remaining) for text in cells]


class _Unchecked:
    """Base class of images that do not locate invalid values.

    If a value is invalid, the messages are decoded again in Python, which locates it.
    """

    __slots__ = ()

    def invalid(self, column: PlanColumn, wanted: Mask | None) -> Iterable[tuple[int, Reason]]:
        """Return an empty sequence, because invalid values are located only in Python."""
        return ()

    def overlaid(self, over: Mask, other: NativeImage) -> NativeImage:
        """Return these images, replaced by those of `other` where the mask is set."""
        return OverlaidImage(over, cast("NativeImage", self), other)


@dataclass(frozen=True, slots=True)
class ColumnImage(_Unchecked):
    """Images of one kind at the same path in all messages; `there` marks the existing images."""

    columns: Columns
    path: Path
    there: Mask

    def lacking(self, column: PlanColumn) -> Mask:
        """Return a mask (n,) of the changes whose image exists, but lacks the column."""
        native = self.columns[(*self.path, column.name)]
        if native.seen == np.count_nonzero(self.there):
            return np.zeros_like(self.there)
        return lacking(native, len(self.there)) & self.there

    def cells(self, column: PlanColumn, wanted: Mask | None = None) -> Cells | None:
        """Return the cells (n,) of a column in its table type; None if no wanted image has it.

        Only the images in the mask `wanted` (n,) are read (None: all); other cells are null. Raises
        IrregularError if an absent field has a default, which only Python fills in, and ValueError,
        TypeError, ArithmeticError, RecursionError, ArrowException or MsgspecError if a value does
        not fit.
        """
        native = self.columns[(*self.path, column.name)]
        if column.default is not UNSET and self._used(self.lacking(column), wanted).any():
            raise IrregularError(f"{column.name} has a default")
        if not native.seen:
            return None
        cells = to_cells(native, column.encoding, len(self.there))
        if wanted is not None:
            if not self._used(self.there & ~self.lacking(column), wanted).any():
                return None
            cells = kept(cells, wanted)
        if column.encoding is RAW:
            return _read_texts(column, cells)
        finish = column.encoding.finish
        array = cells.array if finish is None else finish(cells.array)
        return Cells(column.as_declared(array) if column.is_declared else array, cells.left_out)

    @staticmethod
    def _used(images: Mask, wanted: Mask | None) -> Mask:
        return images if wanted is None else images & wanted


@dataclass(frozen=True, slots=True)
class MaskedImage(_Unchecked):
    """The images at one path, restricted to the changes in the mask `there`."""

    image: ColumnImage
    there: Mask

    def lacking(self, column: PlanColumn) -> Mask:
        """Return a mask (n,) of the changes whose image exists, but lacks the column."""
        return self.image.lacking(column) & self.there

    def cells(self, column: PlanColumn, wanted: Mask | None = None) -> Cells | None:
        """Return the cells (n,) of a column, null outside of `there`; None if no image has it.

        Only the images in the mask `wanted` (n,) are read (None: all). Raises the errors of
        `ColumnImage.cells`.
        """
        return self.image.cells(column, self.there if wanted is None else self.there & wanted)


@dataclass(frozen=True, slots=True)
class GatheredImage(_Unchecked):
    """Images that are stored consecutively, without gaps for changes that have no image.

    `indices` has the index in `image` of each change's image, or a negative number if it has none.
    """

    image: NativeImage
    indices: Indices

    @property
    def there(self) -> Mask:
        """A mask (n,) of the changes that have an image."""
        marks: Mask = self.indices >= 0
        marks[marks] = self.image.there[self.indices[marks]]
        return marks

    def lacking(self, column: PlanColumn) -> Mask:
        """Return a mask (n,) of the changes whose image exists, but lacks the column."""
        if not len(self.image.there):
            return np.zeros(len(self.indices), np.bool_)
        return self.image.lacking(column)[self.indices] & self.there

    def cells(self, column: PlanColumn, wanted: Mask | None = None) -> Cells | None:
        """Return the cells (n,) of a column, null without an image; None if no image has it.

        Only the images in the mask `wanted` (n,) are read (None: all). Raises the errors of
        `ColumnImage.cells`.
        """
        indices = self.indices if wanted is None else np.where(wanted, self.indices, ABSENT)
        used = np.zeros(len(self.image.there), np.bool_)
        used[indices[indices >= 0]] = True
        cells = self.image.cells(column, used)
        return None if cells is None else take(cells, indices)


@dataclass(frozen=True, slots=True)
class CoalescedImage(_Unchecked):
    """Images from two JSON fields, of which each change has at most one.

    An example is a before image: the row of a delete and the old values of an update may be in
    different fields. `first` and `second` are the images of the two fields.
    """

    first: NativeImage
    second: NativeImage

    @property
    def there(self) -> Mask:
        """A mask (n,) of the changes that have an image in either field."""
        return self.first.there | self.second.there

    def lacking(self, column: PlanColumn) -> Mask:
        """Return a mask (n,) of the changes whose image exists, but lacks the column."""
        return self.first.lacking(column) | self.second.lacking(column)

    def cells(self, column: PlanColumn, wanted: Mask | None = None) -> Cells | None:
        """Return the cells (n,) of a column from both fields, or None if no image has it.

        Only the images in the mask `wanted` (n,) are read (None: all). Raises the errors of
        `ColumnImage.cells`.
        """
        first, second = self.first.cells(column, wanted), self.second.cells(column, wanted)
        return choose_cells(self.first.there, first, second)
