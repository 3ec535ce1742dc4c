"""Read and write ORC data files in the layout of other Paimon readers and writers.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#orc

Columns are matched by name; field ids are stored in the attribute `paimon.id`. TIME is stored as an
int, timestamps with nanosecond precision. Files with impossible scales of decimals are
refused: checking the bounds of each run of scales is sufficient, so runs are not unpacked.
"""

import contextlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.orc as orc

from ingestd.errors import UnsupportedError
from ingestd.paimon.format.base import BatchSize, RowSink, decoding
from ingestd.paimon.format.kept_bytes import KeptBytes
from ingestd.paimon.format.orc_layout import OrcLayout, ScaleStream, varint
from ingestd.paimon.format.orc_times import refuse_doubtful, timestamp_problem
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.arrow import FIELD_ID_KEY, Array, ArrowField, list_offsets
from ingestd.paimon.spec.file_options import library_compression
from ingestd.paimon.spec.options import CoreOptions
from ingestd.wording import counted

_ATTRIBUTE = b"paimon.id"
_COPIES = 3
"""Memory of a batch relative to its Arrow columns: the library keeps its own columns of this batch
and of the next one.
"""
_FAST_ZSTD_LEVEL = 1
"""Compression levels above this select the library's strategy for size; it has only two strategies.
"""
_OUT_OF_RANGE = "out of range for nanosecond"
_BROKEN = (IndexError, KeyError, MemoryError, ValueError, zlib.error)
"""Exceptions for damaged bytes; invalid lengths and strings cause more kinds than in other formats.
"""
MOST_COLUMNS = 2000
"""Maximum number of columns of a file, counting the innermost of nested ones: the library's writer
uses about 0.8 MB for each.
"""


def open_sink(sink: pa.NativeFile, first: pa.Table, options: CoreOptions) -> RowSink:
    """Return a sink that writes an ORC file in parts to a stream, with the columns of `first`.

    `first` itself is not written. Raises UnsupportedError for a compression that ORC files do not
    support, and for too many columns.
    """
    return _Sink(sink, first.schema, options)


class _Sink:
    """An ORC file that is written in stripes; the library keeps one stripe in memory."""

    size = None

    def __init__(self, sink: pa.NativeFile, schema: pa.Schema, options: CoreOptions) -> None:
        fast = options.zstd_level <= _FAST_ZSTD_LEVEL
        open_writer: Any = orc.ORCWriter
        self._stream = sink
        self._kept = KeptBytes()
        self._schema = pa.schema([_stored_field(field) for field in schema])
        _refuse_wide(self._schema)
        self._writer = open_writer(
            self._kept.opened(),
            file_version="0.12",
            compression=library_compression("orc", options.file_compression),
            stripe_size=options.orc.stripe_size,
            compression_block_size=options.orc.compression_block_size,
            row_index_stride=options.orc.index_stride,
            dictionary_key_size_threshold=options.orc.dictionary_threshold,
            compression_strategy="speed" if fast else "compression",
        )

    def write(self, rows: pa.Table) -> None:
        """Write more rows. Raises UnsupportedError for timestamps that could not be read back."""
        problem = timestamp_problem(rows)
        if problem is not None:
            raise UnsupportedError(f"{problem}; set 'file.format' to 'parquet'")
        stored = rows.cast(self._schema)
        columns = [
            pa.chunked_array([nulls_pushed_down(chunk) for chunk in column.chunks], column.type)
            for column in stored.columns
        ]
        self._writer.write(pa.Table.from_arrays(columns, schema=self._schema))
        self._pass_on()

    def close(self) -> None:
        """Write the last stripe and the footer."""
        self._writer.close()
        self._pass_on()

    def abort(self) -> None:
        """Discard the buffered bytes."""
        self._kept.taken()

    def _pass_on(self) -> None:
        self._stream.write(self._kept.taken())


def read_file(io: FileIO, path: str, columns: Sequence[str] | None) -> pa.Table:
    """Return the rows in file order, with the `columns` (None: all) that the file contains.

    Timestamps are in nanoseconds, TIME is an int. Raises FileNotFoundError if the file does not
    exist, StorageError if the store fails, FormatError if it cannot be decoded, and
    UnsupportedError for a compression that the library lacks, for timestamps outside the range of
    nanoseconds (1677 to 2262), and for timestamps that the library may read incorrectly.
    """
    source = io.open_input(path)
    with _decoding(source, path):
        opened = _OpenedFile.of(source, columns)
        rows = opened.file.read(columns=opened.read)
        opened.check_count(rows.num_rows)
        rows.validate(full=True)
        refuse_doubtful(rows.select(opened.wanted), opened.layout.zones)
        return rows.select(opened.wanted)


