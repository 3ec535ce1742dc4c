"""Read and write Avro data files in the layout of other Paimon readers and writers.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#avro

Avro stores rows, so this module converts between rows and columns. The mapping of types and cells
is in `avro_types`.
"""

import contextlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from io import BufferedReader, BytesIO
from typing import IO, Any

import pyarrow as pa

from ingestd.paimon.format.avro_types import Codec, arrow_codec, record_codec
from ingestd.paimon.format.base import BatchSize, RowSink, decoding
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec import avro_blocks
from ingestd.paimon.spec.arrow import Array, array_of, column_values
from ingestd.paimon.spec.avro_blocks import BlockWriter, ByteSink
from ingestd.paimon.spec.file_options import library_compression
from ingestd.paimon.spec.options import CoreOptions

_BLOCK_SIZE = BatchSize(1 << 20, 1024)
_READ_BYTES = 1 << 18
_SPOOL_BYTES = 8 << 20
"""Bytes of an unfinished file that are buffered in memory; further bytes are buffered on disk."""


def write_file(io: FileIO, path: str, table: pa.Table, options: CoreOptions) -> int:
    """Write a new Avro file with the table's nullability; return its size in bytes."""
    data = _encoded(table, options)
    with io.open_output(path) as stream:
        stream.write(data)
    return len(data)


def encoded_size(table: pa.Table, options: CoreOptions) -> int:
    """Return the size in bytes of the file that `write_file` would write."""
    return len(_encoded(table, options))


def open_sink(sink: pa.NativeFile, first: pa.Table, options: CoreOptions) -> RowSink:
    """Return a sink that writes an Avro file in parts, with the columns of `first`.

    `first` itself is not written. The rows are buffered until the sink is closed, because the
    header of the file has a checksum of them.
    """
    # The sink closes this temporary file.
    spool = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115
    return _Sink(sink, first, options, spool)


class _Sink:
    def __init__(
        self, sink: ByteSink, first: pa.Table, options: CoreOptions, spool: IO[bytes]
    ) -> None:
        self._codec = record_codec(list(first.schema))
        self._schema = avro_blocks.parse_block_schema(self._codec.type)
        compression = library_compression("avro", options.file_compression)
        document = json.dumps(self._codec.type, ensure_ascii=False)
        self._sink, self._spool = sink, spool
        self._blocks = BlockWriter(document, spool, compression, options.zstd_level)

    def write(self, rows: pa.Table) -> None:
        """Write more rows as blocks."""
        for block in _records(rows, self._codec):
            self._blocks.add(len(block), avro_blocks.encode_records(self._schema, block))

    @property
    def size(self) -> int:
        """Return the size in bytes of the blocks buffered so far."""
        return self._blocks.size

    def close(self) -> None:
        """Write the header and the buffered blocks."""
        with self._spool:
            self._blocks.write_to(self._sink)

    def abort(self) -> None:
        """Discard the buffered blocks."""
        self._spool.close()


def read_file(io: FileIO, path: str, columns: Sequence[str] | None) -> pa.Table:
    """Return the rows in file order, with those of `columns` (None: all) that the file contains.

    TINYINT and SMALLINT are returned as int32. Raises FormatError, naming the file, if it is not
    Avro or is damaged.
    """
    data = io.read_bytes(path)
    with decoding(pa.BufferReader(data), path, "Avro", avro_blocks.BROKEN):
        return _decoded(data, columns)


def read_batches(
    io: FileIO, path: str, columns: Sequence[str] | None, size: BatchSize
) -> Iterator[pa.Table]:
    """Yield the rows as `read_file` does, in parts of the given size."""
    source = io.open_input(path)
    with decoding(source, path, "Avro", avro_blocks.BROKEN):
        stream: Any = source
        opened = avro_blocks.open_blocks(BufferedReader(stream, _READ_BYTES), source.size())
        record = _Record(opened.schema, columns)
        for count, payload in opened.blocks:
            rows = record.columns(record.rows(count, payload))
            step = size.fitting(rows.nbytes / max(rows.num_rows, 1))
            for start in range(0, rows.num_rows, step):
                yield rows.slice(start, step)


def _encoded(table: pa.Table, options: CoreOptions) -> bytes:
    sink = BytesIO()
    with contextlib.closing(_Sink(sink, table, options, BytesIO())) as writer:
        writer.write(table)
    return sink.getvalue()


def _records(table: pa.Table, codec: Codec) -> Iterator[list[dict[str, Any]]]:
    names = table.column_names
    for block in _blocks(table):
        cells = [column_values(column) for column in block.columns]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]
        yield rows if codec.convert is None else list(map(codec.convert, rows))


def _blocks(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield consecutive slices of the rows, none much larger than a block unless it is one row."""
    step = _BLOCK_SIZE.fitting(rows.nbytes / max(rows.num_rows, 1))
    for start in range(0, rows.num_rows, step):
        block = rows.slice(start, step)
        if block.num_rows > 1 and block.nbytes > 2 * _BLOCK_SIZE.memory:
            yield from _blocks(block)
        else:
            yield block


class _Record:
    """Converter of the records of a file to the requested columns."""

    def __init__(self, schema: str, columns: Sequence[str] | None) -> None:
        document = json.loads(schema)
        if isinstance(document, list):
            (document,) = (kind for kind in document if kind != "null")
        fields = {str(field["name"]): field["type"] for field in document["fields"]}
        wanted = list(fields) if columns is None else [name for name in columns if name in fields]
        self._codecs = {name: arrow_codec(fields[name]) for name in wanted}
        self._schema = avro_blocks.parse_block_schema(document)

    def rows(self, count: int, payload: bytes) -> list[dict[str, Any]]:
        """Decode a block of `count` records."""
        return avro_blocks.decode_records(self._schema, count, payload)

    def columns(self, rows: Sequence[dict[str, Any]]) -> pa.Table:
        """Return a table with the requested columns of these records."""
        arrays = [_column(rows, name, codec) for name, codec in self._codecs.items()]
        if not arrays:
            # A table without columns still has its rows.
            return pa.table({"": pa.nulls(len(rows))}).select([])
        return pa.table(arrays, names=list(self._codecs))


def _decoded(data: bytes, columns: Sequence[str] | None) -> pa.Table:
    file = avro_blocks.decode_blocks(data)
    record = _Record(file.schema, columns)
    return record.columns([row for block in file.blocks for row in record.rows(*block)])


def _column(rows: Sequence[dict[str, Any]], name: str, codec: Codec) -> Array:
    convert = codec.convert
    if convert is None:
        cells: list[object] = [row[name] for row in rows]
    else:
        cells = [None if row[name] is None else convert(row[name]) for row in rows]
    return array_of(cells, codec.type)
