"""A column of messages: its name, its type in the table, and the meaning of its JSON values."""

from dataclasses import dataclass, replace
from enum import Enum

from ingestd.paimon.spec.data_types import DataType

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
