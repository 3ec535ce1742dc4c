"""Codes of values: equal values have equal codes, for array elements and map keys of any type."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ingestd.paimon.merge.events import Index
from ingestd.paimon.merge.value_order import dense_ranks, is_valid
from ingestd.paimon.spec.arrow import Array


def value_codes(array: Array) -> Index:
    """Return one code per cell, from 0, equal for equal values; null is a value."""
    kind = array.type
    if pa.types.is_struct(kind):
        struct: Any = array
        return joint_codes(
            [is_valid(array).astype(np.int64), *map(value_codes, struct.flatten())], len(array)
        )
    if pa.types.is_nested(kind):
        return _codes_of_texts(array)
    encoded: Any = array.dictionary_encode(null_encoding="encode")
    indices: Index = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return indices


def joint_codes(columns: Sequence[Index], count: int) -> Index:
    """Return one code per row for the combination of its codes in several columns."""
    return dense_ranks(columns) if columns else np.zeros(count, np.int64)


def _codes_of_texts(array: Array) -> Index:
    """Return codes of lists and maps by their printed form, since Arrow cannot encode them."""
    known: dict[str, int] = {}
    codes = [known.setdefault(repr(value), len(known)) for value in array.to_pylist()]
    return np.array(codes, np.int64)
