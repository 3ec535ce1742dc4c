"""Compute fingerprints of keys: pairs of 64-bit hashes that represent keys in memory.

A fingerprint is computed from the words of the key's BinaryRow. For keys of one word it is unique;
two longer keys have equal fingerprints with a probability of 1 in 2^128. Fingerprints are never
stored.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#binaryrow
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.row_words import Rows, Words, row_words

Numbers = npt.NDArray[np.uint64]

_FACTORS = ((0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9), (0xC2B2AE3D27D4EB4F, 0x94D049BB133111EB))
"""Odd numbers, so that the multiplication is reversible."""


@dataclass(frozen=True, slots=True)
class KeyFingerprints:
    """Fingerprints of keys, each two 64-bit hashes: key i has `first[i]` and `second[i]`."""

    first: Numbers
    second: Numbers

    def __len__(self) -> int:
        return len(self.first)

    def take(self, picked: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> "KeyFingerprints":
        """Return the fingerprints at the given indices, or where a mask is true."""
        return KeyFingerprints(self.first[picked], self.second[picked])

    @classmethod
    def concat(cls, parts: "Sequence[KeyFingerprints]") -> "KeyFingerprints":
        """Return the fingerprints of all parts, in the order of the parts."""
        empty = np.zeros(0, np.uint64)
        return cls(
            np.concatenate([empty, *(prints.first for prints in parts)]),
            np.concatenate([empty, *(prints.second for prints in parts)]),
        )


def key_fingerprints(
    columns: Sequence[Column], types: Sequence[DataType], seeds: tuple[int, int]
) -> KeyFingerprints:
    """Return the fingerprint of each row of key columns, which may contain nulls.

    Fingerprints are comparable only if they are computed with the same `seeds`. `can_make_words`
    must be true for all types; it is false for nested types. Raises ValueError if there are no
    columns, or not as many types as columns.
    """
    arrays = [
        column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        for column in columns
    ]
    words = row_words(arrays, types)
    count = len(words.lengths)
    first, second = (np.full(count, seed, np.uint64) for seed in seeds)
    for word, rows in words:
        _absorb(first, word, rows, _FACTORS[0])
        _absorb(second, word, rows, _FACTORS[1])
    return KeyFingerprints(first, second)


def _absorb(state: Numbers, word: Words, rows: Rows | None, factors: tuple[int, int]) -> None:
    mixed = (state if rows is None else state[rows]) ^ word
    for factor, shift in zip(factors, (32, 29), strict=True):
        mixed *= np.uint64(factor)
        mixed ^= mixed >> np.uint64(shift)
    state[slice(None) if rows is None else rows] = mixed
