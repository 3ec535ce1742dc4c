"""Read sorted runs in parallel, in blocks with disjoint key ranges.

Every run is read in batches. A block ends at the smallest of the last keys of the current batches,
because all runs have been read up to that key. Memory holds one batch per run, regardless of the
size of the runs. In runs that are read only for lookups, files and row groups are skipped if their
key range contains no compacted key.

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

from ingestd.paimon.format.base import BatchSize
from ingestd.paimon.merge.key_order import column_ranks
from ingestd.paimon.merge.merged_rows import LEVEL
from ingestd.paimon.spec.arrow import Column, column_values, fold_zeros
from ingestd.paimon.spec.binary_row import Key, comparable_key, comparable_value
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.row_selection import Mask
from ingestd.paimon.table.files.data_files import DataFileReader, KeyTest

FILE = "_FILE"
"""Column with the number of each row's file in `Source.files`."""
POSITION = "_POSITION"
"""Column with the position of each row in its file."""
_MEMORY = 16 << 20
"""Size in bytes of the batches of all runs together."""


def touched_rows(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """Return the rows whose key is in `keys`, and possibly rows with other keys.

    `rows` are ordered by key, and their keys are unique. `keys` has only the key columns, and its
    rows may be in any order.
    """
    names = keys.column_names
    if len(names) == 1 and _is_number(rows.column(names[0]).type):
        return rows.take(_matching_positions(rows.column(names[0]), keys.column(names[0])))
    mask: Mask = np.ones(rows.num_rows, np.bool_)
    for name in names:
        # 0.0 and -0.0 are different values in Arrow, but equal as keys.
        if not pa.types.is_floating(keys.column(name).type):
            mask &= _among(rows.column(name), keys.column(name))
    return rows.take(np.flatnonzero(mask))


def _is_number(kind: pa.DataType) -> bool:
    """Return whether `column_ranks` maps equal values of a type to equal numbers in all tables."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_temporal(kind) or types.is_floating(kind))


def _matching_positions(column: Column, keys: Column) -> npt.NDArray[np.int64]:
    (ranks,), (key_ranks,) = column_ranks(column), column_ranks(keys)
    key_ranks = np.unique(key_ranks)
    positions = np.searchsorted(ranks, key_ranks)
    inside = positions < len(ranks)
    positions, key_ranks = positions[inside], key_ranks[inside]
    matching: npt.NDArray[np.int64] = positions[ranks[positions] == key_ranks].astype(np.int64)
    return matching


def _among(column: Column, keys: Column) -> Mask:
    values: Any = pc.unique(fold_zeros(keys))
    is_in: Any = pc.is_in
    mask: Mask = is_in(fold_zeros(column), value_set=values).to_numpy()
    return mask


def batch_size(count: int) -> BatchSize:
    """Return the batch size for each of `count` sources read in parallel, to bound the memory."""
    return BatchSize(_MEMORY // max(count, 1))


@dataclass(frozen=True, slots=True)
class Source:
    """Files of one level in key order; each key is in at most one of them.

    If `picked` is false, the files are not compacted, but only searched for older rows. `fields`
    are the columns to read.
    """

    level: int
    files: tuple[DataFileMeta, ...]
    fields: tuple[DataField, ...]
    picked: bool = True


@dataclass(frozen=True, slots=True)
class BucketInput:
    """A reader of the sources of a bucket.

    `partition` is the serialized row, `key_names` are the key columns. With `row_positions`, rows
    also have the columns `FILE` and `POSITION`.
    """

    reader: DataFileReader
    partition: bytes
    bucket: int
    key_names: tuple[str, ...]
    row_positions: bool = False

    def blocks(self, sources: Sequence[Source]) -> Iterator[list[tuple[int, pa.Table]]]:
        """Yield blocks with ascending key ranges, each a list of (index in `sources`, rows).

        The ranges are disjoint. A block has all rows of the compacted (`picked`) sources in its
        range. Of the other sources, it has the rows with the same keys, and possibly a few rows
        with other keys. The rows of a source are ordered by key; they have its fields and `LEVEL`,
        with `row_positions` also `FILE` and `POSITION`. Raises FormatError for a data file that is
        missing or damaged.
        """
        size = batch_size(len(sources))
        blocks = self._blocks(sources, size)
        if all(source.picked for source in sources):
            yield from blocks
            return
        # Few older rows remain, and each block has a fixed cost.
        held: list[list[tuple[int, pa.Table]]] = []
        held_bytes = 0
        for block in blocks:
            held.append(block)
            held_bytes += sum(rows.nbytes for _, rows in block)
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
        looked_up = [_Cursor(self, source, size, picked) for source in sources if not source.picked]
        own, others = iter(picked), iter(looked_up)
        cursors = [next(own if source.picked else others) for source in sources]
        while True:
            # The older rows to read depend on the keys in the buffers.
            for cursor in (*picked, *looked_up):
                cursor.fill()
            if not any(cursor.has_rows for cursor in picked):
                return
            bounds = [cursor.last_key for cursor in cursors if not cursor.is_last]
            bound = min(bounds, default=None)
            block = self._touched(sources, [cursor.take(bound) for cursor in cursors])
            if block:
                yield block
            # Release the memory before more is read.
            del block

    def _touched(
        self, sources: Sequence[Source], parts: Sequence[pa.Table]
    ) -> list[tuple[int, pa.Table]]:
        """Return (source number, rows) of the non-empty parts, without needless older rows.

        Older rows are needed if a picked source has a row of their key; a few needless rows may
        remain. If no picked source has rows, the result is empty.
        """
        source_parts = list(zip(sources, parts, strict=True))
        keys = [
            run_rows.select(self.key_names)
            for source, run_rows in source_parts
            if source.picked and run_rows.num_rows
        ]
        if not keys:
            return []
        kept = [
            run_rows
            if source.picked or not run_rows.num_rows
            else touched_rows(run_rows, pa.concat_tables(keys))
            for source, run_rows in source_parts
        ]
        return [(number, run_rows) for number, run_rows in enumerate(kept) if run_rows.num_rows]


def _as_one(blocks: list[list[tuple[int, pa.Table]]]) -> list[tuple[int, pa.Table]]:
    """Return successive blocks as one block; empty the list `blocks`, to release its memory."""
    parts: dict[int, list[pa.Table]] = defaultdict(list)
    for block in blocks:
        for number, run_rows in block:
            parts[number].append(run_rows)
    blocks.clear()
    return [(number, pa.concat_tables(own)) for number, own in sorted(parts.items())]


class _Cursor:
    """A read position in a source, with the rows that were read but not yet taken.

    Of a source that is not picked, only rows whose keys the cursors `picked` may have are read.
    `is_last` is set when the source has no rows after the buffered ones.
    """

    def __init__(
        self,
        bucket_input: BucketInput,
        source: Source,
        size: BatchSize,
        picked: "Sequence[_Cursor]",
    ) -> None:
        self._input = bucket_input
        self.is_last = False
        self._rows: pa.Table | None = None
        self._picked = picked
        self._batches = self._read(source, size)

    @property
    def has_rows(self) -> bool:
        """Whether rows are buffered. If false after `fill`, the source is exhausted."""
        return self._rows is not None

    @property
    def keys(self) -> pa.Table:
        """The key columns of the buffered rows."""
        rows = pa.table({}) if self._rows is None else self._rows
        return rows.select(self._input.key_names)

    def fill(self) -> None:
        """Read the next rows if none are buffered; set `is_last` at the end of the source."""
        if self._rows is None:
            # Read to the end even after the expected number of rows, to be sure that no more
            # follow.
            self._rows = next(self._batches, None)
            self.is_last |= self._rows is None

    @property
    def last_key(self) -> Key:
        """The key of the last buffered row; without one, (), which is less than any key."""
        rows = self._rows
        return () if rows is None else self._key(rows, rows.num_rows - 1)

    def may_have(self, low: Key, high: Key) -> bool:
        """Return whether a row not yet taken may have a key from `low` to `high` (inclusive).

        `low` and `high` may be prefixes of keys.
        """
        rows = self._rows
        if rows is None:
            return False
        end_position = self._first(rows, lambda key: key >= low)
        if end_position == rows.num_rows:
            return not self.is_last
        return self._key(rows, end_position)[: len(high)] <= high

    def take(self, bound: Key | None) -> pa.Table:
        """Remove and return the buffered rows up to and including the key `bound` (None: all)."""
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
        """Return the number of the first row whose key satisfies a monotonic condition."""
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
            for name in self._input.key_names
        )

    def _may_look_up(self, low: Key, high: Key) -> bool:
        return any(cursor.may_have(low, high) for cursor in self._picked)

    def _may_look_up_first(self, low: object, high: object) -> bool:
        return self._may_look_up((comparable_value(low),), (comparable_value(high),))

    def _may_look_up_any(self, keys: pa.Table) -> bool:
        """Return whether the compaction may look up any of these keys, which are sorted."""
        if not keys.num_rows:
            return False
        end = self._key(keys, keys.num_rows - 1)
        if any(not run.is_last and run.last_key < end for run in self._picked):
            return True
        known = [run.keys for run in self._picked if run.has_rows]
        return bool(known) and touched_rows(keys, pa.concat_tables(known)).num_rows > 0

    def _files(self, source: Source) -> Iterator[tuple[int, DataFileMeta]]:
        """Yield each file to read with its number; skip files whose keys are not looked up.

        Whether a file is skipped is decided when the file is reached, by the rows buffered then.
        """
        types = [field.type for field in self._input.reader.table.schema.key_fields]
        for number, file in enumerate(source.files):
            if not source.picked:
                low, high = (comparable_key(types, key) for key in (file.min_key, file.max_key))
                if not self._may_look_up(low, high):
                    continue
            yield number, file

    def _read(self, source: Source, size: BatchSize) -> Iterator[pa.Table]:
        bucket_input = self._input
        reader = bucket_input.reader
        if not source.picked:
            reader = replace(reader, keys=KeyTest(self._may_look_up_first, self._may_look_up_any))
        for number, file in self._files(source):
            batches = reader.batches(
                bucket_input.partition, bucket_input.bucket, file, source.fields, size
            )
            for positions, batch in batches:
                if not batch.num_rows:
                    continue
                count = batch.num_rows
                levels = np.full(count, source.level, np.int32)
                batch = batch.append_column(LEVEL, pa.array(levels))
                if bucket_input.row_positions:
                    batch = batch.append_column(FILE, pa.array(np.full(count, number, np.int32)))
                    batch = batch.append_column(POSITION, pa.array(positions))
                ends = number + 1 == len(source.files) and int(positions[-1]) + 1 == file.row_count
                self.is_last = ends
                yield batch.combine_chunks()
                # Release the memory before the next batch is read.
                del batch
