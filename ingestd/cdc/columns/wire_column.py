"""A column of messages: its name, its types, and the meaning of its JSON values.

A reader returns an array with the type of the values in messages; `recast` converts it to the
declared type.
"""

import base64
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.columns.temporal_columns import (
    TimestampType,
    arrow_timestamp,
    coarser_timestamps,
    read_integers,
    read_texts,
    time_of_day,
)
from ingestd.paimon.spec.arrow import (
    Array,
    cast_exactly,
    has_hexadecimals,
    new_infinities,
    to_arrow_type,
)
from ingestd.paimon.spec.data_types import (
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    NESTED_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)
from ingestd.paimon.spec.float_text import java_double, java_float
from ingestd.paimon.spec.value_text import date_texts, timestamp_texts

STRING = DataType("STRING")
BIGINT = DataType("BIGINT")
_WHOLE_NUMBERS = frozenset({"INT", "BIGINT"})


class Meaning(Enum):
    """How the JSON values of a column are interpreted, if its type does not determine it."""

    PLAIN = "plain"
    """The usual JSON form of the type: integers, strings, base64 for bytes and decimals, ..."""
    UNSCALED = "unscaled"
    """Base64 of an unscaled integer with the scale `WireColumn.scale`."""
    VARIABLE_DECIMAL = "variable_decimal"
    """Objects with a scale and the base64 of an unscaled integer."""
    BITS = "bits"
    """Base64 of little-endian bytes, which are padded to `WireColumn.width` unless this is 0."""
    MICRO_TIME = "micro_time"
    """Microseconds since midnight, or a signed duration in microseconds."""
    NANO_TIME = "nano_time"
    """Nanoseconds since midnight."""
    NANO_TIMESTAMP = "nano_timestamp"
    """Nanoseconds since the epoch."""
    SOURCE_TEXT = "source_text"
    """Strings as the source database formats values, or JSON numbers; never base64."""
    LATIN1 = "latin1"
    """Strings in which each character is a byte."""
    UTF8 = "utf8"
    """Strings whose UTF-8 bytes are the value."""
    BIT_NUMBER = "bit_number"
    """A bit string of `WireColumn.width` bits as an integer."""
    ENUM = "enum"
    """A label, or its number in `WireColumn.labels`, starting at 1."""
    LABEL_SET = "label_set"
    """Labels separated by commas, or an integer with a bit for each label."""
    GEOMETRY = "geometry"
    """Strings in which each character is a byte of a geometry in MySQL's storage format."""
    JSON = "json"
    """Any JSON value, stored as its unchanged text."""


_WITH_TEXT = frozenset({Meaning.LABEL_SET, Meaning.BIT_NUMBER})
"""Meanings whose readers return the text of a value if the type is STRING."""


@dataclass(frozen=True, slots=True)
class WireColumn:
    """A column of messages: its types, and how its values are read.

    `data_type` is the type of the values in messages, and `declared` the type in the configuration.
    `scale` and `width` (in bytes, or bits for a `BIT_NUMBER`) complete the meaning. `text` states
    that values are JSON strings although values of this type usually are JSON numbers. `default` is
    the JSON text of the value of an absent field. `element` is the column of array elements or map
    values. If `sized` is false, precision and scale of the type are a guess. `labels` are the
    labels of an ENUM or SET.
    """

    name: str
    data_type: DataType
    meaning: Meaning = Meaning.PLAIN
    scale: int = 0
    width: int = 0
    text: bool = False
    default: bytes | None = None
    declared: DataType | None = None
    element: "WireColumn | None" = None
    sized: bool = True
    labels: tuple[str, ...] = ()

    @property
    def table_type(self) -> DataType:
        """The Paimon type of the column in the table: as declared, or else as in messages."""
        return self.data_type if self.declared is None else self.declared

    def declared_as(self, declared: DataType | None) -> "WireColumn":
        """Return the column with its declared type, or unchanged if `declared` is None.

        If a type of strings is declared, arrays and maps become their JSON text, and sets and bit
        strings their text form. Strings as the source formats values are read as the declared type
        at once. A time that is declared as an integer is not converted to TIME first, because
        24:00:00 is not a valid TIME.
        """
        if declared is None or declared.as_nullable() == self.data_type:
            return self
        if self.text and declared.root in CHARACTER_ROOTS:
            return WireColumn(self.name, declared)
        if self.meaning is Meaning.SOURCE_TEXT:
            return replace(self, data_type=declared.as_nullable())
        if declared.root in CHARACTER_ROOTS and self.meaning in _WITH_TEXT:
            return replace(self, data_type=STRING, declared=declared)
        if declared.root in CHARACTER_ROOTS and self.data_type.root in NESTED_ROOTS:
            return WireColumn(self.name, STRING, Meaning.JSON, declared=declared)
        data_type, plain = self.data_type, self.meaning is Meaning.PLAIN and not self.text
        if data_type.root == "TIME" and plain and declared.root in _WHOLE_NUMBERS:
            data_type = BIGINT
        return replace(self, data_type=data_type, declared=declared)


_TEMPORAL_ROOTS = TIMESTAMP_ROOTS | {"DATE", "TIME"}
_PER_MILLI = {Meaning.MICRO_TIME: 1_000, Meaning.NANO_TIME: 1_000_000}
_UNITS = ("ms", "us", "ns")
_CLOCK_ROOTS = TIMESTAMP_ROOTS | {"TIME"}
_SECONDS_OF_DAY = 86_400
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_FOUR_DIGIT_YEARS = (-719_528, 2_932_897)
"""The days from the epoch of January 1st of the years 0 and 10000."""


