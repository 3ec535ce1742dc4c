"""Sort words: numbers that compare like the values of a column, in every batch.

Unlike ranks, they do not depend on the other rows of a batch, so they order rows that are never in
memory together. Of strings and binary values, only the first eight bytes count.

Specification: https://paimon.apache.org/docs/1.4/maintenance/dedicated-compaction/#sort-compact
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.merge.events import whole
from ingestd.paimon.merge.text_ranks import prefixes
from ingestd.paimon.merge.value_codes import is_valid
from ingestd.paimon.spec.arrow import Array, Column
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
)
from ingestd.paimon.spec.float_order import float_codes
from ingestd.paimon.spec.row_words import Words

Keys = npt.NDArray[np.bytes_]
"""Fixed-size byte strings that compare like rows."""

RANK_BITS = 16
_SIGN = np.uint64(1 << 63)
_NUMBERS = {"BOOLEAN", "DATE", "TIME", "FLOAT", "DOUBLE", "DECIMAL"}
SORTABLE = INTEGER_ROOTS | TIMESTAMP_ROOTS | CHARACTER_ROOTS | BINARY_ROOTS | _NUMBERS
"""Type roots of columns that rows can be sorted by."""


def words(column: Column) -> Words:
    """Return one 64-bit number per cell of a column without nested values; shape (rows,).

    The number of a null is 0. Numbers never decrease as values increase, but different values may
    have equal numbers: of strings and binary values, only the first eight bytes count.
    """
    array = whole(column)
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        codes = prefixes(array)
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        codes = _float_words(array.cast(pa.float64()))
    else:
        codes = _integers(array).view(np.uint64) ^ _SIGN
    if array.null_count:
        codes = np.where(is_valid(array), codes, np.uint64(0))
    return codes


def interleaved(ranks: Sequence[npt.NDArray[np.uint16]]) -> Keys:
    """Return the interleaved bits (z-order) of the numbers of each row, as byte strings.

    Each of `ranks` (rows,) has one 16-bit number per row; the result has the shape (rows,). Rows
    that are close in all numbers are mostly close in its order.
    """
    stacked = np.stack(ranks, axis=1).astype(">u2")
    bits = np.unpackbits(stacked.view(np.uint8), axis=1).reshape(len(stacked), -1, RANK_BITS)
    mixed = np.packbits(bits.transpose(0, 2, 1).reshape(len(stacked), -1), axis=1)
    return mixed.reshape(-1).view(f"S{2 * len(ranks)}")


def _integers(array: Array) -> npt.NDArray[np.int64]:
    kind = array.type
    if pa.types.is_temporal(kind):
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    cells: Any = array.cast(pa.int64())
    filled = cells.fill_null(0).to_numpy(zero_copy_only=False)
    numbers: npt.NDArray[np.int64] = np.ascontiguousarray(filled)
    return numbers


def _float_words(array: Array) -> Words:
    cells: Any = array
    filled = cells.fill_null(0.0).to_numpy(zero_copy_only=False)
    ordered: Words = float_codes(filled).view(np.uint64)
    return ordered ^ _SIGN
