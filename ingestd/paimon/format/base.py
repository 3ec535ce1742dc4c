"""The protocol of file formats, their registry, and errors of decoding.

The extension of a data file's name is its format, so a table may mix formats.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Protocol, cast, runtime_checkable

import pyarrow as pa

from ingestd.errors import FormatError, StorageError, UnsupportedError
from ingestd.paimon.format.row_groups import BatchSize, FilePart, GroupFilter, RowSink, StreamPart
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.options import CoreOptions

FORMATS: Mapping[str, str] = {
    "avro": "ingestd.paimon.format.avro",
    "orc": "ingestd.paimon.format.orc",
    "parquet": "ingestd.paimon.format.parquet",
}
"""Format name -> module with the functions of `FileFormat`."""
Broken = tuple[type[Exception], ...]
"""Errors of a decoder for damaged bytes, besides those of the library."""


class FileFormat(Protocol):
    """A module of this package.

    Specification: https://paimon.apache.org/docs/1.4/concepts/spec/datafile/#data-file
    """

    def write_file(self, io: FileIO, path: str, table: pa.Table, options: CoreOptions) -> int:
        """Write a new file; its size in bytes. UnsupportedError names a wrong option."""
        ...

    def encoded_size(self, table: pa.Table, options: CoreOptions) -> int:
        """Return the size in bytes of the file that `write_file` would write."""
        ...

    def read_file(self, io: FileIO, path: str, columns: Sequence[str] | None) -> pa.Table:
        """Return rows in file order with those of `columns` (None: all) that the file has.

        FileNotFoundError passes as is; FormatError names a file that cannot be decoded.
        """
        ...

    def read_batches(
        self, io: FileIO, path: str, columns: Sequence[str] | None, size: BatchSize
    ) -> Iterator[pa.Table]:
        """Yield the rows in order, in parts of this size; memory holds one part."""
        ...

    def open_sink(self, sink: pa.NativeFile, first: pa.Table, options: CoreOptions) -> RowSink:
        """Return a file that is written in parts.

        From its beginning, `first`, its settings are learned.

        UnsupportedError names a wrong option.
        """
        ...


@runtime_checkable
class PartReader(Protocol):
    """A file format that can skip parts of a file by their statistics."""

    def read_part(
        self, io: FileIO, path: str, columns: Sequence[str] | None, wanted: GroupFilter | None
    ) -> FilePart:
        """Return the rows as `read_file`, without parts that certainly have no wanted row."""
        ...

    def stream_parts(
        self,
        io: FileIO,
        path: str,
        columns: Sequence[str] | None,
        size: BatchSize,
        wanted: GroupFilter,
    ) -> Iterator[StreamPart]:
        """Yield the rows as `read_batches`, without unwanted parts; each is tested when reached."""
        ...


def read_batches(
    io: FileIO, path: str, columns: Sequence[str] | None, size: BatchSize
) -> Iterator[pa.Table]:
    """Yield the rows of a data file part by part. Raises what `FileFormat.read_file` raises."""
    yield from load_format(format_of(path)).read_batches(io, path, columns, size)


def stream_wanted(
    io: FileIO,
    path: str,
    columns: Sequence[str] | None,
    size: BatchSize,
    wanted: GroupFilter | None,
) -> Iterator[StreamPart]:
    """Yield the rows of a data file in parts; some unwanted rows may be among them.

    `wanted` is called when a part of the file is reached. Raises what `FileFormat.read_file`
    raises.
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
    """Return rows of a data file; some unwanted rows may be among them.

    Raises what `FileFormat.read_file` raises.
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
    """Return the format of a data file: the extension of its name."""
    return file_name.rpartition(".")[2]


@contextlib.contextmanager
def decoding(
    source: pa.NativeFile, path: str, format_name: str, broken: Broken = (IndexError, ValueError)
) -> Iterator[None]:
    """Raise errors in the block as FormatError or StorageError with the path; close the file."""
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