def read_batches(
    io: FileIO, path: str, columns: Sequence[str] | None, size: BatchSize
) -> Iterator[pa.Table]:
    """Yield the rows in file order, with the `columns` (None: all), in parts within `size`.

    The types and errors are those of `read_file`; columns that the file lacks are left out.
    """
    source = io.open_input(path)
    with _decoding(source, path):
        opened = _OpenedFile.of(source, columns)
        # The library's own reader of files has no smaller unit than a stripe.
        make_fragment: Any = ds.OrcFileFormat().make_fragment
        scanner = make_fragment(source).scanner(
            columns=opened.read,
            batch_size=size.fitting(_COPIES * opened.layout.row_bytes(opened.read)),
            batch_readahead=0, fragment_readahead=0, use_threads=False,
        )  # fmt: skip
        zones = opened.layout.zones
        count = 0
        for batch in scanner.to_reader():
            count += batch.num_rows
            batch.validate(full=True)
            batch_rows = pa.Table.from_batches([batch]).select(opened.wanted)
            refuse_doubtful(batch_rows, zones)
            yield batch_rows
            # Free this batch before the next one is read.
            del batch_rows
            del batch
        opened.check_count(count)


@contextlib.contextmanager
def _decoding(source: pa.NativeFile, path: str) -> Iterator[None]:
    """Close the file at the end, and convert errors of the library to errors with the path."""
    with decoding(source, path, "ORC", _BROKEN):
        try:
            yield
        except UnsupportedError as error:
            raise UnsupportedError(f"data file {path}: {error.message}") from error
        except pa.ArrowException as error:
            if _OUT_OF_RANGE not in str(error):
                raise
            raise UnsupportedError(
                f"data file {path}: {error}; ORC timestamps are read from 1677 to 2262 only"
            ) from error


@dataclass(frozen=True, slots=True)
class _OpenedFile:
    """An open file, the names of the `wanted` columns, and of those to `read` (None: all)."""

    layout: OrcLayout
    file: orc.ORCFile
    wanted: list[str]
    read: list[str] | None

    @classmethod
    def of(cls, source: pa.NativeFile, columns: Sequence[str] | None) -> "_OpenedFile":
        layout = OrcLayout(source)  # checks the sizes that the library does not check
        file = orc.ORCFile(source)
        present: list[str] = file.schema.names
        wanted = present if columns is None else [name for name in columns if name in present]
        # To the library, a dot in a name means a nested column.
        read = None if not wanted or any("." in name for name in wanted) else wanted
        for stream in layout.scale_streams(read):
            check_scales(stream)
        return cls(layout, file, wanted, read)

    def check_count(self, rows: int) -> None:
        if rows != self.file.nrows:
            raise pa.ArrowInvalid(f"{counted(rows, 'row')}, expected {self.file.nrows}")


def _refuse_wide(schema: pa.Schema) -> None:
    """Raise UnsupportedError for a schema with more than `MOST_COLUMNS` columns.

    The library's writer would need gigabytes of memory.
    """
    count = sum(_leaves(field.type) for field in schema)
    if count > MOST_COLUMNS:
        raise UnsupportedError(
            f"ORC files of {count} columns are not supported, {MOST_COLUMNS} are the most: each "
            "takes 0.8 MB of memory while a file is written; set 'file.format' to 'parquet'"
        )


def _leaves(arrow_type: pa.DataType) -> int:
    nested: Any = arrow_type
    children = [nested.field(i).type for i in range(nested.num_fields)]
    if pa.types.is_map(arrow_type):
        children = [nested.key_type, nested.item_type]
    return sum(map(_leaves, children)) if children else 1


def _stored_field(field: ArrowField) -> ArrowField:
    """Return the field with a type that ORC supports and its id as an attribute."""
    number = (field.metadata or {}).get(FIELD_ID_KEY)
    metadata = None if number is None else {_ATTRIBUTE: number}
    return pa.field(field.name, _stored_type(field.type), field.nullable, metadata)


def _stored_type(arrow_type: pa.DataType) -> pa.DataType:
    nested: Any = arrow_type
    if pa.types.is_time32(arrow_type):
        return pa.int32()
    if pa.types.is_struct(arrow_type):
        return pa.struct([_stored_field(nested.field(i)) for i in range(nested.num_fields)])
    if pa.types.is_list(arrow_type):
        return pa.list_(_stored_field(nested.value_field))
    if pa.types.is_map(arrow_type):
        make: Any = pa.map_
        map_type: pa.DataType = make(
            _stored_field(nested.key_field), _stored_field(nested.item_field)
        )
        return map_type
    return arrow_type


