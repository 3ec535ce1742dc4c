"""A column of messages: its name, its types, and the meaning of its JSON values.

Its array has the type of the values in messages; `recast` converts it to the declared type.
"""

import base64
from dataclasses import dataclass, replace
from enum import Enum

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
from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.data_types import (
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)

STRING = DataType("STRING")
BIGINT = DataType("BIGINT")
_WHOLE_NUMBERS = frozenset({"INT", "BIGINT"})


class Meaning(Enum):
    """The meaning of a column's JSON values, where the type alone does not determine it."""

    PLAIN = "plain"
    """Values in the JSON form of their type: integers, text, base64 for bytes and decimals, ..."""
    UNSCALED = "unscaled"
    """Base64 of an unscaled integer whose scale is `WireColumn.scale`."""
    VARIABLE_DECIMAL = "variable_decimal"
    """Objects with a scale and the base64 of an unscaled integer."""
    BITS = "bits"
    """Base64 of little-endian bytes; `WireColumn.width` bytes wide, 0 for any width."""
    MICRO_TIME = "micro_time"
    """Microseconds of a day, or of a signed duration."""
    NANO_TIME = "nano_time"
    """Nanoseconds of a day."""
    NANO_TIMESTAMP = "nano_timestamp"
    """Nanoseconds since 1970."""
    SOURCE_TEXT = "source_text"
    """Text as the source database prints values, or JSON numbers; never base64."""
    LATIN1 = "latin1"
    """Text each of whose characters is a byte."""
    UTF8 = "utf8"
    """Text whose UTF-8 bytes are the value."""
    BIT_NUMBER = "bit_number"
    """The integer that a bit string is; `WireColumn.width` bits."""
    ENUM = "enum"
    """A label, or its number in `WireColumn.labels`, from 1."""
    LABEL_SET = "label_set"
    """Labels with commas between them, or an integer with a bit for each of the labels."""
    GEOMETRY = "geometry"
    """Characters that are the bytes of a geometry as MySQL stores it."""
    JSON = "json"
    """Any JSON value, kept as the text that came."""


@dataclass(frozen=True, slots=True)
class WireColumn:
    """How to read a column.

    `data_type` is the type of the values in messages, `declared` the type in the configuration.
    `text` is whether values are JSON text although those of the type usually are numbers. `default`
    is the JSON text of the value of an absent field. Without `sized`, precision and scale of the
    type are a guess. `labels` are those of an enumeration or a set.
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
        """Return the type of the column that is built."""
        return self.data_type if self.declared is None else self.declared

    def declared_as(self, declared: DataType) -> "WireColumn":
        """Return the column with a declared type.

        A time of day declared as a number is not converted to a time first, since 24:00:00 is none.
        """
        data_type, plain = self.data_type, self.meaning is Meaning.PLAIN and not self.text
        if data_type.root == "TIME" and plain and declared.root in _WHOLE_NUMBERS:
            data_type = BIGINT
        return replace(self, data_type=data_type, declared=declared)


_TEMPORAL_ROOTS = TIMESTAMP_ROOTS | {"DATE", "TIME"}
_PER_MILLI = {Meaning.MICRO_TIME: 1_000, Meaning.NANO_TIME: 1_000_000}
_UNITS = ("ms", "us", "ns")


def recast(array: Array, column: WireColumn) -> Array:
    """Return the column's array in its declared type.

    Timestamps and times are rounded down to the declared precision. Any other loss, and a value out
    of range, raises one of `record_errors.BUILD_ERRORS`.
    """
    declared = column.declared
    if declared is None:
        return array
    target = to_arrow_type(declared)
    if array.type == target:
        return array
    if declared.root in CHARACTER_ROOTS:
        return _bit_texts(array) if column.meaning is Meaning.BITS else _texts(array)
    if declared.root in _TEMPORAL_ROOTS:
        return _temporal(array, column, declared)
    if declared.root == "DECIMAL" and column.data_type.root in INTEGER_ROOTS:
        return pa.array(array.to_pylist(), target)
    return array.cast(target)


def _bit_texts(array: Array) -> Array:
    """Return whole bytes as texts of 0 and 1."""
    if pa.types.is_boolean(array.type):
        return array.cast(pa.int8()).cast(pa.string())
    cells = [None if v is None else "".join(f"{byte:08b}" for byte in v) for v in array.to_pylist()]
    return pa.array(cells, pa.string())


def _texts(array: Array) -> Array:
    if pa.types.is_decimal(array.type):
        return pa.array(
            [None if v is None else format(v, "f") for v in array.to_pylist()], pa.string()
        )
    if pa.types.is_binary(array.type):
        return pa.array(
            [None if v is None else base64.b64encode(v).decode() for v in array.to_pylist()],
            pa.string(),
        )
    return array.cast(pa.string())


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
    return array.cast(to_arrow_type(declared))


def _timestamps(array: Array, target: TimestampType) -> Array:
    if _UNITS.index(array.type.unit) > _UNITS.index(target.unit):
        return coarser_timestamps(array, target)
    finer = pc.cast(array, pa.timestamp(target.unit, array.type.tz))
    return finer.cast(pa.int64()).cast(target)
