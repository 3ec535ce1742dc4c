"""Readers of JSON columns in Python, and the column encodings of the native reader.

A Python reader has the msgspec type of a column's JSON values, and builds the Arrow array. An
encoding describes how the native reader parses and stores the same values. The native reader
accepts only values that the Python reader accepts, with the same result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import UNSET

from ingestd.cdc.columns import raw_cells, unavailable
from ingestd.cdc.columns.temporal_columns import DAY_MILLIS, read_texts
from ingestd.cdc.columns.unavailable import BASE64, TEXTS
from ingestd.cdc.columns.wire_column import WireColumn, recast
from ingestd.cdc.record_errors import PARSE_ERRORS
from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    NESTED_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)

WireType = Any
Value = Any
Values = Sequence[Any]
Build = Callable[[Values], Array]
Spec = tuple[Any, ...]
"""A node of a plan of the native reader; the documentation of the extension lists all nodes."""
Finish = Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class ColumnEncoding:
    """How the native reader parses and stores the JSON values of a column.

    `spec` is the plan node that parses the values, and `storage` the Arrow type of the buffers that
    it fills. `finish` converts an array of this type to the array of the column (None: no
    conversion). If `comparable` is false (raw JSON, times that are rounded, floats), stored values
    cannot be compared to detect that a key has changed.
    """

    spec: Spec
    storage: pa.DataType
    finish: Finish | None = None
    comparable: bool = True


TEXT_ENCODING = ColumnEncoding(("text", TEXTS), pa.string())
BINARY_ENCODING = ColumnEncoding(("base64", (BASE64,)), pa.binary())
BOOLEAN_ENCODING = ColumnEncoding(("boolean",), pa.bool_())
RAW = ColumnEncoding(("raw",), pa.binary(), comparable=False)
"""The encoding of JSON values that are not parsed natively, but later by the Python reader."""


def integer_encoding(arrow_type: pa.DataType) -> ColumnEncoding:
    """Return the encoding of JSON integers that are stored in `arrow_type`.

    This is an integer type, or a date or timestamp type with the unit of the integers.
    """
    bits = arrow_type.bit_width
    return ColumnEncoding(_integers(bits), arrow_type)


def _integers(bits: int) -> Spec:
    return ("integer", bits, 1, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


INT64_ENCODING = integer_encoding(pa.int64())


def time_encoding(per_milli: int) -> ColumnEncoding:
    """Return the encoding of JSON integers that are times of day.

    `per_milli` is the number of units per millisecond.
    """
    spec = ("integer", 32, per_milli, 0, DAY_MILLIS - 1)
    return ColumnEncoding(spec, pa.time32("ms"), comparable=per_milli == 1)


def temporal_encoding(data_type: DataType) -> ColumnEncoding:
    """Return the encoding of JSON integers in the unit of a date, time or timestamp type."""
    if data_type.root == "TIME":
        return time_encoding(1 if (data_type.precision or 0) <= 3 else 1000)
    return integer_encoding(to_arrow_type(data_type))


def iso_encoding(data_type: DataType) -> ColumnEncoding:
    """Return the encoding of ISO 8601 strings that are dates, times or timestamps."""
    target = to_arrow_type(data_type)

    def finish(texts: Array) -> Array:
        if data_type.root in TIMESTAMP_ROOTS:
            try:
                return texts.cast(target)
            except pa.ArrowInvalid:
                pass  # formats that Arrow does not parse
        return read_texts(texts.to_pylist(), data_type)

    return ColumnEncoding(("text", ()), pa.string(), finish)


def float_encoding(arrow_type: pa.DataType, *, special: bool) -> ColumnEncoding:
    """Return the encoding of JSON numbers that are stored in `arrow_type`, a floating-point type.

    If `special`, JSON strings of NaN and the infinities are accepted, too.
    """
    return ColumnEncoding(("float", arrow_type.bit_width, special), arrow_type, comparable=False)


def decimal_encoding(data_type: DataType) -> ColumnEncoding:
    """Return the encoding of decimals that are JSON numbers, quoted or not."""
    precision, scale = data_type.precision or 0, data_type.scale or 0
    return ColumnEncoding(("decimal", precision, scale), to_arrow_type(data_type))


def unscaled_encoding(scale: int, arrow_type: pa.DataType) -> ColumnEncoding | None:
    """Return the encoding of decimals that are unscaled integers in base64.

    `scale` is the number of fractional digits, and `arrow_type` the type of the column. Returns
    None if the native reader cannot decode them: it supports only scales from 0 to 38.
    """
    if not 0 <= scale <= 38:
        return None
    storage = pa.decimal128(38, scale)

    def finish(array: Array) -> Array:
        return array if array.type == arrow_type else array.cast(arrow_type)

    return ColumnEncoding(("unscaled", (BASE64,)), storage, finish)


@dataclass(frozen=True, slots=True)
class ColumnReader:
    """The Python reader of a JSON column: decodes values with msgspec, then builds an Arrow array.

    `wire` is the msgspec type of a value. `build` returns the Arrow array of values.
    `find_unavailable` returns the indices of the values that are Debezium's placeholder for an
    omitted value. `native` is the encoding with which the native reader builds the same array, or
    None if it cannot.
    """

    wire: Any
    build: Build
    find_unavailable: unavailable.Find
    native: ColumnEncoding | None = None

    def read(self, values: Values) -> tuple[Array, npt.NDArray[np.bool_] | None]:
        """Return the Arrow array of decoded values, and a mask of omitted values or None.

        The mask is None if no value is omitted. Raises ValueError, TypeError, ArithmeticError,
        RecursionError or ArrowException if a value does not fit.
        """
        if self.wire is str:
            array = self.build(values)
            if not unavailable.may_hold_text(array):
                return array, None
        left_out = self.find_unavailable(values)
        if not left_out:
            return self.build(values), None
        mask = np.zeros(len(values), np.bool_)
        mask[left_out] = True
        kept = [None if out else value for value, out in zip(values, mask, strict=True)]
        return self.build(kept), mask


@dataclass(frozen=True, slots=True)
class PlanColumn:
    """A column of a row plan: its name, its types, and how its JSON values are decoded.

    `column` and `reader` are None as long as all values have been null. `attribute` is the
    attribute of row structs that has its value. `wire` is the msgspec type of a value that may be
    null. `default` is the value of an absent field: the default in the schema of the message, else
    UNSET. `table_type` is the type of the column in the table, which differs from the type of the
    values in messages if `is_declared`. `encoding` is the encoding of the native reader, or RAW if
    the Python reader is used.
    """

    name: str
    column: WireColumn | None
    reader: ColumnReader | None
    attribute: str
    wire: WireType = field(init=False, default=None)
    default: Value = field(init=False, default=UNSET)
    table_type: DataType | None = field(init=False, default=None)
    is_declared: bool = field(init=False, default=False)
    encoding: ColumnEncoding = field(init=False, default=RAW)

    def __post_init__(self) -> None:
        if self.column is None or self.reader is None:
            return
        wire = self.reader.wire
        object.__setattr__(self, "wire", wire if wire is msgspec.Raw else wire | None)
        object.__setattr__(self, "table_type", self.column.table_type)
        object.__setattr__(self, "is_declared", self.column.declared is not None)
        object.__setattr__(self, "encoding", self.reader.native or RAW)
        if self.column.default is not None:
            object.__setattr__(self, "default", _default(self.column.default, self.wire))

    def values_of(self, rows: Sequence[Any]) -> list[Value]:
        """Return the values (n,) of the column from n decoded row structs.

        An absent field has the value `default`.
        """
        return list(map(attrgetter(self.attribute), rows))

    def as_declared(self, array: Array) -> Array:
        """Convert an array from the type in messages to the declared type.

        Raises ValueError, TypeError, ArithmeticError, RecursionError or ArrowException if a value
        does not fit the declared type.
        """
        if self.column is None or not self.is_declared:
            return array
        return recast(array, self.column)


def _default(text: bytes, wire: WireType) -> Value:
    """Parse a default value; return UNSET if it is invalid or not a scalar."""
    try:
        value = msgspec.json.decode(text, type=wire)
    except PARSE_ERRORS:
        return UNSET
    return UNSET if isinstance(value, list | dict | msgspec.Struct) else value


def present(values: Values) -> list[Any]:
    """Replace UNSET, the mark of an absent field, by None in a list of values."""
    return [None if value is UNSET else value for value in values]


def arrow_accepted(arrow_type: pa.DataType) -> Build:
    """Return a function that builds an array of this type from values that Arrow accepts unchanged.

    Absent values are replaced by None only if Arrow fails, because the replacement is slow.
    """

    def build(values: Values) -> Array:
        try:
            return pa.array(values, arrow_type)
        except (pa.ArrowException, OverflowError):
            return pa.array(present(values), arrow_type)

    return build


def converting(arrow_type: pa.DataType, convert: Callable[[Any], Any]) -> Build:
    """Return a function that builds an array of this type, null for absent values.

    If Arrow rejects any value, each value is converted by `convert` first.
    """

    def build(values: Values) -> Array:
        try:
            return pa.array(values, arrow_type)
        except (pa.ArrowException, OverflowError):
            converted = [None if v is None else convert(v) for v in present(values)]
            return pa.array(converted, arrow_type)

    return build


def from_present(convert: Callable[[list[Any]], Array]) -> Build:
    """Return a function that replaces absent values (UNSET) by None, and then calls `convert`.

    `convert` builds an Arrow array from the values.
    """

    def build(values: Values) -> Array:
        return convert(present(values))

    return build


def raw_reader(
    convert: Callable[[bytes], Any],
    arrow_type: pa.DataType,
    find: unavailable.Find = unavailable.find_raw,
) -> ColumnReader:
    """Return a reader that converts JSON values one by one; `convert` takes the JSON text.

    `find` finds placeholders in these texts.
    """

    def build(values: Values) -> Array:
        cells = [None if v is None or v is UNSET else convert(bytes(v)) for v in values]
        return pa.array(cells, arrow_type)

    return ColumnReader(msgspec.Raw, build, find)


def any_reader(data_type: DataType) -> ColumnReader:
    """Return a reader for columns of this type that accepts every kind of JSON value.

    It converts values one by one, so it is slower than all other readers. It finds the same
    placeholders as the reader that is chosen if all values are of the usual kind.
    """
    find: unavailable.Find = unavailable.find_nothing
    if data_type.root in CHARACTER_ROOTS | NESTED_ROOTS:
        find = unavailable.find_raw
    elif data_type.root in BINARY_ROOTS:
        find = unavailable.find_raw_bytes
    arrow_type = to_arrow_type(data_type)
    return raw_reader(lambda raw: raw_cells.read_cell(raw, data_type), arrow_type, find)


def decimal_numbers(data_type: DataType) -> ColumnReader:
    """Return the reader of a DECIMAL column whose values are JSON numbers, quoted or not."""
    arrow_type, scale = to_arrow_type(data_type), data_type.scale or 0

    def build(values: Values) -> Array:
        cells = [
            None if v is None else raw_cells.decimal_cell(bytes(v), scale, base64=False)
            for v in present(values)
        ]
        return pa.array(cells, arrow_type)

    # Not Decimal: msgspec accepts all texts that Python does, such as " 1", "1_0" and "NaN".
    return ColumnReader(msgspec.Raw, build, unavailable.find_nothing, decimal_encoding(data_type))
