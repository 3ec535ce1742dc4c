"""Before and after images in the columns of the native reader.

Every image has one cell per change; the cells of a change without the image are null.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from msgspec import UNSET

from ingestd.cdc.change_images import Cells, Image, choose, take
from ingestd.cdc.native.cells import IrregularError, build, kept, lacking, to_cells
from ingestd.cdc.native.module import Columns, Path
from ingestd.cdc.native.plan import form_of
from ingestd.cdc.plan_column import PlanColumn
from ingestd.cdc.record_errors import Reason
from ingestd.cdc.row_layout import ABSENT, Indices, Mask

NativeImage = Image[PlanColumn]


class _Unchecked:
    """Images whose invalid values are not located: their messages are decoded in Python."""

    __slots__ = ()

    def invalid(self, column: PlanColumn, wanted: Mask | None) -> Iterable[tuple[int, Reason]]:
        """See `Image`."""
        return ()


@dataclass(frozen=True, slots=True)
class ColumnImage(_Unchecked):
    """The images at one path of all messages."""

    columns: Columns
    path: Path
    there: Mask

    def lacking(self, column: PlanColumn) -> Mask:
        """See `Image`."""
        return lacking(self.columns[(*self.path, column.name)], len(self.there)) & self.there

    def cells(self, column: PlanColumn, wanted: Mask | None = None) -> Cells | None:
        """See `Image`. Raises IrregularError if an absent field has a default."""
        found = self.columns[(*self.path, column.name)]
        used = self.there if wanted is None else self.there & wanted
        if column.default is not UNSET and (self.lacking(column) & used).any():
            raise IrregularError(f"{column.name} has a default")
        if not found.seen:
            return None
        cells = to_cells(found, form_of(column), len(self.there))
        if wanted is not None:
            if not (used & ~self.lacking(column)).any():
                return None
            cells = kept(cells, wanted)
        return build(column, cells)


@dataclass(frozen=True, slots=True)
class MaskedImage(_Unchecked):
    """The images of a path in some of the messages only."""

    image: ColumnImage
    there: Mask

    def lacking(self, column: PlanColumn) -> Mask:
        """See `Image`."""
        return self.image.lacking(column) & self.there

    def cells(self, column: PlanColumn, wanted: Mask | None = None) -> Cells | None:
        """See `Image`."""
        return self.image.cells(column, self.there if wanted is None else self.there & wanted)


@dataclass(frozen=True, slots=True)
class GatheredImage(_Unchecked):
    """Images stored consecutively for the changes that have one.

    `places` is the index of each change's image, negative for changes without one."""

    image: ColumnImage
    places: Indices

    @property
    def there(self) -> Mask:
        """See `Image`."""
        marks: Mask = self.places >= 0
        return marks

    def lacking(self, column: PlanColumn) -> Mask:
        """See `Image`."""
        if not len(self.image.there):
            return np.zeros(len(self.places), np.bool_)
        return self.image.lacking(column)[self.places] & self.there

    def cells(self, column: PlanColumn, wanted: Mask | None = None) -> Cells | None:
        """See `Image`."""
        places = self.places if wanted is None else np.where(wanted, self.places, ABSENT)
        used = np.zeros(len(self.image.there), np.bool_)
        used[places[places >= 0]] = True
        cells = self.image.cells(column, used)
        return None if cells is None else take(cells, places)


@dataclass(frozen=True, slots=True)
class CoalescedImage(_Unchecked):
    """Images at two paths, of which each change has at most one."""

    first: NativeImage
    second: NativeImage

    @property
    def there(self) -> Mask:
        """See `Image`."""
        return self.first.there | self.second.there

    def lacking(self, column: PlanColumn) -> Mask:
        """See `Image`."""
        return self.first.lacking(column) | self.second.lacking(column)

    def cells(self, column: PlanColumn, wanted: Mask | None = None) -> Cells | None:
        """See `Image`."""
        first, second = self.first.cells(column, wanted), self.second.cells(column, wanted)
        return choose(self.first.there, first, second)
