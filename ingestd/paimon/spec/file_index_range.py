"""Encode and read range-bitmap indexes of a file: sorted distinct values, and bit slices of ranks.

The values are in chunks, each with its first value. Numbers are big-endian.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-range-bitmap
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from pyroaring import BitMap

from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.bit_slices import decode_bit_slices, encode_bit_slices
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, DataType
from ingestd.paimon.spec.file_index_cells import (
    INT,
    LAYOUTS,
    Cell,
    IndexDamage,
    RankedColumn,
    decode_value,
    encode_value,
    has_nanos,
    is_short_decimal,
    ranked_column,
    sort_key,
)
from ingestd.paimon.spec.roaring import decode_bitmap, encode_roaring

DEFAULT_CHUNK_SIZE = 16 * 1024

_VERSION = 1
_KIND = "range-bitmap"
_HEADER = struct.Struct(">Bii")
_DICTIONARY = struct.Struct(">Biii")
_SLICES = struct.Struct(">Bbii")
_PLACE = struct.Struct(">ii")
_CHUNK = struct.Struct(">iii")
_SMALL_ROOTS = frozenset({"BOOLEAN", "TINYINT", "SMALLINT"})
_BITS_WITHOUT_VALUES = 64
"""Number of slices that Java writes if all rows are null."""


def has_range_bitmap(t: DataType) -> bool:
    """Return whether columns of a type can have a range-bitmap index."""
    if t.root == "DECIMAL":
        return is_short_decimal(t)
    return (t.root in LAYOUTS or t.root in CHARACTER_ROOTS) and not has_nanos(t)


def default_chunk_size(t: DataType) -> int:
    """Return the default limit of a chunk's size in bytes; its first value does not count."""
    return 0 if t.root in _SMALL_ROOTS else DEFAULT_CHUNK_SIZE


def encode_range_bitmap(column: Column, t: DataType, chunk_size: int) -> bytes:
    """Return the range-bitmap index of a column, in chunks of at most `chunk_size` bytes.

    The first value of a chunk does not count. Raises ValueError for a type without such indexes.
    """
    if not has_range_bitmap(t):
        raise ValueError(f"columns of type {t} have no range-bitmap index")
    ranked = ranked_column(column, t)
    values = [encode_value(value, t) for value in ranked.values]
    dictionary = _encode_dictionary(values, t, chunk_size)
    bounds = values[0] + values[-1] if values else b""
    head = _HEADER.pack(_VERSION, len(column), len(values)) + bounds + INT.pack(len(dictionary))
    return INT.pack(len(head)) + head + dictionary + _encode_ranks(ranked)


def _encode_ranks(ranked: RankedColumn) -> bytes:
    distinct = len(ranked.values)
    bits = max((distinct - 1).bit_length(), 1) if distinct else _BITS_WITHOUT_VALUES
    slices = list(encode_bit_slices(ranked.rows, ranked.ranks.astype(np.uint64), bits))
    present = encode_roaring(ranked.rows)
    places, at = [], 0
    for of_bit in slices:
        places.append(_PLACE.pack(at, len(of_bit)))
        at += len(of_bit)
    indexes = b"".join(places)
    head = _SLICES.pack(_VERSION, bits, len(present), len(indexes)) + indexes
    return b"".join((INT.pack(len(head)), head, present, *slices))


def _encode_dictionary(values: Sequence[bytes], t: DataType, chunk_size: int) -> bytes:
    heads: list[bytes] = []
    bodies: list[bytes] = []
    starts: list[int] = []
    for rank, chunk in _chunks(values, t, chunk_size):
        first, others = chunk[0], chunk[1:]
        place = sum(map(len, bodies[-1:])) + (starts[-1] if starts else 0)
        starts.append(place)
        body = b"".join(others)
        if t.root in CHARACTER_ROOTS:
            offsets = np.cumsum([0, *map(len, others)])[:-1].astype(">i4").tobytes()
            sizes = _PLACE.pack(len(offsets), len(body))
            body = offsets + body
        else:
            sizes = _PLACE.pack(len(body), len(first))
        bodies.append(body)
        heads.append(bytes([_VERSION]) + first + _CHUNK.pack(rank, place, len(others)) + sizes)
    offsets = np.cumsum([0, *map(len, heads)])[:-1].astype(">i4").tobytes()
    chunks = b"".join(heads)
    head = _DICTIONARY.pack(_VERSION, len(heads), len(offsets), len(chunks))
    return b"".join((INT.pack(len(head)), head, offsets, chunks, *bodies))


