"""Write merged rows, given in parts, to data or changelog files of one level of a bucket.

A new file is begun at `target-file-size`. Memory holds one row group or stripe, regardless of the
size of the file. Some kinds of files (see `is_checked`) are read back before they replace others:
if a library stored a value incorrectly, the file would replace correct rows, and no checksum of the
file would detect it.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/datafile/#table-with-primary-key-data-file
"""

import sys
import uuid
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.crash_points import CrashPoint, reach
from ingestd.errors import FormatError
from ingestd.paimon.casts.evolution import evolve
from ingestd.paimon.format.base import BatchSize, load_format, read_batches
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.compaction_options import lookup_rules
from ingestd.paimon.spec.data_file import DataFileMeta, FileSource
from ingestd.paimon.spec.data_types import NESTED_ROOTS
from ingestd.paimon.spec.options import CoreOptions
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.files.data_file_indexes import with_file_index
from ingestd.paimon.table.files.data_files import (
    NewFile,
    data_file_fields,
    delete_uncommitted_files,
    name_for_options,
    new_data_file,
    options_for_rows,
    to_data_file_rows,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.write.file_metadata import FileOrigin, FileStatsCollector
from ingestd.paimon.table.write.table_write import encoded_size

_GROUP_BYTES = 16 << 20
"""Bytes of a row group in memory."""
_LOOKUP_GROUP_BYTES = 4 << 20
"""Bytes of a row group in tables whose compactions look up older rows of a few keys."""
_LEAST_BYTES = 1 << 16
_SAMPLE_ROWS = 16384
_FULL = 0.95
"""Share of the target size at which a file is complete."""
_LEAST_SHARE = 20


@dataclass(frozen=True, slots=True)
class FileTarget:
    """The destination of new files of a bucket: data files of a level, or changelog files.

    `partition_values` are in the order of the partition keys. With `changelog`, the files are
    changelog files, and `level` is the level of the data files to which their changes belong.
    """

    table: FileStoreTable
    partition_values: tuple[object, ...]
    bucket: int
    level: int
    changelog: bool = False

    @property
    def options(self) -> CoreOptions:
        """The table's options with the format, compression and statistics of these files."""
        options = self.table.options
        return options.for_changelog() if self.changelog else options.at_level(self.level)

    def names(self) -> Iterator[str]:
        """Return an iterator of names for new files, with one UUID for all and a counter."""
        prefix = self.table.options.data_file_prefix
        if self.changelog:
            prefix = honoured.CHANGELOG_PREFIX.of(self.table.schema.options)
        stem, extension = f"{prefix}{uuid.uuid4()}", self.options.file_extension
        return (f"{stem}-{number}.{extension}" for number in range(1 << 31))

    def file(self, name: str) -> NewFile:
        """Return the path of the new file with this name.

        Raises ConfigError or UnsupportedError for external paths that cannot be written.
        """
        return new_data_file(self.table, self.partition_values, self.bucket, name)

    @property
    def origin(self) -> FileOrigin:
        """The properties that the manifest entries of the files share."""
        source = FileSource.APPEND if self.changelog else FileSource.COMPACT
        return FileOrigin(self.table, self.options, self.level, source)


class RollingWriter:
    """A writer of rows, in their order, to files of about the target size.

    Rows have the table's columns. In a primary-key table, they also have `_SEQUENCE_NUMBER` and
    `_VALUE_KIND`, and are ordered by key; in an append table, they are numbered from
    `first_sequence`. `files` are the completed files.
    """

    def __init__(self, target: FileTarget, first_sequence: int = 0) -> None:
        self.files: list[DataFileMeta] = []
        self._target = target
        self._names = target.names()
        self._target_bytes = target.table.options.target_file_size
        for_lookup = lookup_rules(target.table.schema).needed and not target.changelog
        most = _LOOKUP_GROUP_BYTES if for_lookup else _GROUP_BYTES
        self._group_bytes = min(most, max(self._target_bytes, _LEAST_BYTES))
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._next_sequence = first_sequence
        self._row_bytes: float | None = None
        self._open: _OpenFile | None = None

    def add(self, rows: pa.Table) -> None:
        """Add rows, which are buffered until a row group is full.

        Raises StorageError if the storage fails, FormatError if a file does not read back as it was
        written.
        """
        if not rows.num_rows:
            return
        self._pending.append(rows)
        self._pending_bytes += rows.nbytes
        if self._pending_bytes >= self._group_bytes:
            self._flush()

    def close(self) -> list[DataFileMeta]:
        """Write the buffered rows, and return the metadata of all files.

        Raises StorageError if the storage fails, FormatError if a file does not read back as it was
        written.
        """
        self._flush()
        self._finish()
        return self.files

    def abort(self) -> None:
        """Delete all files that this writer wrote, and empty `files`; failures are logged."""
        if self._open is not None:
            self._open.abort()
            self._open = None
        target = self._target
        delete_uncommitted_files(target.table, target.partition_values, target.bucket, self.files)
        self.files = []

    def _flush(self) -> None:
        if not self._pending:
            return
        rows = pa.concat_tables(self._pending).combine_chunks()
        self._pending, self._pending_bytes = [], 0
        while rows.num_rows:
            count = self._fitting(rows)
            self._write(rows.slice(0, count))
            rows = rows.slice(count)

    def _fitting(self, rows: pa.Table) -> int:
        """Return how many of `rows` to write next, to the open file or to a new file."""
        if self._row_bytes is None and rows.nbytes <= self._target_bytes:
            return rows.num_rows
        if self._row_bytes is None:
            self._row_bytes = self._sampled(rows)
        whole = max(int(self._target_bytes / self._row_bytes), 1)
        left = self._target_bytes - (0 if self._open is None else self._open.size)
        return max(int(left / self._row_bytes), whole // _LEAST_SHARE, 1)

    def _sampled(self, rows: pa.Table) -> float:
        """Encode a sample of the rows, and return the size in bytes of an encoded row."""
        sample = rows.slice(rows.num_rows // 2, _SAMPLE_ROWS)
        options = options_for_rows(self._target.options, sample)
        size = encoded_size(sample, options)
        return max(size / sample.num_rows, 1e-3)

    def _write(self, rows: pa.Table) -> None:
        planned = self._target.options
        options = options_for_rows(planned, rows)
        if self._open is not None and options != planned and self._open.options == planned:
            self._finish()
        if self._open is None:
            name = name_for_options(next(self._names), planned, options)
            self._open = _OpenFile(self._target, name, options, self._next_sequence, rows)
        self._open.write(rows, self._row_bytes)
        self._next_sequence += rows.num_rows
        if self._open.is_exact:
            self._row_bytes = max(self._open.size / self._open.rows, 1e-3)
        elif self._row_bytes is None and self._open.size >= self._target_bytes * _FULL:
            self._row_bytes = self._sampled(rows)
            self._open.size = int(self._row_bytes * self._open.rows)
        if self._open.size >= self._target_bytes * _FULL:
            self._finish()

    def _finish(self) -> None:
        if self._open is not None:
            meta = self._open.close()
            self._open = None
            self.files.append(meta)
            self._row_bytes = max(meta.file_size / meta.row_count, 1e-3)


class _OpenFile:
    """A file being written; `size` is its size in bytes so far, which may be an estimate."""

    def __init__(
        self,
        target: FileTarget,
        name: str,
        options: CoreOptions,
        first_sequence: int,
        first: pa.Table,
    ) -> None:
        self.rows = 0
        self.size = 0
        self.options = options
        self._target = target
        self._name = name
        self._figures = FileStatsCollector(target.origin, first_sequence)
        self._written = ColumnChecksums() if is_checked(target.table.schema, options) else None
        self._stack = ExitStack()
        self._stream = self._stack.enter_context(
            target.table.io.open_output(target.file(name).path)
        )
        try:
            head, module = (
                to_data_file_rows(target.table.schema, first),
                load_format(options.file_format),
            )
            self._sink = module.open_sink(self._stream, head, options)
        except BaseException:
            self._forget()
            raise

    @property
    def is_exact(self) -> bool:
        """Whether `size` is exact instead of an estimate."""
        return self._sink.size is not None

    def write(self, rows: pa.Table, row_bytes: float | None) -> None:
        """Write rows, whose encoded size is about `row_bytes` each (None: unknown)."""
        self._figures.add(rows)
        self.rows += rows.num_rows
        stored = to_data_file_rows(self._target.table.schema, rows)
        self._sink.write(stored)
        if self._written is not None:
            self._written.add(stored)
        exact = self._sink.size
        if exact is None:
            exact = self.size + (
                rows.nbytes if row_bytes is None else int(row_bytes * rows.num_rows)
            )
        self.size = exact

    def close(self) -> DataFileMeta:
        target = self._target
        file = target.file(self._name)
        self._sink.close()
        self.size = int(self._stream.tell())
        self._stack.close()
        if self._written is not None:
            _check_written(target.table, file.path, self._written)
        reach(CrashPoint.CHANGELOG_WRITTEN if target.changelog else CrashPoint.DATA_WRITTEN)
        meta = replace(self._figures.meta(self._name, self.size), external_path=file.external)
        if target.changelog or self._figures.indexed is None:
            return meta
        return with_file_index(target.table, file.path, self._figures.indexed, meta)

    def abort(self) -> None:
        """Abort the write and delete the file."""
        self._sink.abort()
        self._forget()

    def _forget(self) -> None:
        self._stack.__exit__(*sys.exc_info())
        self._target.table.io.delete_quietly(self._target.file(self._name).path)


CHECKS_EVERY_FILE = False
"""Set by tests. By default, only kinds of files that a library has written wrong are read back."""
_BATCH = BatchSize(8 << 20)
_MORE: Any = pc
_Numbers: TypeAlias = npt.NDArray[Any]


class ColumnChecksums:
    """Checksums of columns, and of their nested fields, lengths and nulls, by path.

    The rows are added in parts. Equal rows in the same order have equal checksums, whatever their
    parts; any NaN is equal to any other, 0.0 is not equal to -0.0.
    """

    def __init__(self) -> None:
        self.by_path: dict[str, int] = Counter()

    def add(self, rows: pa.Table) -> None:
        """Update the checksums with more rows."""
        for name, column in zip(rows.column_names, rows.columns, strict=True):
            for chunk in column.chunks:
                self._add(name, chunk)

    def differing(self, other: "ColumnChecksums") -> list[str]:
        """Return the sorted paths whose checksums differ between these and `other`."""
        names = self.by_path.keys() | other.by_path.keys()
        return sorted(name for name in names if self.by_path.get(name) != other.by_path.get(name))

    def _add(self, path: str, array: Array) -> None:
        column: Any = array
        kind: Any = array.type
        self._mix(f"{path} nulls", column.is_valid().cast(pa.int8()).to_numpy())
        if pa.types.is_struct(kind):
            for index, child in enumerate(column.flatten()):
                self._add(f"{path}.{kind.field(index).name}", child)
        elif pa.types.is_map(kind):
            self._add_list(
                path, column.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
            )
        elif pa.types.is_list(kind):
            self._add_list(path, column)
        else:
            present = column.drop_null()
            if pa.types.is_string(kind) or pa.types.is_binary(kind):
                self._mix(f"{path} lengths", _MORE.binary_length(present).to_numpy())
            self._mix(path, _values(present))

    def _add_list(self, path: str, lists: Array) -> None:
        column: Any = lists
        lengths = _MORE.list_value_length(column.drop_null()).to_numpy()
        self._mix(f"{path} lengths", lengths)
        self._add(f"{path}[]", column.flatten())

    def _mix(self, path: str, values: _Numbers) -> None:
        data: Any = np.ascontiguousarray(values).view(np.uint8)
        self.by_path[path] = zlib.crc32(data, self.by_path[path])


def _values(array: Array) -> _Numbers:
    """Return the values of an array without nulls as a NumPy array of bytes or numbers."""
    present: Any = array
    kind, count, start = present.type, len(present), present.offset
    if not count:
        return np.zeros(0, np.uint8)
    if pa.types.is_boolean(kind):
        return np.asarray(present.cast(pa.uint8()).to_numpy())
    if pa.types.is_floating(kind):
        numbers = present.to_numpy()
        # All NaN values are treated as equal.
        return np.asarray(np.where(np.isnan(numbers), numbers.dtype.type("nan"), numbers))
    buffers = present.buffers()
    data = np.frombuffer(buffers[-1] or b"", np.uint8)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        ends = np.frombuffer(buffers[1], np.int32)
        return data[ends[start] : ends[start + count]]
    width = kind.bit_width // 8
    return data[start * width : (start + count) * width]


def is_checked(schema: TableSchema, options: CoreOptions) -> bool:
    """Return whether files of a table are read back before they replace others.

    This is true for ORC files, for tables with nested columns, and if `CHECKS_EVERY_FILE` is set.
    """
    nested = any(field.type.root in NESTED_ROOTS for field in schema.fields)
    return CHECKS_EVERY_FILE or nested or options.file_format == "orc"


def _check_written(table: FileStoreTable, path: str, written: ColumnChecksums) -> None:
    """Raise FormatError, naming the columns, unless a new file contains the rows written to it."""
    fields, checksums = data_file_fields(table.schema), ColumnChecksums()
    for batch in read_batches(table.io, path, None, _BATCH):
        checksums.add(evolve(batch, fields, fields))
    differing = written.differing(checksums)
    if differing:
        raise FormatError(
            f"data file {path} does not read back as it was written, in {', '.join(differing)}; "
            "the file was not used: set 'file.format' to another format, and report it"
        )
