"""Images of which some are replaced by those of another kind."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from ingestd.cdc.change_images import Cells, Image, OverlaidImage
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.cdc.record_errors import Reason
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.row_selection import Mask

COLUMN = WireColumn("n", DataType("INT"))
ABSENT = None
LACKING = -1
WRONG = 99


@dataclass(frozen=True)
class Numbers:
    """Images with one field, which `LACKING` ones do not have; `WRONG` does not fit."""

    values: Sequence[int | None]

    @property
    def there(self) -> Mask:
        return np.array([value is not ABSENT for value in self.values])

    def lacking(self, column: WireColumn) -> Mask:
        return np.array([value == LACKING for value in self.values])

    def cells(self, column: WireColumn, wanted: Mask | None = None) -> Cells | None:
        for _ in self.invalid(column, wanted):
            raise ValueError("does not fit")
        kept = [value if value != LACKING else None for value in self._wanted(wanted)]
        return None if kept.count(None) == len(kept) else Cells(pa.array(kept))

    def invalid(self, column: WireColumn, wanted: Mask | None) -> Iterable[tuple[int, Reason]]:
        for index, value in enumerate(self._wanted(wanted)):
            if value == WRONG:
                yield index, Reason("decode", "wrong-type", "does not fit")

    def overlaid(self, over: Mask, other: Image[WireColumn]) -> Image[WireColumn]:
        return OverlaidImage(over, self, other)

    def _wanted(self, wanted: Mask | None) -> list[int | None]:
        marks = [True] * len(self.values) if wanted is None else wanted.tolist()
        return [value if mark else None for value, mark in zip(self.values, marks, strict=True)]


OVER = np.array([False, False, False, True, True, True])
FIRST = Numbers([1, LACKING, ABSENT, WRONG, 5, ABSENT])
SECOND = Numbers([WRONG, 20, 30, 40, LACKING, ABSENT])


def cells(image: Image[WireColumn], wanted: Mask | None = None) -> list[int | None] | None:
    found = image.cells(COLUMN, wanted)
    return None if found is None else found.array.to_pylist()


def test_each_image_is_that_of_the_kind_which_the_mask_selects() -> None:
    image = FIRST.overlaid(OVER, SECOND)
    assert image.there.tolist() == [True, True, False, True, True, False]
    assert image.lacking(COLUMN).tolist() == [False, True, False, False, True, False]
    assert cells(image) == [1, None, None, 40, None, None]
    assert list(image.invalid(COLUMN, None)) == []


def test_only_wanted_images_are_read() -> None:
    image = FIRST.overlaid(OVER, SECOND)
    wanted = np.array([False, True, True, True, True, True])
    assert cells(image, wanted) == [None, None, None, 40, None, None]
    assert cells(image, ~OVER) == [1, None, None, None, None, None]
    assert cells(image, np.zeros(6, np.bool_)) is None


def test_values_that_do_not_fit_are_known_in_both() -> None:
    first, second = Numbers([WRONG, WRONG, 3, 4]), Numbers([1, 2, WRONG, WRONG])
    over = np.array([False, True, False, True])
    image = first.overlaid(over, second)
    with pytest.raises(ValueError, match="does not fit"):
        cells(image)
    assert [index for index, _ in image.invalid(COLUMN, None)] == [0, 3]
    assert [index for index, _ in image.invalid(COLUMN, over)] == [3]


def test_an_overlaid_image_can_be_overlaid_again() -> None:
    image = FIRST.overlaid(OVER, SECOND).overlaid(~OVER, Numbers([7, 7, 7, 7, 7, 7]))
    assert cells(image) == [7, 7, 7, 40, None, None]
