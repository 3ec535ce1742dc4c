"""Read and write Parquet data files in the layout of other Paimon readers and writers.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#parquet

Readers take the unit of a timestamp from the table's schema, not from the file, so timestamps are
written in the unit of the Arrow column. INT96 is the only form of nanoseconds that all readers
support, and no other timestamps may have it.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingestd.paimon.format.base import (
    BatchSize,
    FilePart,
    GroupFilter,
    RowProbe,
    RowRange,
    RowSink,
    StreamPart,
    decoding,
)
from ingestd.paimon.format.kept_bytes import KeptBytes
from ingestd.paimon.format.parquet_footer import check_chunk_types
from ingestd.paimon.format.parquet_int96 import (
    as_integers,
    beyond_nanoseconds,
    with_integers,
    with_timestamps,
)
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.file_options import library_compression
from ingestd.paimon.spec.options import CoreOptions
from ingestd.paimon.spec.predicate_stats import ColumnStats

_GROUP_SIZE = BatchSize(32 << 20, 1 << 20)
_PAGE_ROWS = 1024
"""The library checks the size of a page after at most this many rows."""
_SAMPLE_ROWS = 4096
_DELTAS = "DELTA_BINARY_PACKED"
_INTEGER_DIGITS = 18
"""Decimals with a larger precision are not stored as integers."""
_ROWS_PER_VALUE = 4
"""A column is dictionary-encoded if each value of a sample occurs this often on average."""
_MOST_STREAM_BYTES = 1 << 17
_LEAST_STREAM_BYTES = 1 << 14
"""Limits of the size in bytes of one read of a column's encoded data."""
_FIRST_ROWS = 4096
_FIRST_OF_DICTIONARIES = 64
"""Rows of the first part if columns are dictionary-encoded: the length of their values is unknown.
"""
_GROWTH = 8
"""Maximum factor by which a part may have more rows than the previous part."""


