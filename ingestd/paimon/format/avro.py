"""Read and write Avro data files in the layout of other Paimon readers and writers.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#avro

Avro stores rows, so this module converts between rows and columns. Names, unions and logical types
are those of other Paimon writers, which swap Avro's two kinds of timestamp: `timestamp-*` has no
time zone, `local-timestamp-*` is an instant. Avro cells are plain numbers for dates, times and
timestamps, and bytes for decimals.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from io import BufferedReader
from typing import Any

import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.format.base import BatchSize, RowSink, decoding
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec import avro_blocks
from ingestd.paimon.spec.arrow import Array, ArrowField, array_of, column_values
from ingestd.paimon.spec.avro_blocks import BlockWriter, Json
from ingestd.paimon.spec.avro_schemas import NAMESPACE, is_avro_name
from ingestd.paimon.spec.decimal_digits import minimal_bytes, unscaled
from ingestd.paimon.spec.file_options import library_compression
from ingestd.paimon.spec.options import CoreOptions

_ROOT_RECORD = "record"

_Cell = Any
Convert = Callable[[_Cell], _Cell]
"""Converts a value that is not null."""

_PLAIN: Mapping[pa.DataType, Json] = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.timestamp("ms"): {"type": "long", "logicalType": "timestamp-millis"},
    pa.timestamp("us"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("ms", tz="UTC"): {"type": "long", "logicalType": "local-timestamp-millis"},
    pa.timestamp("us", tz="UTC"): {"type": "long", "logicalType": "local-timestamp-micros"},
}
_FROM_PRIMITIVE: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_FROM_LOGICAL: Mapping[str, pa.DataType] = {
    str(document["logicalType"]): arrow_type
    for arrow_type, document in _PLAIN.items()
    if isinstance(document, dict)
}


@dataclass(frozen=True, slots=True)
class Codec:
    """A target type, of Avro or Arrow, and the function that converts values to it.

    `convert` is called with values that are not null; it is None if they need no conversion.
    """

    type: Any
    convert: Convert | None = None


def _record_codec(fields: list[ArrowField], name: str = _ROOT_RECORD) -> Codec:
    """Return the codec of Arrow fields: their Avro record type, and the conversion of rows to it.

    Rows are dictionaries of values by column name. Raises UnsupportedError for a column name or a
    type that Avro cannot store.
    """
    codecs = {field.name: _field_codec(field, f"{name}_{field.name}") for field in fields}
    parts = []
    for field in fields:
        record_field = {"name": _checked_name(field.name), "type": codecs[field.name].type}
        parts.append({**record_field, "default": None} if field.nullable else record_field)
    document: dict[str, Json] = {"type": "record", "name": name, "fields": parts}
    if name == _ROOT_RECORD:
        document["namespace"] = NAMESPACE
    steps = {field: codec.convert for field, codec in codecs.items() if codec.convert}
    return Codec(document, _record_step(steps) if steps else None)


def _record_step(steps: Mapping[str, Convert]) -> Convert:
    def convert(row: _Cell) -> _Cell:
        changed = {name: step(row[name]) for name, step in steps.items() if row[name] is not None}
        return {**row, **changed}

    return convert


def _checked_name(name: str) -> str:
    if not is_avro_name(name):
        raise UnsupportedError(
            f"column '{name}' cannot be written to Avro: a name there has letters, digits and _ "
            "only; rename the column, or set 'file.format' to 'parquet'"
        )
    return name


def _field_codec(field: ArrowField, name: str) -> Codec:
    codec = _type_codec(field.type, name)
    return Codec(["null", codec.type], codec.convert) if field.nullable else codec


def _type_codec(arrow_type: pa.DataType, name: str) -> Codec:
    nested: Any = arrow_type
    plain = _PLAIN.get(arrow_type)
    if plain is not None:
        return Codec(plain)
    if pa.types.is_decimal128(arrow_type):
        logical = {"logicalType": "decimal", "precision": nested.precision, "scale": nested.scale}
        scale = nested.scale
        return Codec(
            {"type": "bytes", **logical}, lambda value: minimal_bytes(unscaled(value, scale))
        )
    if pa.types.is_struct(arrow_type):
        return _record_codec([nested.field(i) for i in range(nested.num_fields)], name)
    if pa.types.is_list(arrow_type):
        items = _field_codec(nested.value_field, name)
        return Codec({"type": "array", "items": items.type}, _each(items.convert))
    if pa.types.is_map(arrow_type):
        return _map_codec(nested, name)
    raise UnsupportedError(f"Arrow type {arrow_type} cannot be written to Avro")


def _map_codec(arrow_type: Any, name: str) -> Codec:  # noqa: ANN401  # a MapType, to the stubs
    """Return the codec of a map: an Avro map if its keys are strings, else an array of entries."""
    if arrow_type.key_type == pa.string():
        values = _field_codec(arrow_type.item_field, name)
        step = values.convert
        if step is None:
            return Codec({"type": "map", "values": values.type}, dict)
        return Codec({"type": "map", "values": values.type}, lambda pairs: _map_of(pairs, step))
    key, value = arrow_type.key_field.with_name("key"), arrow_type.item_field.with_name("value")
    entry = _record_codec([key, value], name)
    document = {"type": "array", "items": entry.type, "logicalType": "map"}
    each = _each(entry.convert)

    def entries(pairs: _Cell) -> _Cell:
        rows = [{"key": key, "value": value} for key, value in pairs]
        return rows if each is None else each(rows)

    return Codec(document, entries)


def _map_of(pairs: _Cell, step: Convert) -> dict[str, _Cell]:
    return {key: None if value is None else step(value) for key, value in pairs}


def _each(step: Convert | None) -> Convert | None:
    if step is None:
        return None
    return lambda cells: [None if cell is None else step(cell) for cell in cells]


def _arrow_codec(document: Json) -> Codec:
    """Return the Arrow type of an Avro type, and the conversion of its cells.

    Raises ValueError for an Avro type that no Paimon writer uses.
    """
    if isinstance(document, list):
        kinds = [kind for kind in document if kind != "null"]
        if len(kinds) != 1:
            raise ValueError(f"union {document} is not of null and one type")
        return _arrow_codec(kinds[0])
    if isinstance(document, str):
        document = {"type": document}
    kind, logical = document["type"], document.get("logicalType")
    if isinstance(kind, dict | list):
        return _arrow_codec(kind)
    if logical == "decimal":
        scale = int(document.get("scale", 0))
        return Codec(
            pa.decimal128(int(document["precision"]), scale),
            lambda data: _decimal(data, scale),
        )
    if logical in _FROM_LOGICAL:
        return Codec(_FROM_LOGICAL[logical])
    if kind in _FROM_PRIMITIVE:
        return Codec(_FROM_PRIMITIVE[kind])
    return _nested_from(kind, document)


def _decimal(data: bytes, scale: int) -> Decimal:
    number = int.from_bytes(data, "big", signed=True)
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def _nested_from(kind: str, document: Json) -> Codec:
    if kind == "record":
        return _fields_codec(document["fields"])
    if kind == "map":
        values = _arrow_codec(document["values"])
        step = values.convert
        pairs = _pairs if step is None else lambda cells: list(_map_of(cells.items(), step).items())
        return Codec(_map(pa.string(), values.type), pairs)
    if kind != "array":
        raise ValueError(f"Avro type {kind} is not used for columns")
    items = _arrow_codec(document["items"])
    if document.get("logicalType") != "map":
        return Codec(pa.list_(pa.field("element", items.type)), _each(items.convert))
    each = _each(items.convert)

    def entries(rows: _Cell) -> _Cell:
        return [(row["key"], row["value"]) for row in (each(rows) if each else rows)]

    entry: Any = items.type
    return Codec(_map(entry.field("key").type, entry.field("value").type), entries)


def _pairs(cells: _Cell) -> list[tuple[str, _Cell]]:
    return list(cells.items())


def _map(key: pa.DataType, value: pa.DataType) -> pa.DataType:
    return pa.map_(key, value)


def _fields_codec(fields: list[Json]) -> Codec:
    """Return the Arrow struct type of an Avro record's fields, and the conversion of its cells."""
    codecs = {str(field["name"]): _arrow_codec(field["type"]) for field in fields}
    steps = {name: codec.convert for name, codec in codecs.items() if codec.convert}
    struct = pa.struct([(name, codec.type) for name, codec in codecs.items()])
    return Codec(struct, _record_step(steps) if steps else None)


