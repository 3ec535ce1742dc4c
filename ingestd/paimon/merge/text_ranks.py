"""Strings and binary values as numbers that compare like their bytes, eight bytes per number.

Sorting the numbers takes a tenth of the time of sorting strings.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/aggregation/#aggregation-functions
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import Array

LONGEST = 64
"""Longer strings are ranked by sorting their distinct values."""

Codes = npt.NDArray[np.uint64]
_CHUNK = 8


def text_ranks(array: Array) -> list[npt.NDArray[Any]]:
    """Return arrays (rows,) of ranks that order strings or binary values by their bytes.

    The first array is the most significant. The values must not be null.
    """
    if not len(array):
        return [np.empty(0, np.uint64)]
    offsets = _offsets(array)
    lengths = np.diff(offsets)
    longest = int(lengths.max())
    if longest > LONGEST:
        return [_numbered(array)]
    data = _bytes(array, offsets)
    ranks: list[npt.NDArray[Any]] = list(_chunks(data, offsets, lengths, longest))
    # Strings are padded with zero bytes, so only strings that end in zero bytes are ambiguous.
    if not ranks or (int(lengths.min()) < longest and not bool(data[:-_CHUNK].all())):
        ranks.append(lengths)
    return ranks


def prefixes(array: Array) -> Codes:
    """Return the first eight bytes of each string or binary value as a big-endian number.

    The numbers compare like these bytes, and shorter values are padded with zero bytes, so
    different values may have equal numbers. The number of a null is undefined.
    """
    if not len(array):
        return np.empty(0, np.uint64)
    offsets = _offsets(array)
    return _chunk(_bytes(array, offsets), offsets, np.diff(offsets), 0)


def _offsets(array: Array) -> npt.NDArray[np.int64]:
    """Return the offsets of all strings in their joined bytes, and the end; shape (rows + 1,)."""
    buffer: Any = array.buffers()[1]
    every = np.frombuffer(buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    return every.astype(np.int64) - int(every[0])


def _bytes(array: Array, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Return the bytes of all strings, padded so that a chunk can be read at each byte."""
    _, starts, texts = array.buffers()
    padded = np.zeros(int(offsets[-1]) + _CHUNK, np.uint8)
    if texts is not None and len(padded) > _CHUNK:
        positions: Any = starts
        first = int(np.frombuffer(positions, np.int32)[array.offset])
        content: Any = texts
        every = np.frombuffer(content, np.uint8)
        padded[:-_CHUNK] = every[first : first + len(padded) - _CHUNK]
    return padded


def _chunks(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    longest: int,
) -> Iterator[Codes]:
    for start in range(0, longest, _CHUNK):
        codes = _chunk(data, offsets, lengths, start)
        # Bytes that no string has need no bits.
        yield codes >> np.uint64(8 * max(0, _CHUNK - (longest - start)))


def _chunk(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    start: int,
) -> Codes:
    """Return eight bytes of each string from byte `start` on, as a number; zeros follow its end."""
    # Eight bytes from each position on, as one number.
    at_each = np.ndarray((len(data) - _CHUNK + 1,), ">u8", data, strides=(1,))
    inside = np.clip(lengths - start, 0, _CHUNK)
    indices = np.minimum(offsets[:-1] + start, len(at_each) - 1)
    codes: Codes = at_each[indices].astype(np.uint64)
    # Mask the bytes of the next string.
    unused = (8 * (_CHUNK - inside)).astype(np.uint64)
    return np.where(inside > 0, (codes >> unused) << unused, np.uint64(0))


def _numbered(array: Array) -> npt.NDArray[np.int32]:
    encoded: Any = array.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    numbers = np.empty(len(order), np.int32)
    numbers[order] = np.arange(len(order), dtype=np.int32)
    ranks: npt.NDArray[np.int32] = numbers[encoded.indices.to_numpy()]
    return ranks