@dataclass(frozen=True, slots=True)
class StreamedFile:
    """An open Parquet file, and the names of the requested columns that it contains."""

    reader: pq.ParquetFile
    names: tuple[str, ...]

    def batches(
        self, size: BatchSize, groups: Sequence[int] | None = None, first: int | None = None
    ) -> Iterator[pa.Table]:
        """Yield the rows of some row groups (None: all) in parts of this size.

        `first` limits the number of rows of the first part. It is the result of `next_count` for
        the part that was read before, or None for the first part of a file.
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
        """Return whether row group `number` may contain requested rows.

        The columns of the probe are read, in parts within `size`, until it accepts a part. The
        result is True without a test if no other columns are requested, or if the file lacks a
        column of the probe.
        """
        known = set(self.reader.schema_arrow.names)
        if set(self.names) <= set(probe.columns) or not known.issuperset(probe.columns):
            return True
        looked_at = StreamedFile(self.reader, probe.columns)
        return any(probe.test(batch) for batch in looked_at.batches(size, [number]))

    def _has_dictionaries(self) -> bool:
        metadata = self.reader.metadata
        if not metadata.num_row_groups:
            return False
        return any(
            chunk.has_dictionary_page and chunk.physical_type == "BYTE_ARRAY"
            for chunk in self._chunks(0)
        )

    def _row_bytes(self, number: int) -> float:
        """Return the mean size of a row of a row group, encoded but not compressed, in bytes."""
        total = sum(chunk.total_uncompressed_size for chunk in self._chunks(number))
        return total / max(self.reader.metadata.row_group(number).num_rows, 1)

    def _chunks(self, number: int) -> Iterator[pq.ColumnChunkMetaData]:
        group, wanted = self.reader.metadata.row_group(number), set(self.names)
        for column_number in range(group.num_columns):
            chunk = group.column(column_number)
            path = chunk.path_in_schema
            if path in wanted or path.partition(".")[0] in wanted:
                yield chunk


def wanted_groups(file: pq.ParquetFile, wanted: GroupFilter) -> list[tuple[int, RowRange]]:
    """Return the row groups that `wanted` does not exclude by their statistics.

    Each is a pair of its number and its range (first row, number of rows).
    """
    return [(number, rows) for number, rows, is_wanted in tested_groups(file, wanted) if is_wanted]


def tested_groups(
    file: pq.ParquetFile, wanted: GroupFilter
) -> Iterator[tuple[int, RowRange, bool]]:
    """Yield each row group: its number, its range of rows, and whether it may have requested rows.

    The range is a pair (first row, number of rows). A group is tested when it is reached, so the
    test in `wanted` may depend on the rows read before.
    """
    metadata = file.metadata
    types = {f.name: f.type for f in file.schema_arrow if wanted.types.get(f.name) == f.type}
    leaves = (metadata.schema.column(i) for i in range(len(metadata.schema)))
    # A nested field has the path a.b, as a column with this name.
    column_numbers = {leaf.path: i for i, leaf in enumerate(leaves) if leaf.name == leaf.path}
    start = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        stats = {
            name: _column_stats(group.column(column_number), types[name], group.num_rows)
            for name, column_number in column_numbers.items()
            if name in types
        }
        yield number, (start, group.num_rows), wanted.test(stats)
        start += group.num_rows


def _column_stats(column: Any, arrow_type: pa.DataType, rows: int) -> ColumnStats:  # noqa: ANN401
    statistics = column.statistics
    if statistics is None:
        return ColumnStats(None, None, None, rows)
    nulls = statistics.null_count if statistics.has_null_count else None
    if not statistics.has_min_max or column.physical_type == "INT96":
        return ColumnStats(None, None, nulls, rows)
    low = _value(statistics.min_raw, arrow_type)
    # Bounds of floating-point columns do not include NaN, which is greater than all numbers.
    bounded = not pa.types.is_floating(arrow_type)
    high = _value(statistics.max_raw, arrow_type) if bounded else None
    return ColumnStats(low, high, nulls, rows)


def _value(raw: Any, arrow_type: pa.DataType) -> Any:  # noqa: ANN401  (of any column type)
    """Return a bound from statistics as a value for BinaryRow.

    Returns None for a type whose order or form in statistics is uncertain.
    """
    kinds = pa.types
    if kinds.is_decimal(arrow_type):
        scale: int = arrow_type.scale
        return Decimal(raw).scaleb(-scale) if isinstance(raw, int) else None
    if kinds.is_string(arrow_type):
        return _text(raw)
    plain = (
        kinds.is_integer(arrow_type)
        or kinds.is_floating(arrow_type)
        or kinds.is_boolean(arrow_type)
        or kinds.is_temporal(arrow_type)
    )
    return raw if plain else None


def _text(raw: bytes | str) -> str | None:
    if isinstance(raw, str):
        return raw
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def has_threads() -> bool:
    """Return whether the library has several threads to decode columns in parallel.

    A single thread is no faster than the caller, and the library's allocator releases memory late,
    or never, if another thread than the allocating one frees it.
    """
    return pa.cpu_count() > 1


def next_count(size: BatchSize, last: pa.Table | pa.RecordBatch, promised: float = 1.0) -> int:
    """Return the number of rows of the next part, so that it stays within `size`.

    Its rows are expected to be as wide as those of the part before it, `last`, and at least
    `promised` bytes wide. It has at most 8 times as many rows as `last`.
    """
    rows = max(last.num_rows, 1)
    return min(size.fitting(max(promised, last.nbytes / rows)), rows * _GROWTH)


def open_streamed(
    source: pa.NativeFile, columns: Sequence[str] | None, size: BatchSize
) -> StreamedFile:
    """Open a file to stream `columns` (None: all), with only the current pages in memory.

    Columns that the file lacks are left out. `size` limits the memory of the read buffers. Raises
    ArrowException or OSError if the file is damaged or cannot be read; `decoding` converts them.
    """
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


def read_file(io: FileIO, path: str, columns: Sequence[str] | None) -> pa.Table:
    """Return the rows in file order, with the `columns` (None: all) that the file contains.

    INT96 timestamps are returned in nanoseconds, or in microseconds if a value of the column is
    outside the range of nanoseconds. Raises FileNotFoundError if the file does not exist,
    StorageError if the store fails, FormatError if it cannot be decoded, and UnsupportedError if
    such a value is inside a nested column, or outside the supported range of microseconds.
    """
    return read_part(io, path, columns, None).rows


def read_part(
    io: FileIO, path: str, columns: Sequence[str] | None, wanted: GroupFilter | None
) -> FilePart:
    """Return the rows in file order, with the `columns` (None: all), of the selected row groups.

    `wanted` selects row groups by their statistics (None: all). The types and errors are those of
    `read_file`; columns that the file lacks are left out.
    """
    source = io.open_input(path)
    with decoding(source, path, "Parquet"):
        return _read_part(source, columns, wanted)


def read_batches(
    io: FileIO, path: str, columns: Sequence[str] | None, size: BatchSize
) -> Iterator[pa.Table]:
    """Yield the rows in file order, with the `columns` (None: all), in parts within `size`.

    The types and errors are those of `read_file`; columns that the file lacks are left out.
    """
    source = io.open_input(path)
    with decoding(source, path, "Parquet"):
        file = open_streamed(source, columns, size)
        if not _int96_columns(file.reader, file.names):
            yield from file.batches(size)
            return
        for number in range(file.reader.metadata.num_row_groups):
            yield from _group_batches(source, file, number, size)


def stream_parts(
    io: FileIO, path: str, columns: Sequence[str] | None, size: BatchSize, wanted: GroupFilter
) -> Iterator[StreamPart]:
    """Yield the parts of the file, each as its number of rows and its rows.

    The rows have the `columns` (None: all); `size` limits a part. A row group that `wanted`
    excludes is one part, with None in place of its rows. A row group is tested when it is reached.
    """
    source, first = io.open_input(path), None
    with decoding(source, path, "Parquet"):
        check_chunk_types(source)
        file = open_streamed(source, columns, size)
        for number, (_, count), is_wanted in tested_groups(file.reader, wanted):
            if is_wanted and wanted.probe is not None:
                is_wanted = file.may_have(number, size, wanted.probe)
            if not is_wanted:
                yield count, None
                continue
            for group_batch in _group_batches(source, file, number, size, first):
                first = next_count(size, group_batch)
                yield group_batch.num_rows, group_batch


def _int96_columns(file: pq.ParquetFile, names: Sequence[str]) -> list[str]:
    """Return the top-level columns among `names` that contain INT96 values."""
    schema = file.schema
    columns = (schema.column(i) for i in range(len(file.metadata.schema)))
    paths = [f"{column.path}." for column in columns if column.physical_type == "INT96"]
    return [name for name in names if any(path.startswith(f"{name}.") for path in paths)]


def _group_batches(
    source: pa.NativeFile,
    file: StreamedFile,
    number: int,
    size: BatchSize,
    first: int | None = None,
) -> Iterator[pa.Table]:
    """Yield row group `number` in parts.

    INT96 columns with values outside the range of nanoseconds are in microseconds. `first` is that
    of `StreamedFile.batches`.
    """
    wide = _int96_columns(file.reader, file.names)
    far, start = beyond_nanoseconds(source, wide, [number]) if wide else {}, 0
    for batch in file.batches(size, [number], first):
        for name, column in far.items():
            cells = column.slice(start, batch.num_rows)
            batch = batch.set_column(batch.schema.get_field_index(name), name, cells)
        start += batch.num_rows
        yield batch


def _read_part(
    source: pa.NativeFile, columns: Sequence[str] | None, wanted: GroupFilter | None
) -> FilePart:
    file = pq.ParquetFile(source, page_checksum_verification=True)
    present = file.schema_arrow.names
    names = present if columns is None else [name for name in columns if name in present]
    ranges: tuple[RowRange, ...] = ((0, file.metadata.num_rows),)
    groups: Sequence[int] = range(file.metadata.num_row_groups)
    if wanted is None:
        rows = file.read(columns=names, use_threads=has_threads()).select(names)
    else:
        check_chunk_types(source)
        matching_groups = wanted_groups(file, wanted)
        groups = [number for number, _ in matching_groups]
        rows = file.read_row_groups(groups, columns=names, use_threads=has_threads())
        rows = rows.select(names)
        ranges = tuple(row_range for _, row_range in matching_groups)
    wide = _int96_columns(file, names)
    if wide:
        # Nanoseconds cover only 1677 to 2262 and overflow silently.
        for name, column in beyond_nanoseconds(source, wide, groups).items():
            rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return FilePart(rows, ranges, file.metadata.num_rows)


def open_sink(sink: pa.NativeFile, first: pa.Table, options: CoreOptions) -> RowSink:
    """Return a sink that writes a Parquet file in parts to a stream, each as row groups.

    The columns and encodings are derived from `first`, the first rows, which are not written.
    Raises UnsupportedError for a compression that Parquet files do not support.
    """
    return _Sink(sink, first, options)


class _Sink:
    """A Parquet file that is written in row groups of limited size."""

    def __init__(self, sink: pa.NativeFile, first: pa.Table, options: CoreOptions) -> None:
        settings = options.parquet
        wanted = settings.compression or options.file_compression
        compression = library_compression("parquet", wanted)
        level = options.zstd_level if settings.zstd_level is None else settings.zstd_level
        open_writer: Any = pq.ParquetWriter
        row_bytes = first.nbytes / max(first.num_rows, 1)
        self._stream, self._schema = sink, first.schema
        self._kept = KeptBytes() if _has_nanoseconds(first.schema) else None
        self._written_schema = first.schema if self._kept is None else with_integers(first.schema)
        self._group_size = _GROUP_SIZE
        if settings.row_group_size is not None:
            self._group_size = BatchSize(settings.row_group_size, _GROUP_SIZE.rows)
        self._writer = open_writer(
            sink if self._kept is None else self._kept.opened(),
            self._written_schema,
            compression=compression,
            compression_level=level if compression == "zstd" else None,
            use_dictionary=_dictionary_columns(first, settings.dictionary),
            column_encoding=_encodings(self._written_schema) if options.number_deltas else None,
            use_deprecated_int96_timestamps=self._kept is not None,
            store_schema=False,
            store_decimal_as_integer=True,
            write_time_adjusted_to_utc=True,
            write_page_checksum=True,
            dictionary_pagesize_limit=settings.dictionary_size,
            data_page_size=settings.page_size,
            write_batch_size=BatchSize(settings.page_size, _PAGE_ROWS).fitting(row_bytes),
        )

    def write(self, rows: pa.Table) -> None:
        """Write more rows as new row groups."""
        size = self._group_size.fitting(rows.nbytes / max(rows.num_rows, 1))
        if self._kept is None:
            self._writer.write_table(rows, row_group_size=size)
            return
        self._writer.write_table(as_integers(rows, self._written_schema), row_group_size=size)
        self._stream.write(self._kept.taken())

    @property
    def size(self) -> int:
        """The size in bytes of the row groups written so far."""
        return int(self._stream.tell())

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()
        if self._kept is not None:
            self._stream.write(with_timestamps(self._kept.taken(), self._schema))

    def abort(self) -> None:
        """Close the writer, ignoring errors, because the library would close it later anyway."""
        with contextlib.suppress(pa.ArrowException, OSError):
            self._writer.close()


def _dictionary_columns(table: pa.Table, wanted: bool | None) -> list[str] | bool:
    """Return the string columns with repeated values, which get a dictionary.

    Numbers do not, because compression is as effective for them. A configured value, `wanted`,
    applies to all columns and is returned as is.
    """
    if wanted is not None:
        return wanted
    if table.num_rows == 0:
        return []
    sample = table.slice(0, _SAMPLE_ROWS)
    texts = (i for i, field in enumerate(table.schema) if _is_text(field.type))
    return [
        table.schema.names[i]
        for i in texts
        if pc.count_distinct(sample.column(i)).as_py() * _ROWS_PER_VALUE <= sample.num_rows
    ]


def _encodings(schema: pa.Schema) -> dict[str, str] | None:
    """Return the encodings by column: delta encoding for integer columns, which halves their size.

    Returns None if no column is stored as integers. A table enables it by an option of ingestd,
    because readers of Paimon 0.9 do not support it. Version 2 of Paimon's own Parquet writer is a
    different setting: it also changes the encoding of strings, which Paimon's readers then decode
    incorrectly.
    """
    numbers = [field.name for field in schema if _is_whole(field.type)]
    return dict.fromkeys(numbers, _DELTAS) or None


def _is_whole(arrow_type: pa.DataType) -> bool:
    """Return whether a type has more than 8 bits and is stored as integers of 32 or 64 bits."""
    if pa.types.is_decimal(arrow_type):
        return bool(arrow_type.precision <= _INTEGER_DIGITS)
    plain = pa.types.is_integer(arrow_type) or pa.types.is_temporal(arrow_type)
    return bool(plain and arrow_type.bit_width > 8 and not _is_nanoseconds(arrow_type))


def _is_text(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow_type) or pa.types.is_binary(arrow_type))


def _has_nanoseconds(schema: pa.Schema) -> bool:
    return any(_is_nanoseconds(inner) for field in schema for inner in _leaves(field.type))


def _leaves(arrow_type: pa.DataType) -> Iterator[pa.DataType]:
    if arrow_type.num_fields == 0:
        yield arrow_type
    for i in range(arrow_type.num_fields):
        yield from _leaves(arrow_type.field(i).type)


def _is_nanoseconds(arrow_type: pa.DataType) -> bool:
    return arrow_type in (pa.timestamp("ns"), pa.timestamp("ns", tz="UTC"))