def nulls_pushed_down(array: Array) -> Array:
    """Return the values with a null wherever an enclosing struct is null.

    Columns without a struct are returned unchanged. The children of a struct are copied if they
    begin inside their buffers, because the library writes the values at the beginning of the
    buffers instead if the struct has nulls.
    """
    nested: Any = array
    kind: Any = array.type
    rebuilt: Array
    if not _has_struct(kind):
        return array
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        children = [_at_offset_zero(nulls_pushed_down(child)) for child in nested.flatten()]
        from_children: Any = pa.StructArray.from_arrays
        rebuilt = from_children(children, fields=fields, mask=nested.is_null())
    elif pa.types.is_map(kind):
        entries = nested.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
        keys, items = (nulls_pushed_down(column) for column in entries.flatten().flatten())
        from_entries: Any = pa.MapArray.from_arrays
        rebuilt = from_entries(_offsets(entries), keys, items, type=kind, mask=nested.is_null())
    else:
        from_values: Any = pa.ListArray.from_arrays
        values = nulls_pushed_down(nested.flatten())
        rebuilt = from_values(_offsets(nested), values, type=kind, mask=nested.is_null())
    return rebuilt


def _at_offset_zero(array: Array) -> Array:
    values: Any = array
    if not values.offset:
        return array
    copied: Array = pa.concat_arrays([values, values.slice(0, 0)])  # one array is not copied
    return copied


def _has_struct(kind: pa.DataType) -> bool:
    nested: Any = kind
    if pa.types.is_map(kind):
        return _has_struct(nested.key_type) or _has_struct(nested.item_type)
    if pa.types.is_list(kind):
        return _has_struct(nested.value_type)
    return pa.types.is_struct(kind)


def _offsets(lists: Array) -> Array:
    """Return the offsets of lists, shape (lists + 1,), in which null lists are empty."""
    compute: Any = pc
    return list_offsets(compute.fill_null(compute.list_value_length(lists), 0).to_numpy())


_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
"""Bit width of packed values by its code."""
_MOST = 1023
"""Largest accepted bound of the scales in a run.

Valid scales are at most 38, and the bound of a run of valid scales is below this limit.
"""
_RUN_LENGTHS = 2
"""The encoding that all writers have used since ORC 0.12."""


def check_scales(stream: ScaleStream) -> None:
    """Raise ValueError if a scale may be outside -1023 to 1023, or if `encoding` is not 2.

    Raises IndexError if the header of a run of scales is truncated.
    """
    if stream.encoding != _RUN_LENGTHS:
        raise ValueError(f"scales of decimals in encoding {stream.encoding}")
    data, at = stream.data, 0
    while at < len(data):
        bound, at = _RUNS[data[at] >> 6](data, at)
        if bound > _MOST:
            raise ValueError(f"scales of decimals up to {bound}")


def _short_repeat(data: bytes, at: int) -> tuple[int, int]:
    width = (data[at] >> 3 & 7) + 1
    value = int.from_bytes(data[at + 1 : at + 1 + width], "big")
    return abs(_unzigzag(value)), at + 1 + width


def _direct(data: bytes, at: int) -> tuple[int, int]:
    width, count = _WIDTHS[data[at] >> 1 & 31], _count(data, at)
    return (1 << width - 1) - 1, at + 2 + _packed_bytes(width, count)


def _delta(data: bytes, at: int) -> tuple[int, int]:
    code, count = data[at] >> 1 & 31, _count(data, at)
    width = _WIDTHS[code] if code else 0
    base, at = varint(data, at + 2)
    step, at = varint(data, at)
    first, step = abs(_unzigzag(base)), abs(_unzigzag(step))
    if not width:
        return first + step * (count - 1), at
    packed = int.from_bytes(data[at : at + _packed_bytes(width, count - 2)], "big")
    spare = -width * (count - 2) % 8
    steps, mask = packed >> spare, (1 << width) - 1
    total = sum(steps >> width * n & mask for n in range(count - 2))
    return first + step + total, at + _packed_bytes(width, count - 2)


def _patched(data: bytes, at: int) -> tuple[int, int]:
    width, count = _WIDTHS[data[at] >> 1 & 31], _count(data, at)
    base_bytes, patch_width = (data[at + 2] >> 5) + 1, _WIDTHS[data[at + 2] & 31]
    gap_width, patches = (data[at + 3] >> 5) + 1, data[at + 3] & 31
    base = int.from_bytes(data[at + 4 : at + 4 + base_bytes], "big")
    base &= ~(1 << 8 * base_bytes - 1)
    patch = next((bits for bits in _WIDTHS if bits >= gap_width + patch_width), _WIDTHS[-1])
    after = at + 4 + base_bytes + _packed_bytes(width, count) + _packed_bytes(patch, patches)
    return base + (1 << width + patch_width) - 1, after


def _count(data: bytes, at: int) -> int:
    return ((data[at] & 1) << 8 | data[at + 1]) + 1


def _packed_bytes(width: int, count: int) -> int:
    return -(-width * max(count, 0) // 8)


def _unzigzag(value: int) -> int:
    return value >> 1 ^ -(value & 1)


_RUNS: tuple[Callable[[bytes, int], tuple[int, int]], ...] = (
    _short_repeat, _direct, _patched, _delta,
)  # fmt: skip
