"""Sorted runs read side by side, in blocks whose keys are in no other block.

Every run is read in batches. The smallest of the keys at which the batches end is where a block
ends: whatever is up to there has been read, of every run. So memory holds a batch of each run,
however long the runs are. Specification: Compaction, Read path.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ingestd.paimon.format.batch_size import BatchSize
from ingestd.paimon.merge.merged_rows import LEVEL
from ingestd.paimon.spec.arrow import column_values
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.table.files.data_files import DataFileReader
from ingestd.paimon.table.read.bucket_read import Key, comparable_value

FILE = "_FILE"
"""A column with the number of each row's file among those of its source."""
POSITION = "_POSITION"
"""A column with the position of each row in its file."""

_MEMORY = 16 << 20
"""Bytes that the batches of all runs take together."""


def batch_size(count: int) -> BatchSize:
    """What a batch may take where `count` files are read side by side."""
    return BatchSize(_MEMORY // max(count, 1))


@dataclass(frozen=True, slots=True)
class Source:
    """Files of one level in the order of their keys, which no two of them share.

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
        """Rows with consecutive ranges of keys: per block the sources that have some, and which.

        Rows of a source are ordered by key; they have the fields of the source and `LEVEL`.
        """
        size = batch_size(len(sources))
        cursors = [_Cursor(self, source, size) for source in sources]
        while True:
            for cursor in cursors:
                cursor.fill()
            bounds = [cursor.last_key for cursor in cursors if not cursor.is_last]
            bound = min(bounds, default=None)
            block = [(number, cursor.take(bound)) for number, cursor in enumerate(cursors)]
            block = [(number, part) for number, part in block if part.num_rows]
            if not block:
                return
            yield block
            # Not in memory while more is read.
            del block


class _Cursor:
    """How far a source has been read; its rows that were read and not taken yet."""

    def __init__(self, given: BucketInput, source: Source, size: BatchSize) -> None:
        self._given = given
        self.is_last = False
        self._rows: pa.Table | None = None
        self._batches = self._read(source, size)

    def fill(self) -> None:
        """Have rows, unless there are no more; `is_last` if none are known to be behind them."""
        if self._rows is None:
            # Also where the last rows were promised to be: only the end says that they are.
            self._rows = next(self._batches, None)
            self.is_last |= self._rows is None

    @property
    def last_key(self) -> Key:
        """The key of the last row at hand, which there is unless `is_last`."""
        rows = self._rows
        return () if rows is None else self._key(rows, rows.num_rows - 1)

    def take(self, bound: Key | None) -> pa.Table:
        """The rows up to a key (None: all)."""
        rows = self._rows
        if rows is None:
            return pa.table({})
        count = rows.num_rows if bound is None else self._count(rows, bound)
        self._rows = rows.slice(count) if count < rows.num_rows else None
        return rows.slice(0, count)

    def _count(self, rows: pa.Table, bound: Key) -> int:
        low, high = 0, rows.num_rows
        while low < high:
            middle = (low + high) // 2
            if self._key(rows, middle) <= bound:
                low = middle + 1
            else:
                high = middle
        return low

    def _key(self, rows: pa.Table, position: int) -> Key:
        return tuple(
            comparable_value(column_values(rows.column(name).slice(position, 1))[0])
            for name in self._given.key_names
        )

    def _read(self, source: Source, size: BatchSize) -> Iterator[pa.Table]:
        given = self._given
        for number, file in enumerate(source.files):
            batches = given.reader.batches(given.partition, given.bucket, file, source.fields, size)
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
