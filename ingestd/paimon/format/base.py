"""The protocol of file formats, their registry, and the conversion of decoding errors.

The format of a data file is the extension of its name, so a table may mix formats.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, TypeAlias, cast, runtime_checkable

import pyarrow as pa

from ingestd.errors import FormatError, StorageError, UnsupportedError
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.options import CoreOptions
from ingestd.paimon.spec.predicate_stats import ColumnStats

FORMATS: Mapping[str, str] = {
    "avro": "ingestd.paimon.format.avro",
    "orc": "ingestd.paimon.format.orc",
    "parquet": "ingestd.paimon.format.parquet",
}
"""Format name -> module with the functions of `FileFormat`."""
Broken = tuple[type[Exception], ...]
"""Exceptions that a decoder raises for damaged bytes, in addition to those of its library."""

GroupTest: TypeAlias = Callable[[Mapping[str, ColumnStats]], bool]
"""Function that returns whether a row group with these column statistics may have requested rows.

The columns are named as in the file; unknown statistics are None.
"""
RowRange: TypeAlias = tuple[int, int]
"""The row number of the first row in the file, and the number of rows."""
_MOST_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class BatchSize:
    """Limits of one part of a file: at most `rows` rows, about `memory` bytes of Arrow columns.

    A part has at least one row.
    """

    memory: int
    rows: int = _MOST_ROWS

    def fitting(self, row_bytes: float) -> int:
        """Return the number of rows of `row_bytes` bytes each that fit into a part; at least 1."""
        return max(1, min(self.rows, int(self.memory / max(row_bytes, 1))))


@dataclass(frozen=True, slots=True)
class RowProbe:
    """A test on a few columns of a row group, which decides whether its other columns are read.

    `test` is called with rows that have only `columns`, and returns whether any of them may be
    requested.
    """

    columns: tuple[str, ...]
    test: Callable[[pa.Table], bool]


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """A filter of the row groups of a file.

    `test` returns whether a row group may have requested rows, given the statistics of its columns
    by name. `types` are the expected Arrow types of columns; statistics of a column with another
    type in the file are ignored. If a file is read in parts, `probe` tests the row groups that the
    statistics do not exclude.
    """

    test: GroupTest
    types: Mapping[str, pa.DataType]
    probe: RowProbe | None = None


@dataclass(frozen=True, slots=True)
class FilePart:
    """Rows read from a data file.

    `ranges` are the ranges (first row, number of rows) that `rows` has in the file, in the order of
    the rows. `row_count` is the number of rows of the whole file.
    """

    rows: pa.Table
    ranges: tuple[RowRange, ...]
    row_count: int


StreamPart: TypeAlias = tuple[int, pa.Table | None]
"""The next rows of a file: their number, and a table of them, or None if they were skipped."""


class RowSink(Protocol):
    """A data file that is written in parts to a stream; it must be closed or aborted."""

    def write(self, rows: pa.Table) -> None:
        """Write more rows; they must have the columns with which the sink was opened.

        Raises UnsupportedError for a value that the format does not support.
        """
        ...

    @property
    def size(self) -> int | None:
        """The size of the written rows in bytes, or None if it is unknown before `close`."""
        ...

    def close(self) -> None:
        """Complete the file; the stream stays open."""
        ...

    def abort(self) -> None:
        """Stop writing without completing the file. Never raises; the stream must still be open."""
        ...


class FileFormat(Protocol):
    """The functions of a format's module, which write and read its data files.

    Specification: https://paimon.apache.org/docs/1.4/concepts/spec/datafile/#data-file
    """

    def read_file(self, io: FileIO, path: str, columns: Sequence[str] | None) -> pa.Table:
        """Return the rows in file order, with the requested columns that the file contains.

        `columns` None requests all columns. Raises FileNotFoundError if the file does not exist,
        StorageError if the store fails, FormatError with the path if the file cannot be decoded,
        and UnsupportedError for content that ingestd does not support.
        """
        ...

    def read_batches(
        self, io: FileIO, path: str, columns: Sequence[str] | None, size: BatchSize
    ) -> Iterator[pa.Table]:
        """Yield the rows in file order, with the `columns` (None: all), in parts within `size`.

        Only one part is in memory. The errors are those of `read_file`.
        """
        ...

    def open_sink(self, sink: pa.NativeFile, first: pa.Table, options: CoreOptions) -> RowSink:
        """Return a sink that writes a file in parts to a stream.

        The columns and settings are derived from `first`, the first rows, which are not written.
        Raises UnsupportedError for an option or a column that the format does not support.
        """
        ...


@runtime_checkable
class PartReader(Protocol):
    """A file format that can skip parts of a file by means of statistics."""

    def read_part(
        self, io: FileIO, path: str, columns: Sequence[str] | None, wanted: GroupFilter | None
    ) -> FilePart:
        """Return the rows with the `columns` (None: all), without the parts that `wanted` excludes.

        The result also states which rows of the file were read. If `wanted` is None, all rows are
        returned. The errors are those of `FileFormat.read_file`.
        """
        ...

    def stream_parts(
        self,
        io: FileIO,
        path: str,
        columns: Sequence[str] | None,
        size: BatchSize,
        wanted: GroupFilter,
    ) -> Iterator[StreamPart]:
        """Yield the parts of a file, each as its number of rows and its rows.

        The rows have the `columns` (None: all); `size` limits a part. In place of the rows of a
        part that `wanted` excludes, None is yielded. A part is tested when it is reached. The
        errors are those of `FileFormat.read_file`.
        """
        ...


def read_batches(
    io: FileIO, path: str, columns: Sequence[str] | None, size: BatchSize
) -> Iterator[pa.Table]:
    """Yield the rows of a data file, with the `columns` (None: all), in parts of this size.

    Raises FileNotFoundError if the file does not exist, StorageError if the store fails,
    FormatError if it cannot be decoded, and UnsupportedError for a format or content that is not
    supported.
    """
    yield from load_format(format_of(path)).read_batches(io, path, columns, size)


def stream_wanted(
    io: FileIO,
    path: str,
    columns: Sequence[str] | None,
    size: BatchSize,
    wanted: GroupFilter | None,
) -> Iterator[StreamPart]:
    """Yield the number of rows of each part of a data file, and its rows; `size` limits a part.

    Rows that were not requested may be among them. If the format can skip parts, None is yielded in
    place of the rows of a part that `wanted` excludes; a part is tested when it is reached. Raises
    FileNotFoundError if the file does not exist, StorageError if the store fails, FormatError if it
    cannot be decoded, and UnsupportedError for a format or content that is not supported.
    """
    module = load_format(format_of(path))
    if wanted is not None and isinstance(module, PartReader):
        yield from module.stream_parts(io, path, columns, size, wanted)
        return
    for batch in read_batches(io, path, columns, size):
        yield batch.num_rows, batch
        # Free this batch before the next one is read.
        del batch


def read_wanted(
    io: FileIO, path: str, columns: Sequence[str] | None, wanted: GroupFilter | None
) -> FilePart:
    """Return the rows of a data file, without the parts that `wanted` excludes (None: none).

    Formats that cannot skip parts return all rows. Raises FileNotFoundError if the file does not
    exist, StorageError if the store fails, FormatError if it cannot be decoded, and
    UnsupportedError for a format or content that is not supported.
    """
    module = load_format(format_of(path))
    if isinstance(module, PartReader):
        return module.read_part(io, path, columns, wanted)
    rows = module.read_file(io, path, columns)
    return FilePart(rows, ((0, rows.num_rows),), rows.num_rows)


def load_format(name: str) -> FileFormat:
    """Return the module of a format by name. Raises UnsupportedError for an unknown name."""
    module = FORMATS.get(name)
    if module is None:
        raise UnsupportedError(
            f"file format '{name}' is not supported; set 'file.format' to one of {sorted(FORMATS)}"
        )
    return cast("FileFormat", import_module(module))


TEXT_COMPRESSIONS = frozenset({"gz", "bz2", "deflate", "snappy", "lz4", "zst"})
"""Extensions that the names of compressed files of texts have after that of their format."""


def format_of(file_name: str) -> str:
    """Return the format of a data file, which is the extension of its name."""
    stem, _, extension = file_name.rpartition(".")
    return stem.rpartition(".")[2] if extension in TEXT_COMPRESSIONS else extension


@contextlib.contextmanager
def decoding(
    source: pa.NativeFile, path: str, format_name: str, broken: Broken = (IndexError, ValueError)
) -> Iterator[None]:
    """Convert errors of the block to FormatError or StorageError; close `source` at its end.

    Errors of Arrow, and errors of the types `broken`, mean that the file is damaged; an OSError
    with an error number means that it cannot be read. `path` and `format_name` are for the message.
    """
    try:
        yield
    except pa.ArrowException as error:
        raise FormatError(f"data file {path} cannot be read as {format_name}: {error}") from error
    except OSError as error:
        # Errors of the decoder have no errno, errors of the disk have one.
        if error.errno is not None:
            raise StorageError(f"cannot read {path}: {error}") from error
        raise FormatError(f"data file {path} is damaged: {error}") from error
    except broken as error:
        raise FormatError(f"data file {path} is damaged: {error!r}") from error
    finally:
        source.close()
