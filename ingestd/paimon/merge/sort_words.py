"""Values of columns as numbers that compare as the values do, whatever rows are beside them.

Unlike ranks these are the same in every batch, so that rows which are never in memory together
can be put into one order by them. Texts and binaries are known by their first eight bytes.

Specification: https://paimon.apache.org/docs/1.4/maintenance/dedicated-compaction/
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.merge.base import float_codes
from ingestd.paimon.merge.events import whole
from ingestd.paimon.merge.text_ranks import prefixes
from ingestd.paimon.merge.value_order import is_valid
from ingestd.paimon.spec.arrow import Array, Column
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
)

Words = npt.NDArray[np.uint64]
Keys = npt.NDArray[np.bytes_]
"""Fixed-size byte strings that compare as rows do."""

RANK_BITS = 16
_SIGN = np.uint64(1 << 63)
_NUMBERS = {"BOOLEAN", "DATE", "TIME", "FLOAT", "DOUBLE", "DECIMAL"}
SORTABLE = INTEGER_ROOTS | TIMESTAMP_ROOTS | CHARACTER_ROOTS | BINARY_ROOTS | _NUMBERS
"""Roots of the types that can be sorted by."""


def words(column: Column) -> Words:
    """Return one number a cell, 0 for null: no greater than that of any greater value."""
    array = whole(column)
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        made = prefixes(array)
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        made = _float_words(array.cast(pa.float64()))
    else:
        made = _integers(array).view(np.uint64) ^ _SIGN
    if array.null_count:
        made = np.where(is_valid(array), made, np.uint64(0))
    return made


def interleaved(ranks: Sequence[npt.NDArray[np.uint16]]) -> Keys:
    """Numbers of 16 bits with their bits in turn: rows that are near each other in all of them
    are mostly near each other in the order of these keys (z-order)."""
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
