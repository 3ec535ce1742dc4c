"""Read and write INT96 timestamps of Parquet files, also those outside the range of nanoseconds.

The library converts INT96 to nanoseconds, which overflow silently before 1677 and after 2262, or to
microseconds, which are wrong if the time of day is negative, as Java writes it before 1970. The
footer is therefore changed in memory so that such columns are read as 12 fixed bytes.

The library writes either all timestamps of a file as INT96 or none. Paimon's readers expect it only
for timestamps of more than 6 digits, so all others are given to the library as integers, and the
footer is changed before it is written.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#parquet
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ingestd.errors import UnsupportedError
from ingestd.paimon.format.parquet_footer import Struct, encode_struct, member, read_footer, structs
from ingestd.paimon.spec.arrow import Array, Column, with_leaves

_MAGIC = b"PAR1"
_INT64, _INT96, _FIXED = 2, 3, 7
_WIDTH = 12
_EPOCH_DAY = 2_440_588
"""The Julian day of 1970-01-01."""
_DAY_MICROS = 86_400_000_000
_LAST_DAY = 10**8
"""Maximum number of days before or after 1970; their microseconds fit into 64 bits."""
_LOW, _HIGH = divmod(-(2**63), 1000), divmod(2**63 - 1, 1000)
"""The first and the last timestamp of nanoseconds: microseconds, and nanoseconds beyond them."""
_TAIL = 8
"""Bytes after the footer: its length, and `_MAGIC`."""

_Micros = npt.NDArray[np.int64]
_Instants = tuple[_Micros, _Micros]
"""Microseconds, and the nanoseconds (0 to 999) beyond them."""


def beyond_nanoseconds(
    source: pa.NativeFile, names: Sequence[str], groups: Sequence[int]
) -> Mapping[str, Column]:
    """Return the columns among `names` with a value outside the range of nanoseconds, by name.

    The columns are in microseconds and have the rows of the row groups `groups`; other columns are
    left out. Raises UnsupportedError if such a value is inside a nested column, or outside the
    supported range of microseconds.
    """
    source.seek(0)
    file = pq.ParquetFile(source, metadata=_with_bytes(source))
    rows = file.read_row_groups(list(groups), columns=list(names))
    wide: dict[str, Column] = {}
    for name in names:
        column = rows.column(name)
        if all(_fits(instants) for chunk in column.chunks for instants in _leaves(chunk, name)):
            continue
        if not pa.types.is_fixed_size_binary(column.type):
            raise UnsupportedError(
                f"column {name}: a timestamp inside it is before 1677 or after 2262, which has "
                "no nanosecond form"
            )
        chunks = [_timestamps(chunk, name) for chunk in column.chunks]
        wide[name] = pa.chunked_array(chunks, pa.timestamp("us"))
    return wide


def _fits(instants: _Instants) -> bool:
    """Return whether timestamps are in the range of nanoseconds."""
    micros, nanos = instants
    early = (micros < _LOW[0]) | ((micros == _LOW[0]) & (nanos < _LOW[1]))
    late = (micros > _HIGH[0]) | ((micros == _HIGH[0]) & (nanos > _HIGH[1]))
    return not (early | late).any()


def _leaves(column: Array, name: str) -> Iterator[_Instants]:
    """Yield the non-null INT96 values of a column."""
    array: Any = column
    kind: Any = column.type
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width == _WIDTH:
        yield _instants(array.drop_null(), name)
    elif pa.types.is_struct(kind):
        for child in array.flatten():
            yield from _leaves(child, name)
    elif pa.types.is_map(kind):
        present = array.drop_null()
        yield from _leaves(present.keys, name)
        yield from _leaves(present.items, name)
    elif pa.types.is_list(kind):
        yield from _leaves(array.flatten(), name)


def _instants(array: Any, name: str) -> _Instants:  # noqa: ANN401  # FixedSizeBinaryArray
    data = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    cells = data[array.offset * _WIDTH : (array.offset + len(array)) * _WIDTH].reshape(-1, _WIDTH)
    nanos = np.ascontiguousarray(cells[:, :8]).view("<i8")[:, 0]
    days = np.ascontiguousarray(cells[:, 8:]).view("<i4")[:, 0].astype(np.int64) - _EPOCH_DAY
    if len(days) and max(-int(days.min()), int(days.max())) > _LAST_DAY:
        raise UnsupportedError(f"column {name}: a timestamp has no microsecond form")
    return days * _DAY_MICROS + nanos // 1000, nanos % 1000


def _timestamps(column: Array, name: str) -> Array:
    array: Any = column
    numbers = np.zeros(len(array), np.int64)
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    numbers[~nulls] = _instants(array.drop_null(), name)[0]
    micros: Array = pa.array(numbers, mask=nulls).cast(pa.timestamp("us"))
    return micros


def _with_bytes(source: pa.NativeFile) -> pq.FileMetaData:
    """Return the metadata of a file in which INT96 columns are declared as 12 fixed bytes."""
    footer = read_footer(source)
    for element in structs(member(footer, 2)):
        _replace_type(element, with_length=True)
    for group in structs(member(footer, 4)):
        for chunk in structs(member(group, 1)):
            _replace_type(member(chunk, 3), with_length=False)
    changed = encode_struct(footer)
    small = _MAGIC + changed + len(changed).to_bytes(4, "little") + _MAGIC
    return pq.read_metadata(pa.BufferReader(small))


def _replace_type(struct: Struct, *, with_length: bool) -> None:
    for field in struct:
        if field[0] == 1 and field[2] == _INT96:
            field[2] = _FIXED
            if with_length:
                struct.insert(1, [2, field[1], _WIDTH])
            return


def with_integers(schema: pa.Schema) -> pa.Schema:
    """Return a schema in which timestamps in other units than nanoseconds are integers."""
    return pa.schema([field.with_type(with_leaves(field.type, _as_integer)) for field in schema])


def as_integers(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows with the schema `schema`, a result of `with_integers`.

    A timestamp becomes the integer that represents it in its unit.
    """
    read: Any = pa.ipc.read_record_batch
    batches = [read(batch.serialize(), schema) for batch in rows.to_batches()]
    return pa.Table.from_batches(batches, schema)


def with_timestamps(end: bytes, schema: pa.Schema) -> bytes:
    """Return the bytes `end`, with a footer that declares the integers as timestamps of `schema`.

    `end` is the end of a file that was written with `with_integers(schema)`; it has at least the
    footer.
    """
    footer = read_footer(pa.BufferReader(end))
    declared = structs(member(_footer_of(schema), 2))
    elements = member(footer, 2)[1]
    for number, element in enumerate(elements):
        if member(element, 1) == member(declared[number], 1) == _INT64:
            elements[number] = declared[number]
    changed = encode_struct(footer)
    start = len(end) - _TAIL - int.from_bytes(end[-_TAIL:][:4], "little")
    return end[:start] + changed + len(changed).to_bytes(4, "little") + _MAGIC


def _footer_of(schema: pa.Schema) -> Struct:
    """Return the footer of a file without rows and without INT96."""
    sink = pa.BufferOutputStream()
    write: Any = pq.write_table
    write(schema.empty_table(), sink, store_schema=False, store_decimal_as_integer=True)
    return read_footer(pa.BufferReader(sink.getvalue()))


def _as_integer(arrow_type: pa.DataType) -> pa.DataType:
    is_integer = pa.types.is_timestamp(arrow_type) and arrow_type.unit != "ns"
    return pa.int64() if is_integer else arrow_type
