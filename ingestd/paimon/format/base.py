"""The protocol of file formats, their registry, and errors of decoding.

The extension of a data file's name is its format, so a table may mix formats.
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
"""Whether rows with these column statistics may be requested.

Columns have their names in the file; unknown statistics are None.
"""
RowRange: TypeAlias = tuple[int, int]
"""First row and number of rows."""
_MOST_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class BatchSize:
    """At most `rows` rows, and about `memory` bytes of Arrow columns; a row is never cut."""

    memory: int
    rows: int = _MOST_ROWS

    def fitting(self, row_bytes: float) -> int:
        """Return the number of rows of the given width that fit into one part, at least one."""
        return max(1, min(self.rows, int(self.memory / max(row_bytes, 1))))


@dataclass(frozen=True, slots=True)
class RowProbe:
    """Test of a few `columns` of rows that decides whether the other columns are read.

    `test` returns whether any of the rows may be requested.
    """

    columns: tuple[str, ...]
    test: Callable[[pa.Table], bool]


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """Test that selects row groups.

    `types` are the expected Arrow types of columns; statistics of a column with another type in the
    file are ignored. `probe` tests the row groups that statistics do not exclude, where a file is
    read in parts.
    """

    test: GroupTest
    types: Mapping[str, pa.DataType]
    probe: RowProbe | None = None


@dataclass(frozen=True, slots=True)
class FilePart:
    """Rows of a data file with `row_count` rows, and their ranges of row numbers, in order."""

    rows: pa.Table
    ranges: tuple[RowRange, ...]
    row_count: int


StreamPart: TypeAlias = tuple[int, pa.Table | None]
"""The next rows of a file: their number, and their columns, or None if they are left out."""


class RowSink(Protocol):
    """A data file that is written in parts; it must be closed or aborted."""

    def write(self, rows: pa.Table) -> None:
        """Write more rows."""
        ...

    @property
    def size(self) -> int | None:
        """Return the size in bytes of the rows written so far, or None if it is unknown until the
        file is closed.
        """
        ...

    def close(self) -> None:
        """Write the remaining rows; the stream stays open."""
        ...

    def abort(self) -> None:
        """Discard a file that no reader will see, while its stream is open; never raises."""
        ...


class FileFormat(Protocol):
    """A module of this package.

    Specification: https://paimon.apache.org/docs/1.4/concepts/spec/datafile/#data-file
    """

    def write_file(self, io: FileIO, path: str, table: pa.Table, options: CoreOptions) -> int:
        """Write a new file and return its size in bytes.

        Raises UnsupportedError for an invalid option.
        """
        ...

    def encoded_size(self, table: pa.Table, options: CoreOptions) -> int:
        """Return the size in bytes of the file that `write_file` would write."""
        ...

    def read_file(self, io: FileIO, path: str, columns: Sequence[str] | None) -> pa.Table:
        """Return the rows in file order, with the requested columns that the file contains.

        `columns` None requests all. Raises FileNotFoundError, and FormatError naming a file that
        cannot be decoded.
        """
        ...

    def read_batches(
        self, io: FileIO, path: str, columns: Sequence[str] | None, size: BatchSize
    ) -> Iterator[pa.Table]:
        """Yield the rows in order, in parts of this size; only one part is in memory."""
        ...

    def open_sink(self, sink: pa.NativeFile, first: pa.Table, options: CoreOptions) -> RowSink:
        """Return a file that is written in parts.

        Its settings are derived from its first rows, `first`. Raises UnsupportedError for an
        invalid option.
        """
        ...


@runtime_checkable
class PartReader(Protocol):
    """A file format that can skip parts of a file by means of statistics."""

    def read_part(
        self, io: FileIO, path: str, columns: Sequence[str] | None, wanted: GroupFilter | None
    ) -> FilePart:
        """Return the rows as `read_file` does, without parts that have no requested row."""
        ...

    def stream_parts(
        self,
        io: FileIO,
        path: str,
        columns: Sequence[str] | None,
        size: BatchSize,
        wanted: GroupFilter,
    ) -> Iterator[StreamPart]:
        """Yield the rows as `read_batches` does, without parts that have no requested row.

        A part is tested when it is reached.
        """
        ...


def read_batches(
    io: FileIO, path: str, columns: Sequence[str] | None, size: BatchSize
) -> Iterator[pa.Table]:
    """Yield the rows of a data file part by part. Raises the errors of `FileFormat.read_file`."""
    yield from load_format(format_of(path)).read_batches(io, path, columns, size)


def stream_wanted(
    io: FileIO,
    path: str,
    columns: Sequence[str] | None,
    size: BatchSize,
    wanted: GroupFilter | None,
) -> Iterator[StreamPart]:
    """Yield the rows of a data file in parts, possibly with rows that were not requested.

    `wanted` is called when a part of the file is reached. Raises the errors of
    `FileFormat.read_file`.
    """
    module = load_format(format_of(path))
    if wanted is not None and isinstance(module, PartReader):
        yield from module.stream_parts(io, path, columns, size, wanted)
        return
    for batch in read_batches(io, path, columns, size):
        yield batch.num_rows, batch
        # Not in memory while the next one is read.
        del batch


def read_wanted(
    io: FileIO, path: str, columns: Sequence[str] | None, wanted: GroupFilter | None
) -> FilePart:
    """Return rows of a data file, possibly with rows that were not requested.

    Raises the errors of `FileFormat.read_file`.
    """
    module = load_format(format_of(path))
    if isinstance(module, PartReader):
        return module.read_part(io, path, columns, wanted)
    rows = module.read_file(io, path, columns)
    return FilePart(rows, ((0, rows.num_rows),), rows.num_rows)


def load_format(name: str) -> FileFormat:
    """Return a format by name. Raises UnsupportedError for an unknown one."""
    module = FORMATS.get(name)
    if module is None:
        raise UnsupportedError(
            f"file format '{name}' is not supported; set 'file.format' to one of {sorted(FORMATS)}"
        )
    return cast("FileFormat", import_module(module))


def format_of(file_name: str) -> str:
    """Return the format of a data file, which is the extension of its name."""
    return file_name.rpartition(".")[2]


@contextlib.contextmanager
def decoding(
    source: pa.NativeFile, path: str, format_name: str, broken: Broken = (IndexError, ValueError)
) -> Iterator[None]:
    """Convert errors of the block to FormatError or StorageError, and close the file."""
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
