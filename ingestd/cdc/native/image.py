"""Rows before and after changes, as they are in the columns of the native reader.

Every image has a place for each row of a batch; where a row has no such image its cells are null.
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
    """One of the rows that a change speaks of."""

    @property
    def there(self) -> Marks:
        """Which rows have the image."""
        ...

    def seen(self, name: str) -> int:
        """How many images have a field, null or not."""
        ...

    def lacking(self, name: str) -> Marks:
        """Which rows have the image, but not this field of it."""
        ...

    def cells(self, column: PlanColumn) -> Cells:
        """The cells of a column."""
        ...


@dataclass(frozen=True, slots=True)
class ColumnImage:
    """What is at one place of all messages."""

    columns: Columns
    path: Path
    there: Marks

    def found(self, name: str) -> NativeColumn:
        """The column of a field."""
        return self.columns[(*self.path, name)]

    def seen(self, name: str) -> int:
        """As `Image` says."""
        return self.found(name).seen

    def lacking(self, name: str) -> Marks:
        """As `Image` says."""
        return lacking(self.found(name), len(self.there)) & self.there

    def cells(self, column: PlanColumn) -> Cells:
        """As `Image` says."""
        return to_cells(self.found(column.name), form_of(column), len(self.there))


@dataclass(frozen=True, slots=True)
class MaskedImage:
    """Some of the images of a place, which the others are not."""

    image: ColumnImage
    there: Marks

    def seen(self, name: str) -> int:
        """As `Image` says."""
        if not self.image.seen(name):
            return 0
        return int(np.count_nonzero(self.there)) - int(np.count_nonzero(self.lacking(name)))

    def lacking(self, name: str) -> Marks:
        """As `Image` says."""
        return lacking(self.image.found(name), len(self.there)) & self.there

    def cells(self, column: PlanColumn) -> Cells:
        """As `Image` says."""
        return kept(self.image.cells(column), self.there)


@dataclass(frozen=True, slots=True)
class GatheredImage:
    """Images that only some rows have, one behind the other; `places` has the others negative."""

    image: ColumnImage
    places: Indices

    @property
    def there(self) -> Marks:
        """As `Image` says."""
        marks: Marks = self.places >= 0
        return marks

    def seen(self, name: str) -> int:
        """As `Image` says."""
        return self.image.seen(name)

    def lacking(self, name: str) -> Marks:
        """As `Image` says."""
        return self.image.lacking(name)[self.places] & self.there

    def cells(self, column: PlanColumn) -> Cells:
        """As `Image` says."""
        return take(self.image.cells(column), self.places)


@dataclass(frozen=True, slots=True)
class CoalescedImage:
    """Images of two places; no row has both."""

    first: Image
    second: Image

    @property
    def there(self) -> Marks:
        """As `Image` says."""
        return self.first.there | self.second.there

    def seen(self, name: str) -> int:
        """As `Image` says."""
        return self.first.seen(name) + self.second.seen(name)

    def lacking(self, name: str) -> Marks:
        """As `Image` says."""
        return self.first.lacking(name) | self.second.lacking(name)

    def cells(self, column: PlanColumn) -> Cells:
        """As `Image` says."""
        return choose(self.first.there, self.first.cells(column), self.second.cells(column))
