"""Encode a number per row as bitmaps: one of the rows with a number, and one for each bit.

The bitmap of a bit contains the rows in whose number the bit is set. The layouts that contain these
bitmaps are those of bsi and range-bitmap file indexes.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-bit-slice-index-bitmap
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from ingestd.paimon.spec.roaring import RowNumbers, decode_bitmap, encode_roaring


def encode_bit_slices(
    rows: RowNumbers, numbers: npt.NDArray[np.uint64], bits: int
) -> Iterator[bytes]:
    """Yield, for each of the lowest `bits` bits, the bitmap of the rows whose number has the bit.

    `rows` (n,) are ascending row numbers; `numbers` (n,) are the numbers of these rows.
    """
    for bit in range(bits):
        yield encode_roaring(rows[numbers >> np.uint64(bit) & np.uint64(1) == 1])


def decode_bit_slices(
    data: bytes, source: str, start: int, bits: int
) -> tuple[tuple[BitMap, ...], int]:
    """Return `bits` successive bitmaps that begin at `start`, and the position of their end.

    Raises FormatError, naming `source`, for a damaged bitmap.
    """
    slices: list[BitMap] = []
    at = start
    for _ in range(bits):
        of_bit, at = decode_bitmap(data, source, at)
        slices.append(of_bit)
    return tuple(slices), at


@dataclass(frozen=True, slots=True)
class BitSlices:
    """Decoded numbers of rows: `present` has the rows with a number.

    `slices` has, for each bit from the lowest to the highest, the rows whose number has the bit.
    """

    present: BitMap
    slices: tuple[BitMap, ...]

    def contains(self, number: int) -> bool:
        """Return whether any row has the number `number`."""
        if not 0 <= number < 1 << len(self.slices):
            return False
        rows = self.present
        for bit, of_bit in enumerate(self.slices):
            rows = rows & of_bit if number >> bit & 1 else rows - of_bit
        return bool(rows)

    def bounds(self) -> tuple[int, int] | None:
        """Return the smallest and the largest number; None if no row has a number."""
        return (self._extreme(0), self._extreme(1)) if self.present else None

    def _extreme(self, wanted: int) -> int:
        """Return the number whose bits are `wanted` in as many of the highest as possible."""
        rows, number = self.present, 0
        for bit in reversed(range(len(self.slices))):
            of_bit = self.slices[bit]
            preferred = rows & of_bit if wanted else rows - of_bit
            value = wanted if preferred else 1 - wanted
            rows = preferred or rows
            number |= value << bit
        return number