def recast(array: Array, column: WireColumn) -> Array:
    """Convert the array of a column to its declared type.

    Timestamps and times are rounded down to the declared precision. Floats become strings as in
    Java: 1.0E20. Raises ValueError, TypeError, ArithmeticError, RecursionError or ArrowException if
    a value is out of range, or would lose information in any other way.
    """
    declared = column.declared
    if declared is None:
        return array
    target = to_arrow_type(declared)
    if array.type == target:
        return array
    if declared.root in CHARACTER_ROOTS:
        is_bits = column.meaning is Meaning.BITS
        return _bit_texts(array) if is_bits else texts_of(array, column.data_type)
    if declared.root in _TEMPORAL_ROOTS:
        return _temporal(array, column, declared)
    return _plain(array, declared)


def _plain(array: Array, declared: DataType) -> Array:
    from_text = pa.types.is_string(array.type)
    if from_text and declared.root in INTEGER_ROOTS and has_hexadecimals(array):
        raise ValueError("not an integer")
    values = cast_exactly(array, to_arrow_type(declared))
    if pa.types.is_floating(values.type) and new_infinities(array, values):
        raise OverflowError(f"out of range of {declared}")
    return values


def _bit_texts(array: Array) -> Array:
    """Return booleans or bytes as strings of the digits 0 and 1."""
    if pa.types.is_boolean(array.type):
        return array.cast(pa.int8()).cast(pa.string())
    cells = [None if v is None else "".join(f"{byte:08b}" for byte in v) for v in array.to_pylist()]
    return pa.array(cells, pa.string())


def texts_of(array: Array, data_type: DataType) -> Array:
    """Return the text of each value of a type that is not nested, as a STRING column stores it.

    Decimals have no exponent, floats are formatted as in Java, and bytes are base64. Years have
    four digits, or more after `+` or `-`.
    """
    if _has_long_years(array):
        return _long_year_texts(array, data_type)
    if data_type.root in _CLOCK_ROOTS and not data_type.precision:
        texts: Array = pc.replace_substring_regex(array.cast(pa.string()), r"\.000", "")
        return texts
    if pa.types.is_decimal(array.type):
        return pa.array(
            [None if v is None else format(v, "f") for v in array.to_pylist()], pa.string()
        )
    if pa.types.is_binary(array.type):
        return pa.array(
            [None if v is None else base64.b64encode(v).decode() for v in array.to_pylist()],
            pa.string(),
        )
    if pa.types.is_floating(array.type):
        text = java_float if array.type == pa.float32() else java_double
        return pa.array([None if v is None else text(v) for v in array.to_pylist()], pa.string())
    return array.cast(pa.string())


def _has_long_years(array: Array) -> bool:
    """Return whether any date or timestamp is outside of the years 0 to 9999.

    Arrow writes such years without a sign, and writes no year, or a wrong one, beyond 32767.
    """
    kind: Any = array.type
    per_day = 1
    if pa.types.is_timestamp(kind):
        per_day = _SECONDS_OF_DAY * _PER_SECOND[kind.unit]
    elif not pa.types.is_date(kind):
        return False
    whole: Any = array.view(pa.int32() if pa.types.is_date(kind) else pa.int64())
    bounds: Any = pc.min_max(whole).as_py()
    first, last = bounds["min"], bounds["max"]
    start, end = _FOUR_DIGIT_YEARS
    return first is not None and bool(first < start * per_day or last >= end * per_day)


def _long_year_texts(array: Array, data_type: DataType) -> Array:
    if pa.types.is_date(array.type):
        return date_texts(array)
    kind: TimestampType = array.type
    digits = len(str(_PER_SECOND[kind.unit])) - 1 if data_type.precision else 0
    texts = timestamp_texts(array, digits, "Z" if kind.tz else "")
    with_blanks: Array = pc.replace_substring(texts, "T", " ")
    return with_blanks


def _temporal(array: Array, column: WireColumn, declared: DataType) -> Array:
    if column.data_type.root in CHARACTER_ROOTS:
        return read_texts(array.to_pylist(), declared)
    per_milli = _PER_MILLI.get(column.meaning)
    if declared.root == "TIME" and per_milli is not None:
        return time_of_day(array, per_milli)
    if column.meaning is Meaning.NANO_TIMESTAMP:
        array = array.cast(pa.timestamp("ns"))
    elif column.data_type.root in INTEGER_ROOTS:
        return read_integers(array.to_pylist(), declared)
    if declared.root in TIMESTAMP_ROOTS and pa.types.is_timestamp(array.type):
        return _timestamps(array, arrow_timestamp(declared))
    return cast_exactly(array, to_arrow_type(declared))


def _timestamps(array: Array, target: TimestampType) -> Array:
    if _UNITS.index(array.type.unit) > _UNITS.index(target.unit):
        return coarser_timestamps(array, target)
    finer = pc.cast(array, pa.timestamp(target.unit, array.type.tz))
    return finer.cast(pa.int64()).cast(target)


_KEY_TYPES = {"TINYINT": DataType("INT"), "SMALLINT": DataType("INT")}


def key_column(column: WireColumn) -> WireColumn:
    """Return the column for use in a key, with TINYINT and SMALLINT widened to INT.

    They are widened because the type of a key column cannot change later.
    """
    wide = _KEY_TYPES.get(column.data_type.root)
    return column if wide is None else replace(column, data_type=wide)