def _chunks(
    values: Sequence[bytes], t: DataType, chunk_size: int
) -> Iterator[tuple[int, Sequence[bytes]]]:
    """Yield the chunks of values, each with the rank of its first value.

    The first value does not count. The offsets of texts have a limit of their own, `chunk_size`
    bytes as well.
    """
    most = chunk_size // INT.size if t.root in CHARACTER_ROOTS else len(values)
    start, room = 0, chunk_size
    for rank in range(1, len(values)):
        room -= len(values[rank])
        if room < 0 or rank - start > most:
            yield start, values[start:rank]
            start, room = rank, chunk_size
    if values:
        yield start, values[start:]


@dataclass(frozen=True)
class RangeBitmapIndex:
    """A decoded range-bitmap index.

    `bounds` are the smallest and the largest value (None: all values are null). `dictionary` and
    `ranks` are the positions in `data` of the distinct values and of the bit slices of the ranks of
    the rows. `source` names the file in errors.
    """

    data: bytes
    type: DataType
    source: str
    row_count: int
    bounds: tuple[Cell, Cell] | None
    dictionary: int
    ranks: int

    @property
    def content(self) -> object:
        """The distinct values and the ranks of all rows, for comparison: equal for equal columns.

        Raises FormatError if the index is damaged.
        """
        with IndexDamage(_KIND, self.source):
            values = [sort_key(v) for i in range(len(self._chunks)) for v in self._values(i)]
            _, bits, length, _ = _SLICES.unpack_from(self.data, self.ranks + INT.size)
            at = self._present_at + length
            slices, _ = decode_bit_slices(self.data, self.source, at, bits)
            return self.row_count, values, self._present, slices

    @cached_property
    def has_null(self) -> bool:
        """Whether any row has null. Raises FormatError if the index is damaged."""
        with IndexDamage(_KIND, self.source):
            return len(self._present) < self.row_count

    def contains(self, value: Cell) -> bool:
        """Return whether any row has this value. Raises FormatError if the index is damaged."""
        with IndexDamage(_KIND, self.source):
            wanted = sort_key(value)
            chunk = bisect_right([sort_key(first) for first, _ in self._chunks], wanted) - 1
            return chunk >= 0 and any(sort_key(v) == wanted for v in self._values(chunk))

    def matches(self, column: Column) -> bool:
        """Return whether a column has, in each row, the value that the index has for the row.

        Raises FormatError if the index is damaged.
        """
        encoded = encode_range_bitmap(column, self.type, len(self.data))
        of_column = decode_range_bitmap(encoded, self.type, "the rows")
        return of_column is not None and of_column.content == self.content

    @property
    def _present_at(self) -> int:
        return self.ranks + INT.size + int(INT.unpack_from(self.data, self.ranks)[0])

    @cached_property
    def _present(self) -> BitMap:
        """The rows that are not null."""
        return decode_bitmap(self.data, self.source, self._present_at)[0]

    @cached_property
    def _chunks(self) -> list[tuple[Cell, int]]:
        """The first value of each chunk, and the position after it."""
        data, at = self.data, self.dictionary
        _, count, offsets, _ = _DICTIONARY.unpack_from(data, at + INT.size)
        places = at + INT.size + INT.unpack_from(data, at)[0]
        starts = [INT.unpack_from(data, places + INT.size * i)[0] for i in range(count)]
        return [decode_value(data, places + offsets + start + 1, self.type) for start in starts]

    def _values(self, chunk: int) -> Iterator[Cell]:
        data, (first, at) = self.data, self._chunks[chunk]
        yield first
        _, place, count = _CHUNK.unpack_from(data, at)
        offsets_or_keys, _ = _PLACE.unpack_from(data, at + _CHUNK.size)
        _, _, offsets, chunks = _DICTIONARY.unpack_from(data, self.dictionary + INT.size)
        head = INT.size + INT.unpack_from(data, self.dictionary)[0]
        at = self.dictionary + head + offsets + chunks + place
        at += offsets_or_keys if self.type.root in CHARACTER_ROOTS else 0
        for _ in range(count):
            value, at = decode_value(data, at, self.type)
            yield value


def decode_range_bitmap(data: bytes, t: DataType, source: str) -> RangeBitmapIndex | None:
    """Return the decoded range-bitmap index of a column; None for an unsupported type or layout.

    Raises FormatError, naming `source`, if it is damaged.
    """
    if not has_range_bitmap(t) or data[INT.size : INT.size + 1] != bytes([_VERSION]):
        return None
    with IndexDamage(_KIND, source):
        (head,) = INT.unpack_from(data)
        _, row_count, distinct = _HEADER.unpack_from(data, INT.size)
        at = INT.size + _HEADER.size
        bounds = None
        if distinct > 0:
            low, at = decode_value(data, at, t)
            high, at = decode_value(data, at, t)
            bounds = (low, high)
        (length,) = INT.unpack_from(data, at)
        dictionary = INT.size + head
        return RangeBitmapIndex(data, t, source, row_count, bounds, dictionary, dictionary + length)
