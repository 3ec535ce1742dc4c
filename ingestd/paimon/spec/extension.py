"""Access to the functions of the optional native extension for table columns.

In the packages of the table format, only this module checks whether the extension is installed.
Without the extension, or with another version of it, Arrow and numpy are used.
"""

import importlib
from functools import cache
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_NAME = "ingestd_native"
_COLUMNS_FORMAT = 2
"""Version of the extension functions used here."""

Bytes = Any
"""Memory owned by the extension, with the buffer protocol."""
TextParts = tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.uint8] | None, int]
"""A column of texts: offsets, bytes, validity bits (None: no nulls), and the index of row 0 in the
offsets and in the bits.
"""


class NativeColumns(Protocol):
    """The interface of the extension for table columns.

    Texts are passed as the buffers of an Arrow string array: `offsets`, `data` and `validity` (a
    bitmap; None: no nulls). `first` is the index of row 0 in `offsets` and in the bits of
    `validity`. See `text_parts`.
    """

    def take_texts(
        self,
        indices: npt.NDArray[np.int64],
        offsets: npt.NDArray[np.int32],
        data: npt.NDArray[np.uint8],
        validity: npt.NDArray[np.uint8] | None,
        first: int,
    ) -> tuple[Bytes, Bytes, Bytes | None, int]:
        """Return the buffers of the texts at `indices`, and the number of nulls.

        `offsets`, `data`, `validity` (None: no nulls) and `first` are the parts of the column that
        `text_parts` returns. The result is the offsets (int32), the data, the validity bitmap
        (None: no nulls), and the number. Raises IndexError for an index out of range, OverflowError
        for more than 2 GiB of text.
        """
        ...

    def text_bounds(
        self,
        rows: int,
        offsets: npt.NDArray[np.int32],
        data: npt.NDArray[np.uint8],
        validity: npt.NDArray[np.uint8] | None,
        first: int,
    ) -> tuple[int, int] | None:
        """Return the row numbers of the smallest and the largest text; None if all are null.

        `rows` is the number of texts, which are compared by their bytes. The other parameters are
        the buffers of the texts, as for `take_texts`.
        """
        ...

    def sha2_texts(
        self,
        rows: int,
        offsets: npt.NDArray[np.int32],
        data: npt.NDArray[np.uint8],
        first: int,
        bits: int,
    ) -> Bytes:
        """Return the SHA-2 hashes of texts as lower-case hexadecimal text, one after the other.

        `rows` is the number of texts; `bits` is the length of a hash: 224, 256, 384 or 512. Null
        texts are hashed, too.
        """
        ...

    def sorted_among(self, numbers: npt.NDArray[np.int32], known: npt.NDArray[np.int32]) -> Bytes:
        """Return a byte for each number: 1 if `known` contains it, else 0; shape (numbers,).

        Both arrays must be sorted in ascending order.
        """
        ...


@cache
def native_columns() -> NativeColumns | None:
    """Return the extension; None if it is not installed or of another version."""
    try:
        module = importlib.import_module(_NAME)
    except ImportError:
        return None
    if getattr(module, "COLUMNS_FORMAT", None) != _COLUMNS_FORMAT:
        return None
    return cast("NativeColumns", module)


def text_parts(array: Any) -> TextParts | None:  # noqa: ANN401  # an Arrow array of any type
    """Return the parts of a string or binary array that the methods of `NativeColumns` expect.

    These are its offsets, its data, its validity bitmap (None: no nulls), and the index of its
    first row in these buffers. Returns None for other types and for empty arrays.
    """
    if not (pa.types.is_string(array.type) or pa.types.is_binary(array.type)) or not len(array):
        return None
    validity, offsets, data = array.buffers()
    return (
        np.frombuffer(offsets, np.int32, array.offset + len(array) + 1),
        np.frombuffer(b"" if data is None else data, np.uint8),
        None if validity is None else np.frombuffer(validity, np.uint8),
        array.offset,
    )
