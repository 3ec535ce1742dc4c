"""Before and after images in the columns of the native reader.

Every image has one cell per change; the cells of a change without the image are null.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ingestd.cdc.native.cells import (
    Cells,
    Indices,
    Marks,
    choose,
    kept,
    lacking,
    take,
    to_cells,
)
from ingestd.cdc.native.module import Columns, NativeColumn, Path
from ingestd.cdc.native.plan import form_of
from ingestd.cdc.plan_column import PlanColumn


class Image(Protocol):
    """The before images or the after images of the changes of a batch."""

    @property
    def there(self) -> Marks:
        """Return a mask of the changes that have the image."""
        ...

    def seen(self, name: str) -> int:
        """Return the number of images that have a field, null or not."""
        ...

    def lacking(self, name: str) -> Marks:
        """Return a mask of the changes that have the image without this field."""
        ...

    def cells(self, column: PlanColumn) -> Cells:
        """The cells of a column."""
        ...


@dataclass(frozen=True, slots=True)
class ColumnImage:
    """The images at one path of all messages."""

    columns: Columns
    path: Path
    there: Marks

    def found(self, name: str) -> NativeColumn:
        """The column of a field."""
        return self.columns[(*self.path, name)]

    def seen(self, name: str) -> int:
        """See `Image`."""
        return self.found(name).seen

    def lacking(self, name: str) -> Marks:
        """See `Image`."""
        return lacking(self.found(name), len(self.there)) & self.there

    def cells(self, column: PlanColumn) -> Cells:
        """See `Image`."""
        return to_cells(self.found(column.name), form_of(column), len(self.there))


@dataclass(frozen=True, slots=True)
class MaskedImage:
    """The images of a path in some of the messages only."""

    image: ColumnImage
    there: Marks

    def seen(self, name: str) -> int:
        """See `Image`."""
        if not self.image.seen(name):
            return 0
        return int(np.count_nonzero(self.there)) - int(np.count_nonzero(self.lacking(name)))

    def lacking(self, name: str) -> Marks:
        """See `Image`."""
        return lacking(self.image.found(name), len(self.there)) & self.there

    def cells(self, column: PlanColumn) -> Cells:
        """See `Image`."""
        return kept(self.image.cells(column), self.there)


@dataclass(frozen=True, slots=True)
class GatheredImage:
    """Images stored consecutively for the changes that have one.

    `places` is the index of each change's image, negative for changes without one."""

    image: ColumnImage
    places: Indices

    @property
    def there(self) -> Marks:
        """See `Image`."""
        marks: Marks = self.places >= 0
        return marks

    def seen(self, name: str) -> int:
        """See `Image`."""
        return self.image.seen(name)

    def lacking(self, name: str) -> Marks:
        """See `Image`."""
        return self.image.lacking(name)[self.places] & self.there

    def cells(self, column: PlanColumn) -> Cells:
        """See `Image`."""
        return take(self.image.cells(column), self.places)


@dataclass(frozen=True, slots=True)
class CoalescedImage:
    """Images at two paths, of which each change has at most one."""

    first: Image
    second: Image

    @property
    def there(self) -> Marks:
        """See `Image`."""
        return self.first.there | self.second.there

    def seen(self, name: str) -> int:
        """See `Image`."""
        return self.first.seen(name) + self.second.seen(name)

    def lacking(self, name: str) -> Marks:
        """See `Image`."""
        return self.first.lacking(name) | self.second.lacking(name)

    def cells(self, column: PlanColumn) -> Cells:
        """See `Image`."""
        return choose(self.first.there, self.first.cells(column), self.second.cells(column))