_BLOCK_SIZE = BatchSize(1 << 20, 1024)
_READ_BYTES = 1 << 18
_SPOOL_BYTES = 8 << 20
"""Bytes of an unfinished file that are buffered in memory; further bytes are buffered on disk."""


def open_sink(sink: pa.NativeFile, first: pa.Table, options: CoreOptions) -> RowSink:
    """Return a sink that writes an Avro file in parts, with the columns of `first`.

    `first` itself is not written. The rows are buffered until the sink is closed, because the
    header of the file has a checksum of them. Raises UnsupportedError for a compression or a column
    that Avro files do not support.
    """
    return _Sink(sink, first, options)


class _Sink:
    def __init__(self, sink: pa.NativeFile, first: pa.Table, options: CoreOptions) -> None:
        self._codec = _record_codec(list(first.schema))
        self._schema = avro_blocks.parse_block_schema(self._codec.type)
        compression = library_compression("avro", options.file_compression)
        document = json.dumps(self._codec.type, ensure_ascii=False)
        self._sink = sink
        self._spool = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115  (see `close`)
        self._blocks = BlockWriter(document, self._spool, compression, options.zstd_level)

    def write(self, rows: pa.Table) -> None:
        """Write more rows as blocks."""
        for block in _records(rows, self._codec):
            self._blocks.add(len(block), avro_blocks.encode_records(self._schema, block))

    @property
    def size(self) -> int:
        """The size in bytes of the blocks buffered so far."""
        return self._blocks.size

    def close(self) -> None:
        """Write the header and the buffered blocks."""
        with self._spool:
            self._blocks.write_to(self._sink)

    def abort(self) -> None:
        """Discard the buffered blocks."""
        self._spool.close()


def read_file(io: FileIO, path: str, columns: Sequence[str] | None) -> pa.Table:
    """Return the rows in file order, with the `columns` (None: all) that the file contains.

    TINYINT and SMALLINT are returned as int32. Raises FileNotFoundError if the file does not exist,
    StorageError if the store fails, FormatError if it cannot be decoded, and UnsupportedError for
    content that ingestd does not support.
    """
    data = io.read_bytes(path)
    with decoding(pa.BufferReader(data), path, "Avro", avro_blocks.BROKEN):
        return _decoded(data, columns)


def read_batches(
    io: FileIO, path: str, columns: Sequence[str] | None, size: BatchSize
) -> Iterator[pa.Table]:
    """Yield the rows in file order, with the `columns` (None: all), in parts within `size`.

    The types and errors are those of `read_file`; columns that the file lacks are left out.
    """
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
        # The records of a union begin with a number of its type, so it is decoded as a union.
        self._schema = avro_blocks.parse_block_schema(document)
        if isinstance(document, list):
            (document,) = (kind for kind in document if kind != "null")
        fields = {str(field["name"]): field["type"] for field in document["fields"]}
        wanted = list(fields) if columns is None else [name for name in columns if name in fields]
        self._codecs = {name: _arrow_codec(fields[name]) for name in wanted}

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
