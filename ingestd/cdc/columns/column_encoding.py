"""The encodings in which the native reader reads a column: accepted JSON values and storage type.

An encoding accepts only values that the reader in Python accepts, with the same result.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ingestd.cdc.columns.temporal_columns import DAY_MILLIS, read_texts
from ingestd.cdc.columns.unavailable import BASE64, TEXT
from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.data_types import TIMESTAMP_ROOTS, DataType

Spec = tuple[Any, ...]
"""A node of a native plan; the documentation of the extension lists them."""
Finish = Callable[[Array], Array]


def _as_it_is(array: Array) -> Array:
    return array


@dataclass(frozen=True, slots=True)
class ColumnEncoding:
    """The encoding of a column.

    `storage` is the Arrow type of the buffers, `finish` converts them to the column's array.
    `comparable` is whether two cells are equal exactly when their JSON values are.
    """

    spec: Spec
    storage: pa.DataType
    finish: Finish = _as_it_is
    comparable: bool = True


TEXT_ENCODING = ColumnEncoding(("text", (TEXT, BASE64)), pa.string())
BINARY_ENCODING = ColumnEncoding(("base64", (BASE64,)), pa.binary())
BOOLEAN_ENCODING = ColumnEncoding(("boolean",), pa.bool_())
RAW = ColumnEncoding(("raw",), pa.binary(), comparable=False)
"""The JSON texts themselves, for the reader in Python."""


def integer_form(arrow_type: pa.DataType) -> ColumnEncoding:
    """Return the encoding of integers of any width, and of dates and timestamps stored as such."""
    bits = arrow_type.bit_width
    return ColumnEncoding(_integers(bits), arrow_type)


def _integers(bits: int) -> Spec:
    return ("integer", bits, 1, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


INT64_ENCODING = integer_form(pa.int64())


def time_form(per_milli: int) -> ColumnEncoding:
    """Return the encoding of times of day in units of 1 / `per_milli` milliseconds."""
    spec = ("integer", 32, per_milli, 0, DAY_MILLIS - 1)
    return ColumnEncoding(spec, pa.time32("ms"), comparable=per_milli == 1)


def temporal_form(data_type: DataType) -> ColumnEncoding:
    """Return the encoding of integers in the type's unit; see `temporal_columns.read_integers`."""
    if data_type.root == "TIME":
        return time_form(1 if (data_type.precision or 0) <= 3 else 1000)
    return integer_form(to_arrow_type(data_type))


def iso_form(data_type: DataType) -> ColumnEncoding:
    """Return the encoding of ISO 8601 text, like `temporal_columns.read_texts`."""
    target = to_arrow_type(data_type)

    def finish(texts: Array) -> Array:
        if data_type.root in TIMESTAMP_ROOTS:
            try:
                return texts.cast(target)
            except pa.ArrowInvalid:
                pass  # notations that Arrow does not parse
        return read_texts(texts.to_pylist(), data_type)

    return ColumnEncoding(("text", ()), pa.string(), finish)


def float_form(arrow_type: pa.DataType, *, special: bool) -> ColumnEncoding:
    """Return the encoding of floats; with `special`, NaN and infinities may be text."""
    return ColumnEncoding(("float", arrow_type.bit_width, special), arrow_type, comparable=False)


def decimal_form(data_type: DataType) -> ColumnEncoding:
    """Return the encoding of decimals as JSON numbers, quoted or not."""
    precision, scale = data_type.precision or 0, data_type.scale or 0
    return ColumnEncoding(("decimal", precision, scale), to_arrow_type(data_type))


def unscaled_form(scale: int, arrow_type: pa.DataType) -> ColumnEncoding | None:
    """Return the encoding of base64 unscaled integers, like `decimal_columns.from_unscaled`."""
    if not 0 <= scale <= 38:
        return None
    storage = pa.decimal128(38, scale)

    def finish(array: Array) -> Array:
        return array if array.type == arrow_type else array.cast(arrow_type)

    return ColumnEncoding(("unscaled", (BASE64,)), storage, finish)
