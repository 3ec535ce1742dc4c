"""Encode and read Bloom filters of a file, which exclude values that a column does not contain.

The number of hash functions (32 bits), big-endian, then the bits, least significant first.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-bloomfilter
"""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ingestd.errors import FormatError
from ingestd.paimon.spec.arrow import Column, column_of
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.file_index_cells import Cell
from ingestd.paimon.spec.hash64 import Hashes, hash_values, is_hashable

_COUNT = struct.Struct(">i")
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
DEFAULT_FPP = 0.1

_MAX_FUNCTIONS = 1024


def encode_bloom_index(column: Column, t: DataType, items: int | None, fpp: float) -> bytes:
    """Return the Bloom filter of a column, sized for `items` values (None: its own values).

    `fpp` is the false-positive rate, between 0 and 1. Raises ValueError for a type whose values
    cannot be hashed, such as BOOLEAN or DECIMAL.
    """
    hashes = np.unique(hash_values(column, t))
    return encode_bloom_filter(hashes, items or max(len(hashes), 1), fpp)


def encode_bloom_filter(hashes: Hashes, items: int, fpp: float) -> bytes:
    """Return a Bloom filter of these hashes.

    Its size is chosen for `items` values and the false-positive rate `fpp`, between 0 and 1.
    """
    wanted = int(-items * math.log(fpp) / math.log(2) ** 2)
    size = wanted + 8 - wanted % 8
    functions = max(1, math.floor(size / items * math.log(2) + 0.5))
    bits = np.zeros(size, bool)
    for i in range(1, functions + 1):
        bits[_bit_positions(hashes, i, size)] = True
    return _COUNT.pack(functions) + np.packbits(bits, bitorder="little").tobytes()


@dataclass(frozen=True, slots=True)
class BloomFilterIndex:
    """The Bloom filter `data` of a column; `source` names it in errors.

    It can exclude single values, but neither nulls nor ranges.
    """

    data: bytes
    type: DataType
    source: str

    @property
    def may_hold_null(self) -> bool:
        """Whether a row may have null: always True, because a filter has no hash of nulls."""
        return True

    @property
    def may_hold_value(self) -> bool:
        """Whether a row may have a value that is not null: always True.

        A filter does not tell whether any value was added.
        """
        return True

    def may_hold(self, operator: str, values: Sequence[Cell]) -> bool:
        """Return whether `column operator value` may be true for a row and one of `values`.

        Raises FormatError if the filter is damaged.
        """
        if operator != "=":
            return True
        bits = _BITS.get(self.type.root)
        fitting = [v for v in values if bits is None or -(1 << (bits - 1)) <= v < 1 << (bits - 1)]
        hashes = hash_values(column_of(fitting, self.type), self.type)
        return bool(np.any(may_contain(self.data, hashes, self.source)))

    def matches(self, column: Column) -> bool:
        """Return whether the filter contains all values of a column.

        Raises FormatError if the filter is damaged.
        """
        return bool(may_contain(self.data, hash_values(column, self.type), self.source).all())


def decode_bloom_index(data: bytes, t: DataType, source: str) -> BloomFilterIndex | None:
    """Return the Bloom filter of a column; None for a type whose values cannot be hashed.

    `source` names the filter in errors.
    """
    return BloomFilterIndex(data, t, source) if is_hashable(t) else None


def may_contain(data: bytes, hashes: Hashes, source: str) -> npt.NDArray[np.bool_]:
    """Return a mask of the hashes that a Bloom filter may contain; shape (hashes,).

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
