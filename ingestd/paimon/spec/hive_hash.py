"""Compute the Hive hash of rows, for tables with `bucket-function.type` = hive.

The hash of a row combines the hashes of its cells with the factor 31; a null hashes to 0.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#fixed-bucket
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import Array, Column
from ingestd.paimon.spec.data_types import BINARY_ROOTS, CHARACTER_ROOTS, DataType
from ingestd.paimon.spec.decimal_digits import unscaled

_Hashes = npt.NDArray[np.uint32]

_INT_ROOTS = frozenset({"TINYINT", "SMALLINT", "INT", "DATE", "TIME"})
_BYTES_ROOTS = CHARACTER_ROOTS | BINARY_ROOTS
HASHED_ROOTS = frozenset(
    {"BOOLEAN", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"} | _INT_ROOTS | _BYTES_ROOTS
)
"""The types that a bucket key may have; Java defines no Hive hash for other types."""

_FACTOR = 31
_CANONICAL_NAN = {4: 0x7FC00000, 8: 0x7FF8000000000000}
_INT64_DIGITS = 18


def hive_hashes(columns: Sequence[Column], types: Sequence[DataType]) -> npt.NDArray[np.int32]:
    """Return the Hive hash of each row of the columns, shape (rows,).

    Raises ValueError without columns and for a type that has no Hive hash, such as a nested type.
    """
    if not columns:
        raise ValueError("rows without columns have no hash")
    hashes: _Hashes = np.zeros(len(columns[0]), np.uint32)
    for column, t in zip(columns, types, strict=True):
        hashes *= np.uint32(_FACTOR)
        hashes += _cells(_whole(column), t)
    return hashes.view(np.int32)


def hive_buckets(hashes: npt.NDArray[np.int32], n: int) -> npt.NDArray[np.int32]:
    """Return the bucket, 0 to n-1, of each Hive hash: the hash without its sign bit, modulo n."""
    return ((hashes & 0x7FFFFFFF) % n).astype(np.int32)


def _whole(column: Column) -> Array:
    whole: Any = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array: Array = pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
    return array


def _cells(array: Array, t: DataType) -> _Hashes:
    if t.root not in HASHED_ROOTS:
        raise ValueError(f"Hive has no hash for type {t}")
    if t.root in _BYTES_ROOTS:
        hashes = _of_bytes(array)
    elif t.root == "DECIMAL":
        hashes = _of_decimals(array, t)
    elif t.root in ("FLOAT", "DOUBLE"):
        hashes = _of_floats(array, 4 if t.root == "FLOAT" else 8)
    else:
        hashes = _of_numbers(array, t)
    if array.null_count:
        hashes[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return hashes


def _of_numbers(array: Array, t: DataType) -> _Hashes:
    plain: Any = array
    if t.root in ("DATE", "TIME"):
        plain = plain.view(pa.int32() if plain.type.bit_width == 32 else pa.int64())
    filled: Any = pc.fill_null(plain.cast(pa.int64()), 0)
    numbers: npt.NDArray[np.int64] = filled.to_numpy(zero_copy_only=False)
    return _folded(numbers) if t.root == "BIGINT" else numbers.astype(np.uint32)


def _folded(words: npt.NDArray[Any]) -> _Hashes:
    """Fold 8-byte words to 4 bytes: the exclusive or of their halves."""
    plain = words.view(np.uint64)
    return (plain ^ plain >> np.uint64(32)).astype(np.uint32)


def _of_floats(array: Array, width: int) -> _Hashes:
    """Hash floats by their bits, with a single NaN and a single zero."""
    plain: Any = array.cast(pa.float32() if width == 4 else pa.float64())
    values: npt.NDArray[Any] = pc.fill_null(plain, 0.0).to_numpy(zero_copy_only=False)
    bits = (values + values.dtype.type(0)).view(np.uint32 if width == 4 else np.uint64)
    bits = np.where(np.isnan(values), bits.dtype.type(_CANONICAL_NAN[width]), bits)
    return bits.astype(np.uint32) if width == 4 else _folded(bits)


def _of_bytes(array: Array) -> _Hashes:
    """Return the hash of each value: the sum of its signed bytes, weighted with powers of 31.

    The last byte counts once, the byte before it 31 times, and so on.
    """
    large: Any = array.cast(pa.large_binary())
    buffers = large.buffers()
    offsets = np.frombuffer(buffers[1], np.int64)[large.offset : large.offset + len(large) + 1]
    hashes: _Hashes = np.zeros(len(large), np.uint32)
    first, last = int(offsets[0]), int(offsets[-1])
    if first == last:
        return hashes
    data = np.frombuffer(buffers[2], np.int8)[first:last].astype(np.int32).view(np.uint32)
    lengths = np.diff(offsets)
    powers = np.full(int(lengths.max()), _FACTOR, np.uint32)
    powers[0] = 1
    np.multiply.accumulate(powers, out=powers)
    exponents = np.repeat(offsets[1:] - first, lengths) - np.arange(1, len(data) + 1)
    sums = np.zeros(len(data) + 1, np.uint32)
    np.cumsum(data * powers[exponents], out=sums[1:])
    hashes += sums[offsets[1:] - first] - sums[offsets[:-1] - first]
    return hashes


def _of_decimals(array: Array, t: DataType) -> _Hashes:
    """Hash decimals as Java's BigDecimal without trailing zeros."""
    scale = t.scale or 0
    if (t.precision or 0) <= _INT64_DIGITS:
        return _of_small_decimals(array, scale)
    encoded: Any = pc.dictionary_encode(array)
    distinct = [
        _of_digits(unscaled(value, scale), scale) for value in encoded.dictionary.to_pylist()
    ]
    known: _Hashes = np.array([*distinct, 0], np.uint32)
    hashes: _Hashes = known[pc.fill_null(encoded.indices, len(distinct)).to_numpy()]
    return hashes


def _of_small_decimals(array: Array, scale: int) -> _Hashes:
    filled: Any = array.cast(pa.decimal128(38, scale))
    words = np.frombuffer(filled.buffers()[1], np.int64)
    digits = words[2 * filled.offset : 2 * (filled.offset + len(filled)) : 2].copy()
    digits[array.is_null().to_numpy(zero_copy_only=False)] = 0
    scales = np.where(digits == 0, 0, scale)
    while bool((shorter := (scales > 0) & (digits % 10 == 0)).any()):
        digits[shorter] //= 10
        scales[shorter] -= 1
    size = np.abs(digits).view(np.uint64)
    high = (size >> np.uint64(32)).astype(np.uint32) * np.uint32(_FACTOR)
    hashes = high + size.astype(np.uint32)
    hashes = np.where(digits < 0, np.uint32(0) - hashes, hashes)
    return hashes * np.uint32(_FACTOR) + scales.astype(np.uint32)


def _of_digits(digits: int, scale: int) -> int:
    """Return the hash of a decimal, given as an unscaled integer of any size and a scale."""
    if digits == 0:
        return 0
    while scale > 0 and digits % 10 == 0:
        digits, scale = digits // 10, scale - 1
    size, hashed = abs(digits), 0
    for shift in range((size.bit_length() - 1) // 32 * 32, -1, -32):
        hashed = hashed * _FACTOR + (size >> shift & 0xFFFFFFFF)
    hashed = -hashed if digits < 0 else hashed
    return (hashed * _FACTOR + scale) & 0xFFFFFFFF
