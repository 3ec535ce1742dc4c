"""Functions of the native extension for columns of tables, where it is installed.

This is the only place below the change formats that knows whether it is there. Without it, or with
one of another version, Arrow and numpy do the same.
"""

import importlib
from functools import cache
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_NAME = "ingestd_native"
_COLUMNS_FORMAT = 1
"""Version of the functions here."""

Bytes = Any
"""Memory of the extension, with the buffer protocol."""
TextParts = tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.uint8] | None, int]
"""A column of texts: offsets, bytes, bits of the rows that are not null (None: no row is), and at
which offset and bit row 0 is."""


class NativeColumns(Protocol):
    """The functions of the extension."""

    def take_texts(
        self,
        places: npt.NDArray[np.int64],
        offsets: npt.NDArray[np.int32],
        data: npt.NDArray[np.uint8],
        validity: npt.NDArray[np.uint8] | None,
        first: int,
    ) -> tuple[Bytes, Bytes, Bytes | None, int]:
        """Return offsets, bytes and validity of texts by index, and the number of nulls.

        IndexError for a place that is no row, OverflowError for more than 2 GiB of text.
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
        """Return the rows of the least and the greatest text by their bytes.

        None if all are null.
        """
        ...

    def sorted_among(self, numbers: npt.NDArray[np.int32], known: npt.NDArray[np.int32]) -> Bytes:
        """Return a byte, 0 or 1, for each of some sorted numbers: whether a sorted array has it."""
        ...


@cache
def native_columns() -> NativeColumns | None:
    """Return the extension, None if it is not installed or is of another version."""
    try:
        module = importlib.import_module(_NAME)
    except ImportError:
        return None
    if getattr(module, "COLUMNS_FORMAT", None) != _COLUMNS_FORMAT:
        return None
    return cast("NativeColumns", module)


def text_parts(array: Any) -> TextParts | None:  # noqa: ANN401  # an Arrow array of any type
    """Return the parts of an array of strings or binaries; None if it is another or has no rows."""
    if not (pa.types.is_string(array.type) or pa.types.is_binary(array.type)) or not len(array):
        return None
    validity, offsets, data = array.buffers()
    return (
        np.frombuffer(offsets, np.int32, array.offset + len(array) + 1),
        np.frombuffer(b"" if data is None else data, np.uint8),
        None if validity is None else np.frombuffer(validity, np.uint8),
        array.offset,
    )
