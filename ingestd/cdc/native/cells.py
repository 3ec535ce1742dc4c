"""Columns of the native reader as Arrow arrays, and operations on them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.columns.recast import recast
from ingestd.cdc.native.column_encoding import RAW, ColumnEncoding
from ingestd.cdc.native.module import NativeColumn
from ingestd.cdc.native.plan import form_of
from ingestd.cdc.plan_column import PlanColumn, Value, WireType
from ingestd.paimon.spec.arrow import Array

Marks = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

# The type stubs have these functions for some types only.
_if_else: Callable[[Array, Array, Array], Array] = pc.if_else
_take: Callable[[Array, Array], Array] = pc.take
_equal: Callable[[Array, Array], Array] = pc.equal


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells (rows,) of a column in its storage type.

    `left_out` (rows,) marks values that the source omitted (None: no value). `seen` counts the
    messages that had the field.
    """

    array: Array
    left_out: Marks | None
    seen: int


def to_cells(found: NativeColumn, form: ColumnEncoding, rows: int) -> Cells:
    """Return a column of the native reader as cells, without copying its memory."""
    validity = None if found.validity is None else pa.py_buffer(found.validity)
    buffers = [validity]
    if found.offsets is not None:
        buffers.append(pa.py_buffer(found.offsets))
    buffers.append(pa.py_buffer(found.data))
    array: Array = pa.Array.from_buffers(form.storage, rows, buffers, found.nulls)
    left_out = None
    if found.left_out is not None:
        left_out = np.zeros(rows, np.bool_)
        left_out[np.frombuffer(found.left_out, np.uint32)] = True
    return Cells(array, left_out, found.seen)


def numbers(found: NativeColumn, rows: int) -> tuple[npt.NDArray[np.int64], Marks]:
    """Return 64-bit integers and a mask of those that are not null."""
    values = np.frombuffer(found.data, np.int64)
    if found.validity is None:
        return values, np.ones(rows, np.bool_)
    bits = np.frombuffer(found.validity, np.uint8)
    return values, np.unpackbits(bits, count=rows, bitorder="little").view(np.bool_)


def flags(found: NativeColumn) -> Marks:
    """Return a mask of the messages that had the object."""
    return np.frombuffer(found.data, np.bool_)


def codes(found: NativeColumn) -> npt.NDArray[np.uint8]:
    """Return the number of each row's text in a choice, from 1; 0 if the field is absent."""
    return np.frombuffer(found.data, np.uint8)


def counts(found: NativeColumn) -> Indices:
    """Return the number of objects in each array."""
    return np.frombuffer(found.data, np.uint32).astype(np.int64)


def lacking(found: NativeColumn, rows: int) -> Marks:
    """Return a mask of the rows without the field."""
    marks = np.zeros(rows + 1, np.int8)
    if found.lacking is not None:
        bounds = np.frombuffer(found.lacking, np.uint32).reshape(-1, 2)
        marks[bounds[:, 0]] = 1
        marks[bounds[:, 1]] = -1
    return np.cumsum(marks[:-1], dtype=np.int8).view(np.bool_)


def kept(cells: Cells, rows: Marks) -> Cells:
    """Return the cells of some rows, null in all others; only validity bits are copied."""
    array = cells.array
    validity, *rest = array.buffers()
    bits = np.packbits(rows, bitorder="little")
    if validity is not None:
        bits &= np.frombuffer(memoryview(validity), np.uint8, len(bits))
    masked: Array = pa.Array.from_buffers(
        array.type, len(array), [pa.py_buffer(bits.tobytes()), *rest]
    )
    left_out = None if cells.left_out is None else cells.left_out & rows
    return Cells(masked, left_out, cells.seen)


def choose(from_first: Marks, first: Cells, second: Cells) -> Cells:
    """Return cells of the first column where the mask is set, else of the second."""
    array = _if_else(pa.array(from_first), first.array, second.array)
    left_out = None
    if first.left_out is not None or second.left_out is not None:
        none = np.zeros(len(from_first), np.bool_)
        a, b = (none if c.left_out is None else c.left_out for c in (first, second))
        left_out = np.where(from_first, a, b)
    return Cells(array, left_out, first.seen + second.seen)


def differ(first: Cells, second: Cells) -> Marks:
    """Return a mask of the rows in which two columns differ; nulls always differ."""
    equal = _equal(first.array, second.array)
    # Filling nulls would take several times as long as comparing.
    validity, same = (
        None if buffer is None else _bits(buffer, equal) for buffer in equal.buffers()
    )
    if same is None:
        return np.ones(len(equal), np.bool_)
    return ~same if validity is None else ~(same & validity)


def _bits(packed: pa.Buffer, array: Array) -> Marks:
    bits = np.frombuffer(memoryview(packed), np.uint8)
    end = array.offset + len(array)
    return np.unpackbits(bits, count=end, bitorder="little").view(np.bool_)[array.offset :]


def take(cells: Cells, rows: Indices) -> Cells:
    """Return the cells of these rows; null, and not omitted, where a row is negative."""
    absent = rows < 0
    left_out = None if cells.left_out is None else cells.left_out[rows] & ~absent
    indices: Array = pa.array(rows, pa.int64(), mask=absent)
    return Cells(_take(cells.array, indices), left_out, cells.seen)


def stacked(first: Cells, second: Cells) -> Cells:
    """Return the cells of two columns, one after the other."""
    left_out = None
    if first.left_out is not None or second.left_out is not None:
        left_out = np.concatenate([_omitted(first), _omitted(second)])
    array = pa.concat_arrays([first.array, second.array])
    return Cells(array, left_out, first.seen + second.seen)


def _omitted(cells: Cells) -> Marks:
    return np.zeros(len(cells.array), np.bool_) if cells.left_out is None else cells.left_out


def build(column: PlanColumn, cells: Cells) -> tuple[Array, Marks | None]:
    """Return a column's array in its table type, and the mask of omitted values.

    Raises one of `BUILD_ERRORS` or `PARSE_ERRORS` if any value does not fit.
    """
    if column.column is None or column.reader is None:
        raise ValueError(f"column {column.name} has no reader yet")
    form = form_of(column)
    left_out = cells.left_out
    if form is RAW:
        array, placeholders = column.reader.read(_decoded(column.wire, cells.array))
        left_out = _either(left_out, placeholders)
    else:
        array = form.finish(cells.array)
    if left_out is not None and not left_out.any():
        left_out = None
    return recast(array, column.column), left_out


def _either(first: Marks | None, second: Marks | None) -> Marks | None:
    """Return the union of two masks; None is an empty mask."""
    if first is None or second is None:
        return second if first is None else first
    return first | second


def _decoded(wire: WireType, texts: Array) -> Sequence[Value]:
    """Decode JSON texts to the values that the reader in Python takes."""
    cells = texts.to_pylist()
    present = [text for text in cells if text is not None]
    values = msgspec.json.decode(b"[" + b",".join(present) + b"]", type=list[wire])
    if len(present) == len(cells):
        return values
    remaining = iter(values)
    return [None if text is None else next(remaining) for text in cells]
