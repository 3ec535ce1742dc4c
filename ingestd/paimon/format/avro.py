"""Avro data files as other Paimon readers expect them. Specification: Data files, Avro.

Avro is a format of rows: they are made and taken apart here, and are columns everywhere else.
How types and cells correspond lives in `avro_types`.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from ingestd.errors import FormatError, StorageError
from ingestd.paimon.format.avro_types import Codec, arrow_codec, record_codec
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec import avro_blocks
from ingestd.paimon.spec.arrow import Array, array_of, column_values
from ingestd.paimon.spec.file_options import library_compression
from ingestd.paimon.spec.options import CoreOptions

_ROWS_PER_BLOCK = 1024


def write_file(io: FileIO, path: str, table: pa.Table, options: CoreOptions) -> int:
    """Write a new Avro file with the table's own nullability; its size."""
    data = _encoded(table, options)
    with io.open_output(path) as stream:
        stream.write(data)
    return len(data)


def encoded_size(table: pa.Table, options: CoreOptions) -> int:
    """Bytes of the file that `write_file` would write."""
    return len(_encoded(table, options))


def read_file(io: FileIO, path: str, columns: Sequence[str] | None) -> pa.Table:
    """Rows in file order with those of `columns` (None: all) that the file has.

    TINYINT and SMALLINT come as int32. FormatError names a file that is not Avro or is damaged.
    """
    try:
        data = io.read_bytes(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error}") from error
    try:
        return _decoded(data, columns)
    except (*avro_blocks.BROKEN, pa.ArrowException) as error:
        raise FormatError(f"data file {path} is no readable Avro file: {error!r}") from error


def _encoded(table: pa.Table, options: CoreOptions) -> bytes:
    codec = record_codec(list(table.schema))
    schema = avro_blocks.parse_block_schema(codec.type)
    blocks = [
        (len(rows), avro_blocks.encode_records(schema, rows)) for rows in _records(table, codec)
    ]
    compression = library_compression("avro", options.file_compression)
    document = json.dumps(codec.type, ensure_ascii=False)
    return avro_blocks.encode_blocks(document, blocks, compression, options.zstd_level)


def _records(table: pa.Table, codec: Codec) -> Iterator[list[dict[str, Any]]]:
    names = table.column_names
    for start in range(0, table.num_rows, _ROWS_PER_BLOCK):
        part = table.slice(start, _ROWS_PER_BLOCK)
        cells = [column_values(column) for column in part.columns]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]
        yield rows if codec.convert is None else list(map(codec.convert, rows))


def _decoded(data: bytes, columns: Sequence[str] | None) -> pa.Table:
    file = avro_blocks.decode_blocks(data)
    document = json.loads(file.schema)
    if isinstance(document, list):
        (document,) = (kind for kind in document if kind != "null")
    fields = {str(field["name"]): field["type"] for field in document["fields"]}
    wanted = list(fields) if columns is None else [name for name in columns if name in fields]
    schema = avro_blocks.parse_block_schema(document)
    rows = [
        row
        for count, payload in file.blocks
        for row in avro_blocks.decode_records(schema, count, payload)
    ]
    arrays = [_column(rows, name, arrow_codec(fields[name])) for name in wanted]
    if not arrays:
        # A table without columns still has its rows.
        return pa.table({"": pa.nulls(len(rows))}).select([])
    return pa.table(arrays, names=wanted)


def _column(rows: Sequence[dict[str, Any]], name: str, codec: Codec) -> Array:
    convert = codec.convert
    if convert is None:
        cells: list[object] = [row[name] for row in rows]
    else:
        cells = [None if row[name] is None else convert(row[name]) for row in rows]
    return array_of(cells, codec.type)
