"""Parquet files read part by part, each of about as many bytes as are given for it.

How wide rows are in memory is learned from the footer, and from the parts themselves: values that
a dictionary keeps short in the file are not short in memory.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from ingestd.paimon.format.batch_size import BatchSize
from ingestd.paimon.format.row_groups import RowProbe

_MOST_STREAM_BYTES = 1 << 17
_LEAST_STREAM_BYTES = 1 << 14
"""How much of a column's encoded bytes is read at once."""
_FIRST_ROWS = 4096
_FIRST_OF_DICTIONARIES = 64
"""Values that a dictionary keeps short in the file may be of any length."""
_GROWTH = 8
"""A part has at most this many times the rows of the one before."""


@dataclass(frozen=True, slots=True)
class StreamedFile:
    """An open file, and those of the wanted columns that it has."""

    reader: pq.ParquetFile
    names: tuple[str, ...]

    def batches(
        self, size: BatchSize, groups: Sequence[int] | None = None, first: int | None = None
    ) -> Iterator[pa.Table]:
        """Rows of some row groups (None: all) in parts of such a size.

        `first` is what `next_count` says of the part that was read before them.
        """
        chosen = range(self.reader.metadata.num_row_groups) if groups is None else groups
        promised = max(map(self._row_bytes, chosen), default=1.0)
        if first is None:
            first = _FIRST_OF_DICTIONARIES if self._has_dictionaries() else _FIRST_ROWS
        count = min(size.fitting(promised), first)
        batches = self.reader.iter_batches(
            batch_size=count, row_groups=None if groups is None else list(groups),
            columns=list(self.names), use_threads=has_threads(),
        )  # fmt: skip
        for batch in batches:
            # Takes effect with the next batch.
            self.reader.reader.set_batch_size(next_count(size, batch, promised))
            yield pa.Table.from_batches([batch]).select(self.names)
            del batch

    def may_have(self, number: int, size: BatchSize, probe: RowProbe) -> bool:
        """Whether a row group may have wanted rows; it is read until one is found."""
        known = set(self.reader.schema_arrow.names)
        if set(self.names) <= set(probe.columns) or not known.issuperset(probe.columns):
            return True
        looked_at = StreamedFile(self.reader, probe.columns)
        return any(probe.test(part) for part in looked_at.batches(size, [number]))

    def _has_dictionaries(self) -> bool:
        metadata = self.reader.metadata
        if not metadata.num_row_groups:
            return False
        return any(
            chunk.has_dictionary_page and chunk.physical_type == "BYTE_ARRAY"
            for chunk in self._chunks(0)
        )

    def _row_bytes(self, number: int) -> float:
        """The mean of a row group, as its pages are before they are compressed."""
        total = sum(chunk.total_uncompressed_size for chunk in self._chunks(number))
        return total / max(self.reader.metadata.row_group(number).num_rows, 1)

    def _chunks(self, number: int) -> Iterator[pq.ColumnChunkMetaData]:
        group, wanted = self.reader.metadata.row_group(number), set(self.names)
        for place in range(group.num_columns):
            chunk = group.column(place)
            path = chunk.path_in_schema
            if path in wanted or path.partition(".")[0] in wanted:
                yield chunk


def has_threads() -> bool:
    """Whether the library has threads to decode columns side by side.

    A single one decodes no faster than the caller, and what it allocates for the caller to free is
    memory that the library's allocator gives back late or never.
    """
    return pa.cpu_count() > 1


def next_count(size: BatchSize, last: pa.Table | pa.RecordBatch, promised: float = 1.0) -> int:
    """How many rows to read after a part, as wide as that or as is promised."""
    rows = max(last.num_rows, 1)
    return min(size.fitting(max(promised, last.nbytes / rows)), rows * _GROWTH)


def open_streamed(
    source: pa.NativeFile, columns: Sequence[str] | None, size: BatchSize
) -> StreamedFile:
    """A file of which only the pages at hand are in memory."""
    metadata = pq.read_metadata(source)
    source.seek(0)
    share = size.memory // max(metadata.num_columns, 1)
    reader = pq.ParquetFile(
        source, metadata=metadata, page_checksum_verification=True, pre_buffer=False,
        buffer_size=min(max(share, _LEAST_STREAM_BYTES), _MOST_STREAM_BYTES),
    )  # fmt: skip
    names = reader.schema_arrow.names
    if columns is not None:
        present = set(names)
        names = [name for name in columns if name in present]
    return StreamedFile(reader, tuple(names))
