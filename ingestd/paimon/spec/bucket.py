"""Compute the bucket of rows from the hash of their bucket key.

Columns are hashed as arrays; only nested types are hashed row by row.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#fixed-bucket
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.spec.arrow import Column, column_values
from ingestd.paimon.spec.binary_row import encode_row
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.hive_hash import HASHED_ROOTS
from ingestd.paimon.spec.row_words import Words, can_make_words, row_words

HASH_SEED = 42

_Hashes = npt.NDArray[np.uint32]
_C1, _C2, _C3 = 0xCC9E2D51, 0x1B873593, 0xE6546B64
_FINAL_1, _FINAL_2 = 0x85EBCA6B, 0xC2B2AE35
_MASK = 0xFFFFFFFF


def hash_columns(columns: Sequence[Column], types: Sequence[DataType]) -> npt.NDArray[np.int32]:
    """Return the hash of each row of key columns, as Java computes it; shape (rows,).

    Raises ValueError without columns: the hash of an empty row is `hash_row((), ())`.
    """
    arrays = [
        column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        for column in columns
    ]
    if not all(map(can_make_words, types)):
        cells = zip(*map(column_values, arrays), strict=True)
        return np.array([hash_row(types, row) for row in cells], np.int32)
    words = row_words(arrays, types)
    hashes: _Hashes = np.full(len(words.lengths), HASH_SEED, np.uint32)
    for word, rows in words:
        if rows is None:
            hashes = _mix_word(hashes, word)
        else:
            hashes[rows] = _mix_word(hashes[rows], word)
    return _finish(hashes, words.lengths).view(np.int32)


def hash_row(types: Sequence[DataType], values: Sequence[object]) -> int:
    """Return the hash of one row of key values as a signed 32-bit number."""
    return hash_bytes(encode_row(types, values))


def hash_bytes(data: bytes) -> int:
    """Return the Murmur3 hash of bytes as a signed 32-bit number.

    Each byte after the last whole 4-byte word is hashed as a word of its own.
    """
    whole = len(data) // 4 * 4
    words = np.frombuffer(data, "<u4", whole // 4).tolist()
    tail = np.frombuffer(data, np.int8, len(data) - whole, whole).tolist()
    hashed = HASH_SEED
    for word in words + tail:
        mixed = _rotated((word & _MASK) * _C1 & _MASK, 15) * _C2 & _MASK
        hashed = (_rotated(hashed ^ mixed, 13) * 5 + _C3) & _MASK
    final = _finish(np.array([hashed], np.uint32), np.array([len(data)], np.int64))
    return int(final.view(np.int32)[0])


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> 32 - bits) & _MASK


def _mix_word(hashes: _Hashes, word: Words) -> _Hashes:
    """Mix both halves of 8-byte words into the hashes, the low half first."""
    low = _mix(hashes, word.astype(np.uint32))
    return _mix(low, (word >> np.uint64(32)).astype(np.uint32))


def _mix(hashes: _Hashes, half: _Hashes) -> _Hashes:
    # Computed in place, because allocations dominate the cost.
    half *= np.uint32(_C1)
    high = half >> np.uint32(17)
    half <<= np.uint32(15)
    half |= high
    half *= np.uint32(_C2)
    half ^= hashes
    high = half >> np.uint32(19)
    half <<= np.uint32(13)
    half |= high
    half *= np.uint32(5)
    half += np.uint32(_C3)
    return half


def _finish(hashes: _Hashes, lengths: npt.NDArray[np.int64]) -> _Hashes:
    mixed = hashes ^ lengths.astype(np.uint32)
    mixed ^= mixed >> np.uint32(16)
    mixed *= np.uint32(_FINAL_1)
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(_FINAL_2)
    mixed ^= mixed >> np.uint32(16)
    return mixed


def _remainder(hashes: npt.NDArray[np.int32], divisor: int) -> npt.NDArray[np.int32]:
    """Return the absolute value of Java's remainder of signed hashes by a divisor."""
    # A 32-bit division takes a quarter of the time of a 64-bit one.
    return np.abs(np.fmod(hashes, np.int32(divisor)))


def fixed_buckets(hashes: npt.NDArray[np.int32], n: int) -> npt.NDArray[np.int32]:
    """Return the bucket, 0 to n-1, of each bucket key hash (default `bucket-function.type`)."""
    return _remainder(hashes, n)


def mod_buckets(column: Column, n: int) -> npt.NDArray[np.int32]:
    """Return the bucket, 0 to n-1, of each INT or BIGINT key (`bucket-function.type` = mod).

    A null is treated as 0.
    """
    keys: Any = column
    filled = keys.fill_null(0)
    values: npt.NDArray[np.int64] = np.asarray(filled).astype(np.int64)
    return np.mod(values, n).astype(np.int32)


def takes_bucket_keys(function: str, types: Sequence[DataType]) -> bool:
    """Return whether a bucket function (`bucket-function.type`) is defined for these key types."""
    roots = [t.root for t in types]
    if function == "mod":
        return len(roots) == 1 and roots[0] in ("INT", "BIGINT")
    if function == "hive":
        return HASHED_ROOTS.issuperset(roots)
    return function == "default"


def assigner_of(
    partition_hash: int | npt.NDArray[np.int64],
    key_hashes: npt.NDArray[np.int32],
    channels: int,
    assigners: int,
) -> npt.NDArray[np.int32]:
    """Return the task, 0 to `channels` - 1, that assigns the dynamic bucket of each key.

    `partition_hash` is the hash of the partition of all keys, or an array with the hash of the
    partition of each key. `assigners` is the number of tasks that share the keys of a partition.
    The result has the shape (keys,).
    """
    start = np.abs(np.asarray(partition_hash, np.int64)) % channels
    own = _remainder(key_hashes, assigners)
    if not start.ndim and assigners <= len(own):
        return ((start + np.arange(assigners)) % channels).astype(np.int32)[own]
    return ((start + own) % channels).astype(np.int32)
