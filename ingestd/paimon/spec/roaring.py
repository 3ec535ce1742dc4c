"""Encode and decode Roaring bitmaps in the portable format.

A bitmap is represented as a sorted array of distinct unsigned 32-bit numbers.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/tableindex/#deletion-vectors
"""

from array import array

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from ingestd.errors import FormatError

RowNumbers = npt.NDArray[np.uint32]


def encode_roaring(numbers: RowNumbers) -> bytes:
    """Return sorted distinct numbers as the bytes of a bitmap."""
    bitmap = BitMap(array("I", numbers.astype(np.uint32, copy=False).tobytes()))
    bitmap.run_optimize()
    data: bytes = bitmap.serialize()
    return data


def decode_roaring(data: bytes, source: str, start: int = 0) -> tuple[RowNumbers, int]:
    """Return the numbers of a bitmap that begins at `start`, and the position of its end.

    Raises FormatError, naming `source`, if it is truncated or not in canonical form.
    """
    bitmap, end = decode_bitmap(data, source, start)
    return np.frombuffer(bitmap.to_array(), np.uint32), end


def decode_bitmap(data: bytes, source: str, start: int) -> tuple[BitMap, int]:
    """Return the bitmap that begins at `start`, and the position of its end.

    Raises FormatError, naming `source`, if it is truncated or not in canonical form.
    """
    try:
        bitmap = BitMap.deserialize(data[start:])
    except (ValueError, IndexError) as error:
        raise FormatError(f"{source}: its Roaring bitmap is damaged: {error}") from error
    # The library does not verify the offsets of containers. A bitmap has a single canonical form.
    written = bitmap.serialize()
    end = start + len(written)
    if data[start:end] != written:
        raise FormatError(f"{source}: its Roaring bitmap is damaged: it contradicts itself")
    return bitmap, end
