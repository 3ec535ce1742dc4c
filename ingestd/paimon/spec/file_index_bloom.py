"""Bloom filters of a file index, which exclude values that a column does not contain.

Bytes: the number of hash functions (32 bits, big-endian), then the bits, least significant first.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-bloomfilter
"""

import math
import struct

import numpy as np
import numpy.typing as npt

from ingestd.errors import FormatError
from ingestd.paimon.spec.hash64 import Hashes

DEFAULT_ITEMS = 1_000_000
DEFAULT_FPP = 0.1

_MAX_FUNCTIONS = 1024
_COUNT = struct.Struct(">i")


def encode_bloom_filter(hashes: Hashes, items: int, fpp: float) -> bytes:
    """Return a filter of these hashes.

    It is sized for `items` values and the false-positive rate `fpp`.
    """
    wanted = int(-items * math.log(fpp) / math.log(2) ** 2)
    size = wanted + 8 - wanted % 8
    functions = max(1, math.floor(size / items * math.log(2) + 0.5))
    bits = np.zeros(size, bool)
    for i in range(1, functions + 1):
        bits[_bit_positions(hashes, i, size)] = True
    return _COUNT.pack(functions) + np.packbits(bits, bitorder="little").tobytes()


def may_contain(data: bytes, hashes: Hashes, source: str) -> npt.NDArray[np.bool_]:
    """Return a mask of the hashes that a filter may contain.

    Raises FormatError, naming `source`, if it is damaged.
    """
    if len(data) <= _COUNT.size:
        raise FormatError(f"bloom filter of {source} is damaged: it has {len(data)} bytes")
    (functions,) = _COUNT.unpack_from(data)
    if not 0 < functions <= _MAX_FUNCTIONS:
        raise FormatError(f"bloom filter of {source} is damaged: {functions} hash functions")
    bits = np.frombuffer(data, np.uint8, offset=_COUNT.size)
    possible = np.ones(len(hashes), bool)
    for i in range(1, functions + 1):
        positions = _bit_positions(hashes, i, 8 * len(bits))
        possible &= (bits[positions >> 3] >> (positions & 7).astype(np.uint8)) & 1 == 1
    return possible


def _bit_positions(hashes: Hashes, i: int, size: int) -> npt.NDArray[np.int64]:
    """Return the bit positions (below `size`) of hashes by the i-th hash function, as in Java."""
    low, high = hashes.astype(np.uint32), (hashes >> np.uint64(32)).astype(np.uint32)
    combined = (low + np.uint32(i) * high).view(np.int32)
    return np.where(combined < 0, ~combined, combined).astype(np.int64) % size
