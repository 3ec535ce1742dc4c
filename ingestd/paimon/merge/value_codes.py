"""Numbers that represent the values of a column: in their order, or only for equality.

In this order nulls are first, strings and binary values compare by their bytes, and NaN is greater
than all numbers. -0.0 is less than 0.0 as a value, and equal to it in a sequence field.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/aggregation/#aggregation-functions
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.merge.events import whole
from ingestd.paimon.merge.key_order import Ranks, column_ranks, stable_order
from ingestd.paimon.spec.arrow import Array, Column
from ingestd.paimon.spec.float_order import float_codes
from ingestd.paimon.spec.row_selection import Indices, Mask


def value_codes(array: Array) -> Indices:
    """Return one code per cell, from 0, equal for equal values; nulls are equal to each other.

    NaN is equal to NaN, and -0.0 differs from 0.0, as in Java.
    """
    kind = array.type
    if pa.types.is_struct(kind):
        struct: Any = array
        return joint_codes(
            [is_valid(array).astype(np.int64), *map(value_codes, struct.flatten())], len(array)
        )
    if pa.types.is_nested(kind):
        return _codes_of_texts(array)
    encoded: Any = array.dictionary_encode(null_encoding="encode")
    indices: Indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return indices


def joint_codes(columns: Sequence[Indices], count: int) -> Indices:
    """Return one code per row, equal for rows with equal codes in all columns.

    `count` is the number of rows.
    """
    return dense_ranks(columns) if columns else np.zeros(count, np.int64)


def _codes_of_texts(array: Array) -> Indices:
    """Return codes of lists and maps by their text in Python, because Arrow cannot encode them."""
    known: dict[str, int] = {}
    codes = [known.setdefault(repr(value), len(known)) for value in array.to_pylist()]
    return np.array(codes, np.int64)


def order_codes(column: Column) -> Ranks:
    """Return one number per cell; the numbers compare like the values of the column.

    -0.0 precedes 0.0, and NaN is last. The number of a null is undefined.
    """
    array = _filled(whole(column))
    if pa.types.is_floating(array.type):
        return float_codes(array.to_numpy(zero_copy_only=False))
    ranks = column_ranks(array)
    # Callers add negative numbers of their own.
    signed = ranks[0].dtype != np.uint64
    return ranks[0] if len(ranks) == 1 and signed else dense_ranks(ranks)


def sequence_ranks(columns: Sequence[Column]) -> Indices:
    """Return the rank of each row by several columns, the most significant first, from 0.

    Rows with equal values share a rank. Nulls are first, NaN is last, and -0.0 is equal to 0.0.
    """
    return dense_ranks(sequence_codes(columns))


def sequence_codes(columns: Sequence[Column], *, descending: bool = False) -> list[Ranks]:
    """Return arrays (rows,) of ranks that order rows by several columns, most significant first.

    Nulls are first, also if `descending`. -0.0 is equal to 0.0, and NaN is greater than all
    numbers.
    """
    ranks: list[Ranks] = []
    for column in columns:
        if column.null_count:
            ranks.append(is_valid(column))
        # Nulls were replaced by one value, so they are equal.
        codes = column_ranks(_filled(whole(column)))
        ranks += [_flipped(code) for code in codes] if descending else codes
    return ranks


def dense_ranks(ranks: Sequence[Ranks]) -> Indices:
    """Return the rank of each row, from 0 without gaps, by several arrays of ranks (rows,).

    The first array is the most significant. Equal rows share a rank.
    """
    order = stable_order(ranks)
    differs = np.zeros(len(order), np.bool_)
    for rank in ranks:
        ordered = rank[order]
        differs[1:] |= ordered[1:] != ordered[:-1]
    dense = np.empty(len(order), np.int64)
    dense[order] = np.cumsum(differs)
    return dense


def is_valid(column: Column) -> Mask:
    """Return a mask (rows,) of the cells that are not null."""
    known: Any = column.is_valid()
    marks: Mask = known.to_numpy(zero_copy_only=False)
    return marks


def _flipped(codes: Ranks) -> Ranks:
    # Complements reverse the order of integers, signed or unsigned.
    return ~codes


def _filled(array: Array) -> Array:
    """Return an array with nulls replaced by zero or an empty value, as keys cannot be null."""
    if not array.null_count:
        return array
    kind = array.type
    if pa.types.is_temporal(kind):
        carrier = pa.int32() if kind.bit_width == 32 else pa.int64()
        zero: Any = pa.array([0], carrier).cast(kind)
        return whole(pc.fill_null(array, zero[0]))
    return whole(pc.fill_null(array, pa.scalar(_zero(kind), kind)))


def _zero(kind: pa.DataType) -> object:
    if pa.types.is_decimal(kind):
        return Decimal(0)
    return {"string": "", "binary": b"", "bool": False}.get(str(kind), 0)
