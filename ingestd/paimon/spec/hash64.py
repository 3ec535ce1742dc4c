"""Compute the 64-bit hashes of values for file indexes.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-bloomfilter

Texts and bytes are hashed by xxHash64 with seed 0, other supported types by a mix function of their
64-bit form. Hashes are computed with numpy arrays, whose integers wrap around on overflow.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)

Hashes = npt.NDArray[np.uint64]
_Rows = npt.NDArray[np.uint8]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(0x9E3779B185EBCA87),
    np.uint64(0xC2B2AE3D27D4EB4F),
    np.uint64(0x165667B19E3779F9),
    np.uint64(0x85EBCA77C2B2AE63),
    np.uint64(0x27D4EB2F165667C5),
)
_NANOS_PER_MICRO = 1000
_WIDE = INTEGER_ROOTS | {"DATE", "TIME"}


def is_hashable(t: DataType) -> bool:
    """Return whether values of a type can be hashed.

    Booleans, decimals, VARIANTs and nested types cannot.
    """
    known = CHARACTER_ROOTS | BINARY_ROOTS | _WIDE | TIMESTAMP_ROOTS | {"FLOAT", "DOUBLE"}
    return t.root in known


def hash_values(column: Column, t: DataType) -> Hashes:
    """Return the 64-bit hash of each non-null value of a column, shape (non-null values,).

    Raises ValueError for a type that cannot be hashed, such as BOOLEAN or DECIMAL.
    """
    if not is_hashable(t):
        raise ValueError(f"values of type {t} have no 64-bit hash")
    array: Any = column.drop_null()
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            return np.concatenate([hash_values(chunk, t) for chunk in array.chunks])
    if t.root in CHARACTER_ROOTS or t.root in BINARY_ROOTS:
        return _hash_bytes(array)
    return _mix(_words(array, t))


def _words(array: Any, t: DataType) -> npt.NDArray[np.int64]:  # noqa: ANN401  (any fixed width)
    if t.root in ("FLOAT", "DOUBLE"):
        numbers = array.to_numpy(zero_copy_only=False)
        # Java has a single NaN.
        numbers = np.where(np.isnan(numbers), numbers.dtype.type("nan"), numbers)
        bits: npt.NDArray[np.int64] = numbers.view(f"i{numbers.itemsize}").astype(np.int64)
        return bits
    if t.root in INTEGER_ROOTS:
        whole = array
    else:
        whole = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    words: npt.NDArray[np.int64] = whole.to_numpy(zero_copy_only=False).astype(np.int64)
    nanos = t.root in TIMESTAMP_ROOTS and (t.precision or 0) > 6
    return words // _NANOS_PER_MICRO if nanos else words


def _mix(words: npt.NDArray[np.int64]) -> Hashes:
    """Apply Thomas Wang's mix function, with signed shifts as in Java."""
    k = ~words + (words << 21)
    k = k ^ (k >> 24)
    k = k + (k << 3) + (k << 8)
    k = k ^ (k >> 14)
    k = k + (k << 2) + (k << 4)
    k = k ^ (k >> 28)
    mixed: Hashes = (k + (k << 31)).view(np.uint64)
    return mixed


def _hash_bytes(array: Any) -> Hashes:  # noqa: ANN401  (strings or binaries)
    """Return the xxHash64 of each value; values of the same length are hashed at once."""
    binary = array.cast(pa.large_binary())
    buffers = binary.buffers()
    count = len(binary)
    offsets = np.frombuffer(buffers[1], np.int64, count + 1, 8 * binary.offset)
    data = np.frombuffer(buffers[2] or b"", np.uint8)
    lengths = np.diff(offsets)
    hashes = np.empty(count, np.uint64)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        indices = offsets[rows][:, np.newaxis] + np.arange(length)
        hashes[rows] = _xxhash(data[indices], length)
    return hashes


def _xxhash(rows: _Rows, length: int) -> Hashes:
    count = len(rows)
    at = 0
    with np.errstate(over="ignore"):
        if length >= 32:
            lanes = [np.full(count, seed) for seed in (_P1 + _P2, _P2, np.uint64(0), ~_P1 + 1)]
            for at in range(0, length - 31, 32):
                lanes = [_round(lanes[i], _take(rows, at + 8 * i, 8)) for i in range(4)]
            at += 32
            h = np.zeros(count, np.uint64)
            for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True):
                h = h + _rotate(lane, bits)
            for lane in lanes:
                h = (h ^ _round(np.zeros(count, np.uint64), lane)) * _P1 + _P4
        else:
            h = np.full(count, _P5)
        h = h + np.uint64(length)
        return _finish(_tail(h, rows, at, length))


def _tail(h: Hashes, rows: _Rows, at: int, length: int) -> Hashes:
    while at + 8 <= length:
        h = h ^ _round(np.zeros(len(h), np.uint64), _take(rows, at, 8))
        h = _rotate(h, 27) * _P1 + _P4
        at += 8
    if at + 4 <= length:
        h = _rotate(h ^ (_take(rows, at, 4) * _P1), 23) * _P2 + _P3
        at += 4
    for i in range(at, length):
        h = _rotate(h ^ (rows[:, i].astype(np.uint64) * _P5), 11) * _P1
    return h


def _finish(h: Hashes) -> Hashes:
    h = (h ^ (h >> np.uint64(33))) * _P2
    h = (h ^ (h >> np.uint64(29))) * _P3
    return h ^ (h >> np.uint64(32))


def _round(lane: Hashes, word: Hashes) -> Hashes:
    return _rotate(lane + word * _P2, 31) * _P1


def _rotate(h: Hashes, bits: int) -> Hashes:
    return (h << np.uint64(bits)) | (h >> np.uint64(64 - bits))


def _take(rows: _Rows, at: int, size: int) -> Hashes:
    """Return the little-endian word at byte `at` of each row; `size` is 4 or 8 bytes."""
    words = np.ascontiguousarray(rows[:, at : at + size])
    return words.view(f"<u{size}").reshape(-1).astype(np.uint64)
