"""Hashes of columns are the hashes of their rows, and buckets stay in their bounds."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.bucket import (
    assigner_of,
    fixed_buckets,
    hash_columns,
    hash_row,
    mod_buckets,
)
from ingestd.paimon.spec.data_types import DataType, parse_type
from ingestd.paimon.spec.hive_hash import hive_buckets, hive_hashes
from tests.support.typed_cells import cells, scalar_types

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)


@st.composite
def key_columns(draw: st.DrawFn) -> tuple[list[DataType], list[list[object]]]:
    types = draw(st.lists(scalar_types(), min_size=1, max_size=4))
    count = draw(st.integers(0, 8))
    columns = (st.lists(cells(t), min_size=count, max_size=count) for t in types)
    return types, [draw(column) for column in columns]


@given(key_columns())
def test_hashes_of_columns_are_hashes_of_rows(
    table: tuple[list[DataType], list[list[object]]],
) -> None:
    types, columns = table
    arrays = [column_of(column, t) for column, t in zip(columns, types, strict=True)]
    expected = [hash_row(types, row) for row in zip(*columns, strict=True)]
    assert hash_columns(arrays, types).tolist() == expected


@given(key_columns(), st.integers(0, 5), st.integers(0, 5))
def test_slices_and_chunks_hash_like_the_rows_in_them(
    table: tuple[list[DataType], list[list[object]]], start: int, cut: int
) -> None:
    types, columns = table
    arrays = [column_of(column, t) for column, t in zip(columns, types, strict=True)]
    whole = hash_columns(arrays, types).tolist()
    sliced = [array.slice(start) for array in arrays]
    assert hash_columns(sliced, types).tolist() == whole[start:]
    chunked = [pa.chunked_array([array[:cut], array[cut:]]) for array in arrays]
    assert hash_columns(chunked, types).tolist() == whole


@given(st.lists(st.text(max_size=200) | st.none(), min_size=1, max_size=20))
def test_texts_of_very_different_lengths_hash_like_their_rows(texts: list[str | None]) -> None:
    types = [DataType("STRING"), DataType("INT")]
    columns = [column_of(texts, types[0]), column_of([7] * len(texts), types[1])]
    assert hash_columns(columns, types).tolist() == [hash_row(types, (t, 7)) for t in texts]


@given(st.lists(INT32), st.integers(1, 1000))
def test_fixed_buckets_are_the_size_of_a_truncated_remainder(hashes: list[int], n: int) -> None:
    buckets = fixed_buckets(np.array(hashes, np.int32), n)
    assert buckets.dtype == np.int32
    assert buckets.tolist() == [abs(h) % n for h in hashes]


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.none()), st.integers(1, 1000))
def test_mod_buckets_are_never_negative(keys: list[int | None], n: int) -> None:
    buckets = mod_buckets(pa.array(keys, pa.int64()), n)
    assert buckets.tolist() == [(key or 0) % n for key in keys]


@given(INT32, st.lists(INT32), st.integers(1, 64), st.integers(1, 64))
def test_assigners_are_channels_and_one_key_has_one(
    partition: int, keys: list[int], channels: int, assigners: int
) -> None:
    hashes = np.array(keys, np.int32)
    chosen = assigner_of(partition, hashes, channels, assigners)
    assert ((chosen >= 0) & (chosen < channels)).all()
    assert assigner_of(partition, hashes[::-1], channels, assigners)[::-1].tolist() == (
        chosen.tolist()
    )
    assert len(set(chosen.tolist())) <= assigners


def _hive(cell: object) -> int:
    """One cell as Hive hashes it, before it is cut to 32 bits."""
    if isinstance(cell, str | bytes):
        hashed = 0
        for byte in cell.encode() if isinstance(cell, str) else cell:
            hashed = hashed * 31 + (byte - 256 if byte > 127 else byte)
        return hashed
    if isinstance(cell, Decimal):
        # Integers: methods of a Decimal round to the 28 digits of its context.
        sign, plain, exponent = cell.as_tuple()
        digits, scale = int("".join(map(str, plain))) * (1 - 2 * sign), -int(exponent)
        while scale > 0 and digits % 10 == 0:
            digits, scale = digits // 10, scale - 1
        digits, scale, hashed = (digits, scale, 0) if scale >= 0 else (digits * 10**-scale, 0, 0)
        for shift in range(96, -1, -32):
            hashed = hashed * 31 + (abs(digits) >> shift & 0xFFFFFFFF)
        return (hashed if digits >= 0 else -hashed) * 31 + scale
    return int(cell) if isinstance(cell, int) else 0


_WIDE = st.decimals(Decimal(-(10**30)), Decimal(10**30), places=4)
_NARROW = st.decimals(-1_000_000, 1_000_000, places=3)


@given(
    st.lists(st.tuples(st.text() | st.none(), st.binary() | st.none(), INT32 | st.none(),
                       _NARROW | st.none(), _WIDE | st.none()))
)  # fmt: skip
def test_hive_buckets_are_made_of_the_cells_of_their_rows(rows: list[tuple[object, ...]]) -> None:
    names = ("STRING", "BYTES", "INT", "DECIMAL(10, 3)", "DECIMAL(38, 4)")
    types = [parse_type(name) for name in names]
    columns = [column_of([row[i] for row in rows], t) for i, t in enumerate(types)]
    expected = []
    for row in rows:
        hashed = 0
        for cell in row:
            hashed = hashed * 31 + _hive(cell)
        expected.append((hashed & 0x7FFFFFFF) % 1024)
    assert hive_buckets(hive_hashes(columns, types), 1024).tolist() == expected
