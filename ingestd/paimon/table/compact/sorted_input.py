"""Read sorted runs in parallel, in blocks with disjoint key ranges.

Every run is read in batches. A block ends at the smallest of the last keys of the batches: up to
there all runs have been read. So memory holds one batch per run, whatever the size of the runs. In
runs that are only looked up for older rows, files and row groups are skipped if their key range
contains no compacted key.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/#compaction
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.format.row_groups import BatchSize
from ingestd.paimon.merge.base import column_ranks
from ingestd.paimon.merge.merged_rows import LEVEL
from ingestd.paimon.spec.arrow import Column, column_values
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.table.files.data_files import DataFileReader
from ingestd.paimon.table.metadata.file_stats import KeyTest
from ingestd.paimon.table.read.bucket_read import Key, comparable_key, comparable_value

FILE = "_FILE"
"""A column with the number of each row's file among those of its source."""
POSITION = "_POSITION"
"""A column with the position of each row in its file."""
_MEMORY = 16 << 20
"""Bytes that the batches of all runs take together."""
Mask = npt.NDArray[np.bool_]


def touched_rows(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """Return at least the rows of all keys in `keys`; `keys` has the key columns.

    `rows` are ordered by key and have each key once; `keys` may come in any order.
    """
    names = keys.column_names
    if len(names) == 1 and _is_number(rows.column(names[0]).type):
        return rows.take(_found(rows.column(names[0]), keys.column(names[0])))
    mask: Mask = np.ones(rows.num_rows, np.bool_)
    for name in names:
        # To Arrow 0.0 and -0.0 are two values, to keys they are one.
        if not pa.types.is_floating(keys.column(name).type):
            mask &= _among(rows.column(name), keys.column(name))
    return rows.take(np.flatnonzero(mask))


def _is_number(kind: pa.DataType) -> bool:
    """Return whether values become single numbers that compare alike in all tables."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_temporal(kind) or types.is_floating(kind))


def _found(column: Column, keys: Column) -> npt.NDArray[np.int64]:
    (ranks,), (wanted,) = column_ranks(column), column_ranks(keys)
    wanted = np.unique(wanted)
    places = np.searchsorted(ranks, wanted)
    inside = places < len(ranks)
    places, wanted = places[inside], wanted[inside]
    found: npt.NDArray[np.int64] = places[ranks[places] == wanted].astype(np.int64)
    return found


def _among(column: Column, keys: Column) -> Mask:
    values: Any = pc.unique(keys)
    is_in: Any = pc.is_in
    mask: Mask = is_in(column, value_set=values).to_numpy()
    return mask


def batch_size(count: int) -> BatchSize:
    """Return the size of a batch when `count` files are read in parallel."""
    return BatchSize(_MEMORY // max(count, 1))


@dataclass(frozen=True, slots=True)
class Source:
    """Files of one level in key order; no key is in two of them.

    Without `picked` the files are not compacted themselves: they are asked for older rows.
    `fields` are the columns to read.
    """

    level: int
    files: tuple[DataFileMeta, ...]
    fields: tuple[DataField, ...]
    picked: bool = True


@dataclass(frozen=True, slots=True)
class BucketInput:
    """Where the files of sources lie, and how they are read; `places` adds `FILE`, `POSITION`."""

    reader: DataFileReader
    partition: bytes
    bucket: int
    key_names: tuple[str, ...]
    places: bool = False

    def blocks(self, sources: Sequence[Source]) -> Iterator[list[tuple[int, pa.Table]]]:
        """Yield blocks of rows with consecutive key ranges, and the sources of their rows.

        Rows of a source are ordered by key; they have the fields of the source and `LEVEL`. Each
        block has rows of sources that are picked, and of the others hardly more than the rows of
        their keys.
        """
        size = batch_size(len(sources))
        blocks = self._blocks(sources, size)
        if all(source.picked for source in sources):
            yield from blocks
            return
        # Few of the older rows are left, and deciding about a block has its price.
        held: list[list[tuple[int, pa.Table]]] = []
        held_bytes = 0
        for block in blocks:
            held.append(block)
            held_bytes += sum(part.nbytes for _, part in block)
            del block
            if held_bytes >= size.memory:
                yield _as_one(held)
                held_bytes = 0
        if held:
            yield _as_one(held)

    def _blocks(
        self, sources: Sequence[Source], size: BatchSize
    ) -> Iterator[list[tuple[int, pa.Table]]]:
        picked = [_Cursor(self, source, size, ()) for source in sources if source.picked]
        asked = [_Cursor(self, source, size, picked) for source in sources if not source.picked]
        own, others = iter(picked), iter(asked)
        cursors = [next(own if source.picked else others) for source in sources]
        while True:
            # Which older rows are read depends on the keys that are at hand.
            for cursor in (*picked, *asked):
                cursor.fill()
            if not any(cursor.has_rows for cursor in picked):
                return
            bounds = [cursor.last_key for cursor in cursors if not cursor.is_last]
            bound = min(bounds, default=None)
            block = self._touched(sources, [cursor.take(bound) for cursor in cursors])
            if block:
                yield block
            # Not in memory while more is read.
            del block

    def _touched(
        self, sources: Sequence[Source], parts: Sequence[pa.Table]
    ) -> list[tuple[int, pa.Table]]:
        """Return the parts that have rows, without older rows of keys that no picked source has."""
        both = list(zip(sources, parts, strict=True))
        keys = [part.select(self.key_names) for one, part in both if one.picked and part.num_rows]
        if not keys:
            return []
        kept = [
            part if one.picked or not part.num_rows else touched_rows(part, pa.concat_tables(keys))
            for one, part in both
        ]
        return [(number, part) for number, part in enumerate(kept) if part.num_rows]


def _as_one(blocks: list[list[tuple[int, pa.Table]]]) -> list[tuple[int, pa.Table]]:
    """Concatenate successive blocks; the list is emptied."""
    parts: dict[int, list[pa.Table]] = defaultdict(list)
    for block in blocks:
        for number, part in block:
            parts[number].append(part)
    blocks.clear()
    return [(number, pa.concat_tables(own)) for number, own in sorted(parts.items())]


class _Cursor:
    """How far a source has been read; its rows that were read and not taken yet.

    Unless the source is picked itself, only what may have keys of the cursors `picked` is read.
    """

    def __init__(
        self, given: BucketInput, source: Source, size: BatchSize, picked: "Sequence[_Cursor]"
    ) -> None:
        self._given = given
        self.is_last = False
        self._rows: pa.Table | None = None
        self._picked = picked
        self._batches = self._read(source, size)

    @property
    def has_rows(self) -> bool:
        """Return whether unread rows are buffered; after `fill`, whether any remain."""
        return self._rows is not None

    @property
    def keys(self) -> pa.Table:
        """Return the keys of the buffered rows."""
        rows = pa.table({}) if self._rows is None else self._rows
        return rows.select(self._given.key_names)

    def fill(self) -> None:
        """Read rows if none are buffered; `is_last` is set if no more follow."""
        if self._rows is None:
            # Also where the last rows were promised to be: only the end says that they are.
            self._rows = next(self._batches, None)
            self.is_last |= self._rows is None

    @property
    def last_key(self) -> Key:
        """Return the key of the last row at hand, which there is unless `is_last`."""
        rows = self._rows
        return () if rows is None else self._key(rows, rows.num_rows - 1)

    def may_have(self, low: Key, high: Key) -> bool:
        """Return whether a row that was not taken yet may have a key from `low` to `high`.

        Both may be the beginnings of keys.
        """
        rows = self._rows
        if rows is None:
            return False
        place = self._first(rows, lambda key: key >= low)
        if place == rows.num_rows:
            return not self.is_last
        return self._key(rows, place)[: len(high)] <= high

    def take(self, bound: Key | None) -> pa.Table:
        """Return the rows up to a key (None: all)."""
        rows = self._rows
        if rows is None:
            return pa.table({})
        count = rows.num_rows
        if bound is not None:
            end = bound
            count = self._first(rows, lambda key: key > end)
        self._rows = rows.slice(count) if count < rows.num_rows else None
        return rows.slice(0, count)

    def _first(self, rows: pa.Table, holds: Callable[[Key], bool]) -> int:
        """Return the first row whose key satisfies a condition that all later keys satisfy, too."""
        low, high = 0, rows.num_rows
        while low < high:
            middle = (low + high) // 2
            if holds(self._key(rows, middle)):
                high = middle
            else:
                low = middle + 1
        return low

    def _key(self, rows: pa.Table, position: int) -> Key:
        return tuple(
            comparable_value(column_values(rows.column(name).slice(position, 1))[0])
            for name in self._given.key_names
        )

    def _is_asked(self, low: Key, high: Key) -> bool:
        return any(cursor.may_have(low, high) for cursor in self._picked)

    def _starts_asked(self, low: object, high: object) -> bool:
        return self._is_asked((comparable_value(low),), (comparable_value(high),))

    def _has_asked(self, keys: pa.Table) -> bool:
        """Return whether some of these keys, which are in order, may be asked for."""
        if not keys.num_rows:
            return False
        end = self._key(keys, keys.num_rows - 1)
        if any(not one.is_last and one.last_key < end for one in self._picked):
            return True
        known = [one.keys for one in self._picked if one.has_rows]
        return bool(known) and touched_rows(keys, pa.concat_tables(known)).num_rows > 0

    def _files(self, source: Source) -> Iterator[tuple[int, DataFileMeta]]:
        """Yield the files to read, and their numbers.

        Whether one is left out is seen in its turn.
        """
        types = [field.type for field in self._given.reader.table.schema.key_fields]
        for number, file in enumerate(source.files):
            if not source.picked:
                low, high = (comparable_key(types, key) for key in (file.min_key, file.max_key))
                if not self._is_asked(low, high):
                    continue
            yield number, file

    def _read(self, source: Source, size: BatchSize) -> Iterator[pa.Table]:
        given = self._given
        reader = given.reader
        if not source.picked:
            reader = replace(reader, keys=KeyTest(self._starts_asked, self._has_asked))
        for number, file in self._files(source):
            batches = reader.batches(given.partition, given.bucket, file, source.fields, size)
            for positions, batch in batches:
                if not batch.num_rows:
                    continue
                count = batch.num_rows
                levels = np.full(count, source.level, np.int32)
                batch = batch.append_column(LEVEL, pa.array(levels))
                if given.places:
                    batch = batch.append_column(FILE, pa.array(np.full(count, number, np.int32)))
                    batch = batch.append_column(POSITION, pa.array(positions))
                ends = number + 1 == len(source.files) and int(positions[-1]) + 1 == file.row_count
                self.is_last = ends
                yield batch.combine_chunks()
                # Not in memory while the next one is read.
                del batch
